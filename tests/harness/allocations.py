"""Count the memory of NumPy's arrays, bound it, or let one allocation fail; in all threads of the process.

    with counting(most=64 << 20) as memory:     # an allocation beyond that raises MemoryError, and takes nothing
        run()
    assert memory.refused == 0, memory.largest

    with failing(3) as memory:                  # the third allocation raises MemoryError
        run()

What NumPy allocates for data is seen: neither objects of Python's, nor what a library takes for itself. The functions
are LLVM's: arrays are freed where an exception is on its way, when no Python may run.
"""

from __future__ import annotations

import ctypes
import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from harness.handler import FUNCTIONS, Allocator, Handler, current_handler, replace_handler
from harness.jit import engine_of
from harness.routines import set_words

__all__ = ["Allocations", "count_scratch", "counting", "failing"]

_CODE = Path(__file__).with_suffix(".ll")
_UNLIMITED = (1 << 63) - 1
_SCRATCH = {"allocate": "count_scratch_malloc", "release": "count_scratch_free"}


class Allocations:
    """Memory of arrays since counting began, in bytes; it stands still when the ``with`` statement ends."""

    def __init__(self) -> None:
        self._code = _code()
        self._final: dict[str, int] = {}

    def _begin(self, most: int, number: int) -> None:
        start = {"live": 0, "peak": 0, "count": 0, "refused": 0, "largest": 0}
        for name, value in {**start, "most": most, "failing": number}.items():
            self._code.counter(name).value = value

    def _end(self) -> None:
        self._final = {name: self._now(name) for name in ("live", "peak", "count", "refused", "largest")}

    def _now(self, name: str) -> int:
        return self._final[name] if self._final else int(self._code.counter(name).value)

    @property
    def live(self) -> int:
        """Taken and not given back; below zero where older arrays were freed."""
        return self._now("live")

    @property
    def peak(self) -> int:
        """The most that was ever live."""
        return self._now("peak")

    @property
    def largest(self) -> int:
        """The largest allocation that was asked for, refused ones as well."""
        return self._now("largest")

    @property
    def count(self) -> int:
        """How many allocations there were."""
        return self._now("count")

    @property
    def refused(self) -> int:
        """How many of them were refused."""
        return self._now("refused")


@contextmanager
def counting(most: int | None = None) -> Iterator[Allocations]:
    """Count what arrays take, and refuse what would make it more than ``most`` bytes."""
    yield from _watch(_UNLIMITED if most is None else most, 0)


@contextmanager
def failing(number: int) -> Iterator[Allocations]:
    """Let one allocation fail, the first being 1; ``refused`` says whether there were so many."""
    yield from _watch(_UNLIMITED, number)


def count_scratch() -> None:
    """Count scratch memory of compiled kernels, too, from now on; in a process in which none has any.

    It is never refused, as a kernel does not ask whether it got some.
    """
    find = _code().engine.get_function_address
    set_words(**{word: find(name) for word, name in _SCRATCH.items()})


def _watch(most: int, number: int) -> Iterator[Allocations]:
    memory, before = Allocations(), current_handler()
    assert before.name == b"default_allocator", f"arrays are {before.name.decode()}'s already"
    gc.collect()  # garbage of others, which is freed later, would be taken for memory that is given back
    memory._begin(most, number)
    replace_handler(_code().handler)
    try:
        yield memory
    finally:
        replace_handler(before)
        memory._end()


class _Code:
    """The compiled functions, which take over what the default ones do."""

    def __init__(self, old: Allocator) -> None:
        text = _CODE.read_text(encoding="utf-8").format(
            unlimited=_UNLIMITED,
            usable="malloc_size" if sys.platform == "darwin" else "malloc_usable_size",
            **{f"old_{name}": getattr(old, name) for name in FUNCTIONS},
        )
        self.engine = engine_of(text)
        functions = (self.engine.get_function_address(f"count_{name}") for name in FUNCTIONS)
        self.handler = Handler(b"counting", 1, Allocator(old.context, *functions))

    def counter(self, name: str) -> ctypes.c_int64:
        return ctypes.c_int64.from_address(self.engine.get_global_value_address(name))


@cache
def _code() -> _Code:
    return _Code(current_handler().allocator)
