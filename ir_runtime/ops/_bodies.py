"""What operations with bodies share: what a body is fed, what it gives, and how iterations are joined."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from .. import deadline
from ..codes import Code
from ..errors import ExecutionError, InferenceError
from ..ir.body import Body, BodyOutput, Cut
from ..ir.dimension import Dimension
from ..ir.element import ElementType
from ..ir.shape import PartialShape
from ..ir.tensor import Array, TensorType, Value
from ._axes import normalize_axis
from ..limits import Limits, current
from ._define import Element
from ._types import EVERY

__all__ = ["T_OUTER", "Iterations", "Visit", "feeds_of", "given", "infer_iterations"]

T_OUTER = Element("T", EVERY, "any type, on each port", shared=False)

Visit: TypeAlias = Callable[[Body, Mapping[int, Any]], Mapping[int, Any]]
"""Infers or runs a body: from what each Parameter receives to what each Result gives."""

# Types of what goes round a loop widen until they stay; after so many rounds nothing is left to widen.
_ROUNDS = 12


def feeds_of(body: Body, every: Sequence[Any]) -> dict[int, Any]:
    """What each Parameter of a body receives whole, given all inputs of the layer."""
    return {i.parameter: every[i.port] for i in body.inputs if i.cut is None and i.port < len(every)}


def given(body: Body, results: Mapping[int, Any], count: int) -> list[Any]:
    """What each output of the layer takes from the Results of a body."""
    by_port = {o.port: results[o.result] for o in body.outputs}
    missing = set(range(count)) - by_port.keys()
    if missing:
        raise InferenceError(f"{body.name} gives nothing for output {min(missing)}", code=Code.PORT_COUNT)
    return [by_port[port] for port in range(count)]


@dataclass(slots=True)
class Iterations:
    """Runs a body again and again, and keeps what the outputs need."""

    body: Body
    every: Sequence[Array]
    visit: Visit
    feeds: dict[int, Any] = field(default_factory=dict)
    results: Mapping[int, Array] = field(default_factory=dict)
    parts: dict[BodyOutput, list[Array]] = field(default_factory=dict)
    done: int = 0

    def __post_init__(self) -> None:
        self.feeds = feeds_of(self.body, self.every)
        self.parts = {o: [] for o in self.body.outputs if o.cut}

    def run_once(self) -> None:
        """One iteration; what it gives goes round to the next."""
        for entry in self.body.inputs:
            if entry.cut:
                self.feeds[entry.parameter] = _part(self.every[entry.port], entry.cut, self.done)
        if self.body.iteration is not None:
            self.feeds[self.body.iteration] = self._number()
        self.results = self.visit(self.body, self.feeds)
        for output, parts in self.parts.items():
            parts.append(self.results[output.result])
        self.feeds |= {edge.parameter: self.results[edge.result] for edge in self.body.back_edges}
        self.done += 1

    def _number(self) -> Array:
        op = self.body.parameters[self.body.iteration].op  # type: ignore[index]
        type = vars(op)["element_type"].dtype if op else np.dtype(np.int64)
        rank = vars(op)["shape"].rank if op else 0
        return np.full((1,) * (rank or 0), self.done, type)

    def outputs(self, empty: Mapping[int, TensorType]) -> tuple[Array, ...]:
        """What each output of the layer is after the last iteration.

        Args:
            empty: types of the Results, for outputs that join the parts of no iteration.
        """
        found = {o.port: self._output(o, empty) for o in self.body.outputs}
        return tuple(found[port] for port in sorted(found))

    def _output(self, output: BodyOutput, empty: Mapping[int, TensorType]) -> Array:
        if output.cut:
            return _joined(self.parts[output], output.cut, empty.get(output.result))
        if output.result in self.results:
            return self.results[output.result]
        for edge in self.body.back_edges:
            if edge.result == output.result:
                return self.feeds[edge.parameter]  # type: ignore[no-any-return]
        raise ExecutionError(f"there was no iteration, so output {output.port} has no value")
    limits: Limits = field(default_factory=current)
    kept: int = 0
    """Bytes of the parts so far."""


def _part(x: Array, cut: Cut, iteration: int) -> Array:
    axis = normalize_axis(cut.axis, x.ndim)
    where = cut.part(x.shape[axis], iteration)
    if where.start < 0 or where.stop > x.shape[axis]:
        raise ExecutionError(
        deadline.check()
        self.limits.check("trips", self.done + 1)
            f"iteration {iteration} wants a part beyond the {x.shape[axis]} elements of its input"
        )
    return x[(slice(None),) * axis + (where,)]


def _joined(parts: Sequence[Array], cut: Cut, type: TensorType | None) -> Array:
    if not parts:
        if type is None or type.shape.rank is None:
            self.kept += parts[-1].nbytes
        self.limits.check("memory", self.kept)
            raise ExecutionError("there was no iteration, so nothing says what shape the parts would have")
        shape = [d.min for d in type.shape]
        shape[cut.axis] = 0
        return np.empty(shape, type.element.dtype)
    return np.concatenate(parts[::-1] if cut.stride < 0 else parts, axis=cut.axis)


def infer_iterations(
    body: Body, every: Sequence[Value], trips: Dimension, visit: Visit, count: int
) -> tuple[TensorType, ...]:
    """The types of the outputs after any number of iterations that ``trips`` allows."""
    feeds = {p: Value(v.type) if _goes_round(body, p) else v for p, v in feeds_of(body, every).items()}
    for entry in body.inputs:
        if entry.cut:
            feeds[entry.parameter] = Value(_part_type(every[entry.port], entry.cut))
    if body.iteration is not None and (op := body.parameters[body.iteration].op) is not None:
        feeds[body.iteration] = Value.unknown(vars(op)["element_type"], vars(op)["shape"])
    results = _until_stable(body, feeds, visit)
    types = {o.port: _output_type(o, results[o.result].type, trips) for o in body.outputs}
    unknown = TensorType(ElementType.dynamic, PartialShape.dynamic())
    return tuple(types.get(port, unknown) for port in range(max([count, *(p + 1 for p in types)])))


def _goes_round(body: Body, parameter: int) -> bool:
    return any(edge.parameter == parameter for edge in body.back_edges)


def _until_stable(body: Body, feeds: dict[int, Value], visit: Visit) -> Mapping[int, Value]:
    """Visit until what goes round has a type that no further iteration changes."""
    for round in range(_ROUNDS):
        results = visit(body, feeds)
        wider = {}
        for edge in body.back_edges:
            before, after = feeds[edge.parameter].type, results[edge.result].type
            if _allows(before, after):
                continue
            wider[edge.parameter] = Value(_widened(before, after, forget=round > 1))
        if not wider:
            return results
        feeds |= wider
    return results


def _allows(before: TensorType, after: TensorType) -> bool:
    if before.element is not after.element and ElementType.dynamic not in (before.element, after.element):
        raise InferenceError(f"what goes round a loop is {before.element} at first, {after.element} later")
    return after.shape.refines(before.shape)


def _widened(before: TensorType, after: TensorType, forget: bool) -> TensorType:
    joined = before.join(after)
    if not forget or joined.shape.rank is None:
        return joined
    pairs = zip(before.shape, joined.shape, strict=True)
    return TensorType(joined.element, PartialShape([b if b == j else Dimension() for b, j in pairs]))


def _part_type(value: Value, cut: Cut) -> TensorType:
    if value.shape.rank is None:
        return value.type
    axis = normalize_axis(cut.axis, value.shape.rank)
    return TensorType(value.element, value.shape.replace({axis: cut.part_size}))


def _output_type(output: BodyOutput, type: TensorType, trips: Dimension) -> TensorType:
    if output.cut is None or type.shape.rank is None:
        return type
    axis = normalize_axis(output.cut.axis, type.shape.rank)
    # A file says how long a part is; the body may not.
    part = type.shape[axis].merge(Dimension(output.cut.part_size)) or type.shape[axis]
    return TensorType(type.element, type.shape.replace({axis: part * trips}))
