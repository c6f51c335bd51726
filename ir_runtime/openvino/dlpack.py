"""Exchange of arrays with other libraries by DLPack, including element types that NumPy lacks.

The ctypes structures follow ``dlpack.h``. A capsule that is never renamed frees its tensor itself.
"""

from __future__ import annotations

import ctypes
import math
from typing import Any

import ml_dtypes
import numpy as np

from ..codes import Code
from ..errors import InputError
from ..ir.tensor import Array

__all__ = ["from_dlpack", "to_dlpack"]

# A versioned capsule begins with version, context, deleter and flags, of 8 bytes each.
_VERSIONED, _VERSIONED_HEADER = b"dltensor_versioned", 32

_CPU = 1
# kDLBfloat, kDLFloat8_e4m3fn, kDLFloat8_e5m2 and kDLFloat8_e8m0fnu, with their widths in bits.
_TYPES: dict[tuple[int, int], type[np.generic]] = {
    (4, 16): ml_dtypes.bfloat16,
    (10, 8): ml_dtypes.float8_e4m3fn,
    (12, 8): ml_dtypes.float8_e5m2,
    (14, 8): ml_dtypes.float8_e8m0fnu,
}


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class _Memory:
    """Implements NumPy's array interface, and keeps the capsule and thus its memory alive."""

    def __init__(self, capsule: object, interface: dict[str, object]) -> None:
        self.capsule, self.__array_interface__ = capsule, interface


def from_dlpack(source: Any) -> Array:
    """Return a NumPy array that shares the memory of another library's array.

    Raises:
        InputError: if the array is not in main memory, or there is no element type for its dtype.
    """
    if source.__dlpack_device__()[0] != _CPU:
        raise InputError(
            f"the memory of the {type(source).__name__} is not in main memory",
            code=Code.BAD_REQUEST,
            hint="copy it to the CPU first",
        )
    try:
        array: Array = np.from_dlpack(source)
    except (BufferError, RuntimeError, TypeError):
        return _from_other_dlpack_type(source)
    return array


def to_dlpack(array: Array, **how: Any) -> object:
    """Return the DLPack capsule of an array, including element types that NumPy lacks."""
    code = next((code for (code, _), dtype in _TYPES.items() if dtype == array.dtype), None)
    if code is None:
        return array.__dlpack__(**how)
    # Keeps the array alive; its type is corrected below.
    capsule = array.view(f"u{array.itemsize}").__dlpack__(**how)
    _tensor_of(capsule).code = code
    return capsule


def _tensor_of(capsule: object) -> _Tensor:
    """Return the tensor structure in a versioned or unversioned capsule."""
    api = ctypes.pythonapi
    api.PyCapsule_IsValid.argtypes = api.PyCapsule_GetPointer.argtypes = (ctypes.py_object, ctypes.c_char_p)
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    is_versioned = api.PyCapsule_IsValid(capsule, _VERSIONED)
    address = api.PyCapsule_GetPointer(capsule, _VERSIONED if is_versioned else b"dltensor")
    return _Tensor.from_address(address + (_VERSIONED_HEADER if is_versioned else 0))


def _from_other_dlpack_type(source: Any) -> Array:
    capsule = source.__dlpack__()
    tensor = _tensor_of(capsule)
    dtype = _TYPES.get((tensor.code, tensor.bits))
    if dtype is None or tensor.lanes != 1:
        raise InputError(
            f"the {type(source).__name__} has elements of a type that OpenVINO IR does not have",
            code=Code.BAD_REQUEST,
        )
    shape = tuple(tensor.shape[: tensor.ndim])
    size = tensor.bits // 8
    interface: dict[str, object] = {
        "data": ((tensor.data or 0) + tensor.byte_offset, False),
        "shape": shape,
        "strides": tuple(n * size for n in tensor.strides[: tensor.ndim]) if tensor.strides else None,
        "typestr": np.dtype(f"u{size}").str,
        "version": 3,
    }
    if not math.prod(shape):
        return np.empty(shape, dtype)
    return np.asarray(_Memory(capsule, interface)).view(dtype)
