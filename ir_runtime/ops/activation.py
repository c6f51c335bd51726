"""Activation functions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal

import numpy as np

from .._util.arrays import DType
from ..errors import InferenceError, ValidationError
from ..ir.dimension import Dimension
from ..ir.shape import PartialShape
from ..ir.tensor import Array, Value
from ._define.bounds import Number, maximum, minimum
from ._define.operation import T_ANY, T_FLOAT, Input, Op, Output, Propagated, T, attr, op
from ._lengths import check_one_number, check_scalar, normalize_axis
from .elementwise import Unary, contents, propagate_elements
from .kernels.special import gelu, log_softmax, sigmoid, softmax
from .kernels.statistics import compute_dtype


class Pointwise(Unary):
    """Base of elementwise activation functions. A subclass defines `apply`.

    f16 and bf16 are computed in f32, and the result is rounded once, as in OpenVINO's reference.
    """

    data = Input(T_FLOAT, "tensor of any shape")
    output = Output(T_FLOAT, "the function of each element")

    def evaluate(self, data: Array) -> Array:
        result = self.apply(data.astype(compute_dtype(data.dtype), copy=False))
        return np.asarray(result).astype(data.dtype, copy=False)

    def apply(self, x: Array) -> Array:
        """Apply the function to every element."""
        raise NotImplementedError


# Piecewise linear activations.


@op("ReLU-1", spec="activation/relu-1")
class ReLU(Pointwise):
    """``max(x, 0)`` for each element x of ``data``."""

    decisions = ("NaN stays NaN, as in OpenVINO's reference; its plugin makes it 0",)

    monotonicity = "increasing"

    data = Input(T, "tensor of any shape")
    output = Output(T, "max(x, 0) of each element x")

    def apply(self, x: Array) -> Array:
        return np.asarray(np.maximum(x, x.dtype.type(0)))

    def bounds(self, x: Number) -> Number:
        return maximum(x, 0)


@op("Clamp-1")
class Clamp(Pointwise):
    """Clip the elements of ``data`` to the range from ``min`` to ``max``.

    For integers, the bounds are rounded inward: ``min`` up, and ``max`` down.
    """

    decisions = ("NaN stays NaN, as in OpenVINO's reference; its plugin makes it 0",)

    monotonicity = "increasing"

    data = Input(T, "tensor of any shape")
    output = Output(T, "the clipped elements")

    min: float = attr(default_with_warning="0", doc="lower bound")
    max: float = attr(default_with_warning="0", doc="upper bound")

    def verify(self) -> None:
        if not self.min <= self.max:
            raise ValidationError(
                f"attribute 'min' is {self.min:g}; it must be at most 'max', which is {self.max:g}",
                clause="attribute 'min' is at most 'max'",
            )

    def apply(self, x: Array) -> Array:
        low, high = self.within(x.dtype) if x.dtype.kind in "iu" else (self.min, self.max)
        return np.asarray(np.minimum(np.maximum(x, x.dtype.type(low)), x.dtype.type(high)))

    def propagate(self, *inputs: Value) -> Propagated:
        (data,) = inputs
        numbers = contents(data)
        if data.known() is not None or numbers is None:
            return super().propagate(data)
        low, high = self.within(data.element.dtype)
        return propagate_elements(lambda x: minimum(maximum(x, low), high), data.element, numbers)

    def within(self, dtype: DType) -> tuple[int, int]:
        """Return the bounds, rounded inward and clipped to the range of an integer dtype."""
        limits = np.iinfo(dtype)
        low, high = (min(max(bound, limits.min), limits.max) for bound in (self.min, self.max))
        return math.ceil(low), math.floor(high)


@op("HSigmoid-5", spec="activation/hsigmoid-5")
class HSigmoid(Pointwise):
    """Hard sigmoid of each element of ``data``: linear from 0 at -3 to 1 at 3, constant outside."""

    def apply(self, x: Array) -> Array:
        return _hard_sigmoid(x)


@op("HSwish-4", spec="activation/hswish-4")
class HSwish(Pointwise):
    """Each element of ``data`` times its HSigmoid."""

    decisions = ("negative infinity gives NaN, its product with 0, as the formula of the page does",)

    def apply(self, x: Array) -> Array:
        return np.asarray(x * _hard_sigmoid(x))


def _hard_sigmoid(x: Array) -> Array:
    return np.asarray(np.clip(x + 3, 0, 6) / 6)


@op("HardSigmoid-1")
class HardSigmoid(Op):
    """``alpha`` x + ``beta`` for each element x of ``data``, clipped to the range from 0 to 1."""

    decisions = ("NaN becomes 1, as in OpenVINO; the page does not mention it",)

    bounded = True
    flops_per_element = 1

    data = Input(T_FLOAT, "tensor of any shape")
    alpha = Input(T_FLOAT, "slope of the line, a scalar")
    beta = Input(T_FLOAT, "height of the line at 0, a scalar")
    output = Output(T_FLOAT, "the function of each element, from 0 to 1")

    def infer(self, data: Value, alpha: Value, beta: Value) -> PartialShape:
        check_scalar(alpha, "alpha")
        check_scalar(beta, "beta")
        return data.shape

    def evaluate(self, data: Array, alpha: Array, beta: Array) -> Array:
        x, slope, height = (a.astype(compute_dtype(a.dtype), copy=False) for a in (data, alpha, beta))
        line = np.fmin(x * slope + height, 1)  # `fmin` turns NaN into 1, as OpenVINO does
        return np.asarray(np.fmax(line, 0)).astype(data.dtype, copy=False)


@op("PReLU-1", spec="activation/prelu-1")
class PReLU(Op):
    """Multiply the negative elements of ``data`` by ``slope``."""

    decisions = (
        "slope may be a scalar, and all may be integers, as in OpenVINO; the page asks for an axis and floating-point numbers",
    )

    bounded = True
    flops_per_element = 1

    data = Input(T, "tensor of any shape")
    slope = Input(T, "one number per channel, or a tensor that broadcasts to data as in NumPy", mixed=True)
    output = Output(T, "the function of each element")

    def infer(self, data: Value, slope: Value) -> PartialShape:
        x, s = data.shape, slope.shape
        if x.rank is None or s.rank is None or (s.rank == 1 and s[0].compatible(_channels(x))):
            return x
        extra = max(s.rank - x.rank, 0)
        inside = all(d.contains(1) for d in s[:extra])
        if not inside or not _stretches(PartialShape(s[extra:]), x):
            raise InferenceError(
                f"slope has shape {s}, which does not fit data {x}: one number for each of the {_channels(x)} channels "
                f"is expected, or a shape that broadcasts to that of data",
                clause="slope is one number, one for each channel, or broadcasts to data",
            )
        return x

    def evaluate(self, data: Array, slope: Array) -> Array:
        slope = _reshape_slopes(slope, data.ndim, data.shape[1] if data.ndim > 1 else 0)
        x, s = (a.astype(compute_dtype(a.dtype), copy=False) for a in (data, slope))
        result = np.where(x < 0, x * s, x).reshape(data.shape)
        return np.asarray(result).astype(data.dtype, copy=False)


def known_slopes(data: Value, slope: Value) -> Array | None:
    """Return the constant slopes of a PReLU, reshaped to broadcast to ``data``; ``None`` if unknown before a run."""
    contents, shape = slope.known(), data.shape
    if contents is None or not shape.rank:
        return None
    if contents.ndim != 1 or shape.rank == 1:
        return contents
    return _reshape_slopes(contents, shape.rank, shape[1].min) if shape[1].is_static else None


def _reshape_slopes(slope: Array, rank: int, channels: int) -> Array:
    """Reshape slopes, if there is one per channel, to broadcast along the second axis."""
    is_by_channel = slope.ndim == 1 and rank > 1 and slope.size == channels
    return slope.reshape(-1, *[1] * (rank - 2)) if is_by_channel else slope


def _stretches(shape: PartialShape, onto: PartialShape) -> bool:
    """Return whether a shape broadcasts to ``onto``, whose rank is not lower."""
    pairs = zip(shape, onto[len(onto) - len(shape) :], strict=True)
    return all(d.contains(1) or d.compatible(other) for d, other in pairs)


def _channels(shape: PartialShape) -> Dimension:
    """Return the channel dimension: the second one, or the only one; 1 for a scalar."""
    return shape[min(len(shape), 2) - 1] if len(shape) else Dimension(1)


@op("Identity-16")
class Identity(Op):
    """The tensor ``data``, unchanged."""

    flops_per_element = 0

    data = Input(T_ANY, "any tensor")
    output = Output(T_ANY, "the same tensor")

    symbolic = True

    def infer(self, data: Value) -> PartialShape:
        return data.shape

    def evaluate(self, data: Array) -> Array:
        return data


# Smooth activations, computed with exponentials.


@op("Exp-1")
class Exp(Pointwise):
    """The exponential of each element of ``data``."""

    def apply(self, x: Array) -> Array:
        return np.asarray(np.exp(x))


@op("Sigmoid-1")
class Sigmoid(Pointwise):
    """The logistic function of each element of ``data``: 1 / (1 + exp(-x))."""

    def apply(self, x: Array) -> Array:
        return sigmoid(x)


@op("SoftPlus-4", spec="activation/softplus-4")
class SoftPlus(Pointwise):
    """The logarithm of 1 plus the exponential of each element of ``data``."""

    def apply(self, x: Array) -> Array:
        return _softplus(x)


@op("Mish-4")
class Mish(Pointwise):
    """Each element of ``data`` times the hyperbolic tangent of its SoftPlus."""

    decisions = ("negative infinity gives NaN, its product with 0, as the formula of the page does",)

    def apply(self, x: Array) -> Array:
        return np.asarray(x * np.tanh(_softplus(x)))


def _softplus(x: Array) -> Array:
    return np.asarray(np.maximum(x, x.dtype.type(0)) + np.log1p(np.exp(-np.abs(x))))


@op("SoftSign-9", spec="activation/softsign-9")
class SoftSign(Pointwise):
    """Each element of ``data``, divided by 1 plus its absolute value."""

    decisions = ("infinity gives NaN, its quotient with itself, as the formula of the page does",)

    def apply(self, x: Array) -> Array:
        return np.asarray(x / (1 + np.abs(x)))


@op("Gelu-7")
class Gelu(Pointwise):
    """Each element of ``data`` times the cumulative distribution function of the standard normal distribution."""

    approximation_mode: Literal["erf", "tanh"] = attr("erf", doc="exactly, or by a hyperbolic tangent")

    def shown(self, inputs: Sequence[PartialShape], output: PartialShape) -> Mapping[str, object]:
        """Return the mode in upper case, as OpenVINO's API presents it."""
        return {"approximation_mode": self.approximation_mode.upper()}

    def apply(self, x: Array) -> Array:
        if self.approximation_mode == "tanh":
            return np.asarray(0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x))))
        return gelu(x)


@op("Gelu-2")
class Gelu2(Pointwise):
    """The same as version 7 with ``approximation_mode`` ``erf``."""

    def apply(self, x: Array) -> Array:
        return Gelu(approximation_mode="erf").apply(x)


@op("Swish-4")
class Swish(Op):
    """Each element x of ``data`` times the logistic function of ``beta`` x."""

    decisions = ("negative infinity gives NaN, its product with 0, as the formula of the page does",)

    bounded = True
    flops_per_element = 1

    data = Input(T_FLOAT, "tensor of any shape")
    beta = Input(T_FLOAT, "factor of x in the logistic function, a scalar; 1 if absent", optional=True)
    output = Output(T_FLOAT, "the function of each element")

    def infer(self, data: Value, beta: Value | None = None) -> PartialShape:
        if beta is not None:
            check_scalar(beta, "beta")
        return data.shape

    def evaluate(self, data: Array, beta: Array | None = None) -> Array:
        wide = compute_dtype(data.dtype)
        x = data.astype(wide, copy=False)
        slope = x if beta is None else x * beta.astype(wide)
        return np.asarray(x * sigmoid(slope)).astype(data.dtype, copy=False)


@op("Elu-1")
class Elu(Pointwise):
    """Replace each negative element x of ``data`` by ``alpha`` (exp(x) - 1).

    ``alpha`` may be negative, as in OpenVINO; the specification requires at least 0.
    """

    decisions = ("alpha may be negative, as in OpenVINO; the page asks for at least 0",)

    alpha: float = attr(default_with_warning="0", doc="scale of the negative part, whose limit is -alpha")

    def apply(self, x: Array) -> Array:
        return _elu(x, self.alpha)


@op("Selu-1")
class Selu(Op):
    """``lambda_`` times the Elu of ``data``.

    ``alpha`` and ``lambda_`` may be scalars, as in OpenVINO; the specification requires one dimension.
    """

    decisions = ("alpha and lambda may be scalars, as in OpenVINO; the page asks for one dimension",)

    flops_per_element = 1

    data = Input(T_FLOAT, "tensor of any shape")
    alpha = Input(T_FLOAT, "scale of the negative part of Elu, [1]")
    lambda_ = Input(T_FLOAT, "scale of the result, [1]")
    output = Output(T_FLOAT, "the function of each element")

    def infer(self, data: Value, alpha: Value, lambda_: Value) -> PartialShape:
        check_one_number(alpha, "alpha")
        check_one_number(lambda_, "lambda")
        return data.shape

    def evaluate(self, data: Array, alpha: Array, lambda_: Array) -> Array:
        x, depth, scale = (a.astype(compute_dtype(a.dtype), copy=False) for a in (data, alpha, lambda_))
        result = scale.reshape(()) * _elu(x, depth.reshape(()))
        return np.asarray(result).astype(data.dtype, copy=False)


def _elu(x: Array, alpha: Array | float) -> Array:
    return np.asarray(np.where(x > 0, x, alpha * np.expm1(x)))


# Softmax and related activations, which normalize along an axis. A scalar counts as a vector of one element, as in
# OpenVINO.


class SoftmaxBase(Pointwise):
    """Base of SoftMax and LogSoftmax."""

    decisions: ClassVar[tuple[str, ...]] = (
        "a scalar is taken for a vector of one element, as in OpenVINO; the pages ask for an axis",
        "where all elements are negative infinity the result is NaN, the difference of infinities, as in OpenVINO's reference; the pages do not say",
    )

    flops_per_element = 5  # the maximum, the difference, exp, the sum, the quotient

    axis: int = attr(1, doc="the axis of the sums; a negative one counts from the end")

    def infer(self, data: Value) -> PartialShape:
        if data.shape.rank is not None:
            normalize_axis(self.axis, max(data.shape.rank, 1))
        return data.shape


@op("SoftMax-8", spec="activation/softmax-8")
class SoftMax(SoftmaxBase):
    """Exponentials of ``data``, scaled so that they sum to 1 along ``axis``."""

    def apply(self, x: Array) -> Array:
        return softmax(np.atleast_1d(x), self.axis).reshape(x.shape)


@op("SoftMax-1", spec="activation/softmax-1")
class SoftMax1(SoftMax):
    """The same as version 8, but ``axis`` must not be negative."""

    decisions = ("an axis that is left out is 1, as the page says; OpenVINO takes 0",)

    axis: int = attr(1, ge=0, doc="the axis of the sums")


@op("LogSoftmax-5", spec="activation/log-soft-max-5")
class LogSoftmax(SoftmaxBase):
    """The logarithm of the SoftMax of ``data`` along ``axis``."""

    def apply(self, x: Array) -> Array:
        return log_softmax(np.atleast_1d(x), self.axis).reshape(x.shape)
