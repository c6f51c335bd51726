"""Errors about arguments that are also of the kinds of Python for which OpenVINO's callers look."""

from __future__ import annotations

from ..errors import InputError

__all__ = ["ArgumentTypeError", "OutOfRangeError"]


class ArgumentTypeError(InputError, TypeError):
    """An argument of a type that the function does not take."""


class OutOfRangeError(InputError, IndexError):
    """An index beyond the inputs or outputs of a model."""
