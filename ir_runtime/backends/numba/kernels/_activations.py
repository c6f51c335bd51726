"""Which operations are curves that can be applied as vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from ....ir.tensor import Value
from ....ops import Op
from ....ops.activation.clipped import Clamp, HSigmoid, HSwish, PReLU, ReLU
from ....ops.activation.smooth import Elu, Exp, Gelu, Gelu2, Mish, Sigmoid, Swish
from ....ops.arithmetic.trigonometry import Tanh
from ....ops.arithmetic.unary import Erf
from ...common.layout import is_f32
from ._activation_code import Curve

__all__ = ["ACTIVATIONS", "Bend", "bend_of"]

_INFINITE = float("inf")


class Bend(NamedTuple):
    """A curve and its two numbers."""

    curve: Curve
    a: float = 0.0
    b: float = 0.0


def bend_of(op: Op, inputs: Sequence[Value]) -> Bend | None:
    """The curve that an operation applies to every f32 of its first input, or ``None``."""
    if not inputs or not is_f32(*inputs) or type(op) not in _MAKERS:
        return None
    return _MAKERS[type(op)](op, inputs)


def _clamp(op: Op, inputs: Sequence[Value]) -> Bend:
    assert isinstance(op, Clamp)
    return Bend(Curve.CLAMP, op.min, op.max)


def _swish(op: Op, inputs: Sequence[Value]) -> Bend | None:
    beta = _scalar(inputs[1]) if len(inputs) == 2 else 1.0
    return None if beta is None else Bend(Curve.SWISH, beta)


def _gelu(op: Op, inputs: Sequence[Value]) -> Bend:
    tanh = isinstance(op, Gelu) and op.approximation_mode == "tanh"
    return Bend(Curve.GELU_TANH if tanh else Curve.GELU)


def _elu(op: Op, inputs: Sequence[Value]) -> Bend:
    assert isinstance(op, Elu)
    return Bend(Curve.ELU, op.alpha)


def _prelu(op: Op, inputs: Sequence[Value]) -> Bend | None:
    slope = _scalar(inputs[1])
    return None if slope is None else Bend(Curve.LEAKY, slope)


def _scalar(value: Value) -> float | None:
    known = value.known()
    return float(known.reshape(())) if known is not None and known.size == 1 else None


def _always(curve: Curve, a: float = 0.0, b: float = 0.0) -> Callable[[Op, Sequence[Value]], Bend | None]:
    bend = Bend(curve, a, b)
    return lambda op, inputs: bend


_MAKERS: dict[type[Op], Callable[[Op, Sequence[Value]], Bend | None]] = {
    ReLU: _always(Curve.CLAMP, 0.0, _INFINITE),
    Clamp: _clamp,
    Sigmoid: _always(Curve.SIGMOID),
    Swish: _swish,
    Tanh: _always(Curve.TANH),
    Gelu: _gelu,
    Gelu2: _gelu,
    HSigmoid: _always(Curve.HARD_SIGMOID, 1 / 6, 0.5),
    HSwish: _always(Curve.HSWISH),
    Elu: _elu,
    Exp: _always(Curve.EXP),
    PReLU: _prelu,
    Mish: _always(Curve.MISH),
    Erf: _always(Curve.ERF),
}
ACTIVATIONS = tuple(_MAKERS)
