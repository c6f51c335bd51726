"""`OVAny`, a value of runtime information (``rt_info``)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np

from ..codes import Code
from ..errors import InputError

__all__ = ["Entries", "OVAny", "plain", "wrap_values"]

Entries: TypeAlias = "dict[str, Any]"
"""Runtime information by name: plain values, or nested entries."""

_TRUE = frozenset({"1", "true", "yes", "on"})
_FALSE = frozenset({"", "0", "false", "no", "off"})


class OVAny:
    """A number, a string, a list of either, or a dictionary. As OpenVINO's ``OVAny``.

    >>> OVAny("1.5").value, OVAny("1.5").astype(float), OVAny("a b").aslist(str), OVAny("x") == "x"
    ('1.5', 1.5, ['a', 'b'], True)
    >>> value = OVAny(3)
    >>> value.set([1, 2])
    >>> value.get()
    [1, 2]
    """

    __slots__ = ("_value",)

    def __init__(self, value: object) -> None:
        self._value = plain(value)

    @property
    def value(self) -> Any:
        """The value as a Python object."""
        return self._value

    def get(self) -> Any:
        """Return the value as a Python object."""
        return self._value

    def set(self, value: object) -> None:
        """Replace the value.

        Raises:
            InputError: for a list of mixed types.
        """
        self._value = plain(value)

    def astype(self, dtype: object) -> Any:
        """Return the value as a ``bool``, ``int``, ``float`` or ``str``, or a ``dict`` of further values.

        Raises:
            InputError: if it cannot be converted; a RuntimeError, as in OpenVINO.
        """
        value = self._value
        if dtype is dict and isinstance(value, dict):
            return wrap_values(value)
        if dtype is str:
            from ..io.writer import format_value  # most programs write no files

            return format_value(value)
        if dtype not in (bool, int, float) or isinstance(value, dict | list | tuple):
            raise _not_convertible(value, dtype)
        return _number(value, dtype)

    def aslist(self, dtype: object = str) -> list[Any]:
        """Return the value as a list; a string is split into words.

        Raises:
            InputError: if the value or a word cannot be converted.
        """
        if dtype not in (bool, int, float, str):
            raise _not_convertible(self._value, dtype)
        if isinstance(self._value, list | tuple):
            return list(self._value)
        if not isinstance(self._value, str):
            raise _not_convertible(self._value, list)
        words = self._value.split()
        return words if dtype is str else [_number(word, dtype) for word in words]

    def __eq__(self, other: object) -> bool:
        return bool(self._value == (other._value if isinstance(other, OVAny) else other))

    def __hash__(self) -> int:
        return hash(self._value)

    def __bool__(self) -> bool:
        return bool(self._value)

    def __len__(self) -> int:
        return len(self._value)

    def __getitem__(self, key: object) -> Any:
        return self._value[key]

    def __setitem__(self, key: object, value: object) -> None:
        self._value[key] = plain(value)

    def __repr__(self) -> str:
        return "<OVAny class>"  # as OpenVINO shows every one


def plain(value: object) -> Any:
    """Unwrap an `OVAny`, a NumPy scalar, or a mapping of them. Return other objects unchanged.

    Raises:
        InputError: for a list of mixed types.
    """
    if isinstance(value, OVAny):
        return value.value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Mapping):
        is_named = all(isinstance(key, str) for key in value)  # then OpenVINO orders the entries
        in_order = sorted(value.items()) if is_named else value.items()
        return {key: plain(entry) for key, entry in in_order}
    if isinstance(value, list) and len({type(entry) for entry in value}) > 1:
        raise InputError(f"the entries of a list must have one type, got {value!r}", code=Code.BAD_REQUEST)
    return value


def wrap_values(entries: Mapping[str, object]) -> Entries:
    """Return nested entries with every value in an `OVAny`."""
    return {
        name: wrap_values(entry) if isinstance(entry, Mapping) else OVAny(entry)
        for name, entry in entries.items()
    }


def _number(value: object, dtype: type) -> Any:
    if dtype is bool and not isinstance(value, bool):
        word = str(value).lower()
        if not isinstance(value, str) or word not in _TRUE | _FALSE:
            raise _not_convertible(value, dtype)
        return word in _TRUE
    convert: Callable[[Any], Any] = _integer if dtype is int else dtype
    try:
        return convert(value)
    except (TypeError, ValueError, OverflowError):
        raise _not_convertible(value, dtype) from None


def _integer(value: Any) -> int:
    """Convert a number, or a string of one, to an integer, dropping any fraction as OpenVINO does."""
    try:
        return int(value)
    except ValueError:
        return int(float(value))


def _not_convertible(value: object, dtype: object) -> InputError:
    target = getattr(dtype, "__name__", repr(dtype))
    return InputError(f"{value!r} cannot be converted to {target}", code=Code.BAD_REQUEST)
