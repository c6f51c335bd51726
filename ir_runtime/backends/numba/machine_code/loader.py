"""The loader of machine code: from the cache, or compiled where it is missing there."""

from __future__ import annotations

import ctypes
import threading
from functools import cache
from typing import TYPE_CHECKING

import llvmlite.binding as llvm

from ...._util.forks import in_child, register
from ..codegen.language import ROUTINES, Routine
from ..codegen.target import TARGET
from .cache import is_cached, load, store
from .host import RUNTIME_SYMBOLS, target_machine

if TYPE_CHECKING:
    from _ctypes import CFuncPtr

__all__ = ["Loader", "build", "loader", "missing"]


def missing() -> list[Routine]:
    """Return the routines that are not in the cache."""
    return [routine for routine in ROUTINES.values() if not is_cached(routine.name)]


def build(routine: Routine) -> bytes:
    """Compile a routine and store its machine code in the cache, if possible."""
    from ..build.compiler import machine_code

    code = machine_code(routine, TARGET)
    store(routine.name, code)
    return code


def _address(function: CFuncPtr) -> int:
    return int(ctypes.cast(function, ctypes.c_void_p).value or 0)


class Loader:
    """Loads machine code into this process."""

    def __init__(self) -> None:
        for name, function in RUNTIME_SYMBOLS.items():
            llvm.add_symbol(name, _address(function()))
        self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), target_machine(TARGET.processor))
        self._addresses: dict[str, int] = {}
        self.after_fork()
        register(self)

    def after_fork(self) -> None:
        """Replace the lock, which a thread of the parent may hold."""
        self._lock = threading.RLock()

    def address(self, routine: Routine) -> int:
        """Return the address of a routine, which is loaded or compiled if needed."""
        with self._lock:
            if routine.name not in self._addresses:
                for dependency in routine.dependencies():
                    self.address(dependency)
                self._load(routine)
            return self._addresses[routine.name]

    def _load(self, routine: Routine) -> None:
        code = load(routine.name) or build(routine)
        self._engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        self._engine.finalize_object()
        self._addresses[routine.name] = self._engine.get_function_address(routine.name)
        llvm.add_symbol(routine.name, self._addresses[routine.name])


_CREATION = threading.Lock()


@in_child
def _renew() -> None:
    global _CREATION
    _CREATION = threading.Lock()


def loader() -> Loader:
    """Return the only loader of this process; threads may ask for it at the same time."""
    with _CREATION:
        return _only()


@cache
def _only() -> Loader:
    return Loader()
