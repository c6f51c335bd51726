"""Exceptions of OpenVINO's Python package; this package raises its own, `ir_runtime.IRError`."""

from __future__ import annotations

from ._util.absent import explain_absent

__all__ = ["OVError", "OVTypeError", "UserInputError"]


class OVError(Exception):
    """The base of OpenVINO's own exceptions.

    >>> from ir_runtime.exceptions import OVError
    >>> issubclass(OVError, Exception)
    True
    """


class UserInputError(OVError):
    """An argument has an invalid value.

    >>> from ir_runtime.exceptions import UserInputError
    >>> issubclass(UserInputError, Exception)
    True
    """


class OVTypeError(OVError, TypeError):
    """An argument has the wrong type.

    >>> from ir_runtime.exceptions import OVTypeError
    >>> issubclass(OVTypeError, Exception)
    True
    """


explain_absent(__name__)
