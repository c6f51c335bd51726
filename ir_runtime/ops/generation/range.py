"""Ranges: evenly spaced numbers."""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np

from ...errors import ValidationError
from ...ir.dimension import Dimension, Interval
from ...ir.element import ElementType
from ...ir.shape import PartialShape
from ...ir.tensor import Array, Value
from .._define.operation import NUMBERS, Element, InferenceError, Input, Op, Output, T, attr, op
from .._lengths import check_scalar
from ..conversion import convert

Number: TypeAlias = int | float | Interval


class RangeBase(Op):
    """Base of the versions of Range.

    The i-th number is ``start + i * step``, computed in f32, or in f64 for f64 outputs, as in OpenVINO's
    reference. The page accumulates ``step``, as does the plugin.
    """

    flops_per_element = 2

    def count(self, start: Value, stop: Value, step: Value, element: ElementType) -> PartialShape:
        """Return the number of elements; unknown inputs give bounds or a dynamic dim."""
        ends = [
            _number(name, value, element)
            for name, value in (("start", start), ("stop", stop), ("step", step))
        ]
        first, last, by = ends
        if isinstance(by, Interval) or by is None or first is None or last is None:
            return PartialShape.dynamic(1)
        return PartialShape([_between(first, last, by)])

    def numbers(self, start: Array, stop: Array, step: Array, element: ElementType) -> Array:
        """Return the numbers, of an element type."""
        first, last, by = map(Value.constant, (start, stop, step))
        (count,) = self.count(first, last, by, element)
        index = np.arange(count.__index__())
        if element.integral:
            whole = convert(start, element) + index.astype(element.dtype) * convert(step, element)
            return np.asarray(whole, element.dtype)
        work = np.float64 if element is ElementType.f64 else np.float32
        numbers = start.astype(work) + index.astype(work) * step.astype(work)
        return np.asarray(numbers.astype(element.dtype))


def _number(name: str, value: Value, element: ElementType) -> Number | None:
    """Return a scalar, truncated if the output is integral."""
    check_scalar(value, name)
    contents = value.known()
    if contents is None:
        numbers = value.numbers()
        return numbers[0] if numbers else None
    number: int | float = contents.astype(np.float64).item() if value.element.real else int(contents)
    if not math.isfinite(number):
        raise InferenceError(f"{name} is {number}; a finite number is expected", clause=f"{name} is finite")
    if element.integral:
        number = math.trunc(number)
    if name == "step" and number == 0:
        raise InferenceError(
            f"step is 0{_truncate_bits(contents, element)}; a number above or below is expected",
            hint="an attribute 'output_type' of floating-point numbers keeps the fraction"
            if contents != 0
            else "",
            clause="step is not 0",
        )
    return number


def _truncate_bits(contents: Array, element: ElementType) -> str:
    return f", as {contents.astype(np.float64).item():g} is cut to {element.label}" if contents != 0 else ""


def _between(first: Number, last: Number, by: int | float) -> Dimension:
    if by < 0:
        first, last, by = last, first, -by
    if not isinstance(first, Interval) and not isinstance(last, Interval):
        return Dimension(max(_ceil_quotient(last - first, by), 0))
    if isinstance(first, float) or isinstance(last, float) or isinstance(by, float):
        return Dimension()
    span = last - first
    assert isinstance(span, Interval)
    return Dimension.of(span if by == 1 else span.map(lambda n: _ceil_quotient(max(n, 0), by)))


def _ceil_quotient(span: int | float, by: int | float) -> int:
    if isinstance(span, int) and isinstance(by, int):
        return -(-span // by)
    return math.ceil(span / by)


@op("Range-1")
class Range1(RangeBase):
    """Numbers from ``start`` up to, but not including, ``stop``, ``step`` apart."""

    start = Input(T, "first number, a scalar")
    stop = Input(T, "where to end, a scalar; not reached")
    step = Input(T, "distance, a scalar other than 0; a negative one counts down")
    output = Output(T, "the numbers, 1-D")

    def infer(self, start: Value, stop: Value, step: Value) -> PartialShape:
        return self.count(start, stop, step, start.element)

    def evaluate(self, start: Array, stop: Array, step: Array) -> Array:
        return self.numbers(start, stop, step, ElementType.from_dtype(start.dtype))


@op("Range-4")
class Range4(RangeBase):
    """As version 1, with inputs of any types; for integers, they are truncated first."""

    start = Input(Element("T1", NUMBERS, "any numeric type"), "first number, a scalar")
    stop = Input(Element("T2", NUMBERS, "any numeric type"), "where to end, a scalar; not reached")
    step = Input(Element("T3", NUMBERS, "any numeric type"), "distance, a scalar; a negative one counts down")
    output = Output("output_type", "the numbers, 1-D")

    output_type: ElementType = attr(doc="element type of the output, a numeric one")

    def verify(self) -> None:
        """Require a numeric type."""
        if self.output_type not in NUMBERS:
            raise ValidationError(
                f"attribute 'output_type' must be a numeric type, not {self.output_type.label}",
                clause="attribute 'output_type' is a numeric type",
            )

    def infer(self, start: Value, stop: Value, step: Value) -> PartialShape:
        return self.count(start, stop, step, self.output_type)

    def evaluate(self, start: Array, stop: Array, step: Array) -> Array:
        return self.numbers(start, stop, step, self.output_type)
