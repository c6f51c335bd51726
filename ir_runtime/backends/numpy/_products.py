"""Products of rows with constant matrices, on several threads."""

from __future__ import annotations

import numpy as np

from ...ir.tensor import Array
from ._finish import Finish
from ._threads import each, share

__all__ = ["multiply", "parts"]

# An element of a result takes as long to finish as so many multiplications of a product.
FINISHING = 32


def parts(count: int, most: int, grain: int = 1) -> list[slice]:
    """``range(count)`` in at most so many slices of about the same length, multiples of ``grain``."""
    step = -(-count // max(most, 1))
    step = max(-(-step // grain) * grain, 1)
    return [slice(start, min(start + step, count)) for start in range(0, count, step)]


def multiply(rows: Array, weights: Array, out: Array, finish: Finish) -> None:
    """``rows @ weights``, finished, into ``out``.

    Each thread packs what it multiplies: with few rows, the weights would be packed by all, and it is
    the columns that are shared out.
    """
    size = rows.size * weights.shape[1]
    most = share(size)
    if most == 1:
        np.matmul(rows, weights, out=out)
        finish(out, 0)
    elif len(rows) >= weights.shape[1]:
        each(lambda part: _by_rows(rows, weights, out, finish, part), parts(len(rows), 2 * most, 16), size)
    else:
        each(lambda part: _by_columns(rows, weights, out, part), parts(weights.shape[1], most, 16), size)
        finish_all(out, finish)


def _by_rows(rows: Array, weights: Array, out: Array, finish: Finish, part: slice) -> None:
    np.matmul(rows[part], weights, out=out[part])
    finish(out[part], part.start)


def _by_columns(rows: Array, weights: Array, out: Array, part: slice) -> None:
    np.matmul(rows, weights[:, part], out=out[:, part])


def finish_all(out: Array, finish: Finish) -> None:
    """Finish rows on several threads, if they are many."""
    size = out.size * FINISHING
    each(lambda part: finish(out[part], part.start), parts(len(out), share(size)), size)
