"""Packing of constant weights in panels: of f32, with any strides."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ....ir.tensor import Array
from ..codegen.descriptor import Descriptor, i64
from ..codegen.language import device, instruction, types
from ..codegen.memory import load_f32, store_f32
from ..codegen.vectors import LANES, Emit, Value
from ..threading.parallel import parallel_for, threads_for
from ..threading.task import UNUSED, Task, each_counted, load_args
from ._filter_packing import packed_filters
from ._pack_square import pack_square
from ._panels import PackedPanels, Panel, allocate_panels

__all__ = ["pack_block", "pack_panels", "pack_task", "packed_by"]


class PackJob(Descriptor):
    """The job of `_PACK`: how many panels, addresses, sizes and strides in bytes."""

    panels: i64
    table: i64
    filters: i64
    scale: i64
    taps: i64
    depth: i64
    columns: i64
    group_stride: i64
    column_stride: i64
    tap_stride: i64
    row_stride: i64


def pack_panels(filters: Array, scale: Array | None, bias: Array | None, across: int = 0) -> PackedPanels:
    """Pack matrices, one for each group.

    Args:
        filters: ``[G, N, taps, depth]``, of any strides.
        scale: multiplies each column of all groups; ``None`` for 1.
        bias: is added to each column of all groups; ``None`` for 0.
        across: bytes between the tap offsets of two groups.
    """
    stored = filters.swapaxes(2, 3)
    if stored.shape[3] > 1 and stored.flags.c_contiguous:
        return packed_filters(stored, scale, bias, across)
    return packed_by(_PACK, filters, filters.shape[3], scale, bias, across)


def packed_by(
    task: Task, filters: Array, words: int, scale: Array | None, bias: Array | None, across: int
) -> PackedPanels:
    """Return panels of matrices that a task packs; as `pack_panels`, with ``words`` of 32 bits for each tap."""
    groups, columns, taps, depth = filters.shape
    panels = allocate_panels(groups, columns, taps * words, bias, across)
    factors = np.ones(groups * columns, np.float32) if scale is None else np.ascontiguousarray(scale)
    by_group, by_column, by_tap, by_row = filters.strides
    job = PackJob.fill(
        panels=len(panels), table=panels.table.ctypes.data, filters=filters.ctypes.data, scale=factors.ctypes.data,
        taps=taps, depth=depth, columns=columns, group_stride=by_group, column_stride=by_column,
        tap_stride=by_tap, row_stride=by_row,
    )  # fmt: skip
    count = threads_for(computed=panels.numbers.size)
    parallel_for(task.address, job, panels.numbers, UNUSED, UNUSED, UNUSED, count)
    return panels


@instruction(*[types.int64] * 3)
def _pack_row(emit: Emit, target: Value, source: Value, factors: Value) -> None:
    """Pack `LANES` contiguous columns of one row."""
    emit.store(emit.multiply(emit.load(source), emit.load(factors)), target)


@device
def pack_block(
    target: int, width: int, count: int, rows: int, source: int, by_column: int, by_row: int, factors: int
) -> None:
    """Pack some rows of a panel."""
    for first in range(0, width, LANES):
        start, at, scale = source + first * by_column, target + 4 * first, factors + 4 * first
        whole = first + LANES <= count
        if whole and by_row == 4 and rows == LANES:
            pack_square(at, 4 * width, start, by_column, scale)
            continue
        for k in range(rows):
            row = at + 4 * k * width
            if whole and by_column == 4:
                _pack_row(row, start + k * by_row, scale)
                continue
            for j in range(LANES):
                if first + j < count:
                    store_f32(row, j, load_f32(start + j * by_column + k * by_row, 0) * load_f32(scale, j))
                else:
                    store_f32(row, j, np.float32(0))


def pack_task(name: str, store_block: Callable[..., None], per_word: int) -> Task:
    """Return the task that packs matrices.

    Args:
        name: of its function.
        store_block: packs some rows of a panel, as `pack_block`.
        per_word: how many numbers of a column share a word.
    """

    def pack(call: int) -> None:
        """Pack matrices; a unit is one panel."""
        address, out, _, _, _, counter = load_args(call)
        job = PackJob.at(address)
        taps, depth = job.taps, job.depth
        columns, by_group = job.columns, job.group_stride
        by_column, by_tap = job.column_stride, job.tap_stride
        by_row, words = job.row_stride, (depth + per_word - 1) // per_word
        for unit in each_counted(counter, job.panels):
            entry = Panel.at(job.table + 8 * Panel.words * unit)
            width, column = entry.vectors * LANES, entry.column
            count = width - LANES + entry.last_columns
            group, place = column // columns, out + entry.start
            source = job.filters + group * by_group
            source += (column - group * columns) * by_column
            for tap in range(taps):
                for first in range(0, depth, LANES):
                    rows = min(LANES, depth - first)
                    target = place + 4 * (tap * words + first // per_word) * width
                    start = source + tap * by_tap + first * by_row
                    factors = job.scale + 4 * column
                    store_block(target, width, count, rows, start, by_column, by_row, factors)

    pack.__qualname__ = name
    return Task(pack)


_PACK = pack_task("_pack_all", pack_block, 1)
