"""Events that spin before they sleep, so that short waits cost nothing.

Waking a thread takes 20 µs, on a virtual machine 50 and more: as long as a small layer takes. A thread that spins
continues at once, so it spins for as long as a few layers take, without the GIL. But to continue it needs the GIL, and
would sleep until the thread that set the event releases it. So events are set by a function of NumPy that takes some
time and releases the GIL meanwhile.

Where the C library has no spin locks (macOS, Windows), threads sleep at once.
"""

from __future__ import annotations

import contextlib
import ctypes
import sys
import threading
from functools import cache

import numpy as np

from ...._util.cores import parallelism
from ....ir.tensor import Array

__all__ = ["Event"]

# How often to try the spin lock before falling asleep: a third of a millisecond, the time of small layers between
# large ones.
SPIN_LIMIT = 1 << 17
# Bytes of the largest cache line (two adjacent lines, which some processors fetch together).
CACHE_LINE = 128
# NumPy releases the GIL for arrays of this many elements, and takes 15 ns for the greatest common divisor of two of
# them: 8 µs for all, in which another thread gets from the event to its first product.
GCD_SIZE, GCD_OPERANDS = 512, (8, 5)


class Event:
    """An event for one waiting thread, which resets when `wait` returns; setting it before the wait counts, once.

    The waiting thread checks by itself whether there is work: an interrupt may come just after the event was consumed.
    """

    def __init__(self) -> None:
        self._spin_lock = _spin_lock()
        self._asleep, self._sleep_lock = False, threading.Lock()
        self._sleep_lock.acquire()

    def set(self) -> None:
        """Wake the thread that waits, or will wait, and let it have the GIL."""
        if self._spin_lock is not None:
            self._spin_lock.unlock()
        if self._spin_lock is None or self._asleep:
            with contextlib.suppress(RuntimeError):  # it was set before
                self._sleep_lock.release()

    def wait(self) -> None:
        """Return once the event was set since the last wait."""
        if self._spin_lock is None:
            self._sleep_lock.acquire()
        elif not self._spin_lock.lock(SPIN_LIMIT):
            self._sleep(self._spin_lock)

    def _sleep(self, spin_lock: _SpinLock) -> None:
        """Sleep until the spin lock is free: it is unlocked before the sleep lock."""
        try:
            self._asleep = True
            while not spin_lock.lock(1):
                self._sleep_lock.acquire()
        finally:
            self._asleep = False


class _SpinLock:
    """A spin lock that any thread may unlock: the first element of an array that NumPy writes."""

    def __init__(self, library: _Library) -> None:
        self._library, self._array = library, _aligned(GCD_SIZE)
        self._address = ctypes.c_void_p(self._array.ctypes.data)
        self._a, self._b = (np.full(GCD_SIZE, n, np.int32) for n in GCD_OPERANDS)
        library.init(self._address, 0)
        # The value of an unlocked spin lock depends on the library.
        self._a[0], self._b[0] = self._array[0], 0
        self.lock(1)

    def lock(self, attempts: int) -> bool:
        """Try to lock it, at most this many times; return whether that succeeded."""
        return self._library.lock(self._address, attempts)

    def unlock(self) -> None:
        np.gcd(self._a, self._b, self._array)


def _aligned(count: int) -> Array:
    """Return an int32 array that shares no cache line with anything else."""
    line = CACHE_LINE // 4
    array = np.zeros(count + 2 * line, np.int32)
    first = -(array.ctypes.data // 4) % line
    return array[first : first + count]


class _Library:
    """The spin locks of the C library."""

    def __init__(self) -> None:
        with_gil, without_gil = ctypes.PyDLL(None), ctypes.CDLL(None)
        self.init = with_gil.pthread_spin_init
        # `lfind` searches for an element that a function finds equal to a key; `trylock` returns "equal" on success.
        self._search, self._try_lock = without_gil.lfind, with_gil.pthread_spin_trylock
        self._search.restype = ctypes.c_void_p

    def lock(self, address: ctypes.c_void_p, attempts: int) -> bool:
        """Try to lock it this many times, without the GIL."""
        count = ctypes.byref(ctypes.c_size_t(attempts))
        return self._search(address, address, count, 0, self._try_lock) is not None


def _spin_lock() -> _SpinLock | None:
    library = _library()
    return None if library is None else _SpinLock(library)


@cache
def _library() -> _Library | None:
    """Return the library where there are several cores and a GIL: `Event` relies on both."""
    if (
        parallelism() == 1
        or not getattr(sys, "_is_gil_enabled", lambda: True)()
        or not sys.platform.startswith("linux")
    ):
        return None
    try:
        return _Library()
    except (AttributeError, OSError):
        return None
