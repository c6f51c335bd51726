"""Smooth activations, computed with exponentials."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np

from ...ir.shape import PartialShape
from ...ir.tensor import Array, Value
from .._define.operation import T_FLOAT, Input, Op, Output, attr, op
from .._lengths import check_one_number, check_scalar
from .._pointwise import Pointwise
from ..kernels.special import gelu, sigmoid
from ..kernels.statistics import compute_dtype


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

    def apply(self, x: Array) -> Array:
        return np.asarray(x * np.tanh(_softplus(x)))


def _softplus(x: Array) -> Array:
    return np.asarray(np.maximum(x, x.dtype.type(0)) + np.log1p(np.exp(-np.abs(x))))


@op("SoftSign-9", spec="activation/softsign-9")
class SoftSign(Pointwise):
    """Each element of ``data``, divided by 1 plus its absolute value."""

    def apply(self, x: Array) -> Array:
        return np.asarray(x / (1 + np.abs(x)))


@op("Gelu-7")
class Gelu(Pointwise):
    """Each element of ``data`` times the cumulative distribution function of the standard normal distribution."""

    approximation_mode: Literal["erf", "tanh"] = attr("erf", doc="exactly, or by a hyperbolic tangent")

    def shown(self, inputs: Sequence[PartialShape], output: PartialShape) -> Mapping[str, object]:
        """Return the mode in capital letters."""
        return {"approximation_mode": self.approximation_mode.upper()}

    def apply(self, x: Array) -> Array:
        if self.approximation_mode == "tanh":
            return np.asarray(0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x))))
        return gelu(x)


@op("Gelu-2")
class Gelu2(Pointwise):
    """As version 7 in ``erf`` mode."""

    def apply(self, x: Array) -> Array:
        return Gelu(approximation_mode="erf").apply(x)


@op("Swish-4")
class Swish(Op):
    """Each element of ``data`` times the logistic function of ``beta`` times it."""

    bounded = True
    flops_per_element = 1

    data = Input(T_FLOAT, "tensor of any shape")
    beta = Input(T_FLOAT, "a scalar; 1 when absent", optional=True)
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

    OpenVINO also takes a negative ``alpha``, where the page asks for at least 0.
    """

    alpha: float = attr(default_with_warning="0", doc="how far below zero the function goes")

    def apply(self, x: Array) -> Array:
        return _elu(x, self.alpha)


@op("Selu-1")
class Selu(Op):
    """``lambda_`` times the Elu of ``data``.

    OpenVINO also takes scalars as ``alpha`` and ``lambda_``, where the page asks for one dimension.
    """

    flops_per_element = 1

    data = Input(T_FLOAT, "tensor of any shape")
    alpha = Input(T_FLOAT, "how far below zero Elu goes, [1]")
    lambda_ = Input(T_FLOAT, "the scale of everything, [1]")
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
