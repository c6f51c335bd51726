"""GEMM: products of rows and constant matrices, with an epilogue, on several threads."""

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

# The epilogue of an element takes as long as this many multiplications.
EPILOGUE_COST = 32
# A product alone is one long call, or a few: a second thread is worth it for this many times fewer multiplications.
GEMM_WEIGHT = 4
# Threads that share columns take multiples of as many: a cache line and more.
COLUMN_GRAIN = 64
# Elements of a block to which the epilogue is applied while they are in the L2 cache; and where threads share them:
# after each call of NumPy, they may wait for each other (GIL) for as long as the epilogue of this many takes.
EPILOGUE_BLOCK, SHARED_BLOCK = 1 << 17, 1 << 19
# Columns that are copied together: the cache lines of transposed rows are still in the cache when the rest of them is read.
COPY_COLUMNS = 128


def own_matrix(matrix: Array, source: Array) -> Array:
    """Return a contiguous copy of a constant matrix ``[..., depth, columns]``, which BLAS multiplies fastest.

    Args:
        matrix: the matrix.
        source: the constant that it is a view of; its pages of a mapped file are released.
    """
    own = np.empty(matrix.shape, np.float32)
    for start in range(0, matrix.shape[-1], COPY_COLUMNS):
        columns = slice(start, start + COPY_COLUMNS)
        own[..., columns] = matrix[..., columns]
    let_go(source)
    return own


def split_range(count: int, most: int, grain: int = 1) -> list[slice]:
    """Split ``range(count)`` into at most ``most`` slices of about the same length, multiples of ``grain``."""
    step = -(-count // max(most, 1))
    step = max(-(-step // grain) * grain, 1)
    return [slice(start, min(start + step, count)) for start in range(0, count, step)]


def gemm(rows: Array, matrix: Array, out: Array, epilogue: RowEpilogue) -> None:
    """Compute ``rows @ matrix`` and its epilogue into ``out``.

    BLAS packs its operands in every call, so there are as few calls as threads, which share rows or columns,
    whichever are more.
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
        for some in split_range(len(block), block_count(block.size, 1)):
            epilogue(block[some], part.start + some.start)

    parallel_for(work, split_range(len(rows), threads), size)


def apply_epilogue(out: Array, epilogue: RowEpilogue) -> None:
    """Apply an epilogue block by block of rows, on several threads if there are many."""
    for_row_blocks(lambda part: epilogue(out[part], part.start), len(out), out.shape[1])


def for_row_blocks(work: Callable[[slice], None], count: int, length: int) -> None:
    """Call ``work`` with blocks of rows of a length that fit the L2 cache, on several threads if there are many."""
    size = count * length
    if size <= EPILOGUE_BLOCK:
        work(slice(0, count))
        return
    cost = size * EPILOGUE_COST
    parallel_for(work, split_range(count, block_count(size, thread_count(cost))), cost)


def block_count(elements: int, threads: int) -> int:
    """Return the number of blocks for this many elements: a multiple of the number of threads."""
    if threads < 2:
        return max(1, elements // EPILOGUE_BLOCK)
    return max(1, elements // SHARED_BLOCK // threads) * threads


@lru_cache(maxsize=64)
def ones_column(count: int) -> Array:
    """Return a column of ones, which several layers share.

    >>> (np.float32([[1, 2, 3]]) @ ones_column(3)).tolist()
    [[6.0]]
    """
    column = np.ones((count, 1), np.float32)
    column.setflags(write=False)
    return column


def is_finite(numbers: Array) -> bool:
    """Return whether all f32 of a 1-D array are finite; large ones, whose squares are not, may be taken for infinities.

    >>> is_finite(np.float32([1, -2])), is_finite(np.float32([1, np.inf])), is_finite(np.float32([np.nan]))
    (True, False, False)
    """
    return math.isfinite(np.dot(numbers, numbers))
