"""Calls of NumPy that were put together before: what is left to do is to make them.

To slice and reshape arrays takes as long as to compute a small layer with them, and Python does it for one
thread at a time. Where a kernel computes in the same memory again and again, its views are made once.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

import numpy as np

from ....limits import room

__all__ = ["KEPT", "Call", "Desk", "Tape", "desk", "play"]

Call: TypeAlias = tuple[Callable[..., object], tuple[object, ...]]
"""A function, and what to call it with."""
Tape: TypeAlias = list[Call]


def play(tape: Tape) -> None:
    """Make the calls."""
    for function, args in tape:
        function(*args)


# More than so many f32 are given back at once.
KEPT = 1 << 23
_NONE = np.empty(0, np.float32)


class Desk:
    """Memory for what is computed on the way, of one thread at a time; kept for the next layer, and the next run.

    Desks have numbers, under which layers keep their views of the memory. That of a desk that an interrupt has lost
    is given to another, so that the views of lost memory are replaced.
    """

    def __init__(self) -> None:
        self.number = _numbers.pop() if _numbers else next(_more_numbers)
        self.memory = _NONE
        weakref.finalize(self, _numbers.append, self.number).atexit = False


_free: list[Desk] = []
_numbers: list[int] = []
_more_numbers = itertools.count()


@contextmanager
def desk(size: int) -> Iterator[Desk]:
    """Memory for so many f32."""
    try:
        mine = _free.pop()
    except IndexError:
        mine = Desk()
    try:
        if mine.memory.size < size:
            room(size, 4)
            mine.memory = np.empty(size, np.float32)
        yield mine
    finally:
        if mine.memory.size > KEPT:
            mine.memory = _NONE
        _free.append(mine)
