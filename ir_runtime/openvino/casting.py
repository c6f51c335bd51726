"""Convert the argument for an input to an array of its element type, and check it."""

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
from .tensor_data import as_numpy, unpacked, view_as_bf16

__all__ = ["as_array", "cast_numbers", "describe", "exact_type"]

# Element types that arrays are cast to. For the others OpenVINO takes bytes, or refuses what is not a Tensor.
_CAST_TO = frozenset(
    element for element in ElementType if element.dtype.kind in "biuf" and not element.is_encoded
) | {ElementType.bf16}

_NUMPY = np.ndarray, np.generic


def describe(port: Output) -> str:
    """Describe an input: name, element type, shape."""
    return f"{port.label!r} ({port._type})"


def exact_type(port: Output) -> tuple[DType | None, ElementType, tuple[int, ...] | None]:
    """Return dtype, element type and lengths of arrays that `as_array` returns unchanged, whatever they hold.

    The dtype is ``None`` where every array has to be checked; the lengths are ``None`` if they are dynamic.
    """
    type = port._type
    dtype = type.element.dtype
    exact = dtype.kind in "fi" and type.element is not ElementType.dynamic
    return dtype if exact else None, type.element, type.shape.static if type.shape.is_static else None


def as_array(port: Output, value: object, strict: bool = False) -> Array:
    """Return the array for an input.

    Args:
        port: the input.
        value: a tensor, which must have the input's element type; an array, which is cast to it as OpenVINO
            does, or whose bits are taken where it stands for bf16; or Python numbers, which are converted where
            nothing is lost.
        strict: refuse arrays of another element type, too.

    Raises:
        InputError: if element type or shape do not fit.
    """
    given, said = _contents(value)
    type = port._type
    wanted, shape = type.element, type.shape
    array: Array = np.asarray(given if isinstance(given, _NUMPY) else _from_python(port, given))
    same = array.dtype is wanted.dtype and said in (None, wanted)
    if same and array.dtype.kind in "fi" and shape.contains(array.shape):
        return array  # the usual case, decided quickly
    array = as_booleans(array)
    if wanted is not ElementType.dynamic:
        if not strict and said is None and array.dtype != wanted.dtype:
            bits = view_as_bf16(array, wanted, f"input {port.label!r}")
            array = cast_numbers(wanted, array) if bits is None else bits
        array = _checked_type(port, array, said)
    if not shape.contains(array.shape):
        if strict or said or array.ndim or not _is_single(shape):
            raise InputError(
                f"input {port.label!r} has shape {list(array.shape)}, expected {shape}",
                hint=_fitting(array.shape, shape),
            )
        array = array.reshape((1,) * len(shape))
    return array


def _fitting(given: tuple[int, ...], wanted: PartialShape) -> str:
    """Return a hint on how to make data of a shape fit."""
    if len(given) == 4:
        for axes, there, here in (((0, 3, 1, 2), "NHWC", "NCHW"), ((0, 2, 3, 1), "NCHW", "NHWC")):
            if wanted.contains(tuple(given[axis] for axis in axes)):
                order = ",".join(map(str, axes))
                return f"the data looks like {there}, and the input like {here}: x.transpose({order})"
    if wanted.contains((1, *given)):
        return "the data has no axis of the batch: x[numpy.newaxis] adds it"
    if on_command_line():
        return "change the data, or the model with --shape"
    return "change the data, or the model with model.reshape(...) or --shape"


def _contents(value: Any) -> tuple[Any, ElementType | None]:
    """Return the array of a tensor, ours or OpenVINO's, and the element type that the tensor says it has."""
    if isinstance(value, _NUMPY):  # whose ``data`` is another thing
        return value, None
    if isinstance(value, Tensor):
        return value._data, value._element
    said = getattr(value, "element_type", None)
    if said is None:
        data = getattr(value, "data", None)
        if isinstance(data, np.ndarray):
            return data, None
        return (
            as_numpy(value) if hasattr(value, "__array__") or hasattr(value, "__dlpack__") else value
        ), None
    element = ElementType.parse(said.to_string())
    if element is ElementType.string:
        return value.str_data, element
    if element.bits < 8:
        return unpacked(value.data, element, value.shape), element
    return value.data.view(element.dtype), element


def cast_numbers(wanted: ElementType, array: Array) -> Array:
    """Return an array of numbers in another element type; other arrays as they are, to be refused.

    NumPy also casts text, ``None`` and complex numbers, and OpenVINO with it; which is never intended.
    """
    if wanted not in _CAST_TO or not _has_numbers(array):
        return array
    return array.astype(wanted.dtype)


def _has_numbers(array: Array) -> bool:
    if array.dtype == object:
        return all(isinstance(each, numbers.Real | np.bool_) for each in array.flat)
    try:
        return ElementType.from_dtype(array.dtype) is not ElementType.string
    except ValueError:
        return False


def _is_single(shape: PartialShape) -> bool:
    """Return whether a scalar may stand for the only element, as in OpenVINO: the shape is [1], [1,1] … or [?]."""
    one_open = shape.rank == 1 and shape[0].contains(1)
    return one_open or (shape.is_static and all(length == 1 for length in shape.static))


def _checked_type(port: Output, array: Array, said: ElementType | None) -> Array:
    wanted = port.element_type
    if wanted is ElementType.string:
        return _texts(port, array)
    native = array.dtype.newbyteorder("=")
    if native != wanted.dtype or said not in (None, wanted):
        how = "give its bit patterns in uint8" if wanted.is_encoded else f"x.astype({wanted.dtype.name!r})"
        found = said.label if said else _type_name(array)
        is_text = found == ElementType.string.label
        raise InputError(
            f"input {port.label!r} is {found}, expected {wanted.label}",
            hint="give numbers, not text" if is_text else f"convert it, if that is intended: {how}",
        )
    if wanted.is_encoded and array.size and array.max() >> wanted.bits:
        highest = (1 << wanted.bits) - 1
        raise InputError(
            f"input {port.label!r} has bit patterns above {highest}, the highest of {wanted.label}"
        )
    return array if array.dtype == wanted.dtype else array.astype(wanted.dtype)


def _texts(port: Output, array: Array) -> Array:
    """Return a new array of `str`."""
    found = array.astype(object)
    if not all(isinstance(text, str | bytes) for text in found.flat):
        raise InputError(f"input {port.label!r} is {_type_name(array)}, expected strings")
    flat = np.empty(found.size, object)
    flat[:] = [decode(text) for text in found.flat]
    return flat.reshape(found.shape)


def _from_python(port: Output, value: object) -> Array:
    """Python numbers and nested lists of them, where nothing is lost."""
    wanted = port.element_type
    try:
        found = np.asarray(value, object if wanted is ElementType.string else None)
        array = found if wanted is ElementType.dynamic else np.asarray(value, wanted.dtype)
    except OverflowError:
        raise _does_not_fit(port) from None
    except (TypeError, ValueError):
        raise NoArrayError(
            f"input {port.label!r} is not an array of {wanted.label}",
            hint="it must hold numbers only, and nested lists must have equal lengths",
        ) from None
    if wanted in (ElementType.string, ElementType.dynamic):
        return array
    if found.dtype.kind not in "biuf":  # NumPy would read the numbers in texts, and take None for one
        raise NoArrayError(f"input {port.label!r} is not an array of numbers, expected {wanted.label}")
    whole = wanted.integral or wanted.is_encoded
    if whole and not np.array_equal(found, array):
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
