"""Errors about arguments that are also of the kinds of Python for which OpenVINO's callers look."""

from __future__ import annotations

from typing import TypeVar

from ..codes import Code
from ..errors import InputError

__all__ = ["ArgumentTypeError", "NoArrayError", "NoDataError", "OutOfRangeError", "checked"]

_Kind = TypeVar("_Kind")


class ArgumentTypeError(InputError, TypeError):
    """An argument of a type that the function does not take."""


class NoArrayError(ArgumentTypeError, ValueError):
    """An argument that is not an array of numbers, by its type or its contents."""


class NoDataError(InputError, AttributeError):
    """The data of a layer that has none: programs ask by ``hasattr`` whether there are some."""


class OutOfRangeError(InputError, IndexError):
    """An index beyond the inputs or outputs of a model."""


def checked(value: object, *kinds: type[_Kind]) -> _Kind:
    """Return an argument of one of the classes.

    Raises:
        ArgumentTypeError: if it is of none.
    """
    if not isinstance(value, kinds):
        names = " or ".join(kind.__name__ for kind in kinds)
        raise ArgumentTypeError(f"expected a {names}, got {value!r}", code=Code.BAD_REQUEST)
    return value
