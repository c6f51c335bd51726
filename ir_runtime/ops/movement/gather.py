"""Gather: slices of a tensor at indices along an axis."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

import numpy as np

from ...errors import InferenceError
from ...ir.shape import PartialShape
from ...ir.tensor import Array, Value
from .._define.operation import T_ANY, T_AXIS, T_INDEX, Input, Op, Output, attr, op
from .._lengths import normalize_axis
from ._indices import one_axis, outside


class GatherBase(Op):
    """Base of the versions."""

    decisions = (
        "an index outside the axis gives zeros, and a negative one counts from the end, in all versions, as the page of version 8 says; older pages leave it open",
    )

    bounded = True

    symbolic = True
    flops_per_element = 0

    data = Input(T_ANY, "tensor to pick from")
    indices = Input(T_INDEX, "indices along the axis, of any shape; negative ones count from its end")
    axis = Input(T_AXIS, "the axis, a scalar or one number; a negative one counts from the end")
    picked = Output(T_ANY, "the data with the axes of the indices, after the batch, in place of the axis")

    def infer(self, data: Value, indices: Value, axis: Value) -> PartialShape:
        one_axis(axis)
        x, i, axes = data.shape, indices.shape, axis.ints()
        if x.rank is not None and axes:
            normalize_axis(axes[0], x.rank)
        if i.rank is None:
            return PartialShape.dynamic(
                None if x.rank is None or self.batch >= 0 else x.rank - 1 - self.batch
            )
        batch = self._batch(i.rank)
        if x.rank is None:
            return PartialShape.dynamic()
        place = normalize_axis(axes[0], x.rank) if axes else None
        last = x.rank - 1 if place is None else place
        if batch > last:
            raise InferenceError(
                f"batch_dims {self.batch} is out of range for data {x} and axis {last}: the axes of the "
                f"batch come before that axis",
                clause="batch_dims is at most axis",
            )
        shared = PartialShape(x[:batch]).merge(PartialShape(i[:batch]))
        if shared is None:
            raise InferenceError(
                f"data {x} and indices {i} differ in the axes of the batch, which batch_dims {batch} says they share",
                clause="data and indices have equal lengths along the axes of the batch",
            )
        if place is None:
            return PartialShape([*shared, *[-1] * (x.rank + i.rank - 1 - 2 * batch)])
        return PartialShape([*shared, *x[batch:place], *i[batch:], *x[place + 1 :]])

    def audit(self, *inputs: Value) -> Iterator[str]:
        """Yield a message about indices outside the axis, which give zeros."""
        data, indices, axis = inputs
        axes = axis.ints()
        if axes is None or data.shape.rank is None:
            return
        place = normalize_axis(axes[0], data.shape.rank)
        if problem := outside(indices.known(), data.shape[place], place):
            yield f"{problem}; it picks zeros"

    def evaluate(self, data: Array, indices: Array, axis: Array) -> Array:
        place = normalize_axis(axis.ravel().tolist()[0], data.ndim)
        batch, length = self._batch(indices.ndim), data.shape[place]
        index = indices.astype(np.int64)
        index = np.where(index < 0, index + length, index)
        inside = (index >= 0) & (index < length)
        lead, front, tail = data.shape[:batch], data.shape[batch:place], data.shape[place + 1 :]
        shape = (*lead, *front, *indices.shape[batch:], *tail)
        if length == 0:
            return _nothing(data, shape)
        groups, before = prod(lead), prod(front)
        rows = np.where(inside, index, 0).reshape(groups, prod(indices.shape[batch:]))
        if batch == 0:
            result: Array = np.take(data, rows[0], axis=place).reshape(1, before, rows.size, prod(tail))
        else:
            blocks = data.reshape(groups, before, length, prod(tail))
            result = blocks[np.arange(groups)[:, None, None], np.arange(before)[:, None], rows[:, None]]
        if not inside.all():
            result.swapaxes(1, 2)[~inside.reshape(rows.shape)] = _nothing(data, ())
        return result.reshape(shape)

    @property
    def batch(self) -> int:
        """Return the number of leading batch axes, counted from the front."""
        return 0

    def _batch(self, rank: int) -> int:
        if not -rank <= self.batch <= rank:
            raise InferenceError(
                f"batch_dims {self.batch} is out of range for indices of rank {rank}: {-rank} to {rank} are allowed",
                clause="batch_dims is in [-r, r], where r is the rank of indices",
            )
        return self.batch if self.batch >= 0 else self.batch + rank


def _nothing(data: Array, shape: tuple[int, ...]) -> Array:
    text = data.dtype == object and all(isinstance(x, str) for x in data.flat[:1])
    return np.full(shape, "", object) if text else np.zeros(shape, data.dtype)


@op("Gather-8")
class Gather(GatherBase):
    """Slices of ``data`` along ``axis`` at ``indices``; zeros for indices out of range."""

    batch_dims: int = attr(0, doc="leading axes that data and indices share; negative: from the indices' end")

    @property
    def batch(self) -> int:
        return self.batch_dims


@op("Gather-7")
class Gather7(Gather):
    """Slices of ``data`` along ``axis`` at ``indices``, which must be in range."""


@op("Gather-1")
class Gather1(GatherBase):
    """Slices of ``data`` along ``axis`` at ``indices``, without a batch."""
