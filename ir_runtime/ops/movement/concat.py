"""Concatenation along an axis."""

from __future__ import annotations

import numpy as np

from ...codes import Code
from ...errors import InferenceError
from ...ir.dimension import Dimension, Interval
from ...ir.shape import PartialShape
from ...ir.tensor import Array, Value, objects
from .._define.operation import MAX_PROPAGATED, T_ANY, Input, Op, Output, Propagated, attr, op
from .._lengths import normalize_axis


@op("Concat-1")
class Concat(Op):
    """Concatenate ``parts`` along an axis."""

    bounded = True

    symbolic = True
    flops_per_element = 0

    parts = Input(T_ANY, "tensors that differ in length along the axis at most", variadic=True)
    whole = Output(T_ANY, "all of them, in order")

    axis: int = attr(
        default_with_warning="0", doc="axis along which they are joined; a negative one counts from the end"
    )

    def infer(self, *parts: Value) -> PartialShape:
        if not parts:
            raise InferenceError(
                "no inputs, expected at least one", code=Code.PORT_COUNT, clause="there is at least one input"
            )
        first = next((i for i, v in enumerate(parts) if v.shape.rank is not None), None)
        if first is None:
            return PartialShape.dynamic()
        rank = len(parts[first].shape)
        axis = normalize_axis(self.axis, rank)
        whole, total = PartialShape.dynamic(rank), Dimension(0)
        for place, part in enumerate(parts):
            shape = PartialShape.dynamic(rank) if part.shape.rank is None else part.shape
            if len(shape) != rank:
                raise InferenceError(
                    f"input {place} has shape {shape}, but input {first} {parts[first].shape}; all must have as "
                    f"many axes",
                    clause="all inputs have the same rank",
                )
            merged = whole.merge(shape.replace({axis: whole[axis]}))
            if merged is None:
                raise _differs(place, shape, whole, axis)
            whole, total = merged, Dimension.of(total + shape[axis])
        return whole.replace({axis: total})

    def refuses_lengths(self) -> bool:
        return True

    def evaluate(self, *parts: Array) -> Array:
        return np.concatenate(parts, axis=self.axis)

    def propagate(self, *inputs: Value) -> Propagated:
        if any(v.bounds is not None for v in inputs):
            return super().propagate(*inputs)
        if all(v.data is None for v in inputs):
            return None
        contents = [_contents(v) for v in inputs]
        available = [c for c in contents if c is not None]
        return self.evaluate(*available) if len(available) == len(contents) else None


def _contents(value: Value) -> Array | None:
    """Return the contents of an input as far as known; unknown integers become unbounded intervals."""
    if value.data is not None:
        return value.data
    if not value.element.integral or not value.shape.is_static or value.count.min > MAX_PROPAGATED:
        return None
    unsigned = value.element.label.startswith("u")
    anything = Dimension() if unsigned else Interval()
    return objects([anything] * value.count.min, value.shape.static)


def _differs(place: int, shape: PartialShape, before: PartialShape, axis: int) -> InferenceError:
    """Return the error about an axis whose length differs from the previous inputs."""
    wrong = next(i for i, d in enumerate(shape) if i != axis and not d.compatible(before[i]))
    return InferenceError(
        f"input {place} has shape {shape}, but along axis {wrong} the inputs before it have length "
        f"{before[wrong]}; only along axis {axis}, where they are joined, may lengths differ",
        clause="inputs differ in length along the axis only",
    )
