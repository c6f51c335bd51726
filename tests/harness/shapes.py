"""What both infer for every port of a model, also after reshaping, and where ours knows less."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import openvino as ov

import ir_runtime
from harness.oracle import core
from ir_runtime.ir.dimension import Dimension
from ir_runtime.ir.element import ElementType
from ir_runtime.ir.graph import Graph, Port
from ir_runtime.ir.shape import PartialShape
from ir_runtime.ir.tensor import TensorType, Value

Types = dict[str, TensorType]
"""Types by the path of a layer, through bodies, and the number of the output."""


class Inferred(NamedTuple):
    """What we infer for an output: of which operation, and from which other outputs."""

    type: TensorType
    operation: str
    sources: tuple[str, ...]


def ours(model: ir_runtime.Model) -> dict[str, Inferred]:
    """What we infer for every output of every layer, in bodies too."""
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
    """What OpenVINO infers for every output of every layer, in bodies too.

    But for constants: reshaping adds some, which may be called as those of the file.
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
    """A port of which OpenVINO knows more, or something else."""

    port: str
    found: Inferred
    wanted: TensorType

    def __str__(self) -> str:
        return f"{self.found.operation} {self.port}: {self.found.type}, OpenVINO infers {self.wanted}"


def wider(found: Mapping[str, Inferred], wanted: Types) -> list[Wider]:
    """The ports where ours does not refine OpenVINO's, or element types differ, but for those behind them."""
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
    """Other shapes for all inputs of a model, by what is done to them."""
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
    """A model in our hands and in OpenVINO's."""

    def __init__(self, source: Path | bytes, weights: bytes | None = None) -> None:
        self._read = (source,) if weights is None else (source, weights)
        self.restore()

    def restore(self) -> None:
        """Read it again, in both."""
        self.ours = ir_runtime.read_model(*self._read)
        self.theirs = core().read_model(*self._read)

    def reshape(self, shapes: Sequence[PartialShape]) -> Reshaped:
        """Give all inputs other shapes; what refuses them is as before."""
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
        """The ports where ours does not refine OpenVINO's, or the element types differ."""
        return wider(ours(self.ours), theirs(self.theirs))


class Reshaped(NamedTuple):
    """What both say to a reshape: nothing, or why not; and the operation that refuses."""

    ours: str
    theirs: str
    operation: str

    @property
    def agree(self) -> bool:
        """Whether both reshape, or both refuse."""
        return bool(self.ours) is bool(self.theirs)

    def __str__(self) -> str:
        return f"OpenVINO refuses: {self.theirs}" if self.theirs else f"only ours refuses: {self.ours}"


def _operation(refusal: ir_runtime.IRError) -> str:
    return refusal.where.operation.rpartition("-")[0] if refusal.where and refusal.where.operation else ""


def _named_in(reason: str) -> str:
    """The operation in ``While validating node 'opset1::Slice ...``, else the source in ``op/read_value.cpp``."""
    said = reason.partition("While validating node '")[2].partition("::")[2].partition(" ")[0]
    return said or reason.partition("src/op/")[2].partition(".cpp")[0]
