"""Tensors side by side along an axis."""

from __future__ import annotations

import numpy as np

from ...errors import InferenceError
from ...ir.dimension import Dimension, Interval
from ...ir.shape import PartialShape
from ...ir.tensor import Array, Value, objects
from .._axes import normalize_axis
from .._define import FOLLOWED, Input, Op, Output, attr, op
from .._types import T_ANY


@op("Concat-1")
class Concat(Op):
    """Put all ``parts`` behind one another along an axis."""

    symbolic = True
    bounded = True


    parts = Input(T_ANY, "tensors that differ in length along the axis at most", variadic=True)
    whole = Output(T_ANY, "all of them, in order")

    axis: int = attr(doc="axis along which they are joined; a negative one counts from the end")

    def infer(self, *parts: Value) -> PartialShape:
        if not parts:
            raise InferenceError("there is nothing to concatenate; at least one input is expected")
        ranks = {v.shape.rank for v in parts} - {None}
        if len(ranks) > 1:
            raise InferenceError(f"inputs differ in rank: {_shapes(parts)}")
        if not ranks:
            return PartialShape.dynamic()
        rank = max(r for r in ranks if r is not None)
        axis = normalize_axis(self.axis, rank)
        whole, total = PartialShape.dynamic(rank), Dimension(0)
        for part in parts:
            shape = part.shape if part.shape.rank is not None else PartialShape.dynamic(rank)
            merged = whole.merge(shape.replace({axis: whole[axis]}))
            if merged is None:
                raise InferenceError(f"inputs differ in length off axis {axis}: {_shapes(parts)}")
            whole, total = merged, Dimension.of(total + shape[axis])
        return whole.replace({axis: total})

    def evaluate(self, *parts: Array) -> Array:
        return np.concatenate(parts, axis=self.axis)

    def propagate(self, *inputs: Value) -> Array | None:
        if all(v.data is None for v in inputs):
            return None
        contents = [_contents(v) for v in inputs]
        known = [c for c in contents if c is not None]
        return self.evaluate(*known) if len(known) == len(contents) else None


def _contents(value: Value) -> Array | None:
    """What is known of a part. Beside known ones, integers of which nothing is known are of use, too."""
    if value.data is not None:
        return value.data
    if not value.element.integral or not value.shape.is_static or value.count.min > FOLLOWED:
        return None
    unsigned = value.element.label.startswith("u")
    anything = Dimension() if unsigned else Interval()
    return objects([anything] * value.count.min, value.shape.static)


def _shapes(parts: tuple[Value, ...]) -> str:
    return ", ".join(str(v.shape) for v in parts)
