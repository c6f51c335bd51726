"""Exceptions of OpenVINO's Python package; this package raises its own, `ir_runtime.IRError`."""

from __future__ import annotations

from .absent import answers

__all__ = ["OVError", "OVTypeError", "UserInputError"]


class OVError(Exception):
    """The base of OpenVINO's own exceptions."""


class UserInputError(OVError):
    """A function was given something that it does not take."""


class OVTypeError(OVError, TypeError):
    """A function was given a value of another type."""


__getattr__ = answers(__name__)
