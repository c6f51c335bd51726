"""Kernels that are not in the library: those of tests are linked to a small one, which is loaded beside it."""

from __future__ import annotations

import ctypes
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

from ir_runtime.backends.native.build.library import link_routines
from ir_runtime.backends.native.codegen import language
from ir_runtime.backends.native.codegen.language import Routine
from ir_runtime.backends.native.machine_code import TABLE, WORDS, library

__all__ = ["address_of", "call_of", "forgetting", "load", "set_words", "word"]

_COUNT = count()


def load(*routines: Routine) -> ctypes.CDLL:
    """Compile routines, and those that they call, and let `Task.address` find them; return the library."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, f"tests-{next(_COUNT)}.so")
        names = link_routines(routines, file)
        code = ctypes.CDLL(str(file))
    library().add(code, names)
    return code


def call_of(routine: Routine, returns: Any = None) -> Callable[..., Any]:
    """Compile a routine, and return it as a function of integers."""
    load(routine)
    kinds = [ctypes.c_int64] * len(routine.kinds)
    return ctypes.CFUNCTYPE(returns, *kinds)(library().address(routine.name))


@contextmanager
def forgetting() -> Iterator[None]:
    """Forget the routines that are declared meanwhile."""
    before = dict(language.ROUTINES)
    yield
    language.ROUTINES.clear()
    language.ROUTINES.update(before)


def set_words(code: ctypes.CDLL | None = None, /, **words: int) -> None:
    """Replace words of a library's table, by default the main one's: addresses of functions that its kernels call from now on."""
    table = (ctypes.c_int64 * len(WORDS)).in_dll(code or library().code, TABLE)
    for name, word in words.items():
        table[WORDS.index(name)] = word


def word(name: str) -> int:
    """Return a word of the host's table."""
    return int((ctypes.c_int64 * len(WORDS)).in_dll(library().code, TABLE)[WORDS.index(name)])


def address_of(function: Any) -> int:
    """Return the address of a function of ctypes, for a word of the table."""
    return ctypes.cast(function, ctypes.c_void_p).value or 0
