"""Scratch memory (workspace) for intermediate results, kept from layer to layer and from run to run."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

import numpy as np

from ....ir.tensor import Array
from ....limits import check_array_size

__all__ = ["MAX_KEPT", "KeptViews", "Scratch", "borrow_scratch"]

T = TypeVar("T")

# More f32 than these are freed after each use.
MAX_KEPT = 1 << 23
_NONE = np.empty(0, np.float32)


class Scratch:
    """Memory for intermediate results, used by one thread at a time.

    Each has an id, under which layers keep their views of the memory. The id of one that an interrupt has lost is
    given to another, so that views of lost memory are replaced.
    """

    def __init__(self) -> None:
        self.id = _free_ids.pop() if _free_ids else next(_new_ids)
        self.memory = _NONE
        weakref.finalize(self, _free_ids.append, self.id).atexit = False


_free: list[Scratch] = []
_free_ids: list[int] = []
_new_ids = itertools.count()


@contextmanager
def borrow_scratch(size: int) -> Iterator[Scratch]:
    """Borrow memory for ``size`` f32."""
    try:
        scratch = _free.pop()
    except IndexError:
        scratch = Scratch()
    try:
        if scratch.memory.size < size:
            check_array_size(size, 4)
            scratch.memory = np.empty(size, np.float32)
        yield scratch
    finally:
        if scratch.memory.size > MAX_KEPT:
            scratch.memory = _NONE
        _free.append(scratch)


class KeptViews(Generic[T]):
    """What was made of scratch memory, for each memory and key: it holds views of that memory."""

    def __init__(self) -> None:
        self._made: dict[tuple[int, Hashable], tuple[Array, T]] = {}

    def of(self, scratch: Scratch, key: Hashable, make: Callable[[Array], T]) -> T:
        """Return what ``make`` returns for a memory, made when it is first used."""
        memory, made = self._made.get((scratch.id, key), (None, None))
        if memory is scratch.memory and made is not None:
            return made
        made = make(scratch.memory)
        if scratch.memory.size <= MAX_KEPT:
            self._made[scratch.id, key] = scratch.memory, made
        return made
