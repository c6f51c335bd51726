"""Conversion of input arguments to arrays of the declared element type, with checks."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

from .._util.arrays import DType
from .._util.command_line import on_command_line
from .._util.wrong_arguments import NoArrayError
from ..errors import InputError
from ..ir.array import as_booleans
from ..ir.element import ElementType
from ..ir.shape import PartialShape
from ..ir.tensor import Array
from ..ops.kernels.strings import decode
from .node import Output
from .tensor import Tensor
from .tensor_data import as_numpy, unpack, view_as_bf16

__all__ = ["RESHAPE", "as_array", "cast_numbers", "describe", "exact_type"]

# Element types to which arrays are cast. For other types, OpenVINO requires bytes or a Tensor.
_CAST_TO = frozenset(
    element for element in ElementType if element.dtype.kind in "biuf" and not element.is_encoded
) | {ElementType.bf16}

_NUMPY = np.ndarray, np.generic
RESHAPE = "change the data, or the model with --shape"
"""The command-line hint for data of the wrong shape, if there is no better one."""


def describe(port: Output) -> str:
    """Return the name, element type and shape of an input as text."""
    return f"{port.label!r} ({port._type})"


def exact_type(port: Output) -> tuple[DType | None, ElementType, tuple[int, ...] | None]:
    """Return the dtype, element type and shape of arrays that `as_array` returns unchanged.

    The dtype is None if every array must be checked. The shape is None if it is dynamic.
    """
    type = port._type
    dtype = type.element.dtype
    exact = dtype.kind in "fi" and type.element is not ElementType.dynamic
    return dtype if exact else None, type.element, type.shape.static if type.shape.is_static else None


def as_array(port: Output, value: object, strict: bool = False) -> Array:
    """Return the argument for an input as an array of the declared type.

    Args:
        port: the input.
        value: a tensor of the input's element type; an array, which is cast as in OpenVINO, or reinterpreted
            if it holds bf16 bits; or Python numbers, if the conversion is exact.
        strict: refuse arrays of another element type instead of casting them.

    Raises:
        InputError: if the element type or the shape does not match.
    """
    data, tensor_element = _contents(value)
    type = port._type
    element, shape = type.element, type.shape
    array: Array = np.asarray(data if isinstance(data, _NUMPY) else _from_python(port, data))
    same = array.dtype is element.dtype and tensor_element in (None, element)
    if same and array.dtype.kind in "fi" and shape.contains(array.shape):
        return array  # fast path
    array = as_booleans(array)
    if element is not ElementType.dynamic:
        if not strict and tensor_element is None and array.dtype != element.dtype:
            bits = view_as_bf16(array, element, f"input {port.label!r}")
            array = cast_numbers(element, array) if bits is None else bits
        array = _check_type(port, array, tensor_element)
    if not shape.contains(array.shape):
        if strict or tensor_element or array.ndim or not _is_single(shape):
            raise InputError(
                f"input {port.label!r} has shape {list(array.shape)}, expected {shape}",
                hint=_suggest_fix(array.shape, shape),
            )
        array = array.reshape((1,) * len(shape))
    return array


def _suggest_fix(lengths: tuple[int, ...], expected: PartialShape) -> str:
    """Return a hint on how to change the data or the model so that the shapes match."""
    if len(lengths) == 4:
        for axes, source, here in (((0, 3, 1, 2), "NHWC", "NCHW"), ((0, 2, 3, 1), "NCHW", "NHWC")):
            if expected.contains(tuple(lengths[axis] for axis in axes)):
                order = ",".join(map(str, axes))
                return f"the data looks like {source}, and the input like {here}: x.transpose({order})"
    if expected.contains((1, *lengths)):
        return "the data has no axis of the batch: x[numpy.newaxis] adds it"
    if on_command_line():
        return RESHAPE
    return "change the data, or the model with model.reshape(...) or --shape"


def _contents(value: Any) -> tuple[Any, ElementType | None]:
    """Return the array of a tensor of this package or of OpenVINO, and its element type; None as the type of other arguments."""
    if isinstance(value, _NUMPY):  # their ``data`` attribute is a buffer
        return value, None
    if isinstance(value, Tensor):
        return value._data, value._element
    type = getattr(value, "element_type", None)
    if type is None:
        data = getattr(value, "data", None)
        if isinstance(data, np.ndarray):
            return data, None
        return (
            as_numpy(value) if hasattr(value, "__array__") or hasattr(value, "__dlpack__") else value
        ), None
    element = ElementType.parse(type.to_string())
    if element is ElementType.string:
        return value.str_data, element
    if element.bits < 8:
        return unpack(value.data, element, value.shape), element
    return value.data.view(element.dtype), element


def cast_numbers(element: ElementType, array: Array) -> Array:
    """Cast an array of numbers to another element type. Return non-numeric arrays unchanged, for the caller to refuse.

    NumPy, and thus OpenVINO, would also cast strings, ``None`` and complex numbers, which is never intended.
    """
    if element not in _CAST_TO or not _has_numbers(array):
        return array
    return array.astype(element.dtype)


def _has_numbers(array: Array) -> bool:
    if array.dtype == object:
        return all(isinstance(item, numbers.Real | np.bool_) for item in array.flat)
    try:
        return ElementType.from_dtype(array.dtype) is not ElementType.string
    except ValueError:
        return False


def _is_single(shape: PartialShape) -> bool:
    """Return whether OpenVINO accepts a scalar for this shape: [1], [1,1] … or [?]."""
    one_open = shape.rank == 1 and shape[0].contains(1)
    return one_open or (shape.is_static and all(length == 1 for length in shape.static))


def _check_type(port: Output, array: Array, element: ElementType | None) -> Array:
    expected = port.element_type
    if expected is ElementType.string:
        return _texts(port, array)
    native = array.dtype.newbyteorder("=")
    if native != expected.dtype or element not in (None, expected):
        how = (
            "give its bit patterns in uint8" if expected.is_encoded else f"x.astype({expected.dtype.name!r})"
        )
        actual = element.label if element else _type_name(array)
        if _has_numbers(array):
            hint = f"convert it, if that is intended: {how}"
        else:
            hint = "give numbers, not text" if actual == ElementType.string.label else "give real numbers"
        raise InputError(
            f"input {port.label!r} is {actual}, expected {expected.label}",
            hint=hint,
        )
    if expected.is_encoded and array.size and array.max() >> expected.bits:
        highest = (1 << expected.bits) - 1
        raise InputError(
            f"input {port.label!r} has bit patterns above {highest}, the highest of {expected.label}"
        )
    return array if array.dtype == expected.dtype else array.astype(expected.dtype)


def _texts(port: Output, array: Array) -> Array:
    """Return an array of strings as a new array of `str`."""
    texts = array.astype(object)
    if not all(isinstance(text, str | bytes) for text in texts.flat):
        raise InputError(f"input {port.label!r} is {_type_name(array)}, expected strings")
    flat = np.empty(texts.size, object)
    flat[:] = [decode(text) for text in texts.flat]
    return flat.reshape(texts.shape)


def _from_python(port: Output, value: object) -> Array:
    """Convert a Python number or nested lists of numbers to an array, and raise if that is not exact."""
    element = port.element_type
    try:
        original = np.asarray(value, object if element is ElementType.string else None)
        array = original if element is ElementType.dynamic else np.asarray(value, element.dtype)
    except OverflowError:
        raise _does_not_fit(port) from None
    except (TypeError, ValueError):
        raise NoArrayError(
            f"input {port.label!r} is not an array of {element.label}",
            hint="it must hold numbers only, and nested lists must have equal lengths",
        ) from None
    if element in (ElementType.string, ElementType.dynamic):
        return array
    if original.dtype.kind not in "biuf":  # NumPy would parse strings and accept None
        raise NoArrayError(f"input {port.label!r} is not an array of numbers, expected {element.label}")
    whole = element.integral or element.is_encoded
    if whole and not np.array_equal(original, array):
        raise _does_not_fit(port)
    return array


def _does_not_fit(port: Output) -> InputError:
    return InputError(f"input {port.label!r} has values that {port.element_type.label} cannot represent")


def _type_name(array: Array) -> str:
    if array.dtype == object:
        return "an array of Python objects"
    try:
        return ElementType.from_dtype(array.dtype).label
    except ValueError:
        return str(array.dtype)
