"""Conversion of operations to activations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from ....ir.operation import Operation
from ....ir.tensor import Value
from ....ops.activation.clipped import Clamp, HardSigmoid, HSigmoid, HSwish, PReLU, ReLU
from ....ops.activation.smooth import Elu, Exp, Gelu, Gelu2, Mish, Selu, Sigmoid, SoftPlus, SoftSign, Swish
from ....ops.arithmetic.trigonometry import Tanh
from ....ops.arithmetic.unary import Erf
from ...common.layout import is_f32
from ._activation_code import ActivationKind

__all__ = ["ACTIVATION_TYPES", "Activation", "activation_of"]

_INFINITE = float("inf")


class Activation(NamedTuple):
    """An activation and its two parameters."""

    kind: ActivationKind
    a: float = 0.0
    b: float = 0.0


def activation_of(op: Operation, inputs: Sequence[Value]) -> Activation | None:
    """Return the activation that an operation applies to its first input, or ``None``."""
    if not inputs or not is_f32(*inputs) or type(op) not in _CONVERTERS:
        return None
    return _CONVERTERS[type(op)](op, inputs)


def _clamp(op: Operation, inputs: Sequence[Value]) -> Activation:
    assert isinstance(op, Clamp)
    return Activation(ActivationKind.CLAMP, op.min, op.max)


def _swish(op: Operation, inputs: Sequence[Value]) -> Activation | None:
    beta = _scalar(inputs[1]) if len(inputs) == 2 else 1.0
    return None if beta is None else Activation(ActivationKind.SWISH, beta)


def _gelu(op: Operation, inputs: Sequence[Value]) -> Activation:
    tanh = isinstance(op, Gelu) and op.approximation_mode == "tanh"
    return Activation(ActivationKind.GELU_TANH if tanh else ActivationKind.GELU)


def _elu(op: Operation, inputs: Sequence[Value]) -> Activation:
    assert isinstance(op, Elu)
    return Activation(ActivationKind.ELU, op.alpha)


def _prelu(op: Operation, inputs: Sequence[Value]) -> Activation | None:
    slope = _scalar(inputs[1])
    return None if slope is None else Activation(ActivationKind.LEAKY, slope)


def _settable(kind: ActivationKind) -> Callable[[Operation, Sequence[Value]], Activation | None]:
    """Return the converter of a function whose two numbers are inputs; they must be constant."""

    def activation(op: Operation, inputs: Sequence[Value]) -> Activation | None:
        a, b = (_scalar(value) for value in inputs[1:])
        return None if a is None or b is None else Activation(kind, a, b)

    return activation


def _scalar(value: Value) -> float | None:
    known = value.known()
    return float(known.reshape(())) if known is not None and known.size == 1 else None


def _fixed(
    kind: ActivationKind, a: float = 0.0, b: float = 0.0
) -> Callable[[Operation, Sequence[Value]], Activation | None]:
    activation = Activation(kind, a, b)
    return lambda op, inputs: activation


_CONVERTERS: dict[type[Operation], Callable[[Operation, Sequence[Value]], Activation | None]] = {
    ReLU: _fixed(ActivationKind.CLAMP, 0.0, _INFINITE),
    Clamp: _clamp,
    Sigmoid: _fixed(ActivationKind.SIGMOID),
    Swish: _swish,
    Tanh: _fixed(ActivationKind.TANH),
    Gelu: _gelu,
    Gelu2: _gelu,
    HSigmoid: _fixed(ActivationKind.HARD_SIGMOID, 1 / 6, 0.5),
    HSwish: _fixed(ActivationKind.HSWISH),
    Elu: _elu,
    Exp: _fixed(ActivationKind.EXP),
    PReLU: _prelu,
    Mish: _fixed(ActivationKind.MISH),
    Erf: _fixed(ActivationKind.ERF),
    SoftPlus: _fixed(ActivationKind.SOFTPLUS),
    SoftSign: _fixed(ActivationKind.SOFTSIGN),
    HardSigmoid: _settable(ActivationKind.HARD_LINE),
    Selu: _settable(ActivationKind.SELU),
}
ACTIVATION_TYPES = tuple(_CONVERTERS)
