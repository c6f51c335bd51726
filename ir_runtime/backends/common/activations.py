"""Activation functions as few NumPy passes, and binary ufuncs with a broadcast row, over long contiguous arrays."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from ...ir.operation import Operation
from ...ir.tensor import Array, Value
from ...ops.activation import Clamp, Exp, Gelu, Gelu2, HSigmoid, HSwish, PReLU, ReLU, Sigmoid, Swish
from ...ops.arithmetic import (
    Abs,
    Acos,
    Acosh,
    Asin,
    Asinh,
    Atan,
    Atanh,
    Ceiling,
    Cos,
    Cosh,
    Floor,
    Log,
    Negative,
    Sign,
    Sin,
    Sinh,
    Sqrt,
    Tan,
    Tanh,
)
from .blas import AVX512
from .layout import repeat_row

__all__ = ["ACTIVATIONS", "UFUNCS", "Activation", "activation_of", "broadcast_binary", "clip"]

Activation: TypeAlias = Callable[[Array, Array], None]
"""A function ``(x, out)`` that writes into ``out``, of the same shape and possibly the same array. Fastest for contiguous 1-D
arrays.
"""


# Adding a Python float takes NumPy 0.3 µs longer than adding an array of one element.
def _number(value: float) -> Array:
    return np.full((), value, np.float32)


_ONE, _THREE, _SIXTH = map(_number, (1, 3, 1 / 6))

# exp(-x) with AVX-512: NumPy's exp2 takes half as long as exp; scaling its argument adds one rounding.
_EXP, _EXP_SCALE = (np.exp2, _number(-1 / math.log(2))) if AVX512 else (np.exp, _number(-1))

# Up to this many elements, the call costs more than the pass.
SMALL = 1 << 10

# Elements per chunk of a function of several passes. Smaller chunks would stay in the L2 cache, but two threads
# with chunks of 32 K elements wait for each other (GIL) as long as they compute.
CHUNK = 1 << 18

# Gelu is x / 2 * (1 + tanh(x * p(x * x))), or x / (1 + exp(-2 * x * p(x * x))). Coefficients of p, lowest power first, that
# approximate erf(x / sqrt(2)): a fit of artanh(erf(z)) / z on [0, 3.95], whose error, 6e-8, is below the rounding of f32.
# NumPy has a fast exp, but no erf; this takes a third fewer passes than any approximation of erf by exponentials.
ERF_COEFFICIENTS = tuple(
    c / 2 ** (k + 0.5)
    for k, c in enumerate(
        (1.1283797054684537, 0.10276548146516735, -1.843837140336482e-4, -6.25719550751344e-4,
         8.971257715891538e-5, -5.985688757221799e-6, 1.5896010048731127e-7)
    )
)  # fmt: skip
TANH_COEFFICIENTS = (math.sqrt(2 / math.pi), math.sqrt(2 / math.pi) * 0.044715)


def activation_of(op: Operation, inputs: Sequence[Value]) -> Activation | None:
    """Return the elementwise f32 function of an activation, or ``None`` if this module has none for it or its parameters."""
    if (ufunc := UFUNCS.get(type(op))) is not None:
        return lambda x, out: ufunc(x, out=out)
    if type(op) not in _FACTORIES or len(inputs) > 2:
        return None
    return _FACTORIES[type(op)](op, inputs)


def _relu(op: Operation, inputs: Sequence[Value]) -> Activation:
    return clip(0, math.inf)


def _prelu(op: Operation, inputs: Sequence[Value]) -> Activation | None:
    """Return PReLU for a single positive slope, as ``max(x, slope * x)``, or ``min`` if the slope exceeds 1; ``None`` for others."""
    slopes = inputs[1].known()
    if slopes is None or slopes.size != 1 or not 0 < slopes.item() < math.inf:
        return None
    slope = _number(slopes.item())
    choose = np.maximum if slopes.item() <= 1 else np.minimum

    def compute(x: Array, scratch: Array, out: Array) -> None:
        np.multiply(x, slope, out=scratch)
        choose(x, scratch, out=out)

    return _run_in_chunks(compute)


def _clamp(op: Operation, inputs: Sequence[Value]) -> Activation:
    assert isinstance(op, Clamp)
    return clip(op.min, op.max)


def clip(lower: float, upper: float) -> Activation:
    """Return a function that clips to ``[lower, upper]`` in one pass, three times as fast as `numpy.maximum` with a scalar."""
    low, high = _number(lower), _number(upper)

    def activation(x: Array, out: Array) -> None:
        x.clip(low, high, out=out)

    return activation


def broadcast_binary(ufunc: Callable[..., object], row: Array) -> Activation:
    """Return an `Activation` that computes ``ufunc(x, row)`` for an ``x`` that consists of rows as long as ``row``."""
    repeated = repeat_row(row)
    number = row.reshape(()) if row.size == 1 else None

    def activation(x: Array, out: Array) -> None:
        if number is not None and x.size <= SMALL:
            ufunc(x, number, out=out)
            return
        if x.size <= repeated.size:
            ufunc(x, repeated[: x.size], out=out)
            return
        whole = x.size // repeated.size * repeated.size
        ufunc(x[:whole].reshape(-1, repeated.size), repeated, out=out[:whole].reshape(-1, repeated.size))
        if whole < x.size:
            ufunc(x[whole:], repeated[: x.size - whole], out=out[whole:])

    return activation


def _run_in_chunks(compute: Callable[[Array, Array, Array], None]) -> Activation:
    """Return an activation that calls ``compute(x, scratch, out)`` on chunks of at most `CHUNK` elements."""

    def activation(x: Array, out: Array) -> None:
        if x.size <= CHUNK:
            compute(x, np.empty(x.shape, np.float32), out)
            return
        step = max(CHUNK * len(x) // x.size, 1)
        scratch = np.empty((step, *x.shape[1:]), np.float32)
        for start in range(0, len(x), step):
            chunk = x[start : start + step]
            compute(chunk, scratch[: len(chunk)], out[start : start + step])

    return activation


def _one_plus_exp(x: Array, scratch: Array) -> None:
    """Compute 1 + exp(-x)."""
    np.multiply(x, _EXP_SCALE, out=scratch)
    _EXP(scratch, out=scratch)
    np.add(scratch, _ONE, out=scratch)


def _sigmoid(op: Operation, inputs: Sequence[Value]) -> Activation:
    def compute(x: Array, scratch: Array, out: Array) -> None:
        _one_plus_exp(x, scratch)
        np.divide(_ONE, scratch, out=out)

    return _run_in_chunks(compute)


def _swish(op: Operation, inputs: Sequence[Value]) -> Activation | None:
    if len(inputs) == 2 and (inputs[1].known() is None or inputs[1].known() != 1):
        return None

    def compute(x: Array, scratch: Array, out: Array) -> None:
        _one_plus_exp(x, scratch)
        np.divide(x, scratch, out=out)

    return _run_in_chunks(compute)


def _hard_sigmoid() -> Activation:
    """Return clip(x + 3, 0, 6) / 6."""
    bound = clip(0, 6)

    def activation(x: Array, out: Array) -> None:
        np.add(x, _THREE, out=out)
        bound(out, out)
        np.multiply(out, _SIXTH, out=out)

    return activation


def _hsigmoid(op: Operation, inputs: Sequence[Value]) -> Activation:
    hard_sigmoid = _hard_sigmoid()
    return _run_in_chunks(lambda x, _, out: hard_sigmoid(x, out))


def _hswish(op: Operation, inputs: Sequence[Value]) -> Activation:
    hard_sigmoid = _hard_sigmoid()

    def compute(x: Array, scratch: Array, out: Array) -> None:
        hard_sigmoid(x, scratch)
        np.multiply(x, scratch, out=out)

    return _run_in_chunks(compute)


def _gelu(op: Operation, inputs: Sequence[Value]) -> Activation:
    tanh = isinstance(op, Gelu) and op.approximation_mode == "tanh"
    coefficients = TANH_COEFFICIENTS if tanh else ERF_COEFFICIENTS
    first, *others = reversed([_number(2 * float(_EXP_SCALE) * c) for c in coefficients])

    def compute(x: Array, scratch: Array, out: Array) -> None:
        square = np.square(x)
        np.multiply(square, first, scratch)
        for coefficient in others[:-1]:
            np.add(scratch, coefficient, scratch)
            np.multiply(scratch, square, scratch)
        np.add(scratch, others[-1], scratch)
        np.multiply(scratch, x, scratch)
        _EXP(scratch, scratch)
        np.add(scratch, _ONE, scratch)
        np.divide(x, scratch, out)

    return _run_in_chunks(compute)


_FACTORIES: dict[type[Operation], Callable[[Operation, Sequence[Value]], Activation | None]] = {
    ReLU: _relu,
    PReLU: _prelu,
    Clamp: _clamp,
    Sigmoid: _sigmoid,
    Swish: _swish,
    HSigmoid: _hsigmoid,
    HSwish: _hswish,
    Gelu: _gelu,
    Gelu2: _gelu,
}

# Operations that are a single ufunc, which supports any strides.
UFUNCS: dict[type[Operation], np.ufunc] = {
    cls: cls.ufunc for cls in (Abs, Ceiling, Floor, Log, Negative, Sign, Sqrt)
}
UFUNCS |= {cls: cls.ufunc for cls in (Sin, Cos, Tan, Sinh, Cosh, Tanh)}
UFUNCS |= {cls: cls.ufunc for cls in (Asin, Acos, Atan, Asinh, Acosh, Atanh)}
UFUNCS[Exp] = np.exp
ACTIVATIONS = (*_FACTORIES, *UFUNCS)
