"""The kernel library of this process: its selection by processor, and the addresses of its functions.

`FOLDER` holds one library per target, from a wheel or built by ``make kernels``. The best one that the processor supports is
loaded once, when a model or the command ``ir-runtime kernels`` first needs it. Loading executes only `IDENTIFY`, which every
processor of the family supports. The host table passes addresses of the process to the library.

A library contains the fingerprint of its sources. In a source tree, a library that is older than its sources is not used,
since both must agree about the layout of descriptors.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import numpy as np

from ..._util.nearest import did_you_mean
from ...codes import Code
from ...errors import InputError
from .codegen.targets import TARGETS, Target, target_named

if TYPE_CHECKING:
    from _ctypes import CFuncPtr

__all__ = [
    "family",
    "file_of",
    "fingerprint",
    "FOLDER",
    "identify",
    "is_source_tree",
    "Library",
    "library",
    "find_target",
    "NoLibraryError",
    "Processor",
    "TABLE",
    "WORDS",
]

TABLE = "ir_runtime_host"
"""The symbol of the host table."""

WORDS = "allocate", "release", "yield", "log", "array_data"
"""The words of the host table: the addresses of four C functions, and the offset of the data pointer in NumPy array objects."""


_PACKAGE = os.path.dirname(__file__)


@cache
def is_source_tree() -> bool:
    """Return whether kernels can be built here: wheels contain libraries, but not the compiler."""
    return os.path.isdir(os.path.join(_PACKAGE, "build"))


@cache
def fingerprint() -> bytes:
    """Return a hash (SHA-256) of the names and contents of all Python files of this package."""
    return _hash(_PACKAGE)


def _hash(folder: str) -> bytes:
    digest = hashlib.sha256()
    for name, path in _files(folder):
        with open(path, "rb", buffering=0) as file:
            code = file.readall()
        digest.update(f"{name} {len(code)}\n".encode() + code)
    return digest.digest()


def _files(folder: str, inside: str = "") -> Iterator[tuple[str, str]]:
    """Yield the relative path and the location of each Python file in and below a folder, sorted by name."""
    with os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            name = f"{inside}/{entry.name}"
            if entry.name.endswith(".py"):
                yield name, entry.path
            elif entry.is_dir() and entry.name != "__pycache__":
                yield from _files(entry.path, name)


IDENTIFY = "ir_runtime_identification_identify"
"""The symbol of the function that identifies an x86 processor, compiled to baseline instructions."""

# It writes four words for each supported leaf and subleaf of ``cpuid`` among 0, 1, 7, 7.1 and 0x80000001, then one word with
# the register XCR0.
_LEAVES = 5

_EAX, _EBX, _ECX, _EDX = range(4)
# For each feature, by LLVM's name: the index of the leaf, the register and the bit.
_X86_FEATURES = {
    "sse2": (1, _EDX, 26), "fma": (1, _ECX, 12), "movbe": (1, _ECX, 22), "avx": (1, _ECX, 28), "f16c": (1, _ECX, 29),
    "lzcnt": (4, _ECX, 5), "bmi": (2, _EBX, 3), "avx2": (2, _EBX, 5), "bmi2": (2, _EBX, 8),
    "avx512f": (2, _EBX, 16), "avx512dq": (2, _EBX, 17), "avx512ifma": (2, _EBX, 21), "avx512cd": (2, _EBX, 28),
    "avx512bw": (2, _EBX, 30), "avx512vl": (2, _EBX, 31), "avx512vbmi": (2, _ECX, 1), "avx512vbmi2": (2, _ECX, 6),
    "avx512vnni": (2, _ECX, 11), "avx512bitalg": (2, _ECX, 12), "avx512vpopcntdq": (2, _ECX, 14),
    "avxvnni": (3, _EAX, 4), "avx512bf16": (3, _EAX, 5),
}  # fmt: skip
# Bits of XCR0: the registers of AVX, and of AVX-512, that the system must save for features to be usable.
_AVX_STATE, _AVX512_STATE = 0x06, 0xE6
_OF_AVX = frozenset({"avx", "avx2", "fma", "f16c", "avxvnni"})
# Bits of AT_HWCAP on Linux.
_ARM_FEATURES = {"neon": 1, "lse": 8, "dotprod": 20}
_AT_HWCAP = 16


@dataclass(frozen=True)
class Processor:
    """A processor and the instruction set extensions that it supports.

    Args:
        family: the processor family: ``x86_64``, ``aarch64``, or the system's name of another one.
        vendor: the vendor string of an x86 processor.
        features: the supported features among those that targets may require, by LLVM's names.
    """

    family: str
    vendor: str
    features: frozenset[str]


def family() -> str:
    """Return the processor family that this interpreter was built for."""
    name = platform.machine().lower()
    return {"amd64": "x86_64", "arm64": "aarch64"}.get(name, name)


def identify(code: ctypes.CDLL) -> Processor:
    """Identify the processor of this machine; ``code`` is any library for its family."""
    name = family()
    if name == "x86_64":
        words = (ctypes.c_int64 * (4 * _LEAVES + 1))()
        ask = code[IDENTIFY]
        ask.argtypes, ask.restype = [ctypes.c_void_p], None
        ask(words)
        return _x86(words)
    features: Iterable[str] = ()
    if name == "aarch64":
        features = ("neon", "dotprod", "lse") if sys.platform == "darwin" else _arm_features()
    return Processor(name, "", frozenset(features))


def _x86(words: ctypes.Array[ctypes.c_int64]) -> Processor:
    leaves = [words[4 * place : 4 * place + 4] for place in range(_LEAVES)]
    state = words[4 * _LEAVES]
    vendor = b"".join(leaves[0][word].to_bytes(4, "little") for word in (_EBX, _EDX, _ECX))
    features = {name for name, (leaf, word, bit) in _X86_FEATURES.items() if leaves[leaf][word] >> bit & 1}
    if state & _AVX_STATE != _AVX_STATE:
        features -= _OF_AVX
    if state & _AVX512_STATE != _AVX512_STATE:
        features -= {name for name in features if name.startswith("avx512")}
    return Processor("x86_64", vendor.decode("ascii", "replace"), frozenset(features))


def _arm_features() -> list[str]:
    ask = ctypes.CDLL(None).getauxval
    ask.argtypes, ask.restype = [ctypes.c_ulong], ctypes.c_ulong
    bits = ask(_AT_HWCAP)
    return [name for name, bit in _ARM_FEATURES.items() if bits >> bit & 1]


FOLDER = Path(__file__).parent / "libraries"
"""The folder of the kernel libraries."""

_SUFFIX = {"win32": ".dll", "darwin": ".dylib"}.get(sys.platform, ".so")


class NoLibraryError(InputError):
    """No kernel library is usable in this process."""


@dataclass(eq=False)
class Library:
    """A loaded kernel library.

    Args:
        target: the target that the library was built for.
        path: the path of its file.
        processor: the processor of this machine.
        code: the library as loaded by ctypes.
        reason: why this library was chosen.
        others: for the name of each other target with a library, why that was not chosen.
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
        """Add the named functions of another library, as tests do for kernels of their own.

        The host table of that library gets the contents of this one's.
        """
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
        NoLibraryError: if no library is usable.
        InputError: if ``IR_RUNTIME_TARGET`` names no target.
    """
    files = {name: path for name in TARGETS if (path := file_of(name)).exists()}
    requested = os.environ.get("IR_RUNTIME_TARGET")
    if requested:
        files = {name: path for name in [find_target(requested).name] if (path := file_of(name)).exists()}
    if not files:
        _refuse_missing(requested)
    targets = [find_target(name) for name in files]
    own = [target for target in targets if target.family == family()]
    # A library for another family cannot be loaded; any library for this family can identify the processor.
    processor = (
        identify(_open(files[own[0].name], requested)) if own else Processor(family(), "", frozenset())
    )
    lacking = {target.name: _missing_features(target, processor) for target in targets}
    target = next((target for target in own if not lacking[target.name]), None)
    if target is None:
        raise NoLibraryError(
            f"no compiled kernels run here: {lacking[(own or targets)[-1].name]}",
            code=Code.BAD_REQUEST,
            hint="set IR_RUNTIME_BACKEND=numpy",
        )
    path = files[target.name]
    code = _open(path, requested)
    fill_table(code)
    reason = "IR_RUNTIME_TARGET names it" if requested else "the best one that the processor can run"
    others = {name: why or "a better one is used" for name, why in lacking.items() if name != target.name}
    return Library(target, path, processor, code, reason, others)


def file_of(name: str) -> Path:
    """Return the path of the library for a target; the file need not exist."""
    return FOLDER / f"{name}{_SUFFIX}"


def find_target(name: str) -> Target:
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
    """Write the addresses of this process that kernels need into the host table of a library."""
    table = (ctypes.c_int64 * len(WORDS)).in_dll(code, TABLE)
    for index, word in enumerate(_host_words()):
        table[index] = word


def _open(path: Path, requested: str | None) -> ctypes.CDLL:
    """Load a library; raise `NoLibraryError` if it is outdated or cannot be loaded."""
    hint = _build_hint(requested) if is_source_tree() else "install ir_runtime again"
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
    """Return the words of the host table in the order of `WORDS`: addresses of functions, and an offset in bytes.

    Python's raw memory functions, which are among them, do not need the GIL.
    """
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
    """Return the offset in bytes of the data pointer in a NumPy array object."""
    probe = np.empty(1, np.float32)
    words = np.frombuffer(ctypes.string_at(id(probe), 64), np.int64).tolist()
    return 8 * int(words.index(probe.ctypes.data))


def _build_hint(requested: str | None) -> str:
    return f"run python -m {__package__}.build {requested}" if requested else "run make kernels"


def _refuse_missing(requested: str | None) -> NoReturn:
    kernels = f"kernels compiled for {requested}" if requested else "compiled kernels"
    if is_source_tree():
        hint = _build_hint(requested)
    elif requested:
        hint = "unset IR_RUNTIME_TARGET"
    else:
        hint = "install a wheel of ir_runtime for this system, if there is one"
    raise NoLibraryError(
        f"this installation of ir_runtime has no {kernels}", code=Code.BAD_REQUEST, hint=hint
    )


def _missing_features(target: Target, processor: Processor) -> str:
    """Return why a processor cannot run code for a target, or an empty string if it can."""
    if target.family != processor.family:
        return f"it is for {target.family}, not {processor.family}"
    missing = target.features - processor.features
    return f"the processor lacks {', '.join(sorted(missing))}" if missing else ""
