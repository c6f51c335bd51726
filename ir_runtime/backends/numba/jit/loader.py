"""Machine code of kernels: loaded from the cache, compiled where it is not there yet."""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Callable
from functools import cache
from typing import Any

import llvmlite.binding as llvm

from ....forks import in_child, registered
from ..codegen.language import ROUTINES, Routine
from .cache import is_kept, keep, read

__all__ = ["RUNTIME", "Machine", "machine", "make", "missing", "target_machine"]


def missing() -> list[Routine]:
    """The routines whose machine code is not in the cache."""
    return [known for known in ROUTINES.values() if not is_kept(known)]


def _address(function: Any) -> int:
    return int(ctypes.cast(function, ctypes.c_void_p).value or 0)


def _give_way() -> Any:
    """What lets another thread run."""
    if sys.platform == "win32":
        return ctypes.windll.kernel32.SwitchToThread
    return ctypes.CDLL(None).sched_yield


# What machine code may call: memory from the interpreter's allocator, which needs no lock for this.
RUNTIME: dict[str, Callable[[], Any]] = {
    "ir_runtime_allocate": lambda: ctypes.pythonapi.PyMem_RawMalloc,
    "ir_runtime_free": lambda: ctypes.pythonapi.PyMem_RawFree,
    "ir_runtime_yield": _give_way,
}


def target_machine() -> Any:
    """LLVM's notion of this processor."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=llvm.get_host_cpu_features().flatten(),
        opt=3,
        reloc="default",
        codemodel="jitdefault",
        jit=True,
    )


class Machine:
    """The machine code that this process has loaded."""

    def __init__(self) -> None:
        for name, function in RUNTIME.items():
            llvm.add_symbol(name, _address(function()))
        self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), target_machine())
        self._addresses: dict[str, int] = {}
        self.after_fork()
        registered(self)

    def after_fork(self) -> None:
        """Other threads, which might hold the lock, are not there."""
        self._lock = threading.RLock()

    def address(self, routine: Routine) -> int:
        """Where the code of a routine lies, which is loaded or made if need be."""
        with self._lock:
            if routine.name not in self._addresses:
                for needed in routine.needs():
                    self.address(needed)
                self._load(routine)
            return self._addresses[routine.name]

    def _load(self, routine: Routine) -> None:
        code = read(routine) or make(routine)
        self._engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        self._engine.finalize_object()
        self._addresses[routine.name] = self._engine.get_function_address(routine.name)
        llvm.add_symbol(routine.name, self._addresses[routine.name])


_FIRST = threading.Lock()


@in_child
def _renew() -> None:
    global _FIRST
    _FIRST = threading.Lock()


def machine() -> Machine:
    """That of this process, of which there is one, whichever threads ask for it first at the same time."""
    with _FIRST:
        return _only()


@cache
def _only() -> Machine:
    return Machine()


def make(routine: Routine) -> bytes:
    """Make the machine code of a routine, and keep it if that can be done."""
    from .compiler import machine_code

    code = machine_code(routine)
    keep(routine, code)
    return code
