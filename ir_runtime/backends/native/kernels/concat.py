"""Concatenation: of f32 feature maps along channels, channels-last and with an epilogue, and of small tensors along any axis.

While a run is recorded for replay, small tensors are copied by tasks instead of NumPy, whose calls cannot be replayed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import accumulate, pairwise
from typing import NamedTuple

import numpy as np

from ....ir.operation import Operation
from ....ir.tensor import Array, Value
from ....ops.movement.extend import Concat
from ... import Kernel, KernelTemplate
from ...common.kept_memory import empty
from ...common.layout import channels_first, channels_last, is_f32
from ...core.kernel import any_lengths
from .._backend import backend
from ..codegen import ir
from ..codegen.descriptor import Descriptor, concatenate, i64
from ..codegen.language import device, instruction, types
from ..codegen.memory import load_i64, store_i64
from ..codegen.vectors import Emit
from ..threading.capture import replayed
from ..threading.parallel import RECORD, is_recording, parallel_for, pays_to_share, threads, workspace
from ..threading.task import UNUSED, Task, each_chunk
from ._copy import COPY, MAX_SIZE, SIZES, contiguous, copy
from ._epilogue import Bf16Tensors, Epilogue, EpilogueField, FusedKernel, PackedEpilogue, apply_epilogue
from ._gemm_kernel import requested_products
from ._gemm_tile import round_row
from ._rows import copy_bytes

__all__: list[str] = []


def join_by_copies(parts: Sequence[Array], axis: int) -> Array:
    """Concatenate arrays of one dtype along an axis by `COPY` tasks, or by NumPy if `copy` leaves a part to it.

    The tasks' result has the memory order of the first array without broadcast axes.

    Args:
        parts: the arrays, of equal rank, at least 1.
        axis: the axis, not negative.
    """
    first = next((x for x in parts if all(x.strides)), parts[0])
    order = sorted(range(first.ndim), key=lambda at: -abs(first.strides[at]))
    shape = list(first.shape)
    shape[axis] = sum(x.shape[axis] for x in parts)
    if any(_differ(x.shape, first.shape, axis) for x in parts):
        return np.concatenate(parts, axis)
    out = empty([shape[at] for at in order], first.dtype).transpose(np.argsort(order))
    ends = accumulate((x.shape[axis] for x in parts), initial=0)
    places = [(slice(None),) * axis + (slice(*bounds),) for bounds in pairwise(ends)]
    most = MAX_SIZE if out.size <= MAX_SIZE else 0
    for x, place in zip(parts, places, strict=True):
        if not copy(x, out[place], most):
            return np.concatenate(parts, axis)
    return out


def _differ(shape: tuple[int, ...], other: tuple[int, ...], axis: int) -> bool:
    return shape[:axis] != other[:axis] or shape[axis + 1 :] != other[axis + 1 :]


# Results with fewer elements are left to NumPy, unless they have an epilogue or the run is recorded: NumPy ends the replay.
MIN_SIZE = 1 << 14
# The number of layouts whose plans are cached.
MAX_PLANS = 16
# Pixels per unit of work, which stays in the L1 cache.
ROWS_PER_UNIT = 32


class ConcatJob(Descriptor):
    """Parameters of `concat`.

    ``rows`` is the number of pixels, ``size`` the size of a result element in bytes. ``scale`` and ``shift`` are the
    addresses of a factor and a summand per channel, or 0. A bf16 result has no epilogue.
    """

    rows: i64
    parts: i64
    channels: i64
    size: i64
    scale: i64
    shift: i64
    epilogue: EpilogueField


class Part(Descriptor):
    """An input of `concat`: its address, the bytes between its pixels, its channels, and whether it is rounded to bf16."""

    data: i64
    row_stride: i64
    channels: i64
    is_rounded: i64


@instruction(*[types.int64] * 8)
def _scale_columns(  # noqa: PLR0913 (values in registers)
    emit: Emit, x: ir.Value, stride: ir.Value, rows: ir.Value, count: ir.Value, out: ir.Value, width: ir.Value,
    scale: ir.Value, shift: ir.Value,
) -> None:  # fmt: skip
    """Store ``x * scale + shift`` for ``rows`` rows of ``count`` elements; ``scale`` and ``shift`` have one element per column.

    ``stride`` and ``width`` are the bytes between rows of ``x`` and of ``out``.
    """
    for offset, load, store in emit.vectors(count):
        factor, summand = load(emit.at(scale, offset)), load(emit.at(shift, offset))
        with emit.loop(rows, [emit.at(x, offset), emit.at(out, offset)]) as (_, (at, target), following):
            store(emit.fma(load(at), factor, summand), target)
            following += [emit.at(at, stride), emit.at(target, width)]


@device
def _copy_or_round(x: int, out: int, count: int, size: int, is_rounded: int) -> None:
    """Copy ``count`` elements of ``size`` bytes, or, if ``is_rounded``, round them from f32 to bf16."""
    if is_rounded != 0:
        round_row(x, count, out, count)
    else:
        copy_bytes(x, size * count, out)


@device
def _copy_part(job: ConcatJob, entry: Part, start: int, pixels: int, target: int, column: int) -> None:
    """Copy the channels of ``pixels`` pixels of one input, starting at ``start``, to byte offset ``column`` of result pixels."""
    stride, count = entry.row_stride, entry.channels
    size, source = job.size, entry.data + start * stride
    width = size * job.channels
    scale, shift = job.scale, job.shift
    if scale != 0:
        _scale_columns(source, stride, pixels, count, target, width, scale + column, shift + column)
        return
    for row in range(pixels):
        _copy_or_round(source + row * stride, target + row * width, count, size, entry.is_rounded)


@Task
def concat(call: int, job: ConcatJob, out: int, table: int, first: int, second: int) -> None:
    """Concatenate the inputs in A, a table of `Part` records, and apply the epilogue with extra tensors B and C."""
    rows, size = job.rows, job.size
    width = size * job.channels
    for start, end in each_chunk(call, rows, ROWS_PER_UNIT):
        pixels, column = end - start, 0
        for part in range(job.parts):
            entry = Part.at(table, part)
            _copy_part(job, entry, start, pixels, out + start * width + column, column)
            column += size * entry.channels
        if size == 4:
            apply_epilogue(job.epilogue, first, second, out, start * width, 0, pixels, width // 4, width)


@Task
def _locate(call: int, job: int, out: int, x: int) -> None:
    """Copy the job, a `Part`, to the result, with its address set to that of A."""
    for index in range(Part.words):
        store_i64(out, index, load_i64(job, index))
    store_i64(out, Part.data, x)


@backend.accelerates(Concat)
def channels(op: Concat, *parts: Value) -> KernelTemplate | None:
    """Return a Concat kernel that joins f32 ``[N, C, ...]`` along channels to a channels-last result, else ``None``.

    It fuses an epilogue if the rank is 4 or more.
    """
    rank = parts[0].shape.rank or 0
    if not is_f32(*parts) or rank < 3 or any(part.shape.rank != rank for part in parts):
        return None
    if op.axis not in (1, 1 - rank):
        return None
    make, bf16 = partial(_kernel, op, len(parts)), requested_products().is_faster
    if rank == 3:
        return replace(make(Epilogue()), accepts=any_lengths)
    return _Channels(make, 1, accepts=any_lengths, bf16=Bf16Tensors(result=bf16))


@dataclass(frozen=True)
class _Channels(FusedKernel):
    """The template of a concatenation; if the result may be bf16, it fuses no epilogue."""

    def reads_bf16(self, place: int) -> bool:
        """Return whether inputs may be stored in bf16: if the result is."""
        return self.epilogue.rounds

    def fuse(self, op: Operation, inputs: Sequence[Value], place: int) -> FusedKernel | None:
        """Return this kernel with ``op`` appended to its epilogue, or ``None`` if ``op`` cannot be fused."""
        return None if self.bf16.result else super().fuse(op, inputs, place)


class _Plan(NamedTuple):
    """The concatenation of inputs of given shapes and strides."""

    job: Array
    """A `ConcatJob`."""
    table: Array
    """One `Part` per input; each call fills in the addresses."""
    shape: tuple[int, ...]
    """The channels-last shape of the result."""
    large: bool
    """Whether to use several threads."""


def _kernel(op: Concat, count: int, epilogue: Epilogue) -> Kernel:
    """Return a kernel that concatenates its first ``count`` inputs; others are those of the epilogue."""
    stored, packed = epilogue.dtype, PackedEpilogue.of(epilogue)
    join = partial(np.concatenate, axis=op.axis, dtype=stored, casting="unsafe")
    scale, shift = _rows(epilogue)
    is_plain = not scale.size and not epilogue.post_ops
    plans: dict[tuple[object, ...], _Plan | None] = {}
    concat.prepare()
    _locate.prepare()

    def plan(parts: Sequence[Array]) -> _Plan | None:
        """Return the plan for inputs, or ``None`` if the task does not support their layouts or NumPy is faster."""
        n, _, *lengths = parts[0].shape
        shape = (n, *lengths, sum(x.shape[1] for x in parts))
        alike = all((x.shape[0], *x.shape[2:]) == shape[:-1] for x in parts)
        left = is_plain and math.prod(shape) < MIN_SIZE and RECORD.get() is None
        if not alike or not all(map(_has_pixel_rows, parts)) or left:
            return None
        job = ConcatJob.fill(
            rows=math.prod(shape[:-1]), parts=count, channels=shape[-1], size=stored.itemsize,
            scale=scale if scale.size else 0, shift=shift, epilogue=packed.record,
        )  # fmt: skip
        table = concatenate(*(_part(x, stored.itemsize) for x in parts)).reshape(count, -1)
        return _Plan(job, table, shape, pays_to_share(moved=8 * math.prod(shape)))

    def kernel(*arrays: Array) -> Array:
        parts = arrays[:count]
        while True:
            key = (RECORD.get() is None, *[(x.shape, x.strides, x.itemsize) for x in parts])
            if key not in plans:
                if len(plans) >= MAX_PLANS:
                    plans.clear()
                plans[key] = plan(parts)
            if (planned := plans[key]) is not None:
                break
            if is_plain and RECORD.get() is not None and {x.dtype for x in parts} == {stored}:
                return join_by_copies(parts, op.axis % parts[0].ndim)
            if is_plain or len({(x.shape[0], *x.shape[2:]) for x in parts}) > 1:
                return np.asarray(join(parts))  # which raises, if lengths differ
            parts = tuple(channels_first(contiguous(channels_last(x))) for x in parts)
        table = _fill_addresses(planned.table, parts)
        y = empty(planned.shape, stored)
        first, second = packed.extra_arrays(arrays[count:], 1)
        parallel_for(concat.address, planned.job, y, table, first, second, threads() if planned.large else 1)
        return channels_first(y)

    return Kernel(kernel, replay=replayed())


def _fill_addresses(table: Array, parts: Sequence[Array]) -> Array:
    """Return a copy of a table of `Part` records with the addresses of the inputs.

    In a recorded run, tasks fill the copy, since the addresses differ in each replay.
    """
    if RECORD.get() is None:
        filled = table.copy()
        filled[:, Part.data] = [x.ctypes.data for x in parts]
        return filled
    filled = workspace(2 * table.size).view(np.int64).reshape(table.shape)
    for row, job, x in zip(filled, table, parts, strict=True):
        parallel_for(_locate.address, job, row, x, UNUSED, UNUSED, 1)
    return filled


def _rows(epilogue: Epilogue) -> tuple[Array, Array]:
    """Return the factor and the summand of each channel, or empty arrays if the epilogue has neither."""
    scale, shift = epilogue.scale, epilogue.shift
    if scale is None and shift is None:
        return UNUSED, UNUSED
    row = scale if scale is not None else shift
    assert row is not None
    return (
        np.ones_like(row) if scale is None else np.ascontiguousarray(scale),
        np.zeros_like(row) if shift is None else np.ascontiguousarray(shift),
    )


def _has_pixel_rows(x: Array) -> bool:
    """Return whether the channels of ``x[N, C, ...]`` are contiguous and its pixels equally spaced in memory."""
    axes = [axis for axis in (0, *range(2, x.ndim)) if x.shape[axis] != 1]
    whole = all(x.strides[a] == x.strides[b] * x.shape[b] for a, b in pairwise(axes))
    return (x.strides[1] == x.itemsize or x.shape[1] == 1) and whole


def _part(x: Array, size: int) -> Array:
    """Return the `Part` of an input without its address; ``size`` is the size of a result element in bytes."""
    along = next((axis for axis in range(x.ndim - 1, 1, -1) if x.shape[axis] != 1), 0)
    return Part.fill(data=0, row_stride=x.strides[along], channels=x.shape[1], is_rounded=x.itemsize > size)


# The most elements of a small result; of 4 bytes each, it may be larger, since it is mostly copied by rows, as fast as NumPy.
MAX_SMALL_SIZE, MAX_ROW_SIZE = 1 << 16, 1 << 20


@backend.accelerates(Concat)
def small(op: Concat, *parts: Value) -> Kernel | None:
    """Return a Concat kernel for any axis, if the result is small or of dynamic size; else ``None``.

    It calls NumPy, except in recorded runs, where it copies by tasks so that the replay continues. What `channels` can join
    is left to it.
    """
    rank = parts[0].shape.rank
    if not rank or any(part.shape.rank != rank for part in parts):
        return None
    axis = op.axis % rank
    if is_f32(*parts) and axis == 1 and rank > 2:
        return None  # left to `channels`
    kinds = {part.element.dtype for part in parts}
    sizes = [math.prod(part.shape.static) for part in parts if part.shape.is_static]
    most = MAX_ROW_SIZE if all(kind.itemsize == 4 for kind in kinds) else MAX_SMALL_SIZE
    if len(kinds) > 1 or not all(sizes) or sum(sizes) >= most:
        return None
    if not all(kind.kind in "fiub" and kind.itemsize in SIZES for kind in kinds):
        return None
    COPY.prepare()
    return _small(axis)


@cache
def _small(axis: int) -> Kernel:
    def kernel(*arrays: Array) -> Array:
        return join_by_copies(arrays, axis) if is_recording() else np.concatenate(arrays, axis)

    return Kernel(kernel, accepts=any_lengths, replay=replayed(alone=False))
