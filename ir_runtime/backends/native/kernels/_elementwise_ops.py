"""Conversion of element-wise layers to operations of `_elementwise_program`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ....ir.operation import Operation
from ....ir.shape import PartialShape
from ....ir.tensor import Array, Value
from ....ops.activation.clipped import PReLU, ReLU, known_slopes
from ....ops.arithmetic.binary import (
    Add,
    Divide,
    FloorMod,
    Maximum,
    Minimum,
    Mod,
    Multiply,
    Power,
    SquaredDifference,
    Subtract,
)
from ....ops.arithmetic.unary import Abs, Ceiling, Floor, Negative, Round, Sqrt
from ....ops.normalization import BatchNormInference, BatchNormInference1
from ....ops.quantization import FakeQuantize
from ...common.epilogue import BINARY_UFUNCS
from ...common.fake_quantize import quantize_parameters
from ...common.layout import is_f32
from ...common.post_op import PostOp, match_post_op
from ._activations import ACTIVATION_TYPES, activation_of
from ._elementwise_code import Opcode

__all__ = ["ELEMENTWISE_TYPES", "ElementwiseOp", "elementwise_op", "numpy_function", "outer_op"]

# The opcode if the result so far is the first input, and if it is the second.
_BINARY: dict[type[Operation], tuple[Opcode, Opcode]] = {
    Add: (Opcode.ADD, Opcode.ADD),
    Subtract: (Opcode.SUBTRACT, Opcode.SUBTRACT_FROM),
    Multiply: (Opcode.MULTIPLY, Opcode.MULTIPLY),
    Divide: (Opcode.DIVIDE, Opcode.DIVIDE_INTO),
    Maximum: (Opcode.MAXIMUM, Opcode.MAXIMUM_OF),
    Minimum: (Opcode.MINIMUM, Opcode.MINIMUM_OF),
    SquaredDifference: (Opcode.SQUARED_DIFFERENCE, Opcode.SQUARED_DIFFERENCE),
    Mod: (Opcode.MOD, Opcode.MOD_OF),
    FloorMod: (Opcode.FLOOR_MOD, Opcode.FLOOR_MOD_OF),
}
_UNARY: dict[type[Operation], Opcode] = {
    Abs: Opcode.ABSOLUTE,
    Negative: Opcode.NEGATIVE,
    Sqrt: Opcode.ROOT,
    Floor: Opcode.FLOOR,
    Ceiling: Opcode.CEILING,
}


ELEMENTWISE_TYPES: tuple[type[Operation], ...] = (
    *_BINARY,
    *_UNARY,
    Round,
    Power,
    FakeQuantize,
    BatchNormInference,
    BatchNormInference1,
    *ACTIVATION_TYPES,
)
"""Operations that can be part of a chain."""

_ZERO = np.float32(0)
# Operations with several constants.
_SEVERAL = (Opcode.QUANTIZE, Opcode.BATCH_NORM)
_REMAINDERS = (Opcode.MOD, Opcode.MOD_OF, Opcode.FLOOR_MOD, Opcode.FLOOR_MOD_OF)


@dataclass(frozen=True)
class ElementwiseOp:
    """One layer of a chain.

    Args:
        op: its operation.
        place: which of its inputs is the result so far.
        inputs: how many other inputs it has.
        code: its opcode.
        parameters: of an activation.
        constant: the operand, if it is constant; of a FakeQuantize, each `QuantizeParameter`, ``[10, ...]``; of a
            BatchNormInference, mean, deviation, factor and shift, ``[4, ...]``.
        paired: whether the operand is another input.
    """

    op: Operation
    place: int
    inputs: int
    code: int
    parameters: tuple[float, float] = (0.0, 0.0)
    constant: Array | None = None
    paired: bool = False

    @property
    def planes(self) -> tuple[Array, ...]:
        """Return the constant operands: several for a FakeQuantize and a BatchNormInference."""
        if self.constant is None:
            return ()
        return tuple(self.constant) if self.code in _SEVERAL else (self.constant,)

    @property
    def is_costly(self) -> bool:
        """Whether it takes several times as long as a sum."""
        return self.code in _REMAINDERS or self.code >= Opcode.ACTIVATION or len(self.planes) > 1


def numpy_function(op: Operation) -> Callable[..., Array]:
    """Return what computes a layer of f32 in NumPy: a ufunc, where it has the same results as the reference."""
    if isinstance(op, ReLU):
        return lambda x: np.maximum(x, _ZERO)
    return BINARY_UFUNCS.get(type(op)) or op.evaluate


def elementwise_op(op: Operation, inputs: Sequence[Value], place: int) -> ElementwiseOp | None:
    """Convert a layer on f32 whose input ``place`` is the result so far; ``None`` if its result may have another shape."""
    if isinstance(op, BatchNormInference | BatchNormInference1):
        return _batch_norm(op, inputs, place)
    post_op = match_post_op(op, inputs, place)
    if post_op is None:
        return None
    others, operand = post_op.extra_inputs, post_op.operand
    if isinstance(op, FakeQuantize):
        return _quantize(post_op)
    if place == 0 and (activation := activation_of(op, inputs)) is not None:
        code = Opcode.ACTIVATION + activation.kind
        return ElementwiseOp(op, place, others, code, (activation.a, activation.b))
    if (unary := _unary(op, inputs)) is not None:
        return ElementwiseOp(op, place, others, unary)
    if isinstance(op, PReLU):
        return _slopes(op, *inputs)
    if operand is None or type(op) not in _BINARY or not _broadcasts(operand.shape, post_op.data.shape):
        return None
    constant = operand.known()
    return ElementwiseOp(
        op, place, others, _BINARY[type(op)][place], constant=constant, paired=constant is None
    )


def outer_op(op: Operation, inputs: Sequence[Value]) -> ElementwiseOp | None:
    """Convert a layer on two tensors of f32 that may both broadcast; the first one counts as the result so far."""
    if type(op) not in _BINARY or not is_f32(*inputs) or getattr(op, "auto_broadcast", "") != "numpy":
        return None
    return ElementwiseOp(op, 0, 1, _BINARY[type(op)][0], paired=True)


def _quantize(post_op: PostOp) -> ElementwiseOp | None:
    parameters = quantize_parameters(post_op.op, post_op.inputs)
    if parameters is None or not _broadcasts(PartialShape(parameters.shape[1:]), post_op.data.shape):
        return None
    limits = zip(reversed(parameters.shape[1:]), reversed(list(post_op.data.shape)), strict=False)
    if any(count != 1 and dim.is_dynamic for count, dim in limits):
        return None  # an open length could broadcast, which inference refuses
    return ElementwiseOp(post_op.op, 0, post_op.extra_inputs, Opcode.QUANTIZE, constant=parameters)


def _batch_norm(
    op: BatchNormInference | BatchNormInference1, inputs: Sequence[Value], place: int
) -> ElementwiseOp | None:
    """Convert a layer whose parameters are constant, with the numbers that the reference computes of them."""
    data_place = 0 if isinstance(op, BatchNormInference) else 2
    shape = inputs[place].shape
    if place != data_place or not is_f32(*inputs) or not shape.rank:
        return None
    if not shape[min(1, shape.rank - 1)].is_static:  # an open length could broadcast, which inference refuses
        return None
    known = [value.known() for index, value in enumerate(inputs) if index != place]
    if any(array is None for array in known):
        return None
    gamma, beta, mean, variance = (array for array in known if array is not None)
    with np.errstate(invalid="ignore"):
        deviation = np.sqrt(variance + np.float32(op.epsilon))
    constant = np.stack([mean, deviation, gamma, beta]).reshape(4, -1, *[1] * (shape.rank - 2))
    if not _broadcasts(PartialShape(constant.shape[1:]), shape):
        return None
    return ElementwiseOp(op, place, 4, Opcode.BATCH_NORM, constant=constant)


def _slopes(op: PReLU, data: Value, slope: Value) -> ElementwiseOp | None:
    """Convert a layer with constant slopes; one axis is that of the channels, if it has as many."""
    known = known_slopes(data, slope)
    if known is None or not _broadcasts(PartialShape(known.shape), data.shape):
        return None
    return ElementwiseOp(op, 0, 1, Opcode.SLOPE, constant=known)


def _unary(op: Operation, inputs: Sequence[Value]) -> Opcode | None:
    if isinstance(op, Round):
        return Opcode.ROUND if op.mode == "half_to_even" else None
    if isinstance(op, Power):
        exponent = inputs[1].known()
        is_square = exponent is not None and exponent.size == 1 and exponent.reshape(-1)[0] == 2
        return Opcode.SQUARE if is_square and _broadcasts(inputs[1].shape, inputs[0].shape) else None
    return _UNARY.get(type(op))


def _broadcasts(other: PartialShape, ours: PartialShape) -> bool:
    """Return whether ``other`` probably broadcasts to ``ours``, and not the reverse; checked in each run."""
    if other.rank is None or ours.rank is None or other.rank > ours.rank:
        return False
    pairs = zip(other[::-1], ours[::-1], strict=False)
    return all(a == 1 or (a == b if a.is_static and b.is_static else b != 1) for a, b in pairs)
