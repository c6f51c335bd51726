"""Omitted attributes that the specification requires: OpenVINO's default, or a refusal."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import openvino as ov
import pytest
from harness.files import model_of
from harness.nets import Net
from harness.oracle import read
from harness.sample import Sample, all_samples, is_sampled
from lxml import etree

import ir_runtime as ir
from ir_runtime.codes import DECLARED, Code
from ir_runtime.ops import Op, registry

ENDS = ("Parameter", "Const", "Result")

# What OpenVINO reads files without, and we do not, by attribute, with the reason.
_ZERO = "OpenVINO holds 0 there, which the page excludes"
_EMPTY = "OpenVINO holds nothing there, with which there is nothing to compute"
_MEMORY = "OpenVINO holds there what is in memory"
_TYPE = "OpenVINO leaves the type of the output open, and runs no such layer"
_NONE = "OpenVINO would keep no box at all"
JUSTIFIED = {
    "hidden_size": _ZERO,
    "pooled_h": _ZERO,
    "pooled_w": _ZERO,
    "output_size": _ZERO,
    "base_size": _ZERO,
    "max_detections_per_image": _ZERO,
    "pre_nms_topn": _ZERO,
    "post_nms_topn": _ZERO,
    "spatial_scale": _ZERO,
    "coords": _ZERO,
    "num": _ZERO,
    "eps": _ZERO,
    "epsilon": _ZERO,
    "beta": _ZERO,
    "size": _ZERO,
    "levels": _ZERO,
    "pre_nms_count": _NONE,
    "post_nms_count": _NONE,
    "deltas_weights": _EMPTY,
    "pyramid_scales": _EMPTY,
    "ratio": _EMPTY,
    "scale": _EMPTY,
    "axes": _EMPTY,
    "mode": _EMPTY,
    "output_type": _TYPE,
    "destination_type": _TYPE,
    "convert_type": _MEMORY,
    "with_replacement": _MEMORY,
    "log_probs": _MEMORY,
}

# Without these, OpenVINO falls over.
CANNOT_BE_ASKED = {
    ("DetectionOutput", "keep_top_k"),
    *(("Col2Im", name) for name in ("strides", "dilations")),
}


@cache
def first_samples() -> dict[tuple[str, str], Sample]:
    """Return a sample for each attribute of each operation version, if one sets it."""
    found: dict[tuple[str, str], Sample] = {}
    for sample in all_samples():
        for name in sample.attributes:
            found.setdefault((sample.op, name), sample)
    return found


def cases() -> Iterator[tuple[str, str]]:
    """Yield operation versions with their required attributes."""
    for cls in registry:
        for attribute in cls.schema().values():
            if is_sampled(cls) and attribute.required and (cls.name, attribute.xml) not in CANNOT_BE_ASKED:
                yield cls.versioned_name(), attribute.xml


def without(op: str, name: str) -> tuple[type[Op], bytes, bytes]:
    """Return a sample without an attribute."""
    sample = first_samples()[op, name]
    xml, weights = model_of(sample, sample.constant)
    root = etree.fromstring(xml)
    del _data(root)[name]
    return sample.cls, etree.tostring(root), weights


def _data(root: etree._Element) -> dict[str, str]:
    layer = next(la for la in root.iterfind("layers/layer") if la.get("type") not in ENDS)
    return layer.find("data").attrib  # type: ignore[no-any-return]


def theirs(xml: bytes, weights: bytes, folder: Path) -> dict[str, str] | None:
    """Return the attributes as OpenVINO reads them; ``None`` if it refuses the file."""
    try:
        ov.serialize(read(xml, weights), folder / "read.xml")
    except RuntimeError:
        return None
    return dict(_data(etree.parse(folder / "read.xml").getroot()))


@pytest.mark.parametrize(("op", "name"), list(cases()))
def test_is_read_as_openvino_does(op: str, name: str, tmp_path: Path) -> None:
    cls, xml, weights = without(op, name)
    said = theirs(xml, weights, tmp_path)
    model = ir.read_model(xml, weights, strict=False)
    missing = [
        f for f in model.report if f.code == Code.BAD_ATTRIBUTE and f"{name!r} is missing" in f.message
    ]
    if any(found.severity == "error" for found in missing):
        assert said is None or name in JUSTIFIED, f"OpenVINO takes {said and said[name]!r}"
        return
    assert len(missing) == 1, "a default that is OpenVINO's is said to be"
    assert said is not None, "OpenVINO refuses the file"
    (layer,) = [la for la in model._graph.layers.values() if la.where.operation == op]
    (attribute,) = [a for a in cls.schema().values() if a.xml == name]
    assert layer.op is not None
    assert vars(layer.op)[attribute.name] == attribute.parse(said[name])
    assert all(found.code in DECLARED for found in model.report.errors)


def test_each_reason_is_needed(tmp_path: Path) -> None:
    """A justified difference is accepted by OpenVINO and refused here."""
    needed = set()
    for op, name in cases():
        if name not in JUSTIFIED or name in needed:
            continue
        _, xml, weights = without(op, name)
        refused = Code.BAD_ATTRIBUTE in [e.code for e in ir.validate(xml, weights).errors]
        if refused and theirs(xml, weights, tmp_path) is not None:
            needed.add(name)
    assert needed == JUSTIFIED.keys()


def test_windows_of_which_nothing_is_said() -> None:
    """Windows are refused if no attribute tells the number of spatial axes."""
    net = Net()
    x, filters = (net.parameter(name, "1,1,4,4", out="FP32 1 1 4 4") for name in "xf")
    net.result(net.op("Convolution", x, filters, out="FP32 1 1 1 1"))
    names = [e.message.split("'")[1] for e in ir.validate(net.xml()).errors]
    assert names == ["strides", "pads_begin", "pads_end", "dilations"]
