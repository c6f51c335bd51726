"""Shares of threads: consecutive units of a layer, of which a thread takes the same in every layer.

What a thread has written is in its own cache, so it is best read by the same thread. A share is a preference: a thread that
has finished its own takes what remains of the others.
"""

from __future__ import annotations

import numpy as np

from ....ir.tensor import Array
from ..codegen.language import device
from ..codegen.memory import fetch_add, load_i64
from ..threading.task import thread_index

__all__ = ["MAX_SHARES", "first_share", "share_starts", "take_units"]

# Counters of a call are on three cache lines.
_LINES, _WORDS = 3, 8
MAX_SHARES = _LINES * _WORDS
"""The most shares of a layer; other threads take units of these."""


def share_starts(units: int, shares: int) -> Array:
    """Return the first unit of each share, and the number of units; shares differ by one unit at most."""
    return np.arange(shares + 1, dtype=np.int64) * units // shares


@device
def first_share(call: int, shares: int) -> int:
    """Return the share of this thread: the first one is that of the caller."""
    found: int = thread_index(call) % shares
    return found


@device
def take_units(
    counter: int, starts: int, chunk: int, shares: int, share: int, visited: int
) -> tuple[int, int, int, int]:
    """Take up to ``chunk`` units of a share, or of the next one that has any.

    Args:
        counter: the counters of the call.
        starts: the address of the `share_starts`.
        chunk: how many units are taken together.
        shares: their number.
        share: the current one.
        visited: how many shares are empty.

    Returns:
        The first unit and how many they are, 0 if none is left; the share, and how many are empty.
    """
    first, count = 0, 0
    while visited < shares and count <= 0:
        place = counter + 8 * (_WORDS * (share % _LINES) + share // _LINES)
        first = load_i64(starts, share) + chunk * fetch_add(place)
        count = min(chunk, load_i64(starts, share + 1) - first)
        if count <= 0:
            share, visited = (share + 1) % shares, visited + 1
    return first, max(count, 0), share, visited
