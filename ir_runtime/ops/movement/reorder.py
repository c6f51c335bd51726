"""Permutations: Transpose, Roll, Reverse, ReverseSequence and ShuffleChannels."""

from __future__ import annotations

from functools import reduce
from typing import Literal

import numpy as np

from ...errors import InferenceError
from ...ir.dimension import Dimension
from ...ir.element import ElementType
from ...ir.shape import PartialShape
from ...ir.tensor import Array, Value
from .._define.operation import (
    INTEGERS,
    NUMBERS,
    T_ANY,
    T_AXIS,
    T_PLAIN,
    Element,
    Input,
    Op,
    Output,
    attr,
    op,
)
from .._lengths import (
    axes_of,
    check_at_most,
    check_list,
    check_vector,
    count_of,
    normalize_axes,
    normalize_axis,
)

# Transpose: permutation of axes.


@op("Transpose-1")
class Transpose(Op):
    """Permute the axes of ``data`` into ``order``."""

    bounded = True

    symbolic = True
    flops_per_element = 0

    data = Input(T_ANY, "tensor to transpose")
    order = Input(T_AXIS, "the axis of data for each axis of the result, 1-D; empty to reverse the axes")
    transposed = Output(T_ANY, "the data with permuted axes")

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


# Permutations of elements along axes.

T_SHIFT = Element("T_IND_1", (ElementType.i64, ElementType.i32), "i64 or i32")
T_AXES = Element("T_IND_2", (ElementType.i64, ElementType.i32), "i64 or i32")
T_REVERSED = Element("T_AXES", (*INTEGERS, ElementType.boolean), "any integer type, or boolean for a mask")
T_LENGTHS = Element("T_LENGTHS", NUMBERS, "any numeric type")


@op("Roll-7")
class Roll(Op):
    """Shift the elements of ``data`` by ``shift`` along ``axes``, wrapping around.

    Axes 0 and -1 are accepted for a scalar, which is unchanged, as in OpenVINO.
    """

    bounded = True
    flops_per_element = 0

    data = Input(T_ANY, "tensor to roll")
    shift = Input(T_SHIFT, "number of positions to shift by: one for all axes, or one for each")
    axes = Input(T_AXES, "axes to roll, a scalar or 1-D; shifts of a repeated axis add up")
    rolled = Output(T_ANY, "the result, of the shape of data")

    symbolic = True

    def infer(self, data: Value, shift: Value, axes: Value) -> PartialShape:
        check_list(shift, "shift")
        check_list(axes, "axes")
        if shift.shape.rank == 1 and not shift.shape.compatible(axes.shape):
            raise InferenceError(
                f"shift has shape {shift.shape}, but axes {axes.shape}; there must be one shift for all, or one for each",
                clause="shift is one number, or one for each of axes",
            )
        values = axes.ints()
        if values is not None and data.shape.rank is not None:
            for axis in values:
                normalize_axis(axis, data.shape.rank, least=1)
        return data.shape

    def evaluate(self, data: Array, shift: Array, axes: Array) -> Array:
        if not data.ndim:
            return data
        return np.roll(data, tuple(map(int, shift)) if shift.ndim else int(shift), axes_of(axes))


@op("Reverse-1", until=1)
class Reverse(Op):
    """Reverse ``data`` along ``reversed_axes``."""

    bounded = True
    flops_per_element = 0

    data = Input(T_ANY, "tensor to reverse")
    reversed_axes = Input(T_REVERSED, "the axes to reverse, or a mask over all axes, 1-D")
    reversed = Output(T_ANY, "the result, of the shape of data")

    mode: Literal["index", "mask"] = attr(
        default_with_warning="index", doc="whether reversed_axes lists axes, or is a mask over them"
    )

    symbolic = True

    def infer(self, data: Value, reversed_axes: Value) -> PartialShape:
        check_vector(reversed_axes, "reversed_axes")
        is_mask = reversed_axes.element is ElementType.boolean
        if reversed_axes.element is not ElementType.dynamic and is_mask != (self.mode == "mask"):
            expected = "boolean" if self.mode == "mask" else "integers"
            other = "mask" if is_mask else "index"
            raise InferenceError(
                f"reversed_axes is {reversed_axes.element.label}, but mode {self.mode} takes {expected}",
                hint=f"mode {other} takes {reversed_axes.element.label}",
                clause="reversed_axes is boolean in mode mask, and of integers in mode index",
            )
        if data.shape.rank is None:
            return data.shape
        if is_mask and not reversed_axes.count.contains(data.shape.rank):
            raise InferenceError(
                f"reversed_axes has length {reversed_axes.count}, but data {data.shape} has rank "
                f"{data.shape.rank}",
                clause="reversed_axes has a boolean for each axis of data in mode mask",
            )
        if not is_mask and (values := reversed_axes.ints()) is not None:
            normalize_axes(values, data.shape.rank)
        return data.shape

    def evaluate(self, data: Array, reversed_axes: Array) -> Array:
        return np.flip(data, axes_of(np.flatnonzero(reversed_axes) if self.mode == "mask" else reversed_axes))


@op("ReverseSequence-1")
class ReverseSequence(Op):
    """Reverse the first ``seq_lengths`` elements of each sequence in ``data``."""

    bounded = True
    flops_per_element = 0

    data = Input(T_ANY, "a batch of sequences")
    seq_lengths = Input(T_LENGTHS, "number of elements to reverse, for each batch entry, 1-D")
    reversed = Output(T_ANY, "the result, of the shape of data")

    batch_axis: int = attr(0, doc="axis of the batch; a negative one counts from the end")
    seq_axis: int = attr(1, doc="axis of the sequences; a negative one counts from the end")

    def infer(self, data: Value, seq_lengths: Value) -> PartialShape:
        check_vector(seq_lengths, "seq_lengths")
        rank = data.shape.rank
        if rank is None:
            return data.shape
        if rank < 2:
            raise InferenceError(
                f"data has shape {data.shape}; a batch and a sequence axis are expected",
                clause="data has at least two axes",
            )
        batch, axis = self._axes(rank)
        if batch == axis:
            raise InferenceError(
                f"batch_axis {self.batch_axis} and seq_axis {self.seq_axis} are the same axis of data {data.shape}",
                clause="batch_axis and seq_axis are different axes",
            )
        entries = data.shape[batch].merge(seq_lengths.count)
        if entries is None:
            raise InferenceError(
                f"seq_lengths has length {seq_lengths.count}, but axis {batch} of data {data.shape}, the batch, "
                f"has length {data.shape[batch]}",
                clause="seq_lengths has a number for each batch entry",
            )
        self._check(seq_lengths, data.shape[axis], axis)
        return data.shape.replace({batch: entries})

    def evaluate(self, data: Array, seq_lengths: Array) -> Array:
        batch, axis = self._axes(data.ndim)
        self._check(Value.constant(seq_lengths), Dimension(data.shape[axis]), axis)
        lengths = seq_lengths.astype(np.int64)
        lengths = np.expand_dims(lengths, [i for i in range(data.ndim) if i != batch])
        index = np.expand_dims(np.arange(data.shape[axis]), [i for i in range(data.ndim) if i != axis])
        return np.take_along_axis(data, np.where(index < lengths, lengths - 1 - index, index), axis)

    def _check(self, seq_lengths: Value, length: Dimension, axis: int) -> None:
        check_at_most(
            seq_lengths,
            "seq_lengths",
            length,
            f"the length of axis {axis} of data",
            "the length of sequences",
        )

    def _axes(self, rank: int) -> tuple[int, int]:
        """Return the nonnegative axes of the batch and of the sequences."""
        batch = normalize_axis(self.batch_axis, rank, "batch_axis")
        return batch, normalize_axis(self.seq_axis, rank, "seq_axis")


@op("ShuffleChannels-1")
class ShuffleChannels(Op):
    """Interleave groups of channels of ``data``: the first channel of each group, then the second, and so on."""

    bounded = True
    flops_per_element = 0

    data = Input(T_PLAIN, "tensor to shuffle")
    shuffled = Output(T_PLAIN, "the result, of the shape of data")

    axis: int = attr(1, doc="axis of the channels; a negative one counts from the end")
    group: int = attr(1, ge=1, doc="number of groups, which divides the number of channels")

    def infer(self, data: Value) -> PartialShape:
        if data.shape.rank is not None:
            axis = normalize_axis(self.axis, data.shape.rank)
            channels = data.shape[axis]
            if channels.is_static and int(channels) % self.group:
                raise InferenceError(
                    f"axis {axis} of data {data.shape} has length {channels}, which group {self.group} does not divide",
                    clause="group divides the length of the axis",
                )
        return data.shape

    def evaluate(self, data: Array) -> Array:
        axis = self.axis % data.ndim
        before, channels, after = data.shape[:axis], data.shape[axis], data.shape[axis + 1 :]
        grouped = data.reshape(*before, self.group, channels // self.group, *after)
        return grouped.swapaxes(axis, axis + 1).reshape(data.shape)
