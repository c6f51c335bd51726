"""Machine code of kernels: kept in the user's cache folder, loaded from there, made where it is not there yet.

The folder is ``IR_RUNTIME_CACHE``, else that of the system's convention. What lies in it depends on the
version of this package, on the source of the kernels, on numba and LLVM, on the processor, and on the kind of
vectors. Each routine is a file of its own, with a checksum; nothing is read from anywhere else.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import warnings
import zlib
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import llvmlite
import llvmlite.binding as llvm

from ... import __version__
from ._language import ROUTINES, Routine
from ._target import TARGET

__all__ = ["RUNTIME", "Machine", "folder", "machine", "missing", "place_of", "target_machine"]

_CHECKSUM = 4


def folder() -> Path:
    """Where machine code of these kernels for this processor is kept."""
    return _base() / "ir_runtime" / f"{__version__}-{TARGET.name}-{_fingerprint():08x}"


@cache
def _fingerprint() -> int:
    """A number that changes with all that machine code follows from."""
    compiler = find_spec("numba")
    files = sorted(Path(__file__).parent.glob("*.py"))
    if compiler is not None and compiler.origin is not None:
        files.append(Path(compiler.origin))
    stamps = [f"{file.name} {(stat := file.stat()).st_size} {stat.st_mtime_ns}" for file in files]
    features = llvm.get_host_cpu_features().flatten()
    return zlib.crc32(
        " ".join([*stamps, llvmlite.__version__, llvm.get_host_cpu_name(), features, _interpreter()]).encode()
    )


def _interpreter() -> str:
    """What decides how its objects lie in memory."""
    return f"{sys.platform} {sys.implementation.cache_tag} {sys.abiflags if hasattr(sys, 'abiflags') else ''}"


def _base() -> Path:
    if given := os.environ.get("IR_RUNTIME_CACHE"):
        return Path(given)
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local"))
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))


def place_of(routine: Routine) -> Path:
    """Where the machine code of a routine is kept."""
    return folder() / f"{routine.name}.o"


def missing() -> list[Routine]:
    """The routines whose machine code is not in the cache; those that others call come first."""
    return [known for known in _in_order() if not place_of(known).exists()]


def _in_order() -> list[Routine]:
    return sorted(ROUTINES.values(), key=lambda known: (bool(list(known.needs())), known.name))


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
        code = _read(place_of(routine)) or make(routine)
        self._engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        self._engine.finalize_object()
        self._addresses[routine.name] = self._engine.get_function_address(routine.name)
        llvm.add_symbol(routine.name, self._addresses[routine.name])


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
    from ._build import machine_code

    symbols = machine()  # numba looks for them, too
    for needed in routine.needs():
        symbols.address(needed)
    code = machine_code(routine)
    _keep(place_of(routine), code)
    return code


def _read(path: Path) -> bytes | None:
    try:
        data = path.read_bytes()
    except OSError:
        return None
    code = data[_CHECKSUM:]
    return code if data[:_CHECKSUM] == zlib.crc32(code).to_bytes(_CHECKSUM, "little") else None


def _keep(path: Path, code: bytes) -> None:
    from ...files import temporary

    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        fresh = temporary(path, "part")
        fresh.write_bytes(zlib.crc32(code).to_bytes(_CHECKSUM, "little") + code)
        os.replace(fresh, path)
    except OSError as reason:
        why = reason.strerror or reason
        _warn_once(f"compiled kernels cannot be kept in {path.parent}: {why}; each process makes its own")


@cache
def _warn_once(message: str) -> None:
    warnings.warn(message, RuntimeWarning, stacklevel=2)
