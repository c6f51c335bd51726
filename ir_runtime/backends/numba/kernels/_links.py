"""Links of chains: what each element-wise operation is in the language of `_program`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ....ir.shape import PartialShape
from ....ir.tensor import Array, Value
from ....ops import Op
from ....ops.arithmetic.binary import (
    Add,
    Divide,
    Maximum,
    Minimum,
    Multiply,
    Power,
    SquaredDifference,
    Subtract,
)
from ....ops.arithmetic.unary import Abs, Ceiling, Floor, Negative, Round, Sqrt
from ....ops.elementwise import Binary
from ...common.layout import is_f32
from ._activations import ACTIVATIONS, bend_of
from ._program import Code

__all__ = ["LINKED", "Link", "link_of"]

# The code if the numbers so far are the first input, and if they are the second.
_PAIRS: dict[type[Op], tuple[Code, Code]] = {
    Add: (Code.ADD, Code.ADD),
    Subtract: (Code.SUBTRACT, Code.SUBTRACT_FROM),
    Multiply: (Code.MULTIPLY, Code.MULTIPLY),
    Divide: (Code.DIVIDE, Code.DIVIDE_INTO),
    Maximum: (Code.MAXIMUM, Code.MAXIMUM_OF),
    Minimum: (Code.MINIMUM, Code.MINIMUM_OF),
    SquaredDifference: (Code.SQUARED_DIFFERENCE, Code.SQUARED_DIFFERENCE),
}
_SINGLES: dict[type[Op], Code] = {
    Abs: Code.ABSOLUTE,
    Negative: Code.NEGATIVE,
    Sqrt: Code.ROOT,
    Floor: Code.FLOOR,
    Ceiling: Code.CEILING,
}


LINKED: tuple[type[Op], ...] = (*_PAIRS, *_SINGLES, Round, Power, *ACTIVATIONS)
"""The operations that may be links."""


@dataclass(frozen=True)
class Link:
    """One layer of a chain.

    Args:
        op: its operation.
        place: which of its inputs the numbers so far are.
        inputs: how many others it has.
        code: what is done, without the number of a curve.
        settings: two numbers of a curve.
        constant: the operand, if it is constant.
        paired: whether the operand is another input.
    """

    op: Op
    place: int
    inputs: int
    code: int
    settings: tuple[float, float] = (0.0, 0.0)
    constant: Array | None = None
    paired: bool = False


def link_of(op: Op, inputs: Sequence[Value], place: int) -> Link | None:
    """What a layer does to f32 numbers, its input ``place``; ``None`` if its result may have another shape."""
    if not is_f32(*inputs) or inputs[place].shape.rank is None:
        return None
    others = len(inputs) - 1
    if place == 0 and (bend := bend_of(op, inputs)) is not None:
        return Link(op, place, others, Code.CURVE + bend.curve, (bend.a, bend.b))
    if (code := _single(op, inputs)) is not None:
        return Link(op, place, others, code)
    if type(op) not in _PAIRS or not isinstance(op, Binary) or op.auto_broadcast != "numpy":
        return None
    other = inputs[1 - place]
    if not _spreads(other.shape, inputs[place].shape):
        return None
    constant = other.known()
    return Link(op, place, others, _PAIRS[type(op)][place], constant=constant, paired=constant is None)


def _single(op: Op, inputs: Sequence[Value]) -> Code | None:
    if isinstance(op, Round):
        return Code.ROUND if op.mode == "half_to_even" else None
    if isinstance(op, Power):
        exponent = inputs[1].known()
        is_square = exponent is not None and exponent.size == 1 and exponent.reshape(-1)[0] == 2
        return Code.SQUARE if is_square and _spreads(inputs[1].shape, inputs[0].shape) else None
    return _SINGLES.get(type(op))


def _spreads(other: PartialShape, ours: PartialShape) -> bool:
    """Whether a tensor probably broadcasts to another one, and not the other way round; runs find out."""
    if other.rank is None or ours.rank is None or other.rank > ours.rank:
        return False
    pairs = zip(other[::-1], ours[::-1], strict=False)
    return all(a == 1 or (a == b if a.is_static and b.is_static else b != 1) for a, b in pairs)
