"""Convert the caller's inputs to one array for each input, and check them."""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ..codes import Code
from ..errors import InputError
from ..ir.element import ElementType
from ..ir.tensor import Array
from ..kernels.strings import decode
from .names import find_port
from .nodes import Output
from .tensor import Tensor, unpacked

__all__ = ["as_array", "bind"]


def bind(ports: Sequence[Output], inputs: Any, kept: Mapping[Output, Tensor]) -> list[Array]:
    """One array for each input, in order.

    Args:
        ports: the inputs of the model.
        inputs: a mapping by index, name or port; a sequence by position; the only array; or ``None``.
        kept: tensors that the request already holds.

    Raises:
        InputError: if an input is missing, unknown, given twice, or has another type or shape.
    """
    given: dict[Output, Any] = dict(kept)
    seen: set[Output] = set()
    for port, value in _pairs(ports, inputs):
        if port in seen:
            raise InputError(f"input {port.label!r} is given twice")
        seen.add(port)
        given[port] = value
    missing = [port for port in ports if port not in given]
    if missing:
        wanted = "; ".join(describe(port) for port in missing)
        count = "an input is" if len(missing) == 1 else f"{len(missing)} inputs are"
        raise InputError(f"{count} missing: {wanted}")
    return [as_array(port, given[port]) for port in ports]


def describe(port: Output) -> str:
    """Describe an input: name, element type, shape."""
    return f"{port.label!r} ({port.element_type}{port.partial_shape})"


def as_array(port: Output, value: Any) -> Array:
    """The array for an input; NumPy arrays must have the right type, Python numbers are converted.

    Raises:
        InputError: if element type or shape do not fit.
    """
    array, said = _contents(value)
    if not isinstance(array, np.ndarray | np.generic):
        array = _from_python(port, array)
    array = np.asarray(array)
    if port.element_type is not ElementType.dynamic:
        array = _checked_type(port, array, said)
    if not port.partial_shape.contains(array.shape):
        raise InputError(
            f"input {port.label!r} has shape {list(array.shape)}, expected {port.partial_shape}",
            hint="change the data, or the model with model.reshape(...) or --shape",
        )
    return array


def _contents(value: Any) -> tuple[Any, ElementType | None]:
    """The array of a tensor, ours or OpenVINO's, and the element type that the tensor says it has."""
    if isinstance(value, np.ndarray | np.generic):  # whose ``data`` is another thing
        return value, None
    if isinstance(value, Tensor):
        return value.data, value.element_type
    said = getattr(value, "element_type", None)
    if said is None:
        data = getattr(value, "data", None)
        return (data if isinstance(data, np.ndarray) else value), None
    element = ElementType.parse(said.to_string())
    if element is ElementType.string:
        return value.str_data, element
    if element.bits < 8:
        return unpacked(value.data, element, value.shape), element
    return value.data.view(element.dtype), element


def _checked_type(port: Output, array: Array, said: ElementType | None) -> Array:
    wanted = port.element_type
    if wanted is ElementType.string:
        return _texts(port, array)
    native = array.dtype.newbyteorder("=")
    if native != wanted.dtype or said not in (None, wanted):
        how = "give its bit patterns in uint8" if wanted.is_encoded else f"x.astype({wanted.dtype.name!r})"
        raise InputError(
            f"input {port.label!r} is {said or _type_name(array)}, expected {wanted}",
            hint=f"convert it, if that is intended: {how}",
        )
    if wanted.is_encoded and array.size and array.max() >> wanted.bits:
        highest = (1 << wanted.bits) - 1
        raise InputError(f"input {port.label!r} has bit patterns above {highest}, the highest of {wanted}")
    return array if array.dtype == wanted.dtype else array.astype(wanted.dtype)


def _texts(port: Output, array: Array) -> Array:
    """Return a new array of `str`."""
    found = array.astype(object)
    if not all(isinstance(text, str | bytes) for text in found.flat):
        raise InputError(f"input {port.label!r} is {_type_name(array)}, expected strings")
    flat = np.empty(found.size, object)
    flat[:] = [decode(text) for text in found.flat]
    return flat.reshape(found.shape)


def _pairs(ports: Sequence[Output], inputs: Any) -> Iterator[tuple[Output, Any]]:
    if inputs is None:
        return
    if isinstance(inputs, Mapping):
        for key, value in inputs.items():
            yield find_port(ports, _same(ports, key), "input"), value
    elif isinstance(inputs, list | tuple) and not (len(ports) == 1 and _is_data(ports[0], inputs)):
        if len(inputs) > len(ports):
            raise InputError(f"got {len(inputs)} inputs, the model has {len(ports)}", hint=_all(ports))
        yield from zip(ports, inputs, strict=False)
    elif len(ports) != 1:
        raise InputError(f"got one array, the model has {len(ports)} inputs", hint=_all(ports))
    else:
        yield ports[0], inputs


def _same(ports: Sequence[Output], key: Any) -> Any:
    if isinstance(key, int | str | Output):
        return key
    raise InputError(
        f"{key!r} is not an input: expected an index, a name or a port",
        code=Code.NO_SUCH_NAME,
        hint=_all(ports),
    )


def _all(ports: Iterable[Output]) -> str:
    return "its inputs are " + ", ".join(map(describe, ports))


def _is_data(port: Output, values: Sequence[Any]) -> bool:
    """Whether a sequence is itself the data, as in ``compiled([1.0, 2.0])``, and not one scalar for each input."""
    scalar = port.partial_shape.rank == 0 and len(values) == 1
    return bool(values) and not scalar and all(isinstance(v, numbers.Number | str | bytes) for v in values)


def _from_python(port: Output, value: Any) -> Array:
    """Python numbers and nested lists of them, where nothing is lost."""
    wanted = port.element_type
    try:
        found = np.asarray(value, object if wanted is ElementType.string else None)
        array = found if wanted is ElementType.dynamic else np.asarray(value, wanted.dtype)
    except OverflowError:
        raise _does_not_fit(port) from None
    except (TypeError, ValueError):
        raise InputError(
            f"input {port.label!r} is not an array of {wanted}",
            hint="it must hold numbers only, and nested lists must have equal lengths",
        ) from None
    if wanted in (ElementType.string, ElementType.dynamic):
        return array
    if found.dtype.kind not in "biuf":  # NumPy would read the numbers in texts, and take None for one
        raise InputError(f"input {port.label!r} is not an array of numbers, expected {wanted}")
    whole = wanted.integral or wanted.is_encoded
    if whole and not np.array_equal(found, array):
        raise _does_not_fit(port)
    return array


def _does_not_fit(port: Output) -> InputError:
    return InputError(f"input {port.label!r} has values that {port.element_type} cannot represent")


def _type_name(array: Array) -> str:
    if array.dtype == object:
        return "an array of Python objects"
    try:
        return str(ElementType.from_dtype(array.dtype))
    except ValueError:
        return str(array.dtype)
