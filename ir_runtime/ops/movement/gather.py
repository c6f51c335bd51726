"""Gather: elements and slices of a tensor at given indices."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from math import prod

import numpy as np

from ...errors import InferenceError
from ...ir.dimension import Dimension
from ...ir.element import ElementType
from ...ir.shape import PartialShape
from ...ir.tensor import Array, Value
from .._define.operation import (
    SIGNED,
    T_ANY,
    T_AXIS,
    T_INDEX,
    T_INDEX_64,
    Element,
    Input,
    Op,
    Output,
    T,
    attr,
    check_index_types,
    op,
)
from .._lengths import broadcast_dims, check_scalar, check_vector, normalize_axis

# Indices into tensors: negative indices count from the end, and indices out of range are refused.


def outside(indices: Array | None, length: Dimension, axis: int, negative: bool = True) -> str:
    """Return a message if a known index is out of range for every possible length, or else an empty string.

    Without ``negative``, negative indices are out of range; with it, they count from the end.
    """
    if indices is None or length.max is None:
        return ""
    low = -length.max if negative else 0
    wrong = indices[(indices < low) | (indices >= length.max)]
    if not wrong.size:
        return ""
    if not length.max:
        return f"indices holds {wrong.flat[0]}, but axis {axis} of data has length 0"
    return (
        f"indices holds {wrong.flat[0]}, which is out of range for axis {axis} of data: {low} to {length.max - 1} are "
        f"allowed"
    )


def check_inside(indices: Array | None, length: Dimension, axis: int, negative: bool = True) -> None:
    """Require that known indices are inside an axis of ``data`` for some possible length.

    Raises:
        InferenceError: if an index is not in ``[-length, length - 1]``, or without ``negative`` in ``[0, length - 1]``.
    """
    if problem := outside(indices, length, axis, negative):
        raise InferenceError(
            problem,
            clause=f"each of the indices is inside its axis of data{', counted from the end if negative' if negative else ''}",
        )


def check_tuples(indices: Array | None, lengths: Sequence[Dimension], first: int = 0) -> None:
    """Require that index tuples (along the last axis) are inside the axes of ``data`` from ``first`` on."""
    for axis, length in enumerate(lengths if indices is not None else ()):
        assert indices is not None
        check_inside(indices[..., axis], length, first + axis)


def positions(indices: Array, length: int, axis: int, negative: bool = True) -> Array:
    """Return nonnegative indices into an axis of ``length``.

    Raises:
        InferenceError: if an index is out of range.
    """
    check_inside(indices, Dimension(length), axis, negative)
    result = indices.astype(np.int64)
    return np.where(result < 0, result + length, result)


def flat_positions(indices: Array, lengths: Sequence[int], first: int = 0) -> Array:
    """Convert index tuples (along the last axis) to positions in a flattened tensor of shape ``lengths``.

    The lengths are those of the axes of ``data`` from ``first`` on.
    """
    flat = np.zeros(indices.shape[:-1], np.int64)
    for axis, length in enumerate(lengths):
        flat = flat * length + positions(indices[..., axis], length, first + axis)
    return flat


def axis_input(axis: Value, rank: int | None) -> int | None:
    """Return the nonnegative axis that an input holds, or ``None`` if the axis or the rank is unknown."""
    one_axis(axis)
    values = axis.ints()
    return None if values is None or rank is None else normalize_axis(values[0], rank)


def one_axis(axis: Value) -> None:
    """Require a scalar, or a 1-D tensor of one element."""
    if axis.shape.rank is not None and (axis.shape.rank > 1 or not axis.count.contains(1)):
        raise InferenceError(
            f"axis must be a scalar or one number, not of shape {axis.shape}",
            clause="axis is a scalar or one number",
        )


# Gather: slices of a tensor along an axis.


class GatherBase(Op):
    """Base of the versions of Gather."""

    decisions = (
        "an index outside the axis gives zeros, and a negative one counts from the end, in all versions, as the page of version 8 says; older pages leave it open",
    )

    bounded = True

    symbolic = True
    flops_per_element = 0

    data = Input(T_ANY, "tensor to gather from")
    indices = Input(T_INDEX, "indices along the axis, of any shape; negative ones count from the end")
    axis = Input(T_AXIS, "the axis, a scalar or [1]; a negative one counts from the end")
    picked = Output(T_ANY, "the shape of data, with the axis replaced by the non-batch axes of indices")

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
        """Yield a warning about indices outside the axis, which give zeros."""
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
            return _zeros(data, shape)
        groups, before = prod(lead), prod(front)
        rows = np.where(inside, index, 0).reshape(groups, prod(indices.shape[batch:]))
        if batch == 0:
            result: Array = np.take(data, rows[0], axis=place).reshape(1, before, rows.size, prod(tail))
        else:
            blocks = data.reshape(groups, before, length, prod(tail))
            result = blocks[np.arange(groups)[:, None, None], np.arange(before)[:, None], rows[:, None]]
        if not inside.all():
            result.swapaxes(1, 2)[~inside.reshape(rows.shape)] = _zeros(data, ())
        return result.reshape(shape)

    @property
    def batch(self) -> int:
        """The number of leading batch axes; negative to count from the rank of ``indices``."""
        return 0

    def _batch(self, rank: int) -> int:
        if not -rank <= self.batch <= rank:
            raise InferenceError(
                f"batch_dims {self.batch} is out of range for indices of rank {rank}: {-rank} to {rank} are allowed",
                clause="batch_dims is in [-r, r], where r is the rank of indices",
            )
        return self.batch if self.batch >= 0 else self.batch + rank


def _zeros(data: Array, shape: tuple[int, ...]) -> Array:
    text = data.dtype == object and all(isinstance(x, str) for x in data.flat[:1])
    return np.full(shape, "", object) if text else np.zeros(shape, data.dtype)


@op("Gather-8")
class Gather(GatherBase):
    """Gather slices of ``data`` along ``axis`` at ``indices``; an index out of range gives zeros."""

    batch_dims: int = attr(
        0,
        doc="number of leading axes that data and indices share; a negative one counts from the rank of indices",
    )

    @property
    def batch(self) -> int:
        return self.batch_dims


@op("Gather-7")
class Gather7(Gather):
    """Gather slices of ``data`` along ``axis`` at ``indices``, which should be in range."""


@op("Gather-1")
class Gather1(GatherBase):
    """Gather slices of ``data`` along ``axis`` at ``indices``, without batch axes."""


# GatherElements, GatherND and GatherTree.


@op("GatherElements-6")
class GatherElements(Op):
    """Gather elements of ``data`` at ``indices`` along ``axis``.

    Negative indices count from the end, as in OpenVINO's plugin. The specification does not mention them, and the
    reference refuses them, but converters from ONNX write them.
    """

    decisions = (
        "a negative index counts from the end, as in OpenVINO's plugin and in the files of converters; the page does not mention it",
    )

    bounded = True
    flops_per_element = 0

    data = Input(T_ANY, "tensor to gather from")
    indices = Input(T_INDEX_64, "indices along the axis, of the shape of data except along the axis")
    gathered = Output(T_ANY, "the gathered elements, of the shape of indices")

    axis: int = attr(default_with_warning="0", doc="axis to gather along; a negative one counts from the end")

    symbolic = True

    def infer(self, data: Value, indices: Value) -> PartialShape:
        for name, shape in (("data", data.shape), ("indices", indices.shape)):
            if shape.rank == 0:
                raise InferenceError(
                    f"{name} is a scalar; at least one axis is expected",
                    clause=f"{name} has at least one axis",
                )
        if data.shape.rank is None:
            return indices.shape
        axis = normalize_axis(self.axis, data.shape.rank)
        expected = data.shape.replace({axis: -1})
        merged = indices.shape.merge(expected)
        check_inside(indices.known(), data.shape[axis], axis)
        if merged is None:
            raise InferenceError(
                f"indices has shape {indices.shape}; data {data.shape} asks for {expected}, which may differ "
                f"from it along axis {axis} only",
                clause="indices has the shape of data, except along the axis",
            )
        return merged

    def evaluate(self, data: Array, indices: Array) -> Array:
        axis = self.axis % data.ndim
        return np.take_along_axis(data, positions(indices, data.shape[axis], axis), axis)


class GatherNDBase(Op):
    """Base of the versions of GatherND. Negative indices count from the end."""

    bounded = True
    flops_per_element = 0

    data = Input(T_ANY, "tensor to gather from")
    indices = Input(T_INDEX, "index tuples along the last axis, each of which selects an element or a slice")
    gathered = Output(T_ANY, "the gathered elements or slices, in the order of the tuples")

    batch_dims: int = attr(0, ge=0, doc="number of leading axes that data and indices share")

    symbolic = True

    def infer(self, data: Value, indices: Value) -> PartialShape:
        batch = self.batch_dims
        for name, value in (("data", data), ("indices", indices)):
            if value.shape.rank is not None and value.shape.rank <= batch:
                raise InferenceError(
                    f"{name} has shape {value.shape}, with batch_dims {batch}; at least {batch + 1} axes are expected",
                    clause=f"{name} has more axes than batch_dims",
                )
        if data.shape.rank is None or indices.shape.rank is None or indices.shape[-1].is_dynamic:
            return PartialShape.dynamic()
        selected = batch + int(indices.shape[-1])
        if selected > data.shape.rank:
            raise InferenceError(
                f"indices {indices.shape} has length {selected - batch} along its last axis, and so names {selected - batch} axes of "
                f"data {data.shape}{f' after the first {batch} of batch_dims' if batch else ''}, which has rank {data.shape.rank}",
                clause="the last axis of indices names at most all axes of data after the batch",
            )
        check_tuples(indices.known(), data.shape[batch:selected], batch)
        common = []
        for x, y in zip(data.shape[:batch], indices.shape[:batch], strict=True):
            if (dim := broadcast_dims(x, y)) is None:
                raise InferenceError(
                    f"data {data.shape} and indices {indices.shape} differ in the axes of the batch, which "
                    f"batch_dims {batch} says they share: {x} meets {y}",
                    clause="data and indices have equal lengths along the axes of the batch",
                )
            common.append(dim)
        return PartialShape([*self.arrange(common), *indices.shape[batch:-1], *data.shape[selected:]])

    def arrange(self, batch: list[Dimension]) -> list[Dimension]:
        """Return the batch axes of the output."""
        return batch

    def evaluate(self, data: Array, indices: Array) -> Array:
        shape = self.infer(Value.constant(data), Value.constant(indices)).static
        split, selected = self.batch_dims, self.batch_dims + indices.shape[-1]
        batch = np.broadcast_shapes(data.shape[:split], indices.shape[:split])
        entries, tuples = math.prod(batch), math.prod(indices.shape[split:-1])
        index = flat_positions(indices, data.shape[split:selected], split)
        index = np.broadcast_to(index, batch + indices.shape[split:-1]).reshape(entries, tuples)
        slices = np.broadcast_to(data, batch + data.shape[split:])
        slices = slices.reshape(entries, math.prod(data.shape[split:selected]), *data.shape[selected:])
        return np.asarray(slices[np.arange(entries)[:, None], index].reshape(shape))


@op("GatherND-5")
class GatherND5(GatherNDBase):
    """Gather slices of ``data`` at the index tuples ``indices``; batch axes are merged into one."""

    def arrange(self, batch: list[Dimension]) -> list[Dimension]:
        return [Dimension.of(math.prod(batch[1:], start=batch[0]))] if batch else []


@op("GatherND-8")
class GatherND8(GatherNDBase):
    """Gather slices of ``data`` at the index tuples ``indices``.

    Batch axes broadcast, as in the specification; OpenVINO 2026.4 still requires equal lengths.
    """


@op("GatherTree-1")
class GatherTree(Op):
    """Token sequences of beams, traced from the last step of each beam back through its parents."""

    decisions = (
        "a sequence of length 0 is end_token throughout, as the page begins with; OpenVINO's plugin leaves it as memory was",
    )

    flops_per_element = 0

    step_ids = Input(T, "[time, batch, beam]: the token of each step")
    parent_ids = Input(T, "[time, batch, beam]: the beam that each step continues")
    max_seq_len = Input(T, "[batch]: the number of steps")
    end_token = Input(T, "the token that ends a sequence, and fills the remaining steps; a scalar")
    final_ids = Output(T, "[time, batch, beam]: the sequences")

    def infer(self, step_ids: Value, parent_ids: Value, max_seq_len: Value, end_token: Value) -> PartialShape:
        check_scalar(end_token, "end_token")
        check_vector(max_seq_len, "max_seq_len")
        shape = step_ids.shape.merge(parent_ids.shape)
        if shape is None or shape.rank not in (None, 3):
            raise InferenceError(
                f"step_ids has shape {step_ids.shape}, parent_ids {parent_ids.shape}; both must be "
                f"[time, batch, beam], of equal lengths",
                clause="step_ids and parent_ids are [time, batch, beam], of equal lengths",
            )
        if shape.rank is None:
            return shape
        if (batch := shape[1].merge(max_seq_len.count)) is None:
            raise InferenceError(
                f"max_seq_len has length {max_seq_len.count}, but step_ids {shape} has a batch of {shape[1]}",
                clause="max_seq_len has a number for each batch entry",
            )
        return shape.replace({1: batch})

    def audit(self, *inputs: Value) -> Iterator[str]:
        """Yield a warning about an invalid parent within the steps of a sequence."""
        _, parent_ids, max_seq_len, _ = inputs
        parents, lengths = parent_ids.known(), max_seq_len.known()
        if parents is None or lengths is None:
            return
        steps = np.arange(len(parents))[:, None, None]
        beams = parents.shape[2]
        wrong = parents[(steps > 0) & (steps < lengths[:, None]) & ((parents < 0) | (parents >= beams))]
        if wrong.size:
            yield _describe_parent(wrong[0], beams)

    def evaluate(self, step_ids: Array, parent_ids: Array, max_seq_len: Array, end_token: Array) -> Array:
        final = np.full_like(step_ids, end_token)
        steps, batch, beams = step_ids.shape
        lengths = max_seq_len.astype(np.int64)[:, None]
        entry = np.arange(batch)[:, None]
        beam = np.broadcast_to(np.arange(beams), (batch, beams))
        for step in reversed(range(steps)):
            reached = np.broadcast_to(step < lengths, beam.shape)
            wrong = reached & ((beam < 0) | (beam >= beams))
            if wrong.any():
                raise InferenceError(_describe_parent(beam[wrong][0], beams), clause="parent_ids are beams")
            source = np.where(reached, beam, 0)
            final[step] = np.where(reached, step_ids[step][entry, source], end_token)
            beam = np.where(reached, parent_ids[step].astype(np.int64)[entry, source], beam)
        ended = np.logical_or.accumulate(final == end_token, axis=0)
        return np.where(ended, end_token, final)


def _describe_parent(parent: int, beams: int) -> str:
    return f"parent_ids holds {parent}, but beams are 0 to {beams - 1}"


# Unique elements of a tensor.

T_UNIQUE_AXIS = Element("T_AXIS", SIGNED[:2], "i64 or i32")


@op("Unique-10")
class Unique(Op):
    """Unique elements of ``data``, or unique slices along ``axis``."""

    decisions = (
        "NaN is unequal to itself, so that each is an element of its own, as in OpenVINO's reference; the page does not say",
    )

    flops_per_element = 0

    data = Input(T_ANY, "tensor to search")
    axis = Input(
        T_UNIQUE_AXIS,
        "axis of the slices, one number; if absent, elements of the flattened data",
        optional=True,
    )
    unique = Output(T_ANY, "the distinct elements or slices")
    indices = Output("index_element_type", "index in data of the first occurrence of each, 1-D")
    inverse = Output("index_element_type", "index in unique of each element or slice of data, 1-D")
    counts = Output("count_element_type", "number of occurrences of each, 1-D")

    sorted: bool = attr(True, doc="whether unique is in ascending order, instead of the order of data")
    index_element_type: ElementType = attr(ElementType.i64, doc="type of indices and inverse, i64 or i32")
    count_element_type: ElementType = attr(ElementType.i64, doc="type of counts, i64 or i32")

    def verify(self) -> None:
        """Require that indices and counts are i64 or i32."""
        check_index_types(
            index_element_type=self.index_element_type, count_element_type=self.count_element_type
        )

    def infer(self, data: Value, axis: Value | None = None) -> tuple[PartialShape, ...]:
        along = None if axis is None else axis_input(axis, data.shape.rank)
        if axis is None:
            total = data.count
            shape = PartialShape([_count_distinct(total)])
        elif data.shape.rank == 0:
            raise InferenceError(
                "data is a scalar, which has no axis for input 'axis' to name",
                clause="data has at least one axis if there is an axis",
            )
        elif data.shape.rank is None or along is None:
            total = Dimension()
            shape = (
                PartialShape.dynamic()
                if data.shape.rank is None
                else PartialShape(map(_count_distinct, data.shape))
            )
        else:
            total = data.shape[along]
            shape = data.shape.replace({along: _count_distinct(total)})
        distinct = PartialShape([_count_distinct(total)])
        return shape, distinct, PartialShape([total]), distinct

    def evaluate(self, data: Array, axis: Array | None = None) -> tuple[Array, ...]:
        along = None if axis is None else int(axis.item()) % data.ndim
        slices = data.reshape(data.size, 1) if along is None else np.moveaxis(data, along, 0)
        first, inverse, counts = _group_rows(
            slices.reshape(len(slices), -1 if slices.size else 0), self.sorted
        )
        return (
            data.ravel()[first] if along is None else data.take(first, along),
            first.astype(self.index_element_type.dtype),
            inverse.astype(self.index_element_type.dtype),
            counts.astype(self.count_element_type.dtype),
        )


def _count_distinct(count: Dimension) -> Dimension:
    """Return the possible numbers of distinct elements among ``count`` elements."""
    return Dimension.between(min(count.min, 1), count.max)


def _group_rows(rows: Array, ordered: bool) -> tuple[Array, Array, Array]:
    """Group equal rows; return the first row of each group, the group of each row, and the group sizes.

    With ``ordered``, groups are in ascending order; otherwise, in the order of their first rows.
    """
    if len(rows) == 0:
        return (np.zeros(0, np.int64),) * 3
    if rows.shape[1] > 1:  # replace elements of any type by their ranks
        rows = np.unique(rows, return_inverse=True, equal_nan=False)[1].reshape(rows.shape)
        order = np.lexsort(rows.T[::-1])
    else:
        order = np.argsort(rows.ravel(), kind="stable") if rows.size else np.arange(len(rows))
    ranked = rows[order]  # NaN is unequal to everything, as in OpenVINO's reference
    starts = np.concatenate([[True], (ranked[1:] != ranked[:-1]).any(axis=1)])
    inverse = np.empty(len(rows), np.int64)
    inverse[order] = np.cumsum(starts) - 1
    first, counts = order[starts], np.bincount(inverse)
    if not ordered:
        by_first = np.argsort(first)
        first, counts, inverse = first[by_first], counts[by_first], np.argsort(by_first)[inverse]
    return first, inverse, counts
