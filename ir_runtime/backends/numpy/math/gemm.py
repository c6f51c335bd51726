"""GEMM: products of rows and constant packed matrices, with an epilogue, on several threads."""

from __future__ import annotations

from collections.abc import Callable

from ....ir.tensor import Array
from ...common.epilogue import RowEpilogue
from ..threading.parallel import parallel_for, thread_count
from .panels import Panels

__all__ = [
    "COLUMN_GRAIN",
    "EPILOGUE_COST",
    "apply_epilogue",
    "block_count",
    "for_row_blocks",
    "gemm",
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


def split_range(count: int, most: int, grain: int = 1) -> list[slice]:
    """Split ``range(count)`` into at most ``most`` slices of about the same length, multiples of ``grain``."""
    step = -(-count // max(most, 1))
    step = max(-(-step // grain) * grain, 1)
    return [slice(start, min(start + step, count)) for start in range(0, count, step)]


def gemm(rows: Array, weights: Panels, out: Array, epilogue: RowEpilogue) -> None:
    """Compute ``rows @ weights`` and its epilogue into ``out``.

    With many rows, the epilogue of each block of rows runs while it is in the cache. With few, threads share the
    columns: each panel of weights is read once.
    """
    size = rows.shape[0] * weights.size * GEMM_WEIGHT
    most = thread_count(size)
    if most < 2 and out.size <= EPILOGUE_BLOCK:
        weights.multiply(rows, out)
        epilogue(out, 0)
    elif not weights.is_tiled:
        _gemm_packed_by_blas(rows, weights, out, epilogue, most)
    elif len(rows) >= weights.columns or weights.count == 1:
        blocks = block_count(out.size, most)

        def work(part: slice) -> None:
            weights.multiply(rows[part], out[part])
            epilogue(out[part], part.start)

        parallel_for(work, split_range(len(rows), blocks, 16), size)
    else:
        shares = split_range(weights.count, most)
        parallel_for(lambda part: weights.multiply(rows, out, part), shares, size)
        apply_epilogue(out, epilogue)


def _gemm_packed_by_blas(
    rows: Array, weights: Panels, out: Array, epilogue: RowEpilogue, threads: int
) -> None:
    """Compute the product in as few calls as there are threads: each packs what it multiplies, which should be little."""
    size = rows.shape[0] * weights.size * GEMM_WEIGHT
    if len(rows) < weights.columns:
        columns = split_range(weights.columns, threads, COLUMN_GRAIN)
        parallel_for(lambda some: weights.multiply_columns(rows, out[:, some], some), columns, size)
    else:
        parts = split_range(len(rows), threads, 16)
        parallel_for(lambda some: weights.multiply(rows[some], out[some]), parts, size)
    apply_epilogue(out, epilogue)


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
    """Return in how many blocks to take this many elements: a multiple of the number of threads."""
    if threads < 2:
        return max(1, elements // EPILOGUE_BLOCK)
    return max(1, elements // SHARED_BLOCK // threads) * threads
