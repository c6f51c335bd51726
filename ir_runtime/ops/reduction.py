"""Reductions along axes: sums, means, norms, products, extremes, and logical reductions.

Floating-point sums use a wide accumulator and are rounded once. OpenVINO's reference computes f16 and bf16 in
f32 with compensated sums, which is equivalent.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from .._util.arrays import DType
from ..ir.shape import PartialShape
from ..ir.tensor import Array, Value
from ._define.bounds import Number, maximum, minimum
from ._define.operation import T_BOOLEAN, T_INDEX, Input, Op, Output, Propagated, T, attr, op
from ._lengths import axes_of, normalize_axes, reduced_shape
from .elementwise import propagate_elements
from .kernels.statistics import accumulator, compute_dtype, highest, lowest, mean, sum_along

Axes = tuple[int, ...]


class Reduction(Op):
    """Base of all reductions. A subclass defines `reduce`."""

    decisions: ClassVar[tuple[str, ...]] = (
        "empty axes leave the data unchanged, as all pages say; OpenVINO's ReduceL1 and ReduceL2 still take absolute values",
        "an axis that is repeated is refused, as the pages ask; OpenVINO reduces it once",
        "axes 0 and -1 of a scalar are its only element, as in OpenVINO; the pages do not say so",
    )

    bounded = True
    flops_per_element = 0
    flops_per_input = {"data": 1}

    data = Input(T, "tensor to reduce")
    axes = Input(T_INDEX, "axes to reduce, a scalar or 1-D; negative ones count from the end")
    reduced = Output(T, "the result, with the axes removed or of length 1")

    keep_dims: bool = attr(False, doc="whether to keep reduced axes, with length 1")

    def infer(self, data: Value, axes: Value) -> PartialShape:
        return reduced_shape(data.shape, axes, self.keep_dims, least=1)

    def evaluate(self, data: Array, axes: Array) -> Array:
        if axes.size == 0:
            return data
        along = normalize_axes(axes_of(axes), data.ndim, least=1)
        reduced = self.reduce(data, along[: data.ndim])
        return np.asarray(reduced).astype(data.dtype, copy=False)

    def propagate(self, *inputs: Value) -> Propagated:
        """Propagate contents, wrapping integers to their type."""
        contents = super().propagate(*inputs)
        if not isinstance(contents, np.ndarray) or contents.dtype != object:
            return contents
        return propagate_elements(lambda number: number, inputs[0].element, contents)

    def reduce(self, data: Array, axes: Axes) -> Array:
        """Reduce along ``axes``, which is empty only for a scalar; the result may have a wider dtype."""
        raise NotImplementedError


@op("ReduceSum-1")
class ReduceSum(Reduction):
    """Sum of ``data`` over ``axes``."""

    symbolic = True

    def reduce(self, data: Array, axes: Axes) -> Array:
        return sum_along(data, axes, self.keep_dims)


@op("ReduceMean-1")
class ReduceMean(Reduction):
    """Mean of ``data`` over ``axes``; for integers, truncated toward zero."""

    decisions = (
        "the mean of no elements is 0, as in OpenVINO; the page does not say",
        "the mean of integers is truncated toward zero, and their sum does not overflow; in OpenVINO it may",
    )

    flops_per_element = 1

    def reduce(self, data: Array, axes: Axes) -> Array:
        return mean(data, axes, self.keep_dims)


@op("ReduceL1-4")
class ReduceL1(Reduction):
    """Sum of the absolute values of ``data`` over ``axes``."""

    flops_per_element = 0
    flops_per_input = {"data": 2}

    def reduce(self, data: Array, axes: Axes) -> Array:
        return sum_along(np.abs(data), axes, self.keep_dims)


@op("ReduceL2-4")
class ReduceL2(Reduction):
    """Square root of the sum of squares of ``data`` over ``axes``; for integers, truncated toward zero."""

    flops_per_element = 1
    flops_per_input = {"data": 2}

    def reduce(self, data: Array, axes: Axes) -> Array:
        squares = np.square(data, dtype=accumulator(data.dtype))
        return np.asarray(np.sqrt(sum_along(squares, axes, self.keep_dims)))


class UfuncReduction(Reduction):
    """Base of reductions with a NumPy ufunc."""

    ufunc: ClassVar[np.ufunc]

    def reduce(self, data: Array, axes: Axes, **how: Any) -> Array:
        wide = self.compute_in(data.dtype)
        return np.asarray(self.ufunc.reduce(data, axis=axes, dtype=wide, keepdims=self.keep_dims, **how))

    def compute_in(self, dtype: DType) -> DType:
        """Return the dtype in which elements of ``dtype`` are reduced."""
        return compute_dtype(dtype)

    def reduce_bounds(self, choose: Callable[[Number, Number], Number], data: Array, axes: Axes) -> Array:
        """Reduce an array of integers and intervals with a function of two of them."""
        if not data.size:
            raise TypeError("the reduction of no elements depends on the element type")
        for axis in axes:
            data = np.asarray(np.frompyfunc(choose, 2, 1).reduce(data, axis, keepdims=True), object)
        return data if self.keep_dims else data.squeeze(axes)


@op("ReduceProd-1")
class ReduceProd(UfuncReduction):
    """Product of ``data`` over ``axes``, computed with a wide accumulator and rounded once."""

    decisions = (
        "the product of f32 is rounded once, as on the page: 1e30 * 1e30 * 1e-30 is 1e30; OpenVINO multiplies in f32, and gives infinity",
    )

    ufunc = np.multiply
    symbolic = True

    def compute_in(self, dtype: DType) -> DType:
        return accumulator(dtype)

    def propagate(self, *inputs: Value) -> Propagated:
        """Propagate contents; floating-point bounds only if no element may be negative."""
        bounds = inputs[0].bounds
        return None if bounds is not None and (bounds.lower < 0).any() else super().propagate(*inputs)


@op("ReduceMin-1")
class ReduceMin(UfuncReduction):
    """Minimum of ``data`` over ``axes``; NaN is ignored, and the minimum of no elements is the largest number."""

    decisions = (
        "NaN is passed over, as in OpenVINO's reference; the page does not mention it",
        "the minimum of nothing is the highest number, infinity of real ones, as in OpenVINO's reference; the page does not say",
    )

    ufunc = np.fmin
    symbolic = True

    def reduce(self, data: Array, axes: Axes, **how: Any) -> Array:
        if data.dtype == object:
            return self.reduce_bounds(minimum, data, axes)
        wide = compute_dtype(data.dtype)
        return super().reduce(data, axes, initial=np.inf if wide.kind == "f" else highest(wide))


@op("ReduceMax-1")
class ReduceMax(UfuncReduction):
    """Maximum of ``data`` over ``axes``; NaN is ignored, and the maximum of no elements is the lowest number."""

    decisions = (
        "NaN is passed over, as in OpenVINO's reference; the page does not mention it",
        "the maximum of nothing, and of negative infinities, is the lowest finite number, as in OpenVINO; the page does not say",
    )

    ufunc = np.fmax
    symbolic = True

    def reduce(self, data: Array, axes: Axes, **how: Any) -> Array:
        if data.dtype == object:
            return self.reduce_bounds(maximum, data, axes)
        return super().reduce(data, axes, initial=lowest(compute_dtype(data.dtype)))


class LogicalReduction(UfuncReduction):
    """Base of reductions of booleans."""

    data = Input(T_BOOLEAN, "tensor to reduce")
    reduced = Output(T_BOOLEAN, "the result, with the axes removed or of length 1")


@op("ReduceLogicalAnd-1")
class ReduceLogicalAnd(LogicalReduction):
    """Whether all elements of ``data`` are true, over ``axes``."""

    ufunc = np.logical_and


@op("ReduceLogicalOr-1")
class ReduceLogicalOr(LogicalReduction):
    """Whether any element of ``data`` is true, over ``axes``."""

    ufunc = np.logical_or
