"""Errors about arguments that also derive from the built-in exceptions which OpenVINO raises in the same cases."""

from __future__ import annotations

from typing import TypeVar

from ..codes import Code
from ..errors import InputError

__all__ = ["ArgumentTypeError", "NoArrayError", "NoDataError", "OutOfRangeError", "checked"]

_Kind = TypeVar("_Kind")


class ArgumentTypeError(InputError, TypeError):
    """An argument of a type that a function does not accept."""


class NoArrayError(ArgumentTypeError, ValueError):
    """An argument that cannot be converted to an array of numbers."""


class NoDataError(InputError, AttributeError):
    """Access to the data of a layer without data; an AttributeError, so that ``hasattr`` is false."""


class OutOfRangeError(InputError, IndexError):
    """An index beyond the end of a sequence, such as the outputs of a model."""


def checked(value: object, *kinds: type[_Kind]) -> _Kind:
    """Return ``value`` if it is an instance of one of the classes.

    Raises:
        ArgumentTypeError: if it is not.
    """
    if not isinstance(value, kinds):
        names = " or ".join(kind.__name__ for kind in kinds)
        raise ArgumentTypeError(f"expected a {names}, got {value!r}", code=Code.BAD_REQUEST)
    return value
