"""Layer, group and instance normalization (MVN and GroupNormalization) of f32.

Layer normalization, MVN over one axis, is computed in blocks of rows. Group and instance normalization of channels-last maps
sum the columns of rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from ....ir.tensor import Array, Value
from ....ops.normalization import MVN, GroupNormalization
from ... import KernelTemplate
from ...common.epilogue import RowEpilogue, RowKernel
from ...common.layout import channels_first, channels_last, is_f32, moveaxis
from ...core.kernel import any_lengths
from .._backend import backend
from ._gemm import for_row_blocks, ones_column

# Elements of an inner loop: shorter rows are joined to this length.
INNER_LOOP = 1 << 11
# Joined rows per block: a block is summed in f32, and the sums of blocks in f64.
BLOCK = 64
# Up to this many elements of an image, the reference is faster.
FEW_OF_IMAGE = 1 << 13

Reduce: TypeAlias = Callable[[Array], Array]
"""A function that reduces ``[block, row, column]`` over rows, such as a sum of squares, to ``[block, column]``."""


@backend.accelerates(GroupNormalization)
def group_norm(op: GroupNormalization, data: Value, scale: Value, bias: Value) -> KernelTemplate | None:
    """Return a kernel for f32 with a static number of channels, else ``None``."""
    if not is_f32(data, scale, bias) or not data.shape.rank or not data.shape[1].is_static:
        return None
    groups, eps, channels = op.num_groups, op.epsilon, data.shape[1].min

    def accepts(x: Array, scale: Array, bias: Array) -> bool:
        return x.shape[1] == channels and scale.shape == bias.shape == (channels,)

    def compute(x: Array, scale: Array, bias: Array, epilogue: RowEpilogue) -> Array:
        if x.size <= len(x) * FEW_OF_IMAGE:
            return _apply_epilogue(op.evaluate(x, scale, bias), epilogue)

        def factors(variances: Array) -> Array:
            return np.asarray(scale / np.repeat(np.sqrt(variances + eps), len(scale) // groups))

        return _normalize(x, groups, factors, bias, epilogue)

    return RowKernel(compute, 3, 1, accepts=accepts)


@backend.accelerates(MVN)
def instance_norm(op: MVN, data: Value, axes: Value) -> KernelTemplate | None:
    """Return a kernel for f32 over all axes but the batch, or over all axes but batch and channels.

    Returns ``None`` for other axes, and for data of less than four axes.
    """
    rank, known = data.shape.rank, axes.ints()
    if not is_f32(data) or not rank or rank < 4 or known is None:
        return None
    over = {axis % rank for axis in known}
    if over not in (set(range(1, rank)), set(range(2, rank))):
        return None
    across, inside = 1 in over, op.eps_mode == "inside_sqrt"

    def factors(variances: Array) -> Array:
        return 1 / (np.sqrt(variances + op.eps) if inside else np.sqrt(variances) + op.eps)

    def compute(x: Array, axes: Array, epilogue: RowEpilogue) -> Array:
        if x.size <= len(x) * FEW_OF_IMAGE:
            return _apply_epilogue(op.evaluate(x, axes), epilogue)
        groups = 1 if across else x.shape[1]
        return _normalize(x, groups, factors if op.normalize_variance else None, None, epilogue)

    return RowKernel(compute, 2, 1, accepts=any_lengths)


def _apply_epilogue(y: Array, epilogue: RowEpilogue) -> Array:
    """Apply an epilogue to a result ``y[N, C, spatial...]`` of any memory layout."""
    last = np.ascontiguousarray(channels_last(y))
    if last.size:
        epilogue(last.reshape(-1, last.shape[-1]), 0)
    return channels_first(last)


def _normalize(
    x: Array,
    groups: int,
    factors: Callable[[Array], Array] | None,
    shifts: Array | None,
    epilogue: RowEpilogue,
) -> Array:
    """Normalize groups of channels of each image.

    Args:
        x: maps ``[N, C, spatial...]``.
        groups: the number of groups.
        factors: returns the factor of each group or channel, given the f64 variance of each group; ``None`` for no scaling.
        shifts: the summand of each channel, or ``None``.
        epilogue: applied to the channels-last rows of the result.
    """
    source = np.ascontiguousarray(channels_last(x))
    y = np.empty(source.shape, np.float32)
    size, channels = math.prod(x.shape[2:]), x.shape[1]
    flat, out = source.reshape(-1, channels), y.reshape(-1, channels)
    for first in range(0, len(out), size):

        def apply_to_image(block: Array, at: int, first: int = first) -> None:
            epilogue(block, first + at)

        rows = slice(first, first + size)
        _normalize_image(flat[rows], out[rows], groups, factors, shifts, apply_to_image)
    return channels_first(y)


def _normalize_image(
    rows: Array,
    out: Array,
    groups: int,
    factors: Callable[[Array], Array] | None,
    shifts: Array | None,
    epilogue: RowEpilogue,
) -> None:
    """Normalize the rows of one image in three passes: means, then differences and their squares, then scaling."""
    count, channels = rows.shape
    width = channels // groups
    means = _group_means(_sum_blocks(rows, lambda block: _sums(rows[block], _add)), groups, count * width)
    mean_row = np.repeat(means, width).astype(np.float32)

    def centre(block: slice) -> Array | None:
        _apply_row(np.subtract, rows[block], mean_row, out[block])
        return None if factors is None else _sums(out[block], _add_squares)

    squares = _sum_blocks(rows, centre)
    factor_row = None
    if factors is not None:
        scales = factors(_group_means(squares, groups, count * width))
        factor_row = np.broadcast_to(np.repeat(scales, channels // len(scales)), channels).astype(np.float32)

    def complete(block: slice) -> None:
        part = out[block]
        if factor_row is not None:
            _apply_row(np.multiply, part, factor_row, part)
        if shifts is not None:
            _apply_row(np.add, part, shifts, part)
        epilogue(part, block.start)

    for_row_blocks(complete, count, channels)


def _sum_blocks(rows: Array, sums: Callable[[slice], Array | None]) -> Array:
    """Return the sum of ``sums(block)`` over blocks of rows that fit into the cache."""
    parts: dict[int, Array | None] = {}

    def work(block: slice) -> None:
        parts[block.start] = sums(block)

    for_row_blocks(work, *rows.shape)
    ordered = [
        parts[start] for start in sorted(parts)
    ]  # so that the sum does not depend on the order of threads
    return np.asarray(np.sum([part for part in ordered if part is not None], axis=0))


def _group_means(sums: Array, groups: int, count: int) -> Array:
    """Return the mean of each group of channels, given the sum of each channel; ``count`` is the number of elements of a group."""
    return np.asarray(sums.reshape(groups, -1).sum(1) / count)


def _join_rows(rows: Array) -> tuple[Array, Array, int]:
    """Join contiguous rows to fewer and longer ones; return these, the remaining rows, and how many rows are joined to one."""
    many = max(INNER_LOOP // rows.shape[1], 1)
    whole = len(rows) // many * many
    return rows[:whole].reshape(-1, many * rows.shape[1]), rows[whole:], many


def _apply_row(ufunc: np.ufunc, rows: Array, row: Array, out: Array) -> None:
    """Write ``ufunc(r, row)`` into ``out`` for every row ``r`` of contiguous ``rows``."""
    long, rest, many = _join_rows(rows)
    long_out, rest_out, _ = _join_rows(out)
    if len(long):
        ufunc(long, np.tile(row, many), out=long_out)
    if len(rest):
        ufunc(rest, row, out=rest_out)


def _sums(rows: Array, reduce: Reduce) -> Array:
    """Return, for each column, the f64 sum over all rows of what ``reduce`` computes for blocks of them, such as squares."""
    long, rest, _ = _join_rows(rows)
    whole = len(long) // BLOCK * BLOCK
    parts = (long[:whole].reshape(-1, BLOCK, long.shape[1]), long[whole:][None])
    totals = sum(reduce(part).sum(0, dtype=np.float64) for part in parts if part.size)
    sums = np.sum(np.reshape(totals, (-1, rows.shape[1])), axis=0) if len(long) else 0.0
    return np.asarray(sums + reduce(rest[None])[0].astype(np.float64)) if len(rest) else np.asarray(sums)


def _add(blocks: Array) -> Array:
    return np.asarray(np.matmul(ones_column(blocks.shape[1]).T, blocks))[:, 0]


def _add_squares(blocks: Array) -> Array:
    return np.asarray(np.einsum("brc,brc->bc", blocks, blocks))


# Up to this many elements, calls dominate.
FEW = 1 << 10
_INFINITY = np.float32(np.inf)


@backend.accelerates(MVN)
def layer_norm(op: MVN, data: Value, axes: Value) -> KernelTemplate | None:
    """Return a kernel for f32 over the last axis, or over the channels, which are then stored last; ``None`` for other axes."""
    rank, over = data.shape.rank, axes.ints()
    if not is_f32(data) or not rank or over is None or len(over) != 1 or not -rank <= over[0] < rank:
        return None
    axis = over[0] % rank
    if axis not in (rank - 1, 1):
        return None
    normalize = _row_normalizer(op)

    def compute(x: Array, _: Array, epilogue: RowEpilogue) -> Array:
        rows_last = x if axis == rank - 1 else moveaxis(x, axis, -1)
        y = np.empty(rows_last.shape, np.float32)
        if not y.size:
            return moveaxis(y, -1, axis)
        length = x.shape[axis]
        ones, count = ones_column(length), np.array(length, np.float32)
        source, target = rows_last.reshape(-1, length), y.reshape(-1, length)

        def normalize_rows(rows: Array, out: Array, first: int) -> None:
            means = np.dot(rows, ones)
            np.subtract(rows, np.divide(means, count, means), out)
            sums = means if normalize is None else normalize(out, count)
            if not np.vdot(sums, sums) < _INFINITY:  # a sum has overflowed f32
                out[...] = op.normalize(rows, (1,))
            epilogue(out, first)

        if y.size <= FEW:
            normalize_rows(source, target, 0)
        else:
            for_row_blocks(
                lambda block: normalize_rows(source[block], target[block], block.start), *target.shape
            )
        return y if axis == rank - 1 else moveaxis(y, -1, axis)

    return RowKernel(compute, 2, axis if axis < rank - 1 else -1, accepts=any_lengths)


def _row_normalizer(op: MVN) -> Callable[[Array, Array], Array] | None:
    """Return a function ``(rows, count)`` that divides centered rows of ``count`` elements by their standard deviation, in place.

    That function returns the deviations. For an MVN that only subtracts the mean, there is none: ``None`` is returned.
    """
    if not op.normalize_variance:
        return None
    eps, inside = np.array(op.eps, np.float32), op.eps_mode == "inside_sqrt"

    def normalize(rows: Array, count: Array) -> Array:
        deviations = np.vecdot(rows, rows)
        np.divide(deviations, count, deviations)
        if inside:
            np.sqrt(np.add(deviations, eps, deviations), deviations)
        else:
            np.add(np.sqrt(deviations, deviations), eps, deviations)
        np.divide(rows, deviations[:, None], rows)
        return np.asarray(deviations)

    return normalize
