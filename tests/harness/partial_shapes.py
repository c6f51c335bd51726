"""Inference on partially known shapes: patterns of shapes, both packages side by side, and the cases where ours is wider."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import click
import numpy as np
import openvino as ov

import ir_runtime
from harness.files import precision
from harness.nets import End, Net
from harness.oracle import core
from harness.sample import Sample, all_samples, text
from ir_runtime.cli.render import table
from ir_runtime.ir.dimension import Dimension, Interval
from ir_runtime.ir.element import ElementType
from ir_runtime.ir.graph import Graph, Port
from ir_runtime.ir.shape import PartialShape
from ir_runtime.ir.tensor import Array, TensorType, Value

__all__ = ["Bounded", "Constant", "Given", "PartialSample", "Typed", "length_around", "partial"]

Types = dict[str, TensorType]
"""Types by the path of a layer, through bodies, and the number of the output."""


class Inferred(NamedTuple):
    """Our inferred type of an output, the operation, and the outputs that it depends on."""

    type: TensorType
    operation: str
    sources: tuple[str, ...]


def ours(model: ir_runtime.Model) -> dict[str, Inferred]:
    """Return our inferred types of every output of every layer, bodies included."""
    return dict(_ours(model._graph, model._values, "", ()))


def _ours(graph: Graph, values: Any, path: str, outer: tuple[str, ...]) -> Iterator[tuple[str, Inferred]]:
    for layer in graph:
        ports = [s for s in graph.sources(layer) if s is not None]
        sources = tuple(f"{path}{graph[p.layer].name}:{p.number}" for p in ports)
        for index in range(len(layer.outputs)):
            value: Value = values[Port(layer.id, index)]
            yield f"{path}{layer.name}:{index}", Inferred(value.type, layer.type, sources or outer)
        for body in layer.bodies():
            if (layer.id, body.name) in values.bodies:  # all but a branch that is never taken
                inside = values.bodies[layer.id, body.name]
                yield from _ours(body.graph, inside, f"{path}{layer.name}/{body.name}/", sources)


def theirs(model: Any) -> Types:
    """Return OpenVINO's inferred types of every output of every layer, bodies included.

    Constants are omitted: reshaping adds some, possibly with names from the file.
    """
    return dict(_theirs(model, ""))


def _theirs(model: Any, path: str) -> Iterator[tuple[str, TensorType]]:
    for node in model.get_ops():
        name = f"{path}{node.get_friendly_name()}"
        for output in node.outputs() if node.get_type_name() != "Constant" else ():
            element = ElementType.parse(output.get_element_type().to_string())
            yield f"{name}:{output.index}", TensorType(element, _shape(output))
        for body, inside in _bodies(node).items():
            yield from _theirs(inside, f"{name}/{body}/")


def _bodies(node: Any) -> Mapping[str, Any]:
    kind = node.get_type_name()
    if kind == "If":
        return {"then_body": node.get_then_body(), "else_body": node.get_else_body()}
    return {"body": node.get_function()} if kind in ("Loop", "TensorIterator") else {}


def _shape(output: Any) -> PartialShape:
    return PartialShape(str(output.get_partial_shape()))


class Wider(NamedTuple):
    """A port for which OpenVINO infers something narrower or different."""

    port: str
    found: Inferred
    wanted: TensorType

    def __str__(self) -> str:
        return f"{self.found.operation} {self.port}: {self.found.type}, OpenVINO infers {self.wanted}"


def wider(found: Mapping[str, Inferred], wanted: Types) -> list[Wider]:
    """Return the first ports on each path where our type does not refine OpenVINO's, or element types differ."""
    first: list[Wider] = []
    behind: set[str] = set()
    for port, mine in found.items():  # each port comes behind those that it follows from
        if not behind.isdisjoint(mine.sources):
            behind.add(port)
        elif port in wanted and not _refines(mine.type, wanted[port]):
            behind.add(port)
            first.append(Wider(port, mine, wanted[port]))
    return first


def _refines(found: TensorType, wanted: TensorType) -> bool:
    same = wanted.element in (found.element, ElementType.dynamic)
    return same and found.shape.refines(wanted.shape)


def patterns(shapes: Sequence[PartialShape]) -> dict[str, list[PartialShape]]:
    """Return other shapes for all inputs of a model, keyed by how they were changed."""
    return {
        "any length": [PartialShape.dynamic(s.rank) for s in shapes],
        "any rank": [PartialShape.dynamic() for _ in shapes],
        "bounded": [_each(s, lambda d, first, last: _around(d)) for s in shapes],
        "any batch": [_each(s, lambda d, first, last: Dimension() if first else d) for s in shapes],
        "any last length": [_each(s, lambda d, first, last: Dimension() if last else d) for s in shapes],
        "batch of 2": [_each(s, lambda d, first, last: Dimension(2) if first else d) for s in shapes],
        "batch of 3": [_each(s, lambda d, first, last: Dimension(3) if first else d) for s in shapes],
    }


def _each(shape: PartialShape, change: Callable[[Dimension, bool, bool], Dimension]) -> PartialShape:
    if shape.rank is None:
        return shape
    return PartialShape([change(d, i == 0, i == len(shape) - 1) for i, d in enumerate(shape)])


def _around(length: Dimension) -> Dimension:
    return Dimension(max(length.min - 1, 1), (length.max or 6) + 5)


class Both:
    """A model read by both packages."""

    def __init__(self, source: Path | bytes, weights: bytes | None = None) -> None:
        self._read = (source,) if weights is None else (source, weights)
        self.restore()

    def restore(self) -> None:
        """Read the model again in both packages."""
        self.ours = ir_runtime.read_model(*self._read)
        self.theirs = core().read_model(*self._read)

    def reshape(self, shapes: Sequence[PartialShape]) -> Reshaped:
        """Reshape all inputs in both packages; a package that refuses keeps its former shapes."""
        reason, operation = "", ""
        try:
            self.ours.reshape(dict(enumerate(shapes)))
        except ir_runtime.IRError as refusal:
            reason, operation = str(refusal), _operation(refusal)
        try:
            self.theirs.reshape({i: ov.PartialShape(str(s)) for i, s in enumerate(shapes)})
        except RuntimeError as refusal:
            return Reshaped(reason, str(refusal), operation or _named_in(str(refusal)))
        return Reshaped(reason, "", operation)

    def wider(self) -> list[Wider]:
        """Return the first ports on each path where our type does not refine OpenVINO's, or element types differ."""
        return wider(ours(self.ours), theirs(self.theirs))


class Reshaped(NamedTuple):
    """The outcome of a reshape in both packages: none, or the refusal and its operation."""

    ours: str
    theirs: str
    operation: str

    @property
    def agree(self) -> bool:
        """Return whether both reshape or both refuse."""
        return bool(self.ours) is bool(self.theirs)

    def __str__(self) -> str:
        return f"OpenVINO refuses: {self.theirs}" if self.theirs else f"only ours refuses: {self.ours}"


def _operation(refusal: ir_runtime.IRError) -> str:
    return refusal.where.operation.rpartition("-")[0] if refusal.where and refusal.where.operation else ""


def _named_in(reason: str) -> str:
    """Return the operation in ``While validating node 'opset1::Slice ...``, else the source file in ``op/read_value.cpp``."""
    said = reason.partition("While validating node '")[2].partition("::")[2].partition(" ")[0]
    return said or reason.partition("src/op/")[2].partition(".cpp")[0]


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))


AXES_WRITTEN = (
    "when it reads a model, OpenVINO adds the axes that are absent, as follows from the shapes of that time; "
    "they stay whatever shapes come later"
)

SAMPLES: Mapping[tuple[str, str], str] = {
    **{
        (
            f"GatherND-{version}",
            pattern,
        ): "axes of the batch may broadcast, says the page; OpenVINO takes them for equal"
        for version in (5, 8)
        for pattern in ("any length", "bounded", "any batch")
    },
    **{("Slice-8", pattern): AXES_WRITTEN for pattern in ("bounded", "any batch", "any last length")},
    ("RandomUniform-8", "bounded"): "OpenVINO takes the most lengths that a list can have for their number",
    ("Reshape-1", "any rank"): "of a tensor without elements, -1 is 0; OpenVINO says it is at least 1",
    ("Transpose-1", "any rank"): "an empty order reverses the axes; OpenVINO concludes that there are none",
}
"""Why inferred shapes may be wider, by operation and what was done to the shapes of its inputs."""

MODELS: Mapping[tuple[str, str], str] = {
    **{
        ("ScaledDotProductAttention", pattern): (
            "a mask of more axes than the query gives the result more axes; OpenVINO forgets it where its rank is unknown"
        )
        for pattern in ("any rank", "mixed")
    },
    **{
        ("TensorIterator", pattern): (
            "the body gives parts as long as the batch; OpenVINO believes part_size, which says 1"
        )
        for pattern in ("batch of 2", "batch of 3", "mixed")
    },
    **{
        ("Loop", pattern): "what goes round grows; OpenVINO takes it for what it is in the first iteration"
        for pattern in ("bounded", "batch of 2", "batch of 3", "mixed")
    },
    ("Reshape", "any rank"): SAMPLES["Reshape-1", "any rank"],
    **{
        ("Reshape", pattern): SAMPLES["Reshape-1", "any rank"]
        for pattern in ("any length", "any last length", "any batch", "bounded", "mixed")
    },
    **{
        ("Pad", pattern): (
            "pads up to a multiple of 7 are a remainder, which does not grow with the length; OpenVINO computes "
            "with the lengths at both ends alone"
        )
        for pattern in ("bounded", "mixed")
    },
}
"""The same for layers of whole models; layers behind them follow."""

PARTIAL: Mapping[str, str] = {
    **{
        f"NonMaxSuppression-{version}": "as many rows as boxes are left; OpenVINO infers a number of rows, "
        "which it takes for an upper bound itself when it compiles, and which is too low in versions 1 and 3"
        for version in (1, 3, 4)
    },
    **{
        f"GatherND-{version}": "axes of the batch may broadcast, says the page; OpenVINO takes them for equal"
        for version in (5, 8)
    },
    "Einsum-7": "lengths of 1 broadcast; OpenVINO, too, computes so, but leaves it out where a rank is not known",
    "RandomUniform-8": "OpenVINO draws numbers when it infers, and others when it runs",
    "ScaledDotProductAttention-13": "a key, value or mask of more axes than the query gives the result more axes, as "
    "OpenVINO infers when it is told their ranks; where it is not, it takes the query's",
    "ScatterElementsUpdate-12": "the axis may be another; OpenVINO computes with the numbers at both ends alone",
}
"""The same for samples whose inputs are known in part, by operation, where OpenVINO does not contradict itself."""

STRICTER: Mapping[str, str] = {
    "PReLU": "the slope does not fit the data",
    "GatherElements": "constant indices lie beyond the axis, when that is shorter",
    "GatherND": "constant indices lie beyond the axis, when that is shorter",
    "ScatterUpdate": "constant indices lie beyond the axis, when that is shorter",
    "ReverseSequence": "constant lengths are more than the axis has, when that is shorter",
    "PriorBox": "output_size is to hold two numbers",
    "PriorBoxClustered": "output_size is to hold two numbers",
    "ExperimentalDetectronGenerateProposalsSingleImage": "deltas are to be four for each score",
    "Interpolate": "there is to be a size for each axis",
    "NormalizeL2": "there are more axes than the data have",
    "MatMul": "columns and rows differ, whatever is chosen within the bounds",
    "SpaceToBatch": "there is to be a number for each axis",
    "Broadcast": "the data have more axes than the target, or axes_mapping names others",
    "VariadicSplit": "the parts are longer than the whole",
    "Pad": "there is to be a number for each axis",
    "ScatterNDUpdate": "updates are not of the shape that data and indices ask for",
    "ScatterElementsUpdate": "axis is to be one number",
    "FakeQuantize": "limits have more axes than the data",
    "LSTMCell": "OpenVINO stretches constant states to the batch when it reshapes; we leave constants alone",
    **{
        f"Reduce{kind}": "there are more axes to reduce than the data have"
        for kind in ("Sum", "Mean", "Prod", "Min", "Max", "L1", "L2", "LogicalAnd", "LogicalOr")
    },
    "Reshape": "OpenVINO makes a constant target of one number -1 when it reshapes; we leave constants alone",
    "STFT": "the frames are longer than the signal",
    "TopK": "there are fewer elements than k",
    **{
        f"Embedding{kind}": "constant indices lie outside the table"
        for kind in ("BagOffsets", "BagOffsetsSum", "BagPacked", "BagPackedSum", "SegmentsSum")
    },
    "If": "a condition is one boolean",
    "Loop": "an execution condition is one boolean",
    "ScaledDotProductAttention": "there are fewer keys than the mask has columns",
}
"""Operations that refuse shapes that OpenVINO lets pass, and fails on when it runs, but where it is said."""

LAXER: Mapping[str, str] = {
    "GatherND": "axes of the batch may broadcast, says the page",
    "read_value": "OpenVINO wants the shape of a variable to extend that of its first value, whose rank is open",
    "ReverseSequence": "a negative axis needs no rank before the model runs",
    "Slice": AXES_WRITTEN,
    "StridedSlice": AXES_WRITTEN.replace("axes", "strides"),
    "Reshape": "whether data without elements can be reshaped is known when it is known that there are none",
    "SparseFillEmptyRows": "OpenVINO looks for dims where the rank is not known",
}
"""Operations that accept shapes that OpenVINO refuses."""


def rows() -> Iterator[list[str]]:
    """Yield the listed differences: kind, operation, place, reason."""
    of_samples = {sample.op: sample.wider for sample in all_samples() if sample.wider}
    yield from (["wider", op, "as written", reason] for op, reason in of_samples.items())
    yield from (["wider", op, pattern, reason] for (op, pattern), reason in {**SAMPLES, **MODELS}.items())
    yield from (["wider", op, "known in part", reason] for op, reason in PARTIAL.items())
    yield from (["refuses more", op, "reshaped", reason] for op, reason in STRICTER.items())
    yield from (["refuses less", op, "reshaped", reason] for op, reason in LAXER.items())


if __name__ == "__main__":
    click.echo(table("Where OpenVINO infers otherwise", ("kind", "operation", "where", "reason"), rows()))


FAR = 1000
"""How much longer than a bound a length without one may be."""
MOST_NUMBERS, LARGEST = 8, 12
"""How many numbers may be known by bounds, and how far from 0 they are: more would be a tensor beyond memory."""


@dataclass(frozen=True)
class Constant:
    """A constant input."""

    value: Value

    def add(self, net: Net) -> End:
        """Add it to a model."""
        return net.constant(self.value.known(), self.value.element.label)

    def instance(self, rng: Random) -> Constant:
        """Return a concrete input that this one allows."""
        return self

    def __str__(self) -> str:
        return "constant"


@dataclass(frozen=True)
class Typed:
    """An input with a partially known shape and unknown contents."""

    value: Value
    """What it is in the sample."""
    shape: PartialShape

    def add(self, net: Net) -> End:
        """Add it to a model."""
        element = self.value.element
        return net.parameter("", _written(self.shape), element.label, out=precision(element))

    def instance(self, rng: Random) -> Constant | Typed:
        """Return a concrete input that this one allows: the sample's own, or another."""
        if rng.random() < 0.5:
            return Constant(self.value)
        if _holds_lengths(self.value.known()) and rng.random() < 0.5:
            return self._numbers(rng)
        known = self.shape
        if known.rank is None:
            usual = self.value.shape.static
            known = PartialShape(
                rng.choice((usual, (1, *usual), (2, *usual), (0, *usual), usual[1:], ("?",) * len(usual)))
            )
        return replace(self, shape=PartialShape([_number(d, rng) for d in known]))

    def _numbers(self, rng: Random) -> Constant:
        given, least = self.value.known(), 0 if self.value.element.label.startswith("u") else -3
        other = [int(n) + rng.randint(max(-2, least - int(n)), 3) for n in given.flat]
        return Constant(
            Value.constant(np.array(other).astype(given.dtype).reshape(given.shape), self.value.element)
        )

    def __str__(self) -> str:
        return str(self.shape)


@dataclass(frozen=True)
class Bounded:
    """An integer input with known bounds."""

    element: ElementType
    bounds: tuple[Interval, ...]
    shape: tuple[int, ...]

    def add(self, net: Net) -> End:
        """Add it to a model as lengths of another input, minus a constant to reach negative values."""
        less = max(0, *(-(b.min or 0) for b in self.bounds))
        lengths = PartialShape([Dimension.of(b + less) for b in self.bounds])
        other = net.parameter("", _written(lengths), out="FP32")
        # i64, from which any type follows by conversion, but i32, which is another way for what is inferred.
        label = self.element.label if self.element.label == "i32" else "i64"
        wide = ElementType.parse(label)
        found = net.op("ShapeOf", other, out=precision(wide), version="opset3", output_type=label)
        if less:
            found = net.op("Subtract", found, net.constant(less, label), out=precision(wide))
        if len(self.shape) != 1:
            target = net.constant(self.shape)
            found = net.op("Reshape", found, target, out=precision(wide), special_zero=False)
        if wide is not self.element:
            found = net.op("Convert", found, out=precision(self.element), destination_type=self.element.label)
        return found

    def instance(self, rng: Random) -> Constant:
        """Return a concrete input that this one allows."""
        numbers = [_number(b, rng) for b in self.bounds]
        return Constant(
            Value.constant(np.array(numbers).astype(self.element.dtype).reshape(self.shape), self.element)
        )

    def __str__(self) -> str:
        return f"numbers {','.join(map(_brief, self.bounds))}"


Given = Constant | Typed | Bounded
"""What is known of an input."""


@dataclass(frozen=True)
class PartialSample:
    """Partial knowledge of each input of a sample."""

    sample: Sample
    inputs: tuple[Given, ...]
    results: tuple[Array, ...]
    """The sample's outputs."""

    def model(self) -> tuple[bytes, bytes]:
        """Return the layer with these inputs as a model, and the bytes of its constants."""
        net = Net()
        sources = [known.add(net) for known in self.inputs]
        outputs = [precision(ElementType.from_dtype(array.dtype)) for array in self.results]
        attributes = {k: text(v) for k, v in self.sample.attributes.items()}
        cls = self.sample.cls
        made = net.layer(cls.name, sources, outputs, version=f"opset{cls.since}", **attributes)
        for end, array in zip(made, self.results, strict=True):
            net.result(end)
            if array.dtype.kind in "iu" and _holds_lengths(array):
                net.result(_of_lengths(net, end))
        return net.xml(), net.weights

    def instance(self, rng: Random) -> PartialSample:
        """Return a concrete case that this one allows."""
        return replace(self, inputs=tuple(known.instance(rng) for known in self.inputs))

    def __str__(self) -> str:
        return f"{self.sample} with {'; '.join(map(str, self.inputs))}"


def partial(sample: Sample, rng: Random) -> PartialSample:
    """Forget a random part of a sample's inputs; the remaining knowledge is true."""
    known = [_given(value, index in sample.constant, rng) for index, value in enumerate(sample.values())]
    return PartialSample(sample, tuple(known), sample.evaluate())


def _of_lengths(net: Net, numbers: End) -> End:
    """Return a tensor whose shape is given by the contents of another, to observe what is known of those."""
    wide = net.op("Convert", numbers, out="I64", destination_type="i64")
    flat = net.op("Reshape", wide, net.constant([-1]), out="I64", special_zero=False)
    lengths = net.op("Maximum", flat, net.constant(0), out="I64")
    return net.op("Broadcast", net.constant(0), lengths, out="I64", version="opset3", mode="numpy")


def _given(value: Value, constant: bool, rng: Random) -> Given:
    kind, array = rng.random(), value.known()
    assert array is not None
    if constant or kind < 0.3:
        return Constant(value)
    if kind < 0.65 and _holds_lengths(array):
        least = 0 if array.dtype.kind == "u" else -LARGEST
        bounds = tuple(_bounds_around(int(n), least, rng) for n in array.flat)
        return Bounded(value.element, bounds, array.shape)
    shape = PartialShape([length_around(n, rng) for n in array.shape])
    return Typed(value, PartialShape.dynamic() if rng.random() < 0.1 else shape)


def _holds_lengths(array: Array) -> bool:
    """Return whether an array has a few integral values that can serve as lengths."""
    if not 0 < array.size <= MOST_NUMBERS or array.dtype.kind not in "iuf" or array.itemsize < 4:
        return False
    wide = array.astype(np.float64)
    small = np.isfinite(wide).all() and np.abs(wide).max() <= LARGEST
    return bool(small and (wide == wide.round()).all())


def length_around(length: int, rng: Random) -> Dimension:
    """Return a random dimension that allows a length: exact, unknown, or bounded."""
    kind = rng.random()
    if kind < 0.55:
        return Dimension(length) if kind < 0.35 else Dimension()
    low = max(length - rng.choice((0, 0, 1, 2)), 0) if kind < 0.9 else 0
    high = None if kind < 0.65 else length + rng.choice((0, 1, 2, 5))
    return Dimension.between(low, high)


def _bounds_around(number: int, least: int, rng: Random) -> Interval:
    kind = rng.random()
    if kind < 0.35:
        return Interval(number, number)
    high = None if kind < 0.5 else number + rng.choice((0, 1, 2, 4))
    return Interval(max(number - rng.choice((0, 0, 1, 2)), least), high)


def _number(bound: Interval, rng: Random) -> int:
    """Draw a number within bounds; mostly a bound itself, where wrong bounds show first."""
    low, kind = bound.min or 0, rng.random()
    if kind < 0.4:
        return low
    if bound.max is None:
        return low + rng.choice((1, 2, 5, FAR))
    return bound.max if kind < 0.7 else rng.randint(low, bound.max)


def _brief(bound: Interval) -> str:
    return str(bound.min) if bound.is_static else f"{bound.min}..{'' if bound.max is None else bound.max}"


def _written(shape: PartialShape) -> str:
    return "..." if shape.rank is None else ",".join(map(str, shape))
