"""NumPy's handler of the memory of arrays, and how to put another in its place."""

from __future__ import annotations

import ctypes
from typing import Any

from numpy._core import _multiarray_umath

__all__ = ["FUNCTIONS", "Allocator", "Handler", "current_handler", "replace_handler"]

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
    """The handler of arrays of all threads that have not set one of their own."""
    return Handler.from_address(_pointer(_capsule(), _NAME))


def replace_handler(handler: Handler) -> None:
    """Use another handler for all arrays, old ones as well; the caller keeps it alive.

    ``PyDataMem_SetHandler`` would set it for one thread only, so the capsule that all threads have in the beginning
    is told to point elsewhere.
    """
    set_pointer = ctypes.pythonapi.PyCapsule_SetPointer
    set_pointer.argtypes, set_pointer.restype = [ctypes.py_object, ctypes.c_void_p], ctypes.c_int
    set_pointer(_capsule(), ctypes.addressof(handler))


def _capsule() -> Any:
    """The capsule that NumPy takes where nobody has set one."""
    table = ctypes.cast(_pointer(_multiarray_umath._ARRAY_API, None), ctypes.POINTER(ctypes.c_void_p))
    return ctypes.cast(table[_DEFAULT_HANDLER], ctypes.POINTER(ctypes.py_object)).contents.value


def _pointer(capsule: Any, name: bytes | None) -> int:
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.argtypes, get.restype = [ctypes.py_object, ctypes.c_char_p], ctypes.c_void_p
    return int(get(capsule, name))
