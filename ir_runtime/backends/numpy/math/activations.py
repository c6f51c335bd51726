"""Functions of one number, over long rows of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from ....ir.tensor import Array, Value
from ....ops import Op
from ....ops.activation.clipped import Clamp, HSigmoid, HSwish, PReLU, ReLU
from ....ops.activation.smooth import Exp, Gelu, Gelu2, Sigmoid, Swish
from ....ops.arithmetic.trigonometry import (
    Acos,
    Acosh,
    Asin,
    Asinh,
    Atan,
    Atanh,
    Cos,
    Cosh,
    Sin,
    Sinh,
    Tan,
    Tanh,
)
from ....ops.arithmetic.unary import Abs, Ceiling, Floor, Log, Negative, Sign, Sqrt
from ...common.layout import spread
from .panels import TILED

__all__ = ["CURVES", "PLAIN", "Curve", "along", "curve_of"]

Curve: TypeAlias = Callable[[Array, Array], None]
"""Takes numbers, and where to put the results: the same place, or one of the same shape. 1-D and contiguous is best."""

# NumPy takes 0.3 µs more to add a number of Python than an array of one.
_ONE, _THREE, _SIXTH = (np.full((), number, np.float32) for number in (1, 3, 1 / 6))

# exp(-x) by AVX-512: NumPy takes half as long for powers of two, whose exponents are rounded once more.
_POWER, _EXPONENT = (np.exp2, np.float32(-1 / math.log(2))) if TILED else (np.exp, np.float32(-1))

# Of so few numbers, a pass takes no longer than the call.
FEW = 1 << 10

# Numbers at a time where there are several passes. Fewer would stay in the second cache, which gains little;
# two threads that take 32 K numbers at a time wait for each other as long as they compute.
CHUNK = 1 << 19

# Gelu is x / 2 * (1 + tanh(x * p(x * x))). Coefficients of p, lowest power first, that make of it erf(x / sqrt(2)):
# fitted to artanh(erf(z)) / z on [0, 3.95] for the least error, 6e-8, less than f32 rounds. NumPy has a
# fast tanh, but no erf; this takes a third fewer passes than any approximation of erf by exponentials.
BY_ERF = tuple(
    c / 2 ** (k + 0.5)
    for k, c in enumerate(
        (1.1283797054684537, 0.10276548146516735, -1.843837140336482e-4, -6.25719550751344e-4,
         8.971257715891538e-5, -5.985688757221799e-6, 1.5896010048731127e-7)
    )
)  # fmt: skip
BY_TANH = (math.sqrt(2 / math.pi), math.sqrt(2 / math.pi) * 0.044715)


def curve_of(op: Op, inputs: Sequence[Value]) -> Curve | None:
    """The function that an operation applies to every f32 of its first input, or ``None``."""
    if (ufunc := PLAIN.get(type(op))) is not None:
        return lambda x, out: ufunc(x, out=out)
    if type(op) not in _MAKERS or len(inputs) > 2:
        return None
    return _MAKERS[type(op)](op, inputs)


def _relu(op: Op, inputs: Sequence[Value]) -> Curve:
    return _bounded(0, math.inf)


def _prelu(op: Op, inputs: Sequence[Value]) -> Curve | None:
    """With one slope: zero, or one that is negative, would need to tell the signs apart."""
    slopes = inputs[1].known()
    if slopes is None or slopes.size != 1 or not 0 < slopes.item() < math.inf:
        return None
    slope = np.float32(slopes.item())
    choose = np.maximum if slope <= 1 else np.minimum

    def function(x: Array, scratch: Array, out: Array) -> None:
        np.multiply(x, slope, out=scratch)
        choose(x, scratch, out=out)

    return _in_chunks(function)


def _clamp(op: Op, inputs: Sequence[Value]) -> Curve:
    assert isinstance(op, Clamp)
    return _bounded(op.min, op.max)


def _bounded(lower: float, upper: float) -> Curve:
    """Both bounds in one pass, and in a third of the time of a maximum with a scalar."""
    low, high = np.float32(lower), np.float32(upper)

    def curve(x: Array, out: Array) -> None:
        x.clip(low, high, out=out)

    return curve


def along(ufunc: np.ufunc, row: Array) -> Curve:
    """A ufunc of rows, one behind the other, and ``row``."""
    tile = spread(row)
    number = row.reshape(()) if row.size == 1 else None

    def curve(x: Array, out: Array) -> None:
        if number is not None and x.size <= FEW:
            ufunc(x, number, out=out)
            return
        if x.size <= tile.size:
            ufunc(x, tile[: x.size], out=out)
            return
        whole = x.size // tile.size * tile.size
        ufunc(x[:whole].reshape(-1, tile.size), tile, out=out[:whole].reshape(-1, tile.size))
        if whole < x.size:
            ufunc(x[whole:], tile[: x.size - whole], out=out[whole:])

    return curve


def _in_chunks(function: Callable[[Array, Array, Array], None]) -> Curve:
    """Take numbers a chunk at a time; ``function`` gets numbers, scratch, and where to put results."""

    def curve(x: Array, out: Array) -> None:
        if x.size <= CHUNK:
            function(x, np.empty(x.shape, np.float32), out)
            return
        step = max(CHUNK * len(x) // x.size, 1)
        scratch = np.empty((step, *x.shape[1:]), np.float32)
        for start in range(0, len(x), step):
            part = x[start : start + step]
            function(part, scratch[: len(part)], out[start : start + step])

    return curve


def _logistic(x: Array, scratch: Array) -> None:
    """1 + exp(-x)."""
    np.multiply(x, _EXPONENT, out=scratch)
    _POWER(scratch, out=scratch)
    np.add(scratch, _ONE, out=scratch)


def _sigmoid(op: Op, inputs: Sequence[Value]) -> Curve:
    def function(x: Array, scratch: Array, out: Array) -> None:
        _logistic(x, scratch)
        np.divide(_ONE, scratch, out=out)

    return _in_chunks(function)


def _swish(op: Op, inputs: Sequence[Value]) -> Curve | None:
    if len(inputs) == 2 and (inputs[1].known() is None or inputs[1].known() != 1):
        return None

    def function(x: Array, scratch: Array, out: Array) -> None:
        _logistic(x, scratch)
        np.divide(x, scratch, out=out)

    return _in_chunks(function)


def _hard() -> Curve:
    """A straight line from 0 at -3 to 1 at 3."""
    bounded = _bounded(0, 6)

    def curve(x: Array, out: Array) -> None:
        np.add(x, _THREE, out=out)
        bounded(out, out)
        np.multiply(out, _SIXTH, out=out)

    return curve


def _hsigmoid(op: Op, inputs: Sequence[Value]) -> Curve:
    hard = _hard()
    return _in_chunks(lambda x, _, out: hard(x, out))


def _hswish(op: Op, inputs: Sequence[Value]) -> Curve:
    hard = _hard()

    def function(x: Array, scratch: Array, out: Array) -> None:
        hard(x, scratch)
        np.multiply(x, scratch, out=out)

    return _in_chunks(function)


def _gelu(op: Op, inputs: Sequence[Value]) -> Curve:
    tanh = isinstance(op, Gelu) and op.approximation_mode == "tanh"
    first, *others = reversed([np.float32(c) for c in (BY_TANH if tanh else BY_ERF)])

    def function(x: Array, scratch: Array, out: Array) -> None:
        square = np.square(x)
        np.multiply(square, first, out=scratch)
        for coefficient in others[:-1]:
            np.add(scratch, coefficient, out=scratch)
            np.multiply(scratch, square, out=scratch)
        np.add(scratch, others[-1], out=scratch)
        np.multiply(scratch, x, out=scratch)
        np.tanh(scratch, out=scratch)
        np.add(scratch, _ONE, out=scratch)
        np.multiply(scratch, np.float32(0.5), out=scratch)
        np.multiply(scratch, x, out=out)

    return _in_chunks(function)


_MAKERS: dict[type[Op], Callable[[Op, Sequence[Value]], Curve | None]] = {
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

# Those that are one ufunc, which takes numbers however they lie in memory.
PLAIN: dict[type[Op], np.ufunc] = {cls: cls.ufunc for cls in (Abs, Ceiling, Floor, Log, Negative, Sign, Sqrt)}
PLAIN |= {cls: cls.ufunc for cls in (Sin, Cos, Tan, Sinh, Cosh, Tanh)}
PLAIN |= {cls: cls.ufunc for cls in (Asin, Acos, Atan, Asinh, Acosh, Atanh)}
PLAIN[Exp] = np.exp
CURVES = (*_MAKERS, *PLAIN)
