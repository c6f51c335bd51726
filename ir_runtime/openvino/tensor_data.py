"""The arrays of tensors: views if possible, otherwise copies."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from .._util.wrong_arguments import ArgumentTypeError
from ..codes import Code
from ..errors import InputError
from ..ir.array import Packed
from ..ir.element import ElementType
from ..ir.tensor import Array
from ..ops.kernels.strings import decode
from .callers import warn

__all__ = [
    "as_numpy",
    "as_stored",
    "as_text",
    "decoded",
    "element_of",
    "encoded",
    "reinterpret",
    "unpacked",
    "view_as_bf16",
    "zeros",
]

_HOLDS_BF16 = frozenset(map(np.dtype, (np.float16, np.int16, np.uint16)))


def as_numpy(value: object) -> Array:
    """Convert any array-like object to an array, sharing memory if possible.

    Accepts arrays, buffers, memory maps, and objects with the array interface or DLPack, such as torch
    tensors.
    """
    if isinstance(value, np.ndarray):
        return value
    if not hasattr(value, "__dlpack__"):
        return np.asarray(value)
    if hasattr(value, "__array__"):
        try:
            return np.asarray(value)
        except TypeError:  # of an element type that NumPy lacks
            pass
    from .dlpack import from_dlpack

    return from_dlpack(value)


def as_stored(array: Array, element: ElementType) -> Array:
    """Return contents as OpenVINO exposes them: packed bytes, bits, or UTF-8 strings.

    Args:
        array: one entry per element; its memory is shared unless the type is packed or holds strings.
        element: the element type.
    """
    if element is ElementType.string:
        return encoded(array)
    if element.is_packed:
        return Packed.of(array, element).raw.view(element.stored_dtype)
    return array if array.dtype == element.stored_dtype else array.view(element.stored_dtype)


def view_as_bf16(array: Array, element: ElementType, subject: str) -> Array | None:
    """Reinterpret an array's bits as bf16, with a warning; None unless it has a suitable 16-bit type.

    OpenVINO has no dtype for bf16: programs hold it in arrays of float16 or of integers. Such arrays look like numbers
    of their own type, hence the warning.

    Args:
        array: the argument.
        element: the expected element type.
        subject: the recipient, for the warning.
    """
    native = array.dtype.newbyteorder("=")
    if element is not ElementType.bf16 or native not in _HOLDS_BF16:
        return None
    warn(
        f"{subject} is bf16: an array of {native.name} is taken for its bits, as in OpenVINO; "
        "x.view('bfloat16') says so, and x.astype('bfloat16') converts numbers",
        RuntimeWarning,
    )
    return array.astype(native, copy=False).view(element.dtype)


def zeros(element: ElementType, shape: Sequence[int]) -> Array | Packed:
    """Return an array of zeros, or of empty strings.

    Raises:
        InputError: if the element type is not known.
    """
    if element is ElementType.dynamic:
        raise InputError("a tensor must have an element type, got dynamic", code=Code.BAD_REQUEST)
    if element is ElementType.string:
        return np.full(tuple(shape), "", object)
    if element.is_packed:
        return Packed.zeros(element, tuple(shape))
    return np.zeros(tuple(shape), element.dtype)


def element_of(array: Array) -> ElementType:
    """Return the element type of an array.

    Raises:
        InputError: if there is none.
    """
    if array.dtype == object and not all(isinstance(text, str | bytes) for text in array.flat):
        raise ArgumentTypeError(
            "a tensor cannot hold Python objects other than strings", code=Code.BAD_REQUEST
        )
    try:
        return ElementType.from_dtype(array.dtype)
    except ValueError as reason:
        raise InputError(str(reason), code=Code.BAD_REQUEST) from None


def reinterpret(array: Array, element: ElementType, shape: Sequence[int]) -> Array | Packed:
    """Reinterpret an array's memory with another shape and element type, as OpenVINO does.

    Raises:
        InputError: if the array is too small or not contiguous.
    """
    if not array.flags.c_contiguous:
        raise InputError(
            f"the memory of an array with gaps cannot be {element.label}{list(shape)}",
            code=Code.BAD_REQUEST,
            hint="give it as numpy.ascontiguousarray(array), whose memory is another",
        )
    if element.is_packed:
        return _view_packed(array, element, tuple(shape))
    count, contiguous = math.prod(shape), array.reshape(-1)
    if element is ElementType.string or array.dtype == element.dtype:
        available, unit = array.size, "elements"
        needed, flat = count, contiguous
    else:
        available, unit = array.nbytes, "bytes"
        needed, flat = element.nbytes(count), contiguous.view(np.uint8)
    if needed > available:
        raise InputError(
            f"{element.label}{list(shape)} needs {needed} {unit}, but the array has {available}",
            code=Code.BAD_REQUEST,
        )
    part = flat[:needed]
    return (part if unit == "elements" else part.view(element.dtype)).reshape(tuple(shape))


def _view_packed(raw: Array, element: ElementType, shape: tuple[int, ...]) -> Packed:
    """View an array's bytes as packed elements.

    Raises:
        InputError: if the number of bytes does not match.
    """
    needed = element.nbytes(math.prod(shape))
    if raw.nbytes != needed:
        raise InputError(
            f"{element.label}{list(shape)} takes {needed} packed bytes, not {raw.nbytes}",
            code=Code.BAD_REQUEST,
            hint="an array of unpacked values has its own shape: omit the shape",
        )
    return Packed(raw.reshape(-1).view(np.uint8), element, shape)


def unpacked(raw: Array, element: ElementType, shape: Sequence[int]) -> Array:
    """Unpack elements from bytes.

    Raises:
        InputError: if the number of bytes does not match.
    """
    return _view_packed(np.ascontiguousarray(raw), element, tuple(shape)).unpack()


def decoded(array: Array) -> Array:
    """Return strings and bytes as an array of `str`; invalid bytes become surrogates."""
    return np.array([decode(text) for text in array.flat], np.str_).reshape(array.shape)


def encoded(array: Array) -> Array:
    """Return strings as an array of bytes in UTF-8."""
    return np.char.encode(decoded(array), "utf-8", "surrogateescape")


def as_text(array: Array) -> Array:
    """Return strings as an array of `str`, replacing invalid UTF-8 by U+FFFD."""
    return np.char.decode(encoded(array), "utf-8", "replace")
