"""Strided copies: one task that copies whole rows, transposes squares in registers, or copies element by element.

NumPy copies element by element if source and target are contiguous along different axes, as between NCHW and NHWC. Also,
a copy by NumPy ends the replay of a recorded run.
"""

from __future__ import annotations

import operator
from functools import lru_cache, partial
from itertools import accumulate
from typing import TypeAlias

import numpy as np

from ....ir.tensor import Array
from ...common.kept_memory import empty
from ..codegen import ir
from ..codegen.descriptor import i64
from ..codegen.language import device, instruction, types
from ..codegen.vectors import LANES, Emit
from ..threading.parallel import RECORD, is_recording, parallel_for, threads_for
from ..threading.task import UNUSED
from ._nest import BLOCK, Addresses, NestJob, Place, nest_fields, nest_task, row_stride
from ._rows import copy_bytes, emit_transpose, transpose_square

__all__ = [
    "COPY",
    "MAX_SIZE",
    "SIZES",
    "copy",
    "broadcast_copy",
    "copy_if_recording",
    "contiguous",
    "contiguous_rows",
    "is_view",
    "reshape",
]

SIZES = 1, 2, 4, 8
"""Supported element sizes in bytes."""
MAX_SIZE = 1 << 16
"""The array size up to which this task copies element by element as fast as NumPy."""
WORD = 4
# The most columns of a block of rows; the blocks of a single long row; the rows and columns of a block of squares.
MAX_COLUMNS, PARTS, SIDE = 1 << 30, 64, 64
# Transposing squares is faster than copying elements if at least one in MIN_FILL lanes is used, or if squares of LANES
# rows have MIN_COLUMNS columns.
MIN_FILL, MIN_COLUMNS = 5, 3
# If the innermost axis is shorter than SHORT, the longest of the INNER innermost axes becomes the innermost loop.
SHORT, INNER = 8, 3
ROWS, SQUARES, ELEMENTS = range(3)

_Axis: TypeAlias = tuple[int, int, int]
_Shape: TypeAlias = tuple[int, ...]


class CopyJob(NestJob):
    """Parameters of `COPY`; all strides are in bytes.

    ``form`` is `ROWS`, `SQUARES` or `ELEMENTS`, and ``size`` the element size in bytes. ``middle`` is the length of
    a loop between those over rows and columns, with strides ``middle_stride`` in the source and ``middle_width`` in
    the target. ``stride`` and ``width`` are the strides of columns; for squares, ``width`` is the target stride of rows.
    """

    form: i64
    size: i64
    middle: i64
    middle_stride: i64
    middle_width: i64
    stride: i64
    width: i64


@instruction(*[types.int64] * 6)
def _copy_elements(
    emit: Emit, size: ir.Value, count: ir.Value, x: ir.Value, stride: ir.Value, out: ir.Value, width: ir.Value
) -> None:  # fmt: skip
    """Copy ``count`` elements of ``size`` bytes, ``stride`` bytes apart in the source and ``width`` in the target."""

    def go(kind: ir.Type) -> None:
        with emit.loop(count, [x, out]) as (_, (source, target), following):
            emit.store(emit.load(source, kind, 1), target, 1)
            following += [emit.at(source, stride), emit.at(target, width)]

    emit.switch(size, {n: partial(go, ir.IntType(8 * n)) for n in SIZES})


@instruction(*[types.int64] * 6)
def _transpose_part(
    emit: Emit, x: ir.Value, stride: ir.Value, columns: ir.Value, rows: ir.Value, out: ir.Value, width: ir.Value
) -> None:  # fmt: skip
    """Transpose up to `LANES` columns of up to `LANES` rows; columns are ``stride`` bytes apart, result rows ``width``."""
    emit_transpose(emit, x, stride, columns, rows, out, width, emit.masked_access(columns)[1])


@device
def _transpose(job: CopyJob, x: int, out: int, top: int, left: int, rows: int, columns: int) -> None:
    """Transpose a block square by square; the last square along each axis of the array may overlap the previous one.

    The block starts at row ``top`` and column ``left``; ``x`` and ``out`` are the addresses of its first element.
    """
    tall, wide, apart, width = job.rows, job.columns, job.stride, job.width
    x, out = x - WORD * top - left * apart, out - WORD * left - top * width
    for row in range(top, top + rows, LANES):
        r = max(min(row, tall - LANES), 0)
        for column in range(left, left + columns, LANES):
            c = max(min(column, wide - LANES), 0)
            source, target = x + WORD * r + c * apart, out + WORD * c + r * width
            if tall >= LANES and wide >= LANES:
                transpose_square(source, apart, target, width)
            else:
                _transpose_part(source, apart, min(wide, LANES), min(tall, LANES), target, width)


@device
def _copy_block(job: CopyJob, operands: Addresses, place: Place, rows: int, columns: int, room: int) -> None:
    (out, x, _b, _c), (_plane, top, left) = operands, place
    form, size, stride, width = job.form, job.size, row_stride(job, 1), row_stride(job, 0)
    if form == ROWS:
        for row in range(rows):
            copy_bytes(x + row * stride, size * columns, out + row * width)
    elif form == SQUARES:
        _transpose(job, x, out, top, left, rows, columns)
    else:
        apart, along, down, across = job.stride, job.width, job.middle_stride, job.middle_width
        length = job.middle
        for row in range(rows):
            for middle in range(length):
                source, target = x + row * stride + middle * down, out + row * width + middle * across
                _copy_elements(size, columns, source, apart, target, along)


COPY = nest_task("copy", _copy_block)
"""Copy A to the result."""


def copy(x: Array, out: Array, most: float = MAX_SIZE) -> bool:
    """Copy an array by the `COPY` task and return ``True``, or leave the copy to NumPy and return ``False``.

    It returns ``False`` if the task does not support the layouts or the dtype, and as ``most`` describes.

    Args:
        x: the source.
        out: the destination, of the same shape and element size.
        most: the number of elements above which arrays are not copied element by element, but left to NumPy.
    """
    if not x.size or x.dtype.hasobject:
        return not x.dtype.hasobject
    if (entry := _job(x.shape, x.strides, out.strides, x.itemsize)) is None:
        return False
    job, is_single = entry
    if is_single and x.size > most:
        return False
    count = threads_for(steps=x.size) if is_single else threads_for(moved=2 * x.nbytes)
    parallel_for(COPY.address, job, out, x, UNUSED, UNUSED, count)
    return True


def copy_if_recording(x: Array, out: Array) -> bool:
    """Copy an array by the `COPY` task if a run is recorded; return whether it was copied."""
    return x.size > 0 and is_recording() and copy(x, out)


def broadcast_copy(x: Array, shape: _Shape) -> Array | None:
    """Broadcast an array to a shape; return a contiguous copy, the array itself if it needs no copy, or ``None``.

    ``None`` means that `copy` leaves the array to NumPy.
    """
    if x.shape == shape and x.flags.c_contiguous:
        return x
    out = empty(shape, x.dtype)
    return out if copy(np.broadcast_to(x, shape), out) else None


@lru_cache(maxsize=512)
def _job(shape: _Shape, strides: _Shape, widths: _Shape, size: int) -> tuple[Array, bool] | None:
    """Return a `CopyJob` and whether it copies element by element, or ``None`` if the axes or element size are unsupported.

    ``strides`` are the byte strides of the source, ``widths`` those of the target.
    """
    if size not in SIZES:
        return None
    axes = merge_axes(shape, strides, widths) or [(1, size, size)]
    if axes[0][1:] == (size, size) and axes[0][0] * size >= WORD * LANES:
        return _row_job(axes, size)
    place = next((index for index, (_, stride, _) in enumerate(axes) if stride == WORD), 0)
    if size == WORD and place and axes[0][2] == WORD and _fills_squares(axes[place][0], axes[0][0]):
        return _square_job(axes, place)
    return _element_job(axes, size)


def _fills_squares(rows: int, columns: int) -> bool:
    """Return whether transposing squares, partly filled at the edges, is faster than copying element by element."""
    is_full = MIN_FILL * rows * columns >= _whole_vectors(rows) * _whole_vectors(columns)
    return is_full or (columns >= MIN_COLUMNS and rows >= LANES)


def _row_job(axes: list[_Axis], size: int) -> tuple[Array, bool] | None:
    most = MAX_COLUMNS if len(axes) > 1 else -(-axes[0][0] // PARTS // LANES) * LANES or LANES
    return _fill_job(axes, size, ROWS, nest_fields(_nest_axes(axes), max(most, BLOCK)))


def _square_job(axes: list[_Axis], place: int) -> tuple[Array, bool] | None:
    """Return the same as `_job` for a copy that transposes squares; ``None`` if there are too many axes.

    Axis 0 is contiguous in the target, axis ``place`` in the source.
    """
    columns, rows = axes[0], axes[place]
    others = [axis for index, axis in enumerate(axes) if index not in (0, place)]
    tall = min(max(SIDE, BLOCK // _whole_vectors(columns[0])), _whole_vectors(rows[0])) // LANES * LANES
    wide = min(max(SIDE, BLOCK // tall), _whole_vectors(columns[0])) // LANES * LANES
    fields = nest_fields(_nest_axes([columns, rows, *others]), wide, tall * wide)
    return _fill_job([columns, rows, *others], WORD, SQUARES, fields)


def _element_job(axes: list[_Axis], size: int) -> tuple[Array, bool] | None:
    if axes[0][0] < SHORT:
        longest = max(range(min(INNER, len(axes))), key=lambda index: axes[index][0])
        axes[0], axes[longest] = axes[longest], axes[0]
    middle = axes.pop(1) if len(axes) > 2 or (len(axes) == 2 and axes[1][0] <= SHORT) else (1, 0, 0)
    block = max(BLOCK // middle[0], 1)
    return _fill_job(axes, size, ELEMENTS, nest_fields(_nest_axes(axes), block, block), middle)


def _nest_axes(axes: list[_Axis]) -> list[_Axis]:
    """Swap the strides of each axis: a nest lists those of the target first."""
    return [(length, width, stride) for length, stride, width in axes]


def _fill_job(
    axes: list[_Axis], size: int, form: int, fields: dict[str, object] | None, middle: _Axis = (1, 0, 0)
) -> tuple[Array, bool] | None:
    """Return a `CopyJob` and whether it copies element by element; ``None`` if ``fields`` is ``None``.

    Args:
        axes: the axes of columns, rows and planes.
        size: the element size in bytes.
        form: the ``form`` of the job.
        fields: the fields from `nest_fields`.
        middle: the axis of the loop between those over rows and columns.
    """
    if fields is None:
        return None
    job = CopyJob.fill(
        **fields, room=0, form=form, size=size, middle=middle[0], middle_stride=middle[1],
        middle_width=middle[2], stride=axes[0][1], width=axes[1][2] if form == SQUARES else axes[0][2],
    )  # fmt: skip
    return job, form == ELEMENTS


def merge_axes(shape: _Shape, strides: _Shape, widths: _Shape) -> list[_Axis]:
    """Return the axes as (length, source stride, target stride), sorted by target stride, innermost first.

    Adjacent axes are merged where both strides allow it, and axes of length 1 are left out. Strides are in bytes.
    """
    axes = [axis for axis in zip(shape, strides, widths, strict=True) if axis[0] != 1]
    axes.sort(key=lambda axis: (abs(axis[2]), abs(axis[1])))
    merged = axes[:1]
    for axis in axes[1:]:
        length, stride, width = merged[-1]
        if axis[1:] == (length * stride, length * width):
            merged[-1] = length * axis[0], stride, width
        else:
            merged.append(axis)
    return merged


def _whole_vectors(count: int) -> int:
    """Round ``count`` up to whole vectors."""
    return -(-count // LANES) * LANES


# Arrays with fewer elements are left to NumPy, unless a run is recorded.
MIN_SIZE = 1 << 11


def contiguous(x: Array) -> Array:
    """Return a C-contiguous array, copying only if needed; in a recorded run, a task copies small arrays as well."""
    if x.flags.c_contiguous:
        return x
    y = empty(x.shape, x.dtype)
    if x.itemsize == WORD and x.size >= MIN_SIZE and copy(x, y, 0):
        return y
    if RECORD.get() is None or not copy(x, y):
        y[...] = x
    return y


def reshape(x: Array, shape: tuple[int, ...]) -> Array:
    """Reshape an array in C order: return a view if its strides allow, else a copy."""
    return (x if is_view(x, shape) else contiguous(x)).reshape(shape)


def is_view(x: Array, shape: tuple[int, ...]) -> bool:
    """Return whether reshaping an array to a shape needs no copy."""
    return not x.size or _is_view(x.shape, x.strides, shape)


@lru_cache(maxsize=256)
def _is_view(shape: tuple[int, ...], strides: tuple[int, ...], target: tuple[int, ...]) -> bool:
    """Return whether no axis of ``target`` spans axes that are not contiguous with each other."""
    widths = [WORD * n for n in accumulate(reversed(shape), operator.mul, initial=1)][-2::-1]
    lengths = [length for length, *_ in merge_axes(shape, strides, tuple(widths))]
    return set(accumulate(lengths, operator.mul)).issubset(accumulate(reversed(target), operator.mul))


def contiguous_rows(x: Array) -> Array:
    """Return an array whose last axis is contiguous, copying only if needed."""
    return x if x.strides[-1] == x.itemsize or x.shape[-1] == 1 else contiguous(x)
