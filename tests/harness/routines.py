"""Compile test routines that are not in the kernel library, from Python or from LLVM IR."""

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
    """Compile routines and their callees, and register them for `Task.address`; return the library."""
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
    """Forget the routines that are declared inside the block."""
    before = dict(language.ROUTINES)
    yield
    language.ROUTINES.clear()
    language.ROUTINES.update(before)


def set_words(code: ctypes.CDLL | None = None, /, **words: int) -> None:
    """Replace words in the host table of a library (by default the main one): addresses of functions that its kernels call."""
    table = (ctypes.c_int64 * len(WORDS)).in_dll(code or library().code, TABLE)
    for name, word in words.items():
        table[WORDS.index(name)] = word


def word(name: str) -> int:
    """Return a word of the host table."""
    return int((ctypes.c_int64 * len(WORDS)).in_dll(library().code, TABLE)[WORDS.index(name)])


def address_of(function: Any) -> int:
    """Return the address of a ctypes function, for the host table."""
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def engine_of(text: str) -> Any:
    """Compile LLVM IR for this processor. The returned engine provides the addresses of its functions and must outlive them."""
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
