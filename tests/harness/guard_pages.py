"""Memory whose neighbours are not readable: what reads or writes beside an array ends the process.

`install` puts it under every array of NumPy's that is made afterwards, in any thread, and under the scratch
memory of compiled kernels. Each piece lies on pages of its own between pages without access:

    | no access | unused, data | no access |     Edge.END: what is read behind the data is refused
    | no access | data, unused | no access |     Edge.START: what is read before them is

* Unused bytes of the pages hold a pattern, which is looked at when the memory is given back: who wrote there
  ends the process, too.
* New memory holds the same pattern, which is NaN, or -1.
* Addresses are never used twice, and freed pages lose their access: so it is seen who uses memory that is freed,
  and who frees it twice.

The functions are LLVM's, for they must work without Python's lock.
"""

from __future__ import annotations

import ctypes
import mmap
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from harness.handler import FUNCTIONS, Allocator, Handler, current_handler, replace_handler
from harness.jit import engine_of
from harness.routines import set_words

__all__ = ["PATTERN", "Edge", "install"]

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

_CODE = Path(__file__).with_suffix(".ll")


class Edge(Enum):
    """Where data touch the pages that nobody may read."""

    START = "start"
    END = "end"


@cache
def install(edge: Edge) -> None:
    """Guard all arrays and all scratch memory that this process asks for from now on.

    Arrays that are there already stay where they are, and are freed as before.
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
    """Kernels take their memory from here from now on."""
    set_words(**{word: addresses[name] for word, name in _FOR_SCRATCH.items()})


def _reserved(size: int, access: int) -> int:
    """Addresses that nobody has."""
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
    """The functions' addresses by name, and where the memory begins."""
    read_write = mmap.PROT_READ | mmap.PROT_WRITE
    base, table = _reserved(_SPACE, 0), _reserved(_SPACE // _PAGE * 8, read_write)
    text = _CODE.read_text(encoding="utf-8").format(
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
