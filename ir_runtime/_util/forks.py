"""Safe forking in multi-threaded programs: a fork waits until other threads halt at a safepoint, and the child renews locks.

A child has the memory of all threads of its parent, but runs only the thread that forked. It would wait forever for locks
that others held. There are three kinds:

* Locks inside libraries, such as those of BLAS around its buffers, which cannot be renewed. Before a fork, other threads
  halt at a safepoint between two layers, where they hold no such lock.
* Locks of modules that are being imported. A fork waits for imports.
* Locks, threads and settings of this package. Their owners register here, and renew them in the child.

`cached_property` has no lock: in Python 3.11, `functools.cached_property` holds a lock of the class while it computes, for
which a process forked meanwhile would wait forever. Without a lock, as in later versions, two threads may compute the same
value.
"""

from __future__ import annotations

import functools
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from threading import get_ident
from typing import Generic, Protocol, TypeVar, overload
from weakref import WeakSet

from .scoped import Scope

__all__ = [
    "Forked",
    "PACKAGES",
    "SAFEPOINT",
    "before_fork",
    "cached_by_class",
    "cached_property",
    "computing",
    "in_child",
    "in_user_code",
    "register",
    "worker_computing",
]

C = TypeVar("C", bound=type)
T = TypeVar("T")


def cached_by_class(function: Callable[[C], T]) -> Callable[[C], T]:
    """Cache a function of classes: `functools.cache` with types that mypy accepts."""
    return functools.cache(function)


if sys.version_info >= (3, 12):
    from functools import cached_property  # noqa: TID251  this version has no lock
else:

    class cached_property(Generic[T]):  # noqa: N801  as Python names it
        """The same as `functools.cached_property` of Python 3.12."""

        def __init__(self, function: Callable[..., T]) -> None:
            self._function, self.__doc__ = function, function.__doc__

        def __set_name__(self, owner: type, name: str) -> None:
            self._name = name

        @overload
        def __get__(self, instance: None, owner: type | None = None) -> cached_property[T]: ...
        @overload
        def __get__(self, instance: object, owner: type | None = None) -> T: ...

        def __get__(self, instance: object, owner: type | None = None) -> cached_property[T] | T:
            if instance is None:
                return self
            value = vars(instance)[self._name] = self._function(instance)
            return value


# Maximum seconds that a fork waits for other threads, which may themselves wait for the thread that forks.
FORK_TIMEOUT = 10.0
# Seconds between polls while waiting, as an interrupt may keep other threads from notifying.
POLL_INTERVAL = 0.05


class Forked(Protocol):
    """An object with locks, or with a record of the threads that use it."""

    def after_fork(self) -> None:
        """Renew locks, and forget other threads. Called in the child, which has a single thread."""


class _Safepoint:
    """A point at which computing threads halt while another thread forks."""

    def __init__(self) -> None:
        self.forking: int | None = None
        """The id of the thread that is about to fork. Check it between two layers, and `halt` if it is set."""
        self.computing: dict[object, int] = {}
        """The thread id of each computation; 0 for computations in worker threads, which never halt."""
        self.halted: set[int] = set()
        """The ids of threads whose computation is suspended."""
        self._forks = 0
        self._renew()

    def _renew(self) -> None:
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)

    def notify(self) -> None:
        """Notify waiting threads."""
        with self._lock:
            self._changed.notify_all()

    def halt(self) -> None:
        """Wait until the other thread has forked, unless this is a worker thread, for which a computing thread waits."""
        me = get_ident()
        if me != self.forking and me in self.computing.values():
            with self._lock:
                self._halt()

    def _halt(self) -> None:
        """Wait for one fork, and no longer: a fork that follows immediately waits for this thread again."""
        me, number = get_ident(), self._forks
        try:
            self.halted.add(me)
            self._changed.notify_all()
            while self.forking is not None and self._forks == number:
                self._changed.wait(POLL_INTERVAL)
        finally:
            self.halted.discard(me)

    def before(self) -> None:
        """Wait for forks of other threads, then until all computing threads have halted."""
        ends = time.monotonic() + FORK_TIMEOUT
        with self._lock:
            while self.forking is not None:
                self._halt()
            self._forks += 1
            self.forking = get_ident()
            while self._busy() and time.monotonic() < ends:
                self._changed.wait(POLL_INTERVAL)

    def _busy(self) -> bool:
        return bool((set(self.computing.values()) - self.halted | _importing()) - {self.forking})

    def after_in_child(self) -> None:
        """Forget other threads, which do not exist in the child."""
        me = get_ident()
        for work, thread in list(self.computing.items()):
            if thread != me:
                del self.computing[work]
        self.halted.clear()
        self._renew()


PACKAGES = frozenset({"ir_runtime", "lxml", "ml_dtypes", "networkx", "numpy"})
"""This package, and packages that it imports lazily."""


def _importing() -> set[int]:
    """Return the ids of threads that are importing modules of `PACKAGES`."""
    locks = vars(sys.modules["_frozen_importlib"]).get("_module_locks", {})
    locks_held = [lock() for name, lock in list(locks.items()) if name.partition(".")[0] in PACKAGES]
    return {owner for lock in locks_held if isinstance(owner := getattr(lock, "owner", None), int)}


SAFEPOINT = _Safepoint()

_Function = TypeVar("_Function", bound=Callable[[], object])
_Owner = TypeVar("_Owner", bound=Forked)
_before: list[Callable[[], object]] = []
_in_child: list[Callable[[], object]] = []
_owners: WeakSet[Forked] = WeakSet()


def _begin_computing(work: object) -> None:
    me = SAFEPOINT.computing[work] = get_ident()
    if SAFEPOINT.halted:
        SAFEPOINT.halted.discard(me)
    if SAFEPOINT.forking is not None:
        SAFEPOINT.halt()


def _end_computing(work: object, interrupted: bool) -> None:
    if work in SAFEPOINT.computing:
        del SAFEPOINT.computing[work]  # not a call, as an interrupt may come after one
    if SAFEPOINT.forking is not None:
        SAFEPOINT.notify()


computing = Scope(_begin_computing, _end_computing)
"""Marks work that may be inside a library at any time: a fork waits until it ends or halts."""


@contextmanager
def worker_computing() -> Iterator[None]:
    """Mark the block as work of a worker thread, which does not halt: a fork waits for its end."""
    work = object()
    try:
        SAFEPOINT.computing[work] = 0
        yield
    finally:
        SAFEPOINT.computing.pop(work, None)
        if SAFEPOINT.forking is not None:
            SAFEPOINT.notify()


@contextmanager
def in_user_code() -> Iterator[None]:
    """Mark the block as user code within a computation: a fork does not wait for it, as it may itself wait for the fork."""
    me = get_ident()
    try:
        SAFEPOINT.halted.add(me)
        if SAFEPOINT.forking is not None:
            SAFEPOINT.notify()
        yield
    finally:
        SAFEPOINT.halted.discard(me)
        if SAFEPOINT.forking is not None:
            SAFEPOINT.halt()


def before_fork(function: _Function) -> _Function:
    """Register a function to call before a fork, in the forking thread."""
    _before.append(function)
    return function


def in_child(function: _Function) -> _Function:
    """Register a function to call in every child process, before owners renew their locks."""
    _in_child.append(function)
    return function


def register(owner: _Owner) -> _Owner:
    """Register an object, so that every child process calls its `Forked.after_fork` as long as it is alive."""
    _owners.add(owner)
    return owner


def _go_before() -> None:
    for function in _before:
        function()
    SAFEPOINT.before()


def _start_again() -> None:
    SAFEPOINT.after_in_child()
    for function in _in_child:
        function()
    for owner in list(_owners):
        owner.after_fork()


if hasattr(os, "register_at_fork"):
    # Not a Python function: an interrupt at its beginning would leave all threads waiting.
    gone = partial(setattr, SAFEPOINT, "forking", None)
    os.register_at_fork(before=_go_before, after_in_parent=gone, after_in_child=gone)
    os.register_at_fork(after_in_parent=SAFEPOINT.notify, after_in_child=_start_again)
