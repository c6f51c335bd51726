"""Waiting for another thread, awake at first.

A thread that sleeps takes 20 µs to come back, on a virtual machine 50 and more: as long as a small layer takes.
One that asks again and again is there at once, so it does that for as long as a few layers take, without
Python's own lock. But then it needs that lock, and would fall asleep until whoever rang gives it away.
So bells are rung by a function of NumPy that takes some time, and does without the lock meanwhile.

Where the C library has no spin locks (macOS, Windows), threads sleep at once.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
import threading
from functools import cache

import numpy as np

from ....ir.tensor import Array

__all__ = ["Bell"]

# How often to ask before falling asleep: for a third of a millisecond, which small layers between large ones take.
ASKED = 1 << 17
# Bytes that processors share as a whole: whoever asks for one of them asks for all.
LINE = 128
# Numbers for which NumPy gives away Python's lock, and two of which it takes 15 ns to find the greatest common
# divisor: 8 µs for all, in which another thread gets from its bell to its first product.
NUMBERS, DIVIDED = 512, (8, 5)


class Bell:
    """One thread waits until another rings; what was rung before counts, once.

    Whoever waits looks for itself whether there is something to do: an interrupt may come when it has heard the bell.
    """

    def __init__(self) -> None:
        self._spin = _spin()
        self._asleep, self._bed = False, threading.Lock()
        self._bed.acquire()

    def ring(self) -> None:
        """Wake who waits, or will, and let it have Python's lock."""
        if self._spin is not None:
            self._spin.unlock()
        if self._spin is None or self._asleep:
            with contextlib.suppress(RuntimeError):  # it was rung before
                self._bed.release()

    def wait(self) -> None:
        """Return once it was rung since it was last waited for."""
        if self._spin is None:
            self._bed.acquire()
        elif not self._spin.lock(ASKED):
            self._sleep(self._spin)

    def _sleep(self, spin: _Spin) -> None:
        """Only the lock tells that it was rung: it is unlocked before anybody is woken."""
        try:
            self._asleep = True
            while not spin.lock(1):
                self._bed.acquire()
        finally:
            self._asleep = False


class _Spin:
    """A spin lock that whoever rings unlocks: the first of some numbers that NumPy writes."""

    def __init__(self, library: _Library) -> None:
        self._library, self._numbers = library, _aligned(NUMBERS)
        self._place = ctypes.c_void_p(self._numbers.ctypes.data)
        self._a, self._b = (np.full(NUMBERS, n, np.int32) for n in DIVIDED)
        library.init(self._place, 0)
        # What an unlocked one looks like is a matter of the library.
        self._a[0], self._b[0] = self._numbers[0], 0
        self.lock(1)

    def lock(self, times: int) -> bool:
        """Try so many times."""
        return self._library.lock(self._place, times)

    def unlock(self) -> None:
        np.gcd(self._a, self._b, self._numbers)


def _aligned(count: int) -> Array:
    """Numbers that share no line of the cache with anything else."""
    more = LINE // 4
    numbers = np.zeros(count + 2 * more, np.int32)
    first = -(numbers.ctypes.data // 4) % more
    return numbers[first : first + count]


class _Library:
    """The spin locks of the C library."""

    def __init__(self) -> None:
        held, free = ctypes.PyDLL(None), ctypes.CDLL(None)
        self.init = held.pthread_spin_init
        # It looks for an element that a function finds equal to a key. Trying a lock says "equal" when it has it.
        self._search, self._try = free.lfind, held.pthread_spin_trylock
        self._search.restype = ctypes.c_void_p

    def lock(self, place: ctypes.c_void_p, times: int) -> bool:
        """Try so many times, without Python's own lock."""
        return self._search(place, place, ctypes.byref(ctypes.c_size_t(times)), 0, self._try) is not None


def _spin() -> _Spin | None:
    library = _library()
    return None if library is None else _Spin(library)


@cache
def _library() -> _Library | None:
    """Only where several threads run at once, but only one of them in Python: `Bell` relies on both."""
    alone = (os.cpu_count() or 1) < 2 or not getattr(sys, "_is_gil_enabled", lambda: True)()
    if alone or not sys.platform.startswith("linux"):
        return None
    try:
        return _Library()
    except (AttributeError, OSError):
        return None
