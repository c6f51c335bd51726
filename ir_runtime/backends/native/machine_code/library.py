"""The kernel library of this process: selection by processor, and function addresses.

The package's folder `FOLDER` holds one library per target, from a wheel or built by ``make kernels``. The
best one that the processor can run is loaded once, when a model or the command ``ir-runtime kernels`` first
needs it. Loading executes only `processor.IDENTIFY`, which every processor of the family can run.

A library holds the fingerprint of its sources. In a source tree, a library that is older than the package's
sources is not used, since both must agree about the layout of descriptors.
"""

from __future__ import annotations

import ctypes
import os
import sys
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import numpy as np

from ...._util.nearest import did_you_mean
from ....codes import Code
from ....errors import InputError
from ..codegen.targets import TARGETS, Target, target_named
from .processor import Processor, family, identify
from .sources import fingerprint, is_source_tree
from .table import TABLE, WORDS

if TYPE_CHECKING:
    from _ctypes import CFuncPtr

__all__ = ["FOLDER", "Library", "NoLibraryError", "file_of", "library", "named_target"]

FOLDER = Path(__file__).parents[1] / "libraries"
"""The folder of libraries."""

_SUFFIX = {"win32": ".dll", "darwin": ".dylib"}.get(sys.platform, ".so")


class NoLibraryError(InputError):
    """No kernel library is usable in this process."""


@dataclass(eq=False)
class Library:
    """A loaded kernel library.

    Args:
        target: the target that it was built for.
        path: the path of its file.
        processor: the processor of this machine.
        code: the library as loaded by ctypes.
        reason: the reason for choosing it.
        others: the names of other targets with libraries, and the reasons for not using them.
    """

    target: Target
    path: Path
    processor: Processor
    code: ctypes.CDLL
    reason: str
    others: dict[str, str]
    _addresses: dict[str, int] = field(default_factory=dict)

    def address(self, name: str) -> int:
        """Return the address of a function by its symbol.

        Raises:
            ValueError: if the library has no such symbol.
        """
        if name not in self._addresses:
            self._addresses[name] = ctypes.addressof(ctypes.c_char.in_dll(self.code, name))
        return self._addresses[name]

    def add(self, code: ctypes.CDLL, names: list[str]) -> None:
        """Also find functions in another library, as for tests with their own kernels."""
        kind = ctypes.c_int64 * len(WORDS)
        ours, theirs = kind.in_dll(self.code, TABLE), kind.in_dll(code, TABLE)
        for index in range(len(WORDS)):
            theirs[index] = ours[index]
        for name in names:
            self._addresses[name] = ctypes.addressof(ctypes.c_char.in_dll(code, name))


@cache
def library() -> Library:
    """Return the library of this process, loading it on first use.

    Raises:
        NoLibraryError: if none is usable.
        InputError: if ``IR_RUNTIME_TARGET`` names no target.
    """
    files = {name: path for name in TARGETS if (path := file_of(name)).exists()}
    wanted = os.environ.get("IR_RUNTIME_TARGET")
    if wanted:
        files = {name: path for name in [named_target(wanted).name] if (path := file_of(name)).exists()}
    if not files:
        _refuse_missing(wanted)
    targets = [named_target(name) for name in files]
    own = [target for target in targets if target.family == family()]
    # A library for another family cannot be loaded; any for this one asks the processor.
    processor = identify(_open(files[own[0].name], wanted)) if own else Processor(family(), "", frozenset())
    lacking = {target.name: _lacking(target, processor) for target in targets}
    target = next((target for target in own if not lacking[target.name]), None)
    if target is None:
        raise NoLibraryError(
            f"no compiled kernels run here: {lacking[(own or targets)[-1].name]}",
            code=Code.BAD_REQUEST,
            hint="set IR_RUNTIME_BACKEND=numpy",
        )
    path = files[target.name]
    code = _open(path, wanted)
    fill_table(code)
    reason = "IR_RUNTIME_TARGET names it" if wanted else "the best one that the processor can run"
    others = {name: why or "a better one is used" for name, why in lacking.items() if name != target.name}
    return Library(target, path, processor, code, reason, others)


def file_of(name: str) -> Path:
    """Return the path of a target's library, which need not exist."""
    return FOLDER / f"{name}{_SUFFIX}"


def named_target(name: str) -> Target:
    """Return a target by name.

    Raises:
        InputError: if no target has that name.
    """
    target = target_named(name)
    if target is None:
        hint = f"{did_you_mean(name, TARGETS, after=' ')}must be one of {', '.join(TARGETS)}"
        raise InputError(f"unknown target {name!r} in IR_RUNTIME_TARGET", code=Code.BAD_REQUEST, hint=hint)
    return target


def fill_table(code: ctypes.CDLL) -> None:
    """Fill the host table of a library."""
    table = (ctypes.c_int64 * len(WORDS)).in_dll(code, TABLE)
    for index, word in enumerate(_host_words()):
        table[index] = word


def _open(path: Path, wanted: str | None) -> ctypes.CDLL:
    """Load a library, unless it is outdated."""
    hint = _build_hint(wanted) if is_source_tree() else "install ir_runtime again"
    try:
        if is_source_tree() and fingerprint() not in path.read_bytes():
            raise NoLibraryError(
                f"the compiled kernels in {path} are older than their sources",
                code=Code.BAD_REQUEST,
                hint=hint,
            )
        return ctypes.CDLL(str(path))
    except OSError as reason:
        raise NoLibraryError(
            f"the compiled kernels cannot be loaded: {reason}", code=Code.BAD_REQUEST, hint=hint
        ) from None


@cache
def _host_words() -> tuple[int, ...]:
    """Return the words of the table in the order of `WORDS`; Python's raw memory functions work without the GIL."""
    python = ctypes.pythonapi
    functions = python.PyMem_RawMalloc, python.PyMem_RawFree, *_system_functions()
    addresses = (int(ctypes.cast(function, ctypes.c_void_p).value or 0) for function in functions)
    return *addresses, _data_offset()


def _system_functions() -> tuple[CFuncPtr, CFuncPtr]:
    """Return the C functions that yield to another thread, and that compute the logarithm of an f32."""
    if sys.platform == "win32":
        return ctypes.windll.kernel32.SwitchToThread, ctypes.cdll.ucrtbase.logf
    process = ctypes.CDLL(None)
    return process.sched_yield, process.logf


def _data_offset() -> int:
    """Return the offset of the data pointer in a NumPy array object."""
    probe = np.empty(1, np.float32)
    words = np.frombuffer(ctypes.string_at(id(probe), 64), np.int64).tolist()
    return 8 * int(words.index(probe.ctypes.data))


def _build_hint(wanted: str | None) -> str:
    package = __package__.rpartition(".")[0]
    return f"run python -m {package}.build {wanted}" if wanted else "run make kernels"


def _refuse_missing(wanted: str | None) -> NoReturn:
    kernels = f"kernels compiled for {wanted}" if wanted else "compiled kernels"
    if is_source_tree():
        hint = _build_hint(wanted)
    elif wanted:
        hint = "unset IR_RUNTIME_TARGET"
    else:
        hint = "install a wheel of ir_runtime for this system, if there is one"
    raise NoLibraryError(
        f"this installation of ir_runtime has no {kernels}", code=Code.BAD_REQUEST, hint=hint
    )


def _lacking(target: Target, processor: Processor) -> str:
    """Return why a processor cannot run code for a target; empty if it can."""
    if target.family != processor.family:
        return f"it is for {target.family}, not {processor.family}"
    missing = target.features - processor.features
    return f"the processor lacks {', '.join(sorted(missing))}" if missing else ""
