"""Compiled test routines that are not in the kernel library: from Python, or from LLVM's language."""

from __future__ import annotations

import ctypes
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm

from ir_runtime.backends.native.build.library import link_routines
from ir_runtime.backends.native.codegen import language
from ir_runtime.backends.native.codegen.language import Routine
from ir_runtime.backends.native.machine_code import TABLE, WORDS, library

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


def engine_of(text: str) -> Any:
    """Compile a module for this processor; the engine, which must live as long as its functions, has their addresses."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    module = llvm.parse_assembly(text)
    module.verify()
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), opt=3, jit=True, codemodel="jitdefault"
    )
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    return engine
