"""GEMM with an epilogue, on several threads, and the division of rows and columns among them."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np

from ....ir.pages import let_go
from ....ir.tensor import Array
from ...common.epilogue import RowEpilogue
from ..parallel import parallel_for, thread_count

__all__ = [
    "apply_epilogue",
    "block_count",
    "EPILOGUE_COST",
    "for_row_blocks",
    "gemm",
    "is_finite",
    "ones_column",
    "own_matrix",
    "split_range",
]

# The cost of the epilogue of an element, in multiplications.
EPILOGUE_COST = 32
# The weight of a multiplication of a GEMM: it is a few long calls, so a second thread pays off for so many times less work.
GEMM_WEIGHT = 4
# Threads share columns in multiples of this, more than a cache line.
COLUMN_GRAIN = 64
# Elements per block of an epilogue: as many as stay in the L2 cache; with several threads more, since they may wait for each
# other (GIL) after each call of NumPy.
EPILOGUE_BLOCK, SHARED_BLOCK = 1 << 17, 1 << 19
# Columns copied at a time: for a transposed matrix, cache lines are then still in the cache when their next column is read.
COPY_COLUMNS = 128


def own_matrix(matrix: Array, source: Array) -> Array:
    """Return a contiguous copy of a constant matrix ``[..., depth, columns]``, which BLAS multiplies fastest.

    Args:
        matrix: the matrix.
        source: the constant that it is a view of, whose pages in a mapped file are released.
    """
    own = np.empty(matrix.shape, np.float32)
    for start in range(0, matrix.shape[-1], COPY_COLUMNS):
        columns = slice(start, start + COPY_COLUMNS)
        own[..., columns] = matrix[..., columns]
    let_go(source)
    return own


def split_range(count: int, most: int, grain: int = 1) -> list[slice]:
    """Split ``range(count)`` into at most ``most`` slices of equal length, a multiple of ``grain``; the last may be shorter."""
    step = -(-count // max(most, 1))
    step = max(-(-step // grain) * grain, 1)
    return [slice(start, min(start + step, count)) for start in range(0, count, step)]


def gemm(rows: Array, matrix: Array, out: Array, epilogue: RowEpilogue) -> None:
    """Compute ``rows @ matrix`` and its epilogue into ``out``.

    Threads share the rows or the columns, whichever are more. Each makes a single call, since BLAS packs its operands in
    every call.
    """
    size = rows.shape[0] * matrix.size * GEMM_WEIGHT
    threads = thread_count(size)
    if len(rows) < matrix.shape[1]:
        columns = split_range(matrix.shape[1], threads, COLUMN_GRAIN)
        parallel_for(lambda part: np.matmul(rows, matrix[:, part], out[:, part]), columns, size)
        apply_epilogue(out, epilogue)
        return

    def work(part: slice) -> None:
        block = out[part]
        np.matmul(rows[part], matrix, block)
        for rows_of_block in split_range(len(block), block_count(block.size, 1)):
            epilogue(block[rows_of_block], part.start + rows_of_block.start)

    parallel_for(work, split_range(len(rows), threads), size)


def apply_epilogue(out: Array, epilogue: RowEpilogue) -> None:
    """Apply an epilogue to blocks of rows, on several threads if there is enough work."""
    for_row_blocks(lambda part: epilogue(out[part], part.start), len(out), out.shape[1])


def for_row_blocks(work: Callable[[slice], None], count: int, length: int) -> None:
    """Call ``work`` with slices of ``range(count)``: blocks of rows, on several threads if there is enough work.

    Args:
        work: updates a block of rows, with about the cost of an epilogue.
        count: the number of rows.
        length: the number of elements of a row, by which blocks are chosen to fit into the L2 cache.
    """
    size = count * length
    if size <= EPILOGUE_BLOCK:
        work(slice(0, count))
        return
    cost = size * EPILOGUE_COST
    parallel_for(work, split_range(count, block_count(size, thread_count(cost))), cost)


def block_count(elements: int, threads: int) -> int:
    """Return into how many blocks to split ``elements`` for an epilogue; for several threads, 1 or a multiple of their number."""
    if threads < 2:
        return max(1, elements // EPILOGUE_BLOCK)
    return max(1, elements // SHARED_BLOCK // threads) * threads


@lru_cache(maxsize=64)
def ones_column(count: int) -> Array:
    """Return a read-only column of ones, shared by layers.

    >>> (np.float32([[1, 2, 3]]) @ ones_column(3)).tolist()
    [[6.0]]
    """
    column = np.ones((count, 1), np.float32)
    column.setflags(write=False)
    return column


def is_finite(values: Array) -> bool:
    """Return whether all values of a 1-D f32 array are finite; also False if their sum of squares overflows.

    >>> is_finite(np.float32([1, -2])), is_finite(np.float32([1, np.inf])), is_finite(np.float32([np.nan]))
    (True, False, False)
    """
    return math.isfinite(np.dot(values, values))
