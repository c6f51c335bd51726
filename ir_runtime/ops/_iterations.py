"""Run the body of a loop: slice its inputs, and concatenate its outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from .. import deadline
from ..errors import ExecutionError
from ..ir.graph import Body
from ..ir.port_map import BodyOutput, Cut
from ..ir.shape import PartialShape
from ..ir.tensor import Array, TensorType
from ..limits import Limits, Trips, current, current_trips
from ._axes import normalize_axis
from ._bodies import Visit, feeds_of, out_of_range

__all__ = ["Iterations"]


@dataclass(slots=True)
class Iterations:
    """The state of a running loop: its inputs, the last results, and the parts of concatenated outputs."""

    body: Body
    every: Sequence[Array]
    visit: Visit
    feeds: dict[int, Array] = field(default_factory=dict)
    results: Mapping[int, Array] = field(default_factory=dict)
    parts: dict[BodyOutput, list[Array]] = field(default_factory=dict)
    done: int = 0
    limits: Limits = field(default_factory=current)
    trips: Trips = field(default_factory=current_trips)
    kept: int = 0
    """Bytes of the parts so far."""

    def __post_init__(self) -> None:
        self.feeds = feeds_of(self.body, self.every)
        self.parts = {o: [] for o in self.body.outputs if o.cut}

    def run_once(self) -> None:
        """Run one iteration; its results feed the next one by the back edges."""
        deadline.check()
        self.trips.add(self.limits)
        for entry in self.body.inputs:
            if entry.cut:
                self.feeds[entry.parameter] = _part(entry.port, self.every[entry.port], entry.cut, self.done)
        if self.body.iteration is not None:
            self.feeds[self.body.iteration] = self._number(self.body.iteration)
        self.results = self.visit(self.body, self.feeds)
        for output, parts in self.parts.items():
            parts.append(self.results[output.result])
            self.kept += parts[-1].nbytes
        self.limits.check("memory", self.kept)
        self.feeds |= {edge.parameter: self.results[edge.result] for edge in self.body.back_edges}
        self.done += 1

    def _number(self, parameter: int) -> Array:
        op = self.body.parameters[parameter].op
        type = vars(op)["element_type"].dtype if op else np.dtype(np.int64)
        rank = vars(op)["shape"].rank if op else 0
        return np.full((1,) * (rank or 0), self.done, type)

    def outputs(self, empty: Mapping[int, TensorType]) -> tuple[Array, ...]:
        """Return each output of the layer after the last iteration.

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
            if edge.result == output.result and edge.parameter in self.feeds:
                return self.feeds[edge.parameter]
        raise ExecutionError(
            f"the loop ran no iteration, so output {output.port}, counted from 0, has no value: it is what the last "
            f"iteration gives"
        )


def _part(port: int, x: Array, cut: Cut, iteration: int) -> Array:
    axis = normalize_axis(cut.axis, x.ndim)
    where = cut.part(x.shape[axis], iteration)
    if where.start < 0 or where.stop > x.shape[axis]:
        raise ExecutionError(out_of_range(port, axis, x.shape[axis], where, iteration))
    return x[(slice(None),) * axis + (where,)]


def _joined(parts: Sequence[Array], cut: Cut, type: TensorType | None) -> Array:
    if not parts:
        if type is None or type.shape.rank is None:
            raise ExecutionError(
                "the loop ran no iteration, and the body does not declare a shape for the parts that an output joins"
            )
        shape = [d.min for d in type.shape]
        shape[normalize_axis(cut.axis, len(shape))] = 0
        return np.empty(shape, type.element.dtype)
    axis = normalize_axis(cut.axis, parts[0].ndim)
    frames = {PartialShape(part.shape).replace({axis: -1}) for part in parts}
    if len(frames) > 1:
        shapes = " and ".join(sorted(map(str, frames))[:2])
        raise ExecutionError(
            f"iterations give parts of shapes {shapes}, which cannot be joined along axis {axis}"
        )
    return np.concatenate(parts[::-1] if cut.stride < 0 else parts, axis=axis)
