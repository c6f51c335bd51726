"""Activations made of exponentials."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from ...errors import InferenceError
from ...ir.shape import PartialShape
from ...ir.tensor import Array, Value
from ...kernels.special import erf, sigmoid
from ...kernels.statistics import working
from .._define import Input, Op, Output, attr, op
from .._pointwise import Pointwise
from .._types import T_FLOAT


@op("Sigmoid-1")
class Sigmoid(Pointwise):
    """The logistic function of each element of ``data``: 1 / (1 + exp(-x))."""

    def apply(self, x: Array) -> Array:
        return sigmoid(x)


@op("Gelu-7")
class Gelu(Pointwise):
    """Each element of ``data`` times the share of a normal distribution below it."""

    approximation_mode: Literal["erf", "tanh"] = attr("erf", doc="exactly, or by a hyperbolic tangent")

    def apply(self, x: Array) -> Array:
        if self.approximation_mode == "tanh":
            return np.asarray(0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x))))
        wide = x.astype(np.float64)
        return np.asarray(0.5 * wide * (1 + erf(wide / math.sqrt(2))))


@op("Gelu-2")
class Gelu2(Pointwise):
    """As version 7 in ``erf`` mode."""

    def apply(self, x: Array) -> Array:
        return Gelu(approximation_mode="erf").apply(x)


@op("Swish-4")
class Swish(Op):
    """Each element of ``data`` times the logistic function of ``beta`` times it."""

    data = Input(T_FLOAT, "tensor of any shape")
    beta = Input(T_FLOAT, "a scalar; 1 when absent", optional=True)
    output = Output(T_FLOAT, "the function of each element")

    def infer(self, data: Value, beta: Value | None = None) -> PartialShape:
        if beta is not None and beta.shape.rank not in (None, 0):
            raise InferenceError(f"beta has shape {beta.shape}; it must be a scalar")
        return data.shape

    def evaluate(self, data: Array, beta: Array | None = None) -> Array:
        wide = working(data.dtype)
        x = data.astype(wide, copy=False)
        slope = x if beta is None else x * beta.astype(wide)
        return np.asarray(x * sigmoid(slope)).astype(data.dtype, copy=False)
