"""Watched memory: guard pages that end a process which reads past an array, and counted or failing allocations.

Both replace NumPy's memory handler, which all arrays of a process share.
"""

from __future__ import annotations

import ctypes
import faulthandler
import gc
import mmap
import multiprocessing as mp
import resource
import signal
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from functools import cache
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
from numpy._core import _multiarray_umath

from harness.kernels import FAST, loaded
from harness.routines import engine_of, set_words
from ir_runtime import backends

FUNCTIONS = ("malloc", "calloc", "realloc", "free")
"""The functions of an allocator."""

# Number of an object in NumPy's table for C, as its header __multiarray_api.h has it.
_DEFAULT_HANDLER = 306
_NAME = b"mem_handler"


class Allocator(ctypes.Structure):
    """NumPy's ``PyDataMemAllocator``."""

    _fields_ = [(name, ctypes.c_void_p) for name in ("context", *FUNCTIONS)]


class Handler(ctypes.Structure):
    """NumPy's ``PyDataMem_Handler``."""

    _fields_ = [("name", ctypes.c_char * 127), ("version", ctypes.c_uint8), ("allocator", Allocator)]


def current_handler() -> Handler:
    """Return the memory handler of all threads that have not set their own."""
    return Handler.from_address(_pointer(_capsule(), _NAME))


def replace_handler(handler: Handler) -> None:
    """Use another handler for all arrays, existing ones included; the caller keeps it alive.

    ``PyDataMem_SetHandler`` would set it for one thread only, so the default capsule, which all threads share, is redirected.
    """
    set_pointer = ctypes.pythonapi.PyCapsule_SetPointer
    set_pointer.argtypes, set_pointer.restype = [ctypes.py_object, ctypes.c_void_p], ctypes.c_int
    set_pointer(_capsule(), ctypes.addressof(handler))


def _capsule() -> Any:
    """Return NumPy's default capsule."""
    table = ctypes.cast(_pointer(_multiarray_umath._ARRAY_API, None), ctypes.POINTER(ctypes.c_void_p))
    return ctypes.cast(table[_DEFAULT_HANDLER], ctypes.POINTER(ctypes.py_object)).contents.value


def _pointer(capsule: Any, name: bytes | None) -> int:
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.argtypes, get.restype = [ctypes.py_object, ctypes.c_char_p], ctypes.c_void_p
    return int(get(capsule, name))


PATTERN = 0xFF
"""What bytes hold that nobody has written to."""

# Addresses that are put aside, without memory; each page of them has eight bytes in a table.
_SPACE = 1 << 42
_PAGE = mmap.PAGESIZE
# Larger numbers are not aligned to more, nor are lines of the cache.
_ALIGNED = 64
# Scratch memory is asked for with so many bytes more, in which `scratch_memory` finds an aligned address.
_MORE = 128

# Of mmap: put new pages in the place of others. Python's module does not name it.
_MAP_FIXED = 0x10

_FOR_SCRATCH = {"allocate": "room", "release": "give_back"}

_GUARD_CODE = Path(__file__).with_name("guard_pages.ll")


class Edge(Enum):
    """The end of an array that touches an inaccessible page."""

    START = "start"
    END = "end"


@cache
def install(edge: Edge) -> None:
    """Guard all arrays and all scratch memory that this process allocates from now on.

    Existing arrays are not moved, and are freed as before.
    """
    before = current_handler()
    addresses, base = _compiled(edge, before.allocator)
    functions = (addresses[name] for name in FUNCTIONS)
    _KEPT.append(Handler(b"guard_pages", 1, Allocator(before.allocator.context, *functions)))
    replace_handler(_KEPT[-1])
    _guard_scratch(addresses)
    assert 0 <= np.empty(1).ctypes.data - base < _SPACE


# What NumPy and LLVM have addresses of.
_KEPT: list[Any] = []


def _guard_scratch(addresses: dict[str, int]) -> None:
    """Allocate scratch memory of kernels with these functions from now on."""
    set_words(**{word: addresses[name] for word, name in _FOR_SCRATCH.items()})


def _reserved(size: int, access: int) -> int:
    """Reserve unused addresses."""
    map_ = ctypes.CDLL(None, use_errno=True).mmap
    map_.restype = ctypes.c_void_p
    map_.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    found = map_(None, size, access, _how(), -1, 0)
    if found in (None, ctypes.c_void_p(-1).value):
        raise OSError(ctypes.get_errno(), "no addresses for guard pages")
    return int(found)


def _how() -> int:
    return mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0x4000)


def _compiled(edge: Edge, old: Allocator) -> tuple[dict[str, int], int]:
    """Compile the allocator; return the addresses of its functions by name, and the start of its memory."""
    read_write = mmap.PROT_READ | mmap.PROT_WRITE
    base, table = _reserved(_SPACE, 0), _reserved(_SPACE // _PAGE * 8, read_write)
    text = _GUARD_CODE.read_text(encoding="utf-8").format(
        base=base, first=base + _PAGE, limit=base + _SPACE, space=_SPACE, table=table,
        page=_PAGE, page_less=_PAGE - 1, page_bits=_PAGE.bit_length() - 1,
        aligned=_ALIGNED, aligned_less=_ALIGNED - 1, more=_MORE, more_less=_MORE - 1,
        pattern=PATTERN - 256, read_write=read_write, no_access=0, again=_how() | _MAP_FIXED,
        edge_is_end=str(edge is Edge.END).lower(), old_free=old.free, old_realloc=old.realloc,
    )  # fmt: skip
    engine = engine_of(text)
    _KEPT.append(engine)
    names = [*FUNCTIONS, *_FOR_SCRATCH.values()]
    return {name: engine.get_function_address(f"guard_{name}") for name in names}, base


_PATIENCE = 600
"""Seconds after which a process that says nothing is given up."""

# Files in which it leaves what it was at.
_TRACE, _STANDING = "trace", "standing"

Work = Callable[[Any, Callable[[str], None]], Any]
"""Takes a task, and what is told where it stands; what it gives is sent back."""


def _serve(ends: Connection, folder: Path, edge: Edge, threads: int, work: Work) -> None:
    """The main loop of a worker process: tasks in, results out."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    install(edge)
    if threads > 1:
        _share_everything()
    with (folder / _TRACE).open("w") as trace, (folder / _STANDING).open("w") as standing:

        def tell(where: str) -> None:
            standing.seek(0)
            standing.truncate()
            standing.write(where)
            standing.flush()

        faulthandler.enable(trace)
        while (task := ends.recv()) is not None:
            faulthandler.dump_traceback_later(_PATIENCE, exit=True, file=trace)
            ends.send(_done(work, task, tell))
            faulthandler.cancel_dump_traceback_later()


def _done(work: Work, task: Any, tell: Callable[[str], None]) -> tuple[Any, str]:
    """Return the result of a task, and the error that it raised."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            return work(task, tell), ""
        except Exception as reason:
            return None, "".join(traceback.format_exception(reason))


def _share_everything() -> None:
    """Let threads share layers of any size."""
    for name in FAST:
        loaded(name)
    sharing = [
        module
        for name, module in list(sys.modules.items())
        if name.startswith(backends.__name__) and hasattr(module, "MIN_PARALLEL_WORK")
    ]
    shared_by = {module.__name__.split(".")[2] for module in sharing}
    assert shared_by >= set(FAST), f"no kernel of {set(FAST) - shared_by} has MIN_PARALLEL_WORK"
    for module in sharing:
        module.MIN_PARALLEL_WORK = 0


@dataclass(slots=True)
class Process:
    """A worker process with guard pages, restarted when it dies.

    Args:
        work: performs a task; a function of a module.
        edge: the end of arrays that touches inaccessible pages.
        threads: the number of threads that share a layer.
    """

    work: Work
    edge: Edge = Edge.END
    threads: int = 1
    _folder: Any = None
    _process: Any = None
    _ends: Any = None

    def __enter__(self) -> Process:
        self._folder = tempfile.TemporaryDirectory(prefix="ir_runtime-guarded-")
        for name in (_TRACE, _STANDING):
            Path(self._folder.name, name).touch()
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.join()
        self._folder.cleanup()

    def run(self, task: Any) -> tuple[Any, str]:
        """Return the result of a task, and the error or signal that ended it, if any."""
        if self._process is None or not self._process.is_alive():
            self._start()
        try:
            self._ends.send(task)
            result: tuple[Any, str] = self._ends.recv()
        except (EOFError, ConnectionError):
            self._process.join()
            return None, self._obituary()
        return result

    def _start(self) -> None:
        context = mp.get_context("spawn")
        self._ends, other = context.Pipe()
        arguments = (other, Path(self._folder.name), self.edge, self.threads, self.work)
        self._process = context.Process(target=_serve, args=arguments, daemon=True)
        self._process.start()
        other.close()

    def _obituary(self) -> str:
        code, folder = self._process.exitcode, Path(self._folder.name)
        how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        standing, trace = ((folder / name).read_text(errors="replace") for name in (_STANDING, _TRACE))
        of_ours = (
            line for line in trace.partition("Current thread")[2].splitlines() if "ir_runtime/" in line
        )
        return "\n".join([f"died of {how}: {standing}", *of_ours])


_COUNTING_CODE = Path(__file__).with_name("allocations.ll")
_UNLIMITED = (1 << 63) - 1
_SCRATCH = {"allocate": "count_scratch_malloc", "release": "count_scratch_free"}


class Allocations:
    """Array memory since counting began, in bytes; final once the ``with`` statement ends."""

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
        """Allocated and not yet freed; negative if older arrays were freed."""
        return self._now("live")

    @property
    def peak(self) -> int:
        """The maximum of `live`."""
        return self._now("peak")

    @property
    def largest(self) -> int:
        """The largest requested allocation, including refused ones."""
        return self._now("largest")

    @property
    def count(self) -> int:
        """The number of allocations."""
        return self._now("count")

    @property
    def refused(self) -> int:
        """The number of refused allocations."""
        return self._now("refused")


@contextmanager
def counting(most: int | None = None) -> Iterator[Allocations]:
    """Count the memory of arrays, and refuse allocations beyond ``most`` bytes in total."""
    yield from _watch(_UNLIMITED if most is None else most, 0)


@contextmanager
def failing(number: int) -> Iterator[Allocations]:
    """Let allocation ``number`` fail, counted from 1; ``refused`` tells whether it was reached."""
    yield from _watch(_UNLIMITED, number)


def count_scratch() -> None:
    """Count scratch memory of compiled kernels, too, from now on; call it before any kernel has allocated some.

    Scratch memory is never refused, as kernels do not check for it.
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
    """The compiled functions, which forward to the default allocator."""

    def __init__(self, old: Allocator) -> None:
        text = _COUNTING_CODE.read_text(encoding="utf-8").format(
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
