"""Products of rows with constant matrices, on several threads."""

from __future__ import annotations

from ....ir.tensor import Array
from ...common.epilogue import RowEpilogue
from ..threading.parallel import each, share
from .panels import Panels

__all__ = ["FINISHING", "blocks_for", "blocks_of", "finish_all", "multiply", "parts"]

# An element of a result takes as long to finish as so many multiplications of a product.
FINISHING = 32
# A product alone is one long call, or a few: so many times fewer multiplications are worth a second thread.
LONG = 4
# Elements of a result that are finished while they are in the second cache; and where threads share them:
# after each call of NumPy, they may wait for each other for as long as it takes to finish that many.
FINISHED, SHARED = 1 << 17, 1 << 19


def parts(count: int, most: int, grain: int = 1) -> list[slice]:
    """``range(count)`` in at most so many slices of about the same length, multiples of ``grain``."""
    step = -(-count // max(most, 1))
    step = max(-(-step // grain) * grain, 1)
    return [slice(start, min(start + step, count)) for start in range(0, count, step)]


def multiply(rows: Array, weights: Panels, out: Array, finish: RowEpilogue) -> None:
    """``rows @ weights``, finished, into ``out``.

    With many rows, each block of them is finished while it is in the cache. With few, it is the columns
    that are shared out: each panel of weights is read once.
    """
    size = rows.shape[0] * weights.size * LONG
    most = share(size)
    if most < 2 and out.size <= FINISHED:
        weights.multiply(rows, out)
        finish(out, 0)
    elif len(rows) >= weights.columns or weights.count == 1:
        blocks = blocks_for(out.size, most)

        def work(part: slice) -> None:
            weights.multiply(rows[part], out[part])
            finish(out[part], part.start)

        each(work, parts(len(rows), blocks, 16), size)
    else:
        shares = parts(weights.count, most)
        each(lambda part: weights.multiply(rows, out, part), shares, size)
        finish_all(out, finish)


def finish_all(out: Array, finish: RowEpilogue) -> None:
    """Finish rows, some at a time, on several threads, if they are many."""
    each(lambda part: finish(out[part], part.start), blocks_of(out), out.size * FINISHING)


def blocks_of(out: Array) -> list[slice]:
    """Rows that are finished while they are in the second cache, and enough blocks for every thread."""
    return parts(len(out), blocks_for(out.size, share(out.size * FINISHING)))


def blocks_for(elements: int, threads: int) -> int:
    """In how many blocks to take so many elements, some for each thread."""
    return max(1, elements // FINISHED) if threads < 2 else max(1, elements // SHARED // threads) * threads
