"""Base classes of elementwise operations: shapes, broadcasting, and the propagation of bounds."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import numpy as np

from ..ir.dimension import Interval
from ..ir.element import ElementType
from ..ir.shape import PartialShape
from ..ir.tensor import Array, Value
from ._define.bounds import Number, fit
from ._define.operation import MAX_PROPAGATED, Input, Op, Output, Propagated, T, attr
from ._lengths import Rule, align, broadcast_shapes

__all__ = ["BROADCAST", "WRAPS", "Binary", "RealUnary", "Unary", "propagate_elements", "contents"]

WRAPS = "integers wrap around, as in OpenVINO's reference; its CPU plugin saturates 8-bit types"
"""The decision shared by sums, differences and products."""
BROADCAST = "broadcasting rule: none, as in NumPy, or of the second input to the first"


class Unary(Op):
    """Base of elementwise operations on one input. A subclass sets ``ufunc`` or overrides `evaluate`."""

    bounded = True
    flops_per_element = 1

    data = Input(T, "tensor to map")
    output = Output(T, "the result for each element")

    ufunc: ClassVar[np.ufunc]

    def infer(self, data: Value) -> PartialShape:
        return data.shape

    def refuses_lengths(self) -> bool:
        return len(self.inputs) == 1  # then inference refuses no lengths

    def evaluate(self, data: Array) -> Array:
        return np.asarray(self.ufunc(data))

    def bounds(self, x: Number) -> Number:
        """Return bounds of the result, given bounds of an integer operand."""
        return Interval()

    def propagate(self, *inputs: Value) -> Propagated:
        """Propagate contents, element by element if some elements are only bounded."""
        (data,) = inputs
        if data.known() is not None or data.bounds is not None:
            return super().propagate(data)
        return propagate_elements(self.bounds, data.element, contents(data))


class RealUnary(Unary):
    """Base of real functions of one input. Integers are computed in f64, then rounded (``rounds``) or truncated."""

    decisions: ClassVar[tuple[str, ...]] = (
        "integers are computed as real numbers, then rounded to the nearest, or truncated by Asin and Log, as in OpenVINO's reference; most pages do not say how",
    )

    rounds: ClassVar[bool] = True

    def evaluate(self, data: Array) -> Array:
        if data.dtype.kind not in "iu":
            return np.asarray(self.apply(data))
        real = self.apply(data.astype(np.float64))
        return np.asarray((np.rint(real) if self.rounds else real).astype(data.dtype))

    def apply(self, x: Array) -> Array:
        """Apply the function to floating-point elements."""
        return np.asarray(self.ufunc(x))


class Binary(Op):
    """Base of elementwise operations on two inputs. A subclass sets ``ufunc`` or overrides `compute`."""

    decisions: ClassVar[tuple[str, ...]] = (
        "auto_broadcast pdpd is read for all, as in OpenVINO, though some pages do not list it",
    )

    bounded = True
    flops_per_element = 1

    a = Input(T, "first operand")
    b = Input(T, "second operand")
    output = Output(T, "the result for each pair of elements")

    auto_broadcast: Rule = attr("numpy", doc=BROADCAST)

    ufunc: ClassVar[np.ufunc]

    def infer(self, a: Value, b: Value) -> PartialShape:
        return broadcast_shapes(
            a.shape, b.shape, self.auto_broadcast, (self.inputs[0].name, self.inputs[1].name)
        )

    def refuses_lengths(self) -> bool:
        return self.auto_broadcast != "pdpd"  # NumPy has no such rule, so `infer` must check

    def evaluate(self, a: Array, b: Array) -> Array:
        if self.auto_broadcast == "pdpd":
            b = align(b, a.ndim)
        elif self.auto_broadcast == "none" and a.shape != b.shape:
            broadcast_shapes(PartialShape(a.shape), PartialShape(b.shape), "none")  # reports the error
        return np.asarray(self.compute(a, b))

    def compute(self, a: Array, b: Array) -> Array:
        """Compute the result for arrays that broadcast by NumPy's rules."""
        return np.asarray(self.ufunc(a, b))

    def bounds(self, x: Number, y: Number) -> Number:
        """Return bounds of the result, given bounds of integer operands."""
        return Interval()

    def propagate(self, *inputs: Value) -> Propagated:
        """Propagate contents, element by element if some elements are only bounded."""
        a, b = inputs
        if a.bounds is not None or b.bounds is not None:
            return super().propagate(a, b)
        if a.known() is not None and b.known() is not None:
            return super().propagate(a, b)
        first, second = contents(a), contents(b)
        if self.auto_broadcast == "pdpd" and first is not None and second is not None:
            second = align(second, first.ndim)
        return propagate_elements(self.bounds, a.element, first, second)


def propagate_elements(
    bounds: Callable[..., Number], element: ElementType, *arrays: Array | None
) -> Array | None:
    """Apply ``bounds`` to each element of ``dtype=object`` arrays, and fit the results to the element type.

    Returns ``None`` if an array is ``None``.
    """
    if any(array is None for array in arrays):
        return None
    result = np.frompyfunc(lambda *numbers: fit(bounds(*numbers), element), len(arrays), 1)(*arrays)
    return np.asarray(result, object)


def contents(value: Value) -> Array | None:
    """Return integer or boolean contents as an array of ``dtype=object``, or ``None`` if unknown."""
    if value.data is None or value.data.size > MAX_PROPAGATED or value.element is ElementType.string:
        return None
    return value.data.astype(object) if value.data.dtype.kind in "biuO" else None
