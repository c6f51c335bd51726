"""The tasks that compute the nodes of a quantized subgraph: their jobs, with packed weights."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from ....ir.tensor import Array
from ....ops.convolution import Convolution
from ...patterns.quantized_graph import Pooled, Quantizer
from ..codegen.levels import GROUP, WEIGHT_DTYPE
from ..codegen.target import TARGET
from ..codegen.vectors import LANES
from ..threading.parallel import pays_to_share, threads
from ._gemm_tile import ROW_MULTIPLE
from ._int8_gemm import AheadRecord, LevelsGemmJob, levels_gemm, pack_levels
from ._int8_graph import IntegerPooled, IntegerProduct
from ._int8_maps import MAX_SHARES, LevelMap, share_starts
from ._int8_tile import LevelBounds
from ._int8_windows import (
    BLOCK,
    FORMS,
    MAXIMUM,
    TALL,
    LevelsWindowsJob,
    are_interleaved,
    levels_windows,
    pack_blocks,
    pack_depthwise,
    pack_row,
)
from ._int8_winograd import (
    COLUMNS,
    LevelsWinogradJob,
    block_tiles,
    count_tiles,
    is_winograd,
    levels_winograd,
    transform_weights,
)
from ._panels import Panel

__all__ = ["Bound", "bind", "prefetch_weights", "requantization"]

# How many times as long those of windows take, as those of products.
WINDOW_WORK = 8
# Rows of the data and the result that stay in the L1 and L2 caches while all panels are used have this many bytes; there are
# at most this many times the rows of all tiles.
CACHED_BYTES, MOST_TILES = 1 << 17, 4
# Units per share, so that other threads can take over from one that is interrupted.
UNITS = 4
# Maps of fewer lines a share, whose lines cannot be shared equally, are shared by channel, if that is as equal.
MIN_LINES = 8


class Bound(NamedTuple):
    """A call of a task.

    Args:
        address: the address of the task's machine code.
        job: its job.
        large: whether to share the call among threads.
        weights: an `AheadRecord` for each share with the weights it reads first, if any.
    """

    address: int
    job: Array
    large: bool
    weights: Array | None = None


def bind(node: IntegerProduct | IntegerPooled, data: LevelMap, out: LevelMap, other: LevelMap) -> Bound:
    """Return the task call of a node for maps of the given geometry."""
    if isinstance(node, Pooled):
        return _maximum(node, data, out)
    if is_winograd(node, data, out, _shares()):
        return _winograd(node, data, out, other)
    return (_dense if isinstance(node.op, Convolution) else _depthwise)(node, data, out, other)


def prefetch_weights(bound: Sequence[Bound]) -> None:
    """Make each task with weights prefetch those of the next one."""
    for task, following in pairwise(each for each in bound if each.weights is not None):
        assert following.weights is not None
        task.job.view(np.int64)[LevelsGemmJob.ahead] = following.weights.ctypes.data


def requantization(node: IntegerProduct, stored: int) -> tuple[Array, Array, Array]:
    """Return the scale and bias that convert sums to levels for each stored channel, and the `LevelBounds`.

    Everything is computed in f64 and rounded once.
    """
    first, data, numbers = node.first, node.data.quantizer, node.weights.numbers
    rows = numbers.reshape(len(node.weights.scale), -1)
    scale = data.scale * node.weights.scale * node.factor / first.step
    bias = (node.shift - first.low) / first.step - scale * data.zero * rows.sum(axis=1, dtype=np.int64)
    columns = np.zeros((2, stored), np.float32)
    columns[:, : len(scale)] = scale, bias
    low, high = (first.level_of(bound) for bound in node.bounds)
    more = dict.fromkeys(("factor", "other_factor", "shift", "sum_low", "sum_high"), 0.0)
    if node.other is not None and node.last is not None:
        more = _sum(first, node.other.quantizer, node.last, node.sum_bounds)
    return columns[0], columns[1], LevelBounds.fill(low=low, high=high, unused=0, **more)


def _sum(
    first: Quantizer, other: Quantizer, last: Quantizer, bounds: tuple[float, float]
) -> dict[str, float]:
    """Return the factors of both levels, and the shift and bounds of their sum."""
    shift = -(first.scale * first.zero + other.scale * other.zero + last.low) / last.step
    low, high = (last.level_of(bound) for bound in bounds)
    return {
        "factor": first.scale / last.step, "other_factor": other.scale / last.step, "shift": shift,
        "sum_low": low, "sum_high": high,
    }  # fmt: skip


def _strides(
    name: str, levels: LevelMap, step: tuple[int, int] = (1, 1), above: int = 0, left: int = 0
) -> dict[str, int]:
    """Return the `MapJob` fields for a map."""
    return {
        f"{name}_image": levels.image, f"{name}_line": step[0] * levels.line, f"{name}_pixel": step[1] * levels.pixel,
        f"{name}_offset": levels.offset(above, left),
    }  # fmt: skip


def _shares() -> int:
    return min(threads(), MAX_SHARES)


def _largest(units: int) -> float:
    """Return the fraction of units in the largest share."""
    return -(-units // _shares()) / units


def _chunk_rows(rows: int, row_bytes: int) -> int:
    """Return the number of rows that a thread takes at a time from a share."""
    most = min(max(CACHED_BYTES // row_bytes, 1), MOST_TILES * ROW_MULTIPLE)
    wanted = max(math.ceil(rows / most), min(UNITS, rows // ROW_MULTIPLE), 1)
    chunk = math.ceil(rows / wanted)
    multiple = ROW_MULTIPLE if chunk > 2 * ROW_MULTIPLE else TARGET.vectors.wide[0]
    return math.ceil(chunk / multiple) * multiple


def _dense(node: IntegerProduct, data: LevelMap, out: LevelMap, other: LevelMap) -> Bound:
    op, numbers = node.op, node.weights.numbers
    outputs, channels, *kernel = numbers.shape
    w = np.zeros((outputs, *kernel, data.stored), WEIGHT_DTYPE)
    w[..., :channels] = numbers.transpose(0, 2, 3, 1)
    joined = op.dilations[1] == 1  # then a row of a window is contiguous
    rows = np.arange(kernel[0]) * op.dilations[0] * data.line
    columns = np.arange(1 if joined else kernel[1]) * op.dilations[1] * data.pixel
    offsets = (rows[:, None] + columns).reshape(-1).astype(np.int64)
    scale, bias, bounds = requantization(node, out.stored)
    (above, _), (left, _) = op.pads(node.data.shape[2:], kernel)
    count = out.images * out.height * out.width
    by_panel = w.nbytes > count * (data.pixel + out.pixel)
    vectors = share_starts(out.stored // LANES, _shares()) if by_panel else np.array([0, out.stored // LANES])
    panels = pack_levels(w.reshape(outputs, -1), (LANES * vectors).tolist())
    scale, bias = panels.in_order(scale), panels.in_order(bias)
    first = np.zeros(_shares(), np.int64)
    if by_panel:
        columns = panels.table[:, Panel.column] // LANES
        starts, chunk = np.searchsorted(columns, vectors), 1
        first = np.minimum(starts[:-1], len(columns) - 1)
    else:
        starts = share_starts(count, _shares())
        chunk = _chunk_rows(int(np.diff(starts).max()), data.pixel * math.prod(op.strides) + out.pixel)
    none = np.repeat(panels.weights.ctypes.data, AheadRecord.words * _shares())
    begin = panels.weights.ctypes.data + panels.table[first, Panel.start]
    weights = np.stack([begin, begin + w[0].nbytes * LANES * panels.table[first, Panel.vectors]], axis=1)
    job = LevelsGemmJob.fill(
        **_strides("x", data, (op.strides[0], op.strides[1]), above, left), **_strides("y", out),
        **_strides("other", other), width=out.width, plane=out.height * out.width,
        has_other=node.other is not None, scale=scale, bias=bias, bounds=bounds, borders=out.borders,
        rows=count, chunk=chunk, panels=len(panels.table), by_panel=by_panel, shares=len(starts) - 1,
        starts=starts, taps=len(offsets), depth=w[0].size // (len(offsets) * GROUP), table=panels.table,
        weights=panels.weights, tap_offsets=offsets, ahead=none,
    )  # fmt: skip
    large = pays_to_share(computed=count * numbers.size // 2)
    return Bound(levels_gemm.address, job, large, weights)


def _winograd(node: IntegerProduct, data: LevelMap, out: LevelMap, other: LevelMap) -> Bound:
    tiles = count_tiles(out)
    starts = share_starts(tiles, _shares())
    scale, bias, bounds = requantization(node, out.stored)
    weights = transform_weights(node.weights.numbers, data.stored, out.stored)
    (above, _), (left, _) = node.op.pads(node.data.shape[2:], (3, 3))
    job = LevelsWinogradJob.fill(
        **_strides("x", data, (1, 1), above, left), **_strides("y", out), **_strides("other", other),
        width=out.width, plane=out.height * out.width, has_other=node.other is not None, scale=scale,
        bias=bias, bounds=bounds, borders=out.borders, lines=out.images * out.height, tiles=tiles,
        chunk=block_tiles(int(np.diff(starts).max()), data.stored), shares=len(starts) - 1, starts=starts,
        pairs=data.stored // (2 * LANES), panels=out.stored // COLUMNS, weights=weights,
    )  # fmt: skip
    large = pays_to_share(computed=tiles * 8 * node.weights.numbers.size)
    return Bound(levels_winograd.address, job, large)


def _depthwise(node: IntegerProduct, data: LevelMap, out: LevelMap, _: LevelMap) -> Bound:
    numbers = node.weights.numbers
    packed = pack_depthwise(numbers.reshape(len(numbers), *numbers.shape[3:]), out.stored)
    scale, bias, bounds = requantization(node, out.stored)
    arrays = {"scale": scale, "bias": bias, "bounds": bounds, "weights": packed}
    form, kernel = FORMS[numbers.shape[4], node.op.strides[1]], numbers.shape[3:]
    if are_interleaved(kernel, node.op.strides[1], out.width, out.stored // LANES):
        arrays["blocks"] = pack_blocks(numbers.reshape(-1, *kernel), out.stored)
        arrays |= {"block_scale": pack_row(scale), "block_bias": pack_row(bias)}
    return _windows(node, data, out, form, numbers.shape[3:], arrays)


def _maximum(node: IntegerPooled, data: LevelMap, out: LevelMap) -> Bound:
    unused = np.zeros(1, np.float32)
    arrays = dict.fromkeys(("scale", "bias", "bounds", "weights"), unused)
    return _windows(node, data, out, MAXIMUM, node.op.kernel, arrays)


def _windows(
    node: IntegerProduct | IntegerPooled, data: LevelMap, out: LevelMap, form: int, kernel: Sequence[int],
    arrays: dict[str, Array],
) -> Bound:  # fmt: skip
    (above, _), (left, _) = node.op.pads(node.data.shape[2:], kernel)
    down, across = node.op.strides
    lines, vectors = out.images * out.height, out.stored // LANES
    blocks = -(-vectors // BLOCK)
    few = lines % _shares() and lines < MIN_LINES * _shares()
    by_channel = few and _largest(blocks) <= _largest(lines)
    starts = share_starts(blocks if by_channel else lines, _shares())
    chunk = max(int(starts[1]) // UNITS, 1 if by_channel else TALL)
    if by_channel:
        starts, chunk = np.minimum(BLOCK * starts, vectors), BLOCK * chunk
    job = LevelsWindowsJob.fill(
        **_strides("x", data, (1, 1), above, left), **_strides("y", out), **_strides("other", out),
        width=out.width, plane=out.height, has_other=0, borders=out.borders, lines=lines, vectors=vectors,
        form=form, kernel_height=kernel[0], kernel_width=kernel[1], stride_down=down, stride_across=across,
        by_channel=by_channel, shares=len(starts) - 1, starts=starts, chunk=chunk,
        **dict.fromkeys(("blocks", "block_scale", "block_bias")) | arrays,
    )  # fmt: skip
    large = pays_to_share(computed=lines * out.width * out.stored * math.prod(kernel) * WINDOW_WORK // 2)
    return Bound(levels_windows.address, job, large)
