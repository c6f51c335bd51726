"""Wrong declarations of output ports: we refuse a file only if OpenVINO does, or if a layer computes with the port."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from harness.files import Writer, add_sample
from harness.oracle import core
from harness.sample import Sample, all_samples
from lxml import etree

import ir_runtime as ir
from ir_runtime.codes import DECLARED
from ir_runtime.ir.tensor import TensorType

KINDS = ("element type", "dim", "rank")


def samples() -> Iterator[object]:
    """Return the first sample of every tenth operation; in the exhaustive run, of every operation."""
    seen: dict[str, int] = {}
    for sample in all_samples():
        if sample.op not in seen and sample.oracle != "none":
            seen[sample.op] = len(seen)
            yield pytest.param(sample, id=sample.op, marks=pytest.mark.oracle if seen[sample.op] % 10 else ())


def file_of(sample: Sample, is_read: bool) -> tuple[bytes, bytes]:
    """Return two models of a sample: one whose outputs go to Results, one with a consumer for each."""
    writer = Writer()
    add_sample(writer, sample, sample.constant)
    for number, layer in enumerate(list(writer.layers) if is_read else ()):
        for port in etree.fromstring(layer).iterfind("output/port"):
            add_shape(writer, number, port)
    return writer.xml(), writer.weights


def add_shape(writer: Writer, layer: int, port: Any) -> None:
    """Add a consumer of an output; its declaration repeats that of the output."""
    dims = [dim.text for dim in port.iterfind("dim")]
    element = ir.Type.of_port(port.get("precision"))
    source = TensorType(element, ir.PartialShape(list(map(int, dims))))
    shape = TensorType(ir.Type.i64, ir.PartialShape([len(dims)]))
    end = writer.layer("ShapeOf", "opset1", {}, [(layer, int(port.get("id")))], [shape], [source])
    writer.layer("Result", "opset1", {}, [(end, 1)], inputs=[shape])


def contradicted(xml: bytes) -> Iterator[tuple[str, bytes, bool]]:
    """Yield the file with one declaration changed, and whether a layer computes with that port."""
    root = etree.fromstring(xml)
    types = {layer.get("id"): layer.get("type") for layer in root.iterfind("layers/layer")}
    readers: dict[tuple[str, str], set[str]] = {}
    for edge in root.iterfind("edges/edge"):
        end = edge.get("from-layer"), edge.get("from-port")
        readers.setdefault(end, set()).add(types[edge.get("to-layer")])
    for layer in root.iterfind("layers/layer"):
        for port in layer.iterfind("output/port"):
            is_read = bool(readers.get((layer.get("id"), port.get("id")), set()) - {"Result"})
            for kind in KINDS:
                if change(port, kind):
                    yield f"{layer.get('type')} {kind}", etree.tostring(root), is_read
                    change(port, kind, back=True)


def change(port: Any, kind: str, back: bool = False) -> bool:
    """Change a port's declaration, or restore it; return whether there is one."""
    dims = port.findall("dim")
    if kind == "element type":
        said = port.get("precision")
        port.set("precision", port.attrib.pop("before") if back else "I64" if said != "I64" else "FP32")
        if not back:
            port.set("before", said)
        return True
    if not dims:
        return False
    if kind == "rank":
        dims[-1].addnext(etree.fromstring("<dim>1</dim>")) if not back else port.remove(dims[-1])
        return True
    if dims[0].text == "-1":
        return False
    dims[0].text = str(int(dims[0].text) + (-1 if back else 1))
    return True


def inferred(xml: bytes, weights: bytes) -> list[str] | None:
    """Return the outputs that OpenVINO infers; ``None`` if it refuses the file."""
    try:
        return [
            f"{o.get_element_type()} {o.get_partial_shape()}" for o in core().read_model(xml, weights).outputs
        ]
    except RuntimeError:
        return None


@pytest.mark.parametrize("is_read", [False, True], ids=["results", "layers"])
@pytest.mark.parametrize("sample", list(samples()))
def test_what_ports_declare(sample: Sample, is_read: bool) -> None:
    xml, weights = file_of(sample, is_read)
    as_declared = inferred(xml, weights)
    assert as_declared is not None
    assert ir.validate(xml, weights).ok
    wrong = []
    for what, changed, computed in contradicted(xml):
        report, theirs = ir.validate(changed, weights), inferred(changed, weights)
        assert theirs in (None, as_declared), "OpenVINO compiles the same model"
        is_said = any(found.code in DECLARED for found in report)  # not where inference leaves it open
        if report.ok != (theirs is not None and not (computed and is_said)):
            wrong.append((what, computed, str(report)))
        elif report.ok:
            ir.compile_model(ir.read_model(changed, weights), backend="numpy")
    assert wrong == []
