"""Run the body of a loop: slice its inputs, and concatenate its outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from .._util import deadline
from ..errors import ExecutionError
from ..ir.element import ElementType
from ..ir.graph import Body
from ..ir.port_map import BackEdge, BodyOutput, Cut
from ..ir.shape import PartialShape
from ..ir.tensor import Array, TensorType
from ..limits import Limits, Trips, current, current_trips
from ._bodies import Visit, feeds_of, out_of_range
from ._lengths import normalize_axis
from .conversion import convert_rounded

__all__ = ["Iterations"]


@dataclass(slots=True)
class Iterations:
    """The state of a running loop: its inputs, the last results, and the parts of concatenated outputs.

    A Parameter keeps its element type, and values of back edges are converted to it. The page does not
    specify this; OpenVINO's reference keeps the type of the value, and fails in binary operations; the CPU
    plugin converts to the nearest number.
    """

    body: Body
    every: Sequence[Array]
    visit: Visit
    elements: Mapping[int, ElementType] = field(default_factory=dict)
    """Element types of Parameters that convert what they receive; others have that of what they receive at first."""
    feeds: dict[int, Array] = field(default_factory=dict)
    results: Mapping[int, Array] = field(default_factory=dict)
    parts: dict[BodyOutput, list[Array]] = field(default_factory=dict)
    done: int = 0
    limits: Limits = field(default_factory=current)
    trips: Trips = field(default_factory=current_trips)
    kept: int = 0
    """Bytes of the parts so far."""

    def __post_init__(self) -> None:
        feeds = feeds_of(self.body, self.every)
        self.feeds = {parameter: self._as_declared(parameter, x) for parameter, x in feeds.items()}
        self.parts = {o: [] for o in self.body.outputs if o.cut}

    def run_once(self) -> None:
        """Run one iteration; its results feed the next one through the back edges."""
        deadline.check()
        self.trips.add(self.limits)
        for entry in self.body.inputs:
            if entry.cut:
                part = _part(entry.port, self.every[entry.port], entry.cut, self.done)
                self.feeds[entry.parameter] = self._as_declared(entry.parameter, part)
        if self.body.iteration is not None:
            self.feeds[self.body.iteration] = self._number(self.body.iteration)
        self.results = self.visit(self.body, self.feeds)
        for output, parts in self.parts.items():
            parts.append(self.results[output.result])
            self.kept += parts[-1].nbytes
        self.limits.check("memory", self.kept)
        self.feeds |= {edge.parameter: self._back(edge) for edge in self.body.back_edges}
        self.done += 1

    def _as_declared(self, parameter: int, x: Array) -> Array:
        element = self.elements.get(parameter)
        return x if element is None else convert_rounded(x, element)

    def _back(self, edge: BackEdge) -> Array:
        """Return the value of a back edge, converted to the initial element type of its Parameter."""
        result, before = self.results[edge.result], self.feeds.get(edge.parameter)
        if before is None or result.dtype == before.dtype:
            return result
        return convert_rounded(result, ElementType.from_dtype(before.dtype))

    def _number(self, parameter: int) -> Array:
        op = self.body.parameters[parameter].op
        type = vars(op)["element_type"].dtype if op else np.dtype(np.int64)
        rank = vars(op)["shape"].rank if op else 0
        return np.full((1,) * (rank or 0), self.done, type)

    def outputs(self, empty: Mapping[int, TensorType]) -> tuple[Array, ...]:
        """Return each output of the layer after the last iteration.

        Args:
            empty: types of the Results, for concatenated outputs without iterations.
        """
        outputs = {o.port: self._output(o, empty) for o in self.body.outputs}
        return tuple(outputs[port] for port in sorted(outputs))

    def _output(self, output: BodyOutput, empty: Mapping[int, TensorType]) -> Array:
        if output.cut:
            return _concatenate(self.parts[output], output.cut, empty.get(output.result))
        if output.result in self.results:
            return self.results[output.result]
        for edge in self.body.back_edges:
            if edge.result == output.result and edge.parameter in self.feeds:
                return _of_type(self.feeds[edge.parameter], empty.get(output.result))
        raise ExecutionError(
            f"the loop ran no iteration, so output {output.port}, counted from 0, has no value: it is what the last "
            f"iteration gives",
            clause="an output without axis has a value only if the loop runs at least once",
        )


def _of_type(first: Array, type: TensorType | None) -> Array:
    """Return the initial value of a loop without iterations in the element type of the Result."""
    if type is None or type.element is ElementType.dynamic:
        return first
    return convert_rounded(first, type.element)


def _part(port: int, x: Array, cut: Cut, iteration: int) -> Array:
    axis = normalize_axis(cut.axis, x.ndim)
    where = cut.part(x.shape[axis], iteration)
    if where.start < 0 or where.stop > x.shape[axis]:
        raise ExecutionError(
            out_of_range(port, axis, x.shape[axis], where, iteration),
            clause="the parts of a sliced input are inside it",
        )
    return x[(slice(None),) * axis + (where,)]


def _concatenate(parts: Sequence[Array], cut: Cut, type: TensorType | None) -> Array:
    if not parts:
        if type is None or type.shape.rank is None:
            raise ExecutionError(
                "the loop ran no iteration, and the body does not declare a shape for the parts that an output joins",
                clause="the body declares the shape of joined parts if the loop may run no iteration",
            )
        shape = [d.min for d in type.shape]
        shape[normalize_axis(cut.axis, len(shape))] = 0
        return np.empty(shape, type.element.dtype)
    axis = normalize_axis(cut.axis, parts[0].ndim)
    frames = {PartialShape(part.shape).replace({axis: -1}) for part in parts}
    if len(frames) > 1:
        shapes = " and ".join(sorted(map(str, frames))[:2])
        raise ExecutionError(
            f"iterations give parts of shapes {shapes}, which cannot be joined along axis {axis}",
            clause="joined parts differ along the joined axis only",
        )
    return np.concatenate(parts[::-1] if cut.stride < 0 else parts, axis=axis)
