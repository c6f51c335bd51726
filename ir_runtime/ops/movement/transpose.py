"""Transpose: permutations of axes."""

from __future__ import annotations

from functools import reduce

from ...errors import InferenceError
from ...ir.dimension import Dimension
from ...ir.shape import PartialShape
from ...ir.tensor import Array, Value
from .._define.operation import T_ANY, T_AXIS, Input, Op, Output, op
from .._lengths import axes_of, check_vector, count_of


@op("Transpose-1")
class Transpose(Op):
    """Permute the axes of ``data`` into the given ``order``."""

    bounded = True

    symbolic = True
    flops_per_element = 0

    data = Input(T_ANY, "tensor to transpose")
    order = Input(T_AXIS, "for each axis of the result, the axis of the data; empty to reverse them")
    transposed = Output(T_ANY, "the data with its axes in this order")

    def infer(self, data: Value, order: Value) -> PartialShape:
        check_vector(order, "order")
        shape, axes, count = data.shape, order.ints(), count_of(order, "order")
        rank = count if shape.rank is None else shape.rank
        if axes is None and count == 0:
            axes = ()
        if rank is None or (not count and shape.rank is None):
            return PartialShape.dynamic()
        if axes is None:
            if not (order.count.contains(rank) or order.count.contains(0)):
                raise InferenceError(
                    f"order has length {order.count}, but data {shape} has rank {rank}",
                    clause="order has a number for each axis of data, or none",
                )
            if shape.rank is None:
                return PartialShape.dynamic(rank)
            return PartialShape([reduce(Dimension.join, shape)] * rank if rank else [])
        axes = axes or tuple(reversed(range(rank)))
        if sorted(axes) != list(range(rank)):
            raise InferenceError(
                f"order is {list(axes)}{'' if shape.rank is None else f', and data {shape}'}; it must hold each "
                f"of the numbers from 0 to {rank - 1} once"
                if rank
                else f"order is {list(axes)}, but data is a scalar, which has no axes",
                clause="order has each of the numbers from 0 to r-1 once, where r is the rank of data",
            )
        return PartialShape.dynamic(rank) if shape.rank is None else PartialShape([shape[i] for i in axes])

    def evaluate(self, data: Array, order: Array) -> Array:
        return data.transpose(axes_of(order) or None)
