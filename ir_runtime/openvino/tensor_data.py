"""Conversions between tensors and arrays, as views if possible."""

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
    "decode_strings",
    "element_of",
    "encode_strings",
    "reinterpret",
    "unpack",
    "view_as_bf16",
    "zeros",
]

_HOLDS_BF16 = frozenset(map(np.dtype, (np.float16, np.int16, np.uint16)))


def as_numpy(value: object) -> Array:
    """Convert an array-like object to an array, sharing its memory if possible.

    This includes buffers, memory maps, and objects with NumPy's array interface or DLPack, such as PyTorch
    tensors.
    """
    if isinstance(value, np.ndarray):
        return value
    if not hasattr(value, "__dlpack__"):
        return np.asarray(value)
    if hasattr(value, "__array__"):
        try:
            return np.asarray(value)
        except TypeError:  # NumPy lacks the element type
            pass
    from .dlpack import from_dlpack

    return from_dlpack(value)


def as_stored(array: Array, element: ElementType) -> Array:
    """Return the contents of a tensor as OpenVINO exposes them: packed bytes, raw bits, or UTF-8 strings.

    Args:
        array: the elements. Its memory is shared unless the type is sub-byte or string.
        element: the element type.
    """
    if element is ElementType.string:
        return encode_strings(array)
    if element.is_packed:
        return Packed.of(array, element).raw.view(element.stored_dtype)
    return array if array.dtype == element.stored_dtype else array.view(element.stored_dtype)


def view_as_bf16(array: Array, element: ElementType, subject: str) -> Array | None:
    """Reinterpret an array's bits as bf16 and warn. Return None unless bf16 is expected and the array is 16-bit.

    OpenVINO has no dtype for bf16, so programs store it in arrays of float16 or integers. Such an array could also hold
    values of its own type, hence the warning.

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
    """Return an array of zeros or of empty strings.

    Raises:
        InputError: if the element type is dynamic.
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
        InputError: if there is none for its dtype.
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
    """Return a view of an array's memory with another shape and element type, as OpenVINO does.

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
    """Return a view of an array's bytes as packed elements.

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


def unpack(raw: Array, element: ElementType, shape: Sequence[int]) -> Array:
    """Unpack the elements of an array of packed bytes.

    Raises:
        InputError: if the number of bytes does not match.
    """
    return _view_packed(np.ascontiguousarray(raw), element, tuple(shape)).unpack()


def decode_strings(array: Array) -> Array:
    """Decode an array of strings or bytes to `str`, with surrogates for invalid bytes."""
    return np.array([decode(text) for text in array.flat], np.str_).reshape(array.shape)


def encode_strings(array: Array) -> Array:
    """Encode an array of strings as UTF-8 bytes."""
    return np.char.encode(decode_strings(array), "utf-8", "surrogateescape")


def as_text(array: Array) -> Array:
    """Decode an array of strings or bytes to `str`, with U+FFFD for invalid UTF-8."""
    return np.char.decode(encode_strings(array), "utf-8", "replace")
