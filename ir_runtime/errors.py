"""Exceptions, one class per kind of error.

::

    RuntimeError
      IRError                 the base of all errors of this package
        ParseError            the file cannot be read as an IR
        ValidationError       the model contradicts itself or the specification
          InferenceError      a layer's inputs contradict its operation
        UnsupportedError      the model is valid, but something in it is not supported
        InputError            the inputs or the request do not fit the model
        ExecutionError        a layer failed on the data it was given
        LimitError            reading the file, or running it, exceeds a limit

OpenVINO raises ``RuntimeError`` for nearly everything, so code that catches that keeps working.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Self

from .codes import Code
from .diagnostics import Diagnostic, Location, More, one_line

__all__ = [
    "ExecutionError",
    "IRError",
    "InferenceError",
    "InputError",
    "LimitError",
    "ParseError",
    "UnsupportedError",
    "ValidationError",
]


class IRError(RuntimeError):
    """The base of all errors of this package: a message, a code, a location and a hint."""

    default_code = Code.ANY

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        where: Location | None = None,
        hint: str = "",
    ) -> None:
        super().__init__(message)
        self.message, self.hint = one_line(message), one_line(hint)
        self.code, self.where = code or self.default_code, where

    @property
    def diagnostic(self) -> Diagnostic:
        """The error as a finding."""
        return Diagnostic(self.code, self.message, self.where, hint=self.hint)

    def __str__(self) -> str:
        return str(self.diagnostic)


class ParseError(IRError):
    """The file cannot be read as an IR."""

    default_code = Code.UNREADABLE


class LimitError(IRError):
    """Reading the file, or running it, exceeds a limit.

    ``limit`` is the name of the limit.
    """

    default_code = Code.LIMIT

    def __init__(self, message: str, *, limit: str = "", **how: object) -> None:
        super().__init__(message, **how)  # type: ignore[arg-type]
        self.limit = limit


class UnsupportedError(IRError):
    """The model is valid, but something in it is not supported."""

    default_code = Code.UNKNOWN_OPERATION


class ValidationError(IRError):
    """The model contradicts itself or the specification; ``diagnostics`` says where.

    Where there are very many, ``more`` says how many more there are of each kind.
    """

    default_code = Code.INVALID

    def __init__(
        self,
        message: str,
        *,
        diagnostics: Iterable[Diagnostic] = (),
        more: Iterable[More] = (),
        **how: object,
    ) -> None:
        super().__init__(message, **how)  # type: ignore[arg-type]
        self.diagnostics, self.more = tuple(diagnostics), tuple(more)

    @classmethod
    def of(cls, findings: Sequence[Diagnostic], more: Iterable[More] = ()) -> Self:
        """Combine findings into one error; it has the message of the first.

        Args:
            findings: errors.
            more: what is only counted; that of other kinds is left out.
        """
        first, kinds = findings[0], {(found.code, found.severity) for found in findings}
        same = [each for each in more if (each.code, each.severity) in kinds]
        return cls(first.message, code=first.code, where=first.where, diagnostics=findings, more=same)

    def __str__(self) -> str:
        return "\n".join(map(str, (*self.diagnostics, *self.more))) or super().__str__()


class InferenceError(ValidationError):
    """A layer's inputs contradict its operation; the caller adds layer and line."""

    default_code = Code.CONTRADICTION


class InputError(IRError):
    """The inputs or the request do not fit the model."""

    default_code = Code.BAD_INPUT


class ExecutionError(IRError):
    """A layer failed on the data it was given."""

    default_code = Code.LAYER_FAILED
