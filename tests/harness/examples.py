"""The example and the test coverage of each operation, as recorded by ``make index``.

The example is the most readable sample: few values, all finite.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple
from xml.sax.saxutils import quoteattr

import numpy as np
from lxml import etree

import ir_runtime as ir
import ir_runtime.ops
from harness.files import precision
from harness.nets import Net, body_of
from harness.sample import Sample, all_samples, text
from ir_runtime.ir.element import ElementType
from ir_runtime.ir.signature import port_at
from ir_runtime.ir.tensor import Array
from ir_runtime.ops import Op, registry
from ir_runtime.ops._define.describe import group

__all__ = ["EXAMPLE_MODELS", "ExampleModel", "examples"]


class ExampleModel(NamedTuple):
    """A model and the inputs that it is run on."""

    xml: str
    weights: bytes
    inputs: dict[str, Array]


def _example(net: Net, **inputs: Array) -> ExampleModel:
    parser = etree.XMLParser(remove_blank_text=True)
    root = etree.fromstring(net.xml(), parser)
    etree.indent(root, "  ")
    return ExampleModel(etree.tostring(root, encoding="unicode"), net.weights, inputs)


def _ends() -> ExampleModel:
    net = Net("ends")
    x = net.parameter("x", "2", out="FP32 2")
    one = net.constant([1, 2], "f32", name="numbers")
    net.result(net.op("Add", x, one, name="sum", out="FP32 2"))
    return _example(net, x=np.array([3, 4], np.float32))


def _variables(version: int) -> ExampleModel:
    """A running sum over inferences."""
    net = Net("variables")
    x = net.parameter("x", "2", out="FP32 2")
    start = net.op("Subtract", x, x, name="zeros", out="FP32 2")
    known = {"variable_type": "f32", "variable_shape": "2"} if version == 6 else {}
    read = net.op("ReadValue", start, name="before", out="FP32 2", version=f"opset{version}", variable_id="total", **known)  # fmt: skip
    total = net.op("Add", read, x, name="after", out="FP32 2")
    net.op("Assign", total, name="keep", out="FP32 2", version=f"opset{version}", variable_id="total")
    net.result(total)
    return _example(net, x=np.array([1, 2], np.float32))


def _branch(operation: str) -> Net:
    """A body that applies one operation to its input."""
    net = Net()
    net.result(net.op(operation, net.parameter("y", "3", out="FP32 3"), name=operation.lower(), out="FP32 3"))
    return net


def _condition() -> ExampleModel:
    net = Net("condition")
    condition = net.parameter("condition", "", "boolean", out="BOOL")
    x = net.parameter("x", "3", out="FP32 3")
    ports = '<input external_port_id="1" internal_layer_id="0"/><output external_port_id="2" internal_layer_id="2"/>'
    inside = "".join(
        f"<{side}_port_map>{ports}</{side}_port_map>{body_of(_branch(operation)).replace('body>', f'{side}_body>')}"
        for side, operation in (("then", "Exp"), ("else", "Negative"))
    )
    net.result(net.layer("If", [condition, x], ["FP32 3"], version="opset8", inside=inside)[0])
    return _example(net, condition=np.array(False), x=np.array([1, 2, 3], np.float32))


def _loop() -> ExampleModel:
    """``trips`` times ``x = x + x``, while ``go_on`` is true."""
    net, inner = Net("loop"), Net()
    round = inner.parameter("y", "2", out="FP32 2")
    inner.result(inner.op("Add", round, round, name="twice", out="FP32 2"))
    inner.result(inner.parameter("again", "", "boolean", out="BOOL"), name="go_on_again")
    trips = net.parameter("trips", "", "i64", out="I64")
    start = net.parameter("go_on", "", "boolean", out="BOOL")
    x = net.parameter("x", "2", out="FP32 2")
    inside = (
        '<port_map><input external_port_id="2" internal_layer_id="0"/><input external_port_id="1" internal_layer_id="3"/>'
        '<output external_port_id="3" internal_layer_id="2"/>'
        '<output external_port_id="-1" internal_layer_id="4" purpose="execution_condition"/></port_map>'
        '<back_edges><edge from-layer="2" to-layer="0"/></back_edges>'
    )
    net.result(net.layer("Loop", [trips, start, x], ["FP32 2"], version="opset5", inside=inside + body_of(inner))[0])  # fmt: skip
    return _example(net, trips=np.array(3), go_on=np.array(True), x=np.array([1, 2], np.float32))


def _iterator() -> ExampleModel:
    """Running sums of rows: each iteration takes a row and passes its sum on."""
    net, inner = Net("iterator"), Net()
    row = inner.parameter("row", "1,2", out="FP32 1 2")
    before = inner.parameter("before", "1,2", out="FP32 1 2")
    inner.result(inner.op("Add", row, before, name="sum", out="FP32 1 2"))
    rows = net.parameter("rows", "3,2", out="FP32 3 2")
    start = net.parameter("start", "1,2", out="FP32 1 2")
    inside = (
        '<port_map><input external_port_id="0" internal_layer_id="0" axis="0"/>'
        '<input external_port_id="1" internal_layer_id="1"/><output external_port_id="2" internal_layer_id="3" axis="0"/></port_map>'
        '<back_edges><edge from-layer="3" to-layer="1"/></back_edges>'
    )
    net.result(net.layer("TensorIterator", [rows, start], ["FP32 3 2"], inside=inside + body_of(inner))[0])
    fed = np.arange(1, 7, dtype=np.float32).reshape(3, 2)
    return _example(net, rows=fed, start=np.zeros((1, 2), np.float32))


EXAMPLE_MODELS = {
    **dict.fromkeys(("Parameter-1", "Constant-1", "Result-1"), _ends()),
    **{f"{name}-{version}": _variables(version) for name in ("ReadValue", "Assign") for version in (3, 6)},
    "If-8": _condition(),
    "Loop-5": _loop(),
    "TensorIterator-1": _iterator(),
}
"""The model of each operation, by its versioned name."""


Results = tuple[Array, ...]

BEST_SIZE = 12
"""How many numbers the inputs of an example should have."""
TRIED = 12
"""How many samples of an operation are looked at."""
PRINTED = 96
"""Tensors with more elements than this are cut."""


def examples() -> tuple[Path, str]:
    """Return the path of the record, and its JSON for all operations."""
    samples: dict[str, list[Sample]] = {}
    for sample in all_samples():
        samples.setdefault(sample.op, []).append(sample)
    found = {cls.versioned_name(): _record(cls, samples) for cls in registry if group(cls)}
    lines = (
        f"{json.dumps(name)}: {json.dumps(record, ensure_ascii=False)}" for name, record in found.items()
    )
    return Path(ir_runtime.ops.__file__).with_name("_examples.json"), "{\n" + ",\n".join(lines) + "\n}\n"


def _record(cls: type[Op], samples: Mapping[str, list[Sample]]) -> dict[str, Any]:
    name = cls.versioned_name()
    if name in EXAMPLE_MODELS:
        return _of_model(cls)
    if name not in samples:
        raise SystemExit(f"{name} has no samples: add some to a file in tests/samples")
    return _of_samples(samples[name])


def _example_of(samples: Iterable[Sample]) -> tuple[Sample, Results]:
    """Return the most readable sample among those with repeatable results, and its results."""
    tried = map(_run, islice(sorted(samples, key=_length), TRIED))
    return min((found for found in tried if found is not None), key=_flaws)


def _run(sample: Sample) -> tuple[Sample, Results] | None:
    results = sample.evaluate()
    if sample.cls.pure or all(map(_same, results, sample.evaluate())):
        return sample, results
    return None


def _same(one: Array, other: Array) -> bool:
    return one.tobytes() == other.tobytes()


def _length(sample: Sample) -> tuple[object, ...]:
    """Return a sort key of a sample's readability before it runs; the worst properties first."""
    sizes = [x.size for x in sample.inputs]
    usual = all(x.dtype.name in ("float32", "int64", "int32", "bool", "object") for x in sample.inputs)
    real = any(x.dtype == np.float32 for x in sample.inputs)
    deep = max((x.ndim for x in sample.inputs), default=0) > 2
    long = sum(sizes) > 4 * BEST_SIZE
    return 0 in sizes, not usual, long, not real, deep, abs(sum(sizes) - BEST_SIZE)


def _flaws(found: tuple[Sample, Results]) -> tuple[object, ...]:
    """Return a sort key of the readability of results; the worst properties first."""
    sample, results = found
    arrays = [x for x in (*sample.inputs, *results) if x.dtype.kind == "f"]
    finite = all(np.isfinite(x).all() for x in arrays)
    dull = all(len(set(x.ravel().tolist())) < 2 for x in results)
    empty = any(x.size == 0 for x in (*sample.inputs, *results))
    return empty, not finite, dull, _same(results[0], sample.inputs[0]), *_length(sample)


def _of_samples(samples: Sequence[Sample]) -> dict[str, Any]:
    sample, results = _example_of(samples)
    types = [value.element for value in sample.values()]
    inferred = [type.element for type in sample.layer().infer_values(*sample.values())]
    inputs = list(map(_tensor, _inputs(sample), types, sample.inputs))
    outputs = list(map(_tensor, _outputs(sample, len(results)), inferred, results))
    xml = _xml(sample, inputs, outputs)
    counted = _counted(ir.read_fragment(xml))
    return {"xml": xml, "inputs": inputs, "outputs": outputs, "samples": _samples(samples), **counted}


def _counted(model: ir.Model) -> dict[str, str]:
    """Return the declared arithmetic, as formulas for dynamic dims; empty if unknown."""
    counted = ir.cost(model)
    return {} if counted.unknown else {"flops": str(counted.flops), "macs": str(counted.macs)}


def _inputs(sample: Sample) -> list[str]:
    """Return the names of the input ports; those of a variadic port are numbered."""
    ports = sample.cls.inputs
    names = []
    for index in range(len(sample.inputs)):
        port = port_at(ports, index)
        assert port is not None
        names.append(f"{port.name}{index}" if port.variadic else port.name)
    return names


def _outputs(sample: Sample, count: int) -> list[str]:
    ports = sample.cls.outputs
    return [
        f"{ports[-1].name}{i}" if ports[-1].variadic and i >= len(ports) - 1 else ports[i].name
        for i in range(count)
    ]


def _tensor(name: str, element: ElementType, array: Array) -> tuple[str, str, list[int], str]:
    printed = np.array2string(
        array, threshold=PRINTED, precision=4, suppress_small=True, max_line_width=88, separator=", "
    )
    return name, element.label, list(array.shape), re.sub(r"\n+", "\n", printed)


def _xml(sample: Sample, inputs: Sequence[Any], outputs: Sequence[Any]) -> str:
    """The layer as the specification prints them."""
    data = "".join(f" {name}={quoteattr(text(value))}" for name, value in sample.attributes.items())
    lines = [f'<layer id="0" name="example" type="{sample.cls.name}" version="opset{sample.cls.since}">']
    lines += [f"    <data{data}/>"] * bool(data)
    lines += _side("input", inputs, 0)
    lines += _side("output", outputs, len(inputs))
    return "\n".join([*lines, "</layer>"])


def _side(side: str, tensors: Sequence[Any], first: int) -> list[str]:
    if not tensors:
        return []
    ports = [_port(number, tensor, side) for number, tensor in enumerate(tensors, first)]
    return [f"    <{side}>", *ports, f"    </{side}>"]


def _port(number: int, tensor: tuple[str, str, list[int], str], side: str) -> str:
    """Return a port; small integer inputs such as axes have their value in a comment, as in the specification."""
    _, type, shape, printed = tensor
    dims = "".join(f"<dim>{length}</dim>" for length in shape)
    small = (
        side == "input"
        and type in ("i64", "i32")
        and len(shape) < 2
        and len(printed) < 40
        and not re.search(r"\d{10}", printed)
    )
    comment = f" <!-- value is {printed} -->" if small else ""
    return (
        f'        <port id="{number}" precision="{precision(ElementType.parse(type))}">{dims}</port>{comment}'
    )


def _samples(samples: Sequence[Sample]) -> dict[str, Any]:
    counts = Counter(sample.oracle for sample in samples)
    arrays = [array for sample in samples for array in sample.inputs]
    return {
        "reference": counts["reference"],
        "plugin": counts["plugin"],
        "by_hand": counts["none"],
        "ranks": sorted({array.ndim for array in arrays}),
        "types": sorted({ElementType.from_dtype(array.dtype).label for array in arrays}),
    }


def _of_model(cls: type[Op]) -> dict[str, Any]:
    xml, weights, inputs = EXAMPLE_MODELS[cls.versioned_name()]
    model = ir.read_model(xml.encode(), weights)
    outputs = ir.compile_model(model, backend="reference")(inputs)
    return {
        "xml": xml,
        **_counted(model),
        "inputs": [
            _tensor(name, ElementType.from_dtype(array.dtype), array) for name, array in inputs.items()
        ],
        "outputs": [
            _tensor(f"output {number}", ElementType.from_dtype(array.dtype), array)
            for number, array in enumerate(outputs.to_tuple())
        ],
    }
