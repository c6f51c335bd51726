"""What a product with constants finishes: layers that read nothing else but it and its like.

An `Epilogue` only describes; a `Fused` kernel grows with each layer that it absorbs, and is built once,
when no more come. Multiplications and additions of one number for each column become part of the weights
and of the bias as long as nothing else came before. Of the rest, a sum with a tensor of the same shape
and bounds, in this order, are done on the sums in registers; everything else on a block of rows and
columns as soon as it is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Any

import numpy as np

from ....cached import cached_property
from ....ir.tensor import Array, Value
from ....ops import Op
from ....ops.arithmetic.binary import Add, Multiply, Subtract
from ....ops.elementwise import Binary
from ... import Kernel
from ...common.epilogue import constant_row
from ...common.layout import is_f32, moveaxis, same_shape
from ...core.lengths import Accepts, accepting
from ..codegen.language import device, instruction, routine, types
from ..codegen.memory import load_f32, load_i64
from ..codegen.vectors import Emit, Load, Store
from ..threading.task import UNUSED, contiguous
from ._activation_code import Curve, apply
from ._activations import Bend, bend_of

__all__ = ["EXTRAS", "Epilogue", "Finish", "Fused", "Make", "add_rows", "conclude", "finish"]

EXTRAS = 2
"""Tensors of the same shape that a kernel can read besides its own inputs."""


class Kind(IntEnum):
    """What a stage does with each number and its partner, if it has one."""

    CURVE = 0
    ADD = 1
    MULTIPLY = 2
    SUBTRACT = 3


_KINDS: dict[type[Op], Kind] = {Add: Kind.ADD, Multiply: Kind.MULTIPLY, Subtract: Kind.SUBTRACT}


def _kind(op: Op, place: int) -> Kind | None:
    """What a binary operation does, whose result so far is at ``place``."""
    if not isinstance(op, Binary) or op.auto_broadcast != "numpy" or (place and isinstance(op, Subtract)):
        return None
    return _KINDS.get(type(op))


_STRAIGHT = Bend(Curve.NONE)


@dataclass(frozen=True)
class Stage:
    """One layer that is neither in the weights nor in the bias.

    Args:
        kind: what it does.
        bend: the curve.
        row: what it is done with, the same for all rows.
        extra: or else, which of the other inputs it is done with.
    """

    kind: Kind
    bend: Bend = _STRAIGHT
    row: Array | None = None
    extra: int = -1


@dataclass(frozen=True)
class Epilogue:
    """What follows a product, from the sums to the result.

    Args:
        scale: what each column of the weights is multiplied with; ``None`` for 1.
        shift: what is added to each column; ``None`` for 0.
        stages: what is done then, in order.
        inputs: how many inputs the absorbed layers have besides.
    """

    scale: Array | None = None
    shift: Array | None = None
    stages: tuple[Stage, ...] = ()
    inputs: int = 0

    def then(self, op: Op, inputs: Sequence[Value], place: int, axis: int) -> Epilogue | None:
        """The same with one more layer, whose input ``place`` is the result; its columns are ``axis``."""
        ours = inputs[place]
        if not is_f32(*inputs) or ours.shape.rank is None:
            return None
        if place == 0 and (bend := bend_of(op, inputs)) is not None:
            return self._with(Stage(Kind.CURVE, bend), len(inputs) - 1)
        kind = _kind(op, place)
        if kind is None:
            return None
        other = inputs[1 - place]
        if (row := constant_row(other, ours, axis)) is not None:
            return self._by_row(kind, row)
        paired = sum(stage.extra >= 0 for stage in self.stages)
        if paired < EXTRAS and same_shape(other, ours):
            return self._with(Stage(kind, extra=self.inputs), 1)
        return None

    def _with(self, stage: Stage, inputs: int) -> Epilogue:
        return replace(self, stages=(*self.stages, stage), inputs=self.inputs + inputs)

    def _by_row(self, kind: Kind, row: Array) -> Epilogue:
        if self.stages:
            return self._with(Stage(kind, row=row), 1)
        if kind is Kind.MULTIPLY:
            return replace(
                self,
                scale=_product(self.scale, row),
                shift=_product(self.shift, row, 0),
                inputs=self.inputs + 1,
            )
        row = -row if kind is Kind.SUBTRACT else row
        return replace(self, shift=row if self.shift is None else self.shift + row, inputs=self.inputs + 1)


def _product(known: Array | None, row: Array, missing: float = 1) -> Array | None:
    if known is None:
        return row if missing else None
    return known * row


_NONE = [UNUSED] * EXTRAS


@dataclass(frozen=True)
class Finish:
    """The stages of an epilogue, as kernels read them.

    Args:
        words: bounds and stages, see `finish`.
        numbers: the bounds, then two numbers for each stage.
        extras: which of the other inputs are read, in this order.
        kept: arrays whose addresses are among the words.
        cost: how much work there is for a number, in multiplications.
    """

    words: Array
    numbers: Array
    extras: tuple[int, ...]
    kept: tuple[Array, ...] = ()
    cost: int = 0

    @classmethod
    def of(cls, epilogue: Epilogue) -> Finish:
        """Sum and bounds first, where they come first."""
        stages = list(epilogue.stages)
        extras = tuple(stage.extra for stage in stages if stage.extra >= 0)
        summed = bool(stages) and stages[0].kind is Kind.ADD and stages[0].extra >= 0
        if summed:
            del stages[0]
        bounds = (-np.inf, np.inf)
        if stages and stages[0].bend.curve is Curve.CLAMP:
            bounds = stages.pop(0).bend[1:]
        rows = [stage.row for stage in stages if stage.row is not None]
        slots = iter(range(1 + summed, EXTRAS + 1))
        words, numbers = [int(summed), len(stages)], [*bounds]
        for stage in stages:
            address = 0 if stage.row is None else stage.row.ctypes.data
            words += [stage.kind, stage.bend.curve, next(slots) if stage.extra >= 0 else 0, address]
            numbers += stage.bend[1:]
        cost = 8 + sum(24 if stage.kind is Kind.CURVE else 4 for stage in stages)
        return cls(np.array(words, np.int64), np.array(numbers, np.float32), extras, tuple(rows), cost)

    def partners(self, extras: Sequence[Array], axis: int) -> list[Array]:
        """The tensors that are read besides, their columns last: `EXTRAS` arrays."""
        if not self.extras:
            return _NONE
        found = [contiguous(moveaxis(extras[index], axis, -1)) for index in self.extras]
        return found + [UNUSED] * (EXTRAS - len(found))


# Takes what the kernel takes, and then the other inputs of absorbed layers.
Make = Callable[[Epilogue], Kernel]


@dataclass(frozen=True)
class Fused:
    """A product that grows with the layers it absorbs.

    ``make`` builds the kernel for an epilogue. The columns are ``axis`` of the result. What it says of lengths in
    ``accepts`` also holds with the layers that it absorbs: their other inputs have shapes known to fit.
    """

    make: Make
    axis: int = -1
    epilogue: Epilogue = field(default_factory=Epilogue)
    accepts: Accepts | None = None

    def absorb(self, op: Op, inputs: Sequence[Value], place: int) -> Kernel | None:
        """A kernel that also does what ``op`` does."""
        epilogue = self.epilogue.then(op, inputs, place, self.axis)
        return None if epilogue is None else replace(self, epilogue=epilogue)

    @cached_property
    def _kernel(self) -> Kernel:
        return accepting(self.make(self.epilogue), self.accepts)

    def built(self) -> Kernel:
        """The kernel itself, with the weights packed."""
        return self._kernel

    def __call__(self, *arrays: Array) -> Any:
        """Build and run, where nobody did so before."""
        return self._kernel(*arrays)


def _of_rows(name: str, how: Callable[[Emit, Any, Any], Any]) -> Any:
    """An instruction for ``count`` numbers at an address, and others at a second one."""

    def write(emit: Emit, out: Any, other: Any, count: Any) -> None:
        def body(offset: Any, load: Load, store: Store) -> None:
            place = emit.at(out, offset)
            store(how(emit, load(place), load(emit.at(other, offset))), place)

        emit.vector_loop(count, body)

    write.__name__ = name
    return instruction(*[types.int64] * 3)(write)


add_rows = _of_rows("add_rows", lambda emit, x, y: emit.add(x, y))
_multiply = _of_rows("multiply_rows", lambda emit, x, y: emit.multiply(x, y))
_subtract = _of_rows("subtract_rows", lambda emit, x, y: emit.subtract(x, y))


@device
def conclude(
    words: int, numbers: int, first: int, second: int, out: int, start: int, column: int, rows: int,
    count: int, stride: int,
) -> None:  # fmt: skip
    """Do sum and bounds, then the stages, on a block that is stored; arguments as those of `finish`."""
    low, high = load_f32(numbers, 0), load_f32(numbers, 1)
    lines, length = rows, count
    if stride == 4 * count:  # side by side, so all at once
        lines, length = 1, rows * count
    for row in range(lines):
        at = start + row * stride
        if load_i64(words, 0) != 0:
            add_rows(out + at, first + at, length)
        if low > -np.inf or high < np.inf:
            apply(out + at, length, 1, low, high)
    if load_i64(words, 1) > 0:
        finish(words, numbers, first, second, out, start, column, rows, count, stride)


@routine(*[types.int64] * 10)
def finish(
    words: int, numbers: int, first: int, second: int, out: int, start: int, column: int, rows: int,
    count: int, stride: int,
) -> None:  # fmt: skip
    """Do the stages on a block that is stored.

    Args:
        words: whether a sum came before; how many stages; of each its kind, its curve, which tensor (0:
            none), the address of its row (0: none).
        numbers: two bounds; two numbers of each stage.
        first: the first tensor that is read besides; 0 if there is none.
        second: the second one.
        out: the result.
        start: bytes from its beginning, and from those of the tensors, to the block.
        column: bytes from the beginning of a row to the block.
        rows: how many.
        count: numbers in a row of the block.
        stride: bytes between rows.
    """
    for stage in range(load_i64(words, 1)):
        at = words + 8 * (2 + 4 * stage)
        kind, curve, slot, row = load_i64(at, 0), load_i64(at, 1), load_i64(at, 2), load_i64(at, 3)
        a, b = load_f32(numbers, 2 + 2 * stage), load_f32(numbers, 3 + 2 * stage)
        other, apart = row + column, 0
        if slot != 0:
            other, apart = (first if slot == 1 else second) + start, stride
        lines, length = rows, count
        if row == 0 and stride == 4 * count:  # side by side, so all at once
            lines, length = 1, rows * count
        for i in range(lines):
            target, partner = out + start + i * stride, other + i * apart
            if kind == 0:
                apply(target, length, curve, a, b)
            elif kind == 1:
                add_rows(target, partner, length)
            elif kind == 2:
                _multiply(target, partner, length)
            else:
                _subtract(target, partner, length)
