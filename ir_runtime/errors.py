"""Exceptions, one class per kind of error.

::

    RuntimeError
      IRError                 the base of all errors of this package
        ParseError            the file cannot be read as an IR
        ValidationError       the model contradicts itself or the specification
          InferenceError      a layer's inputs contradict its operation
            LengthError       a dimension is longer than an int64 holds
        UnsupportedError      the model is valid, but something in it is not supported
        InputError            the inputs or the request do not fit the model
        ExecutionError        a layer failed on the data it was given
        LimitError            reading the file, or running it, exceeds a limit

OpenVINO raises ``RuntimeError`` for nearly everything, so code that catches that keeps working.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Self

from ._util.escaping import one_line
from .codes import Code
from .diagnostics import Cause, Diagnostic, Location, More

__all__ = [
    "ExecutionError",
    "IRError",
    "InferenceError",
    "InputError",
    "LengthError",
    "LimitError",
    "ParseError",
    "UnsupportedError",
    "ValidationError",
]


class IRError(RuntimeError):
    """The base of all errors of this package: a message, a code, a location and a hint.

    >>> import ir_runtime as ov
    >>> try:
    ...     ov.read_model(b"no xml")
    ... except ov.IRError as error:
    ...     print(error.code, isinstance(error, RuntimeError))
    IR001 True
    >>> found = ov.IRError("rank 3 expected", code="IR301").diagnostic
    >>> found.code, found.message
    ('IR301', 'rank 3 expected')
    """

    default_code = Code.ANY

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        where: Location | None = None,
        hint: str = "",
        clause: str = "",
    ) -> None:
        super().__init__(message)
        self.message: str = one_line(message)
        self.hint: str = one_line(hint)
        self.clause: str = clause
        self.code: str = code or self.default_code
        self.where: Location | None = where
        self.causes: tuple[Cause, ...] = ()

    @property
    def diagnostic(self) -> Diagnostic:
        """The error as a finding."""
        return Diagnostic(
            self.code, self.message, self.where, hint=self.hint, causes=self.causes, clause=self.clause
        )

    def __str__(self) -> str:
        return str(self.diagnostic)


class ParseError(IRError):
    """The file cannot be read as an IR.

    >>> import ir_runtime as ov
    >>> try:
    ...     ov.read_model(b"<net>")
    ... except ov.ParseError as error:
    ...     print(error.code)
    IR002
    """

    default_code = Code.UNREADABLE


class LimitError(IRError):
    """Reading the file, or running it, exceeds a limit.

    ``limit`` is the name of the limit.

    >>> import ir_runtime as ov
    >>> ov.read_model(b"<net></net>", limits=ov.Limits(xml_bytes=5))
    Traceback (most recent call last):
        ...
    ir_runtime.errors.LimitError: <bytes>: error[IR501]: the XML has 11 bytes; the limit is 5
      hint: if you trust the file, read it with limits=ir_runtime.Limits(xml_bytes=...)
    """

    default_code = Code.LIMIT

    def __init__(self, message: str, *, limit: str = "", **how: object) -> None:
        super().__init__(message, **how)  # type: ignore[arg-type]
        self.limit = limit


class UnsupportedError(IRError):
    """The model is valid, but something in it is not supported.

    >>> import ir_runtime as ov
    >>> ov.read_fragment('<layer id="0" type="Nothing" version="opset1"><output><port id="0"/></output></layer>')
    Traceback (most recent call last):
        ...
    ir_runtime.errors.UnsupportedError: <fragment>:1: layer 'Nothing_0' (Nothing): error[IR201]: unknown operation 'Nothing' (opset1)
      hint: declare an operation of your own with ir_runtime.ops.op; see examples/custom_op
    """

    default_code = Code.UNKNOWN_OPERATION


class ValidationError(IRError):
    """The model contradicts itself or the specification; ``diagnostics`` says where.

    If there are very many, ``more`` counts the remaining ones of each kind.

    >>> import ir_runtime as ov
    >>> issubclass(ov.ValidationError, ov.IRError)
    True
    >>> report = ov.Diagnostics()
    >>> report.error("IR301", "rank 3 expected")
    >>> str(ov.ValidationError.of(report.errors))
    'error[IR301]: rank 3 expected'
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
        self.diagnostics: tuple[Diagnostic, ...] = tuple(diagnostics)
        self.more: tuple[More, ...] = tuple(more)

    @classmethod
    def of(cls, findings: Sequence[Diagnostic], more: Iterable[More] = ()) -> Self:
        """Combine findings into one error with the message of the first.

        Args:
            findings: errors.
            more: counts of findings that were not kept; used if ``findings`` has some of the same code and
                severity.
        """
        first, kinds = findings[0], {(finding.code, finding.severity) for finding in findings}
        same = [count for count in more if (count.code, count.severity) in kinds]
        return cls(first.message, code=first.code, where=first.where, diagnostics=findings, more=same)

    def __str__(self) -> str:
        return "\n".join(map(str, (*self.diagnostics, *self.more))) or super().__str__()


class InferenceError(ValidationError):
    """A layer's inputs contradict its operation; the caller adds layer and line.

    >>> from ir_runtime import InferenceError
    >>> print(InferenceError("data has rank 2, expected 3", hint="add an axis"))
    error[IR301]: data has rank 2, expected 3
      hint: add an axis
    """

    default_code = Code.CONTRADICTION


class LengthError(InferenceError, ValueError):
    """A dimension is longer than an int64 holds, as no tensor can be.

    >>> import ir_runtime as ov
    >>> ov.Dimension(1 << 63)
    Traceback (most recent call last):
        ...
    ir_runtime.errors.LengthError: error[IR308]: a dimension is longer than 9223372036854775807, the longest in a tensor
      hint: OpenVINO keeps dimensions in 64 bits, too; look for what multiplies them
    """

    default_code = Code.LENGTH


class InputError(IRError):
    """The inputs or the request do not fit the model.

    >>> import ir_runtime as ov
    >>> ov.Tensor([1, 2], ov.Shape([3]))
    Traceback (most recent call last):
        ...
    ir_runtime.errors.InputError: error[IR404]: i64[3] needs 3 elements, but the array has 2
    """

    default_code = Code.BAD_INPUT


class ExecutionError(IRError):
    """A layer failed on the data it was given.

    >>> import numpy as np
    >>> import ir_runtime as ov
    >>> from ir_runtime import opset1
    >>> x, shape = opset1.parameter([-1], np.float32), opset1.parameter([1], np.int64)
    >>> compiled = ov.compile_model(ov.Model([opset1.reshape(x, shape, False, name="again")], [x, shape]))
    >>> try:
    ...     compiled([np.ones(2, np.float32), np.array([7])])
    ... except ov.ExecutionError as error:
    ...     print(error.where.layer)
    again
    """

    default_code = Code.LAYER_FAILED
