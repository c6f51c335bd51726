"""Epilogues: the layers that a kernel computes on its result before that leaves the cache.

An `Epilogue` only describes them; a `FusedKernel` grows with each layer that it absorbs, and is built once, when no more
come. Leading multiplications and additions of one number per column are folded into the weights and the bias. Of the
post-ops, a residual and bounds, in this order, are applied to the accumulators in registers; all others to a block of
rows and columns as soon as it is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Any

from ....cached import cached_property
from ....ir.tensor import Array, Value
from ....ops import Op
from ....ops.arithmetic.binary import Add, Multiply, Subtract
from ....ops.elementwise import Binary
from ... import Kernel
from ...common.epilogue import constant_row
from ...common.layout import is_f32, same_shape
from ...core.lengths import Accepts, accepting
from ._activation_code import ActivationKind
from ._activations import Activation, activation_of

__all__ = ["MAX_EXTRAS", "Epilogue", "FusedKernel", "KernelFactory", "PostOpKind"]

MAX_EXTRAS = 2
"""How many tensors of the shape of the result the post-ops of a kernel can read."""


class PostOpKind(IntEnum):
    """What a post-op computes."""

    ACTIVATION = 0
    ADD = 1
    MULTIPLY = 2
    SUBTRACT = 3


_POST_OP_KINDS: dict[type[Op], PostOpKind] = {
    Add: PostOpKind.ADD,
    Multiply: PostOpKind.MULTIPLY,
    Subtract: PostOpKind.SUBTRACT,
}


def _kind(op: Op, place: int) -> PostOpKind | None:
    """Return what a binary operation computes if its input ``place`` is the result so far."""
    if not isinstance(op, Binary) or op.auto_broadcast != "numpy" or (place and isinstance(op, Subtract)):
        return None
    return _POST_OP_KINDS.get(type(op))


_IDENTITY = Activation(ActivationKind.NONE)


@dataclass(frozen=True)
class PostOp:
    """One layer that is folded neither into the weights nor into the bias.

    Args:
        kind: what it computes.
        activation: the function, if it is an activation.
        row: the operand, if it is the same for all rows.
        extra: else, the index of the operand among the other inputs.
    """

    kind: PostOpKind
    activation: Activation = _IDENTITY
    row: Array | None = None
    extra: int = -1


@dataclass(frozen=True)
class Epilogue:
    """The layers after a kernel.

    Args:
        scale: multiplies each column of the weights; ``None`` for 1.
        shift: is added to each column; ``None`` for 0.
        post_ops: the other layers, in order.
        inputs: how many other inputs all these layers have.
    """

    scale: Array | None = None
    shift: Array | None = None
    post_ops: tuple[PostOp, ...] = ()
    inputs: int = 0

    def then(self, op: Op, inputs: Sequence[Value], place: int, axis: int) -> Epilogue | None:
        """Append a layer whose input ``place`` is the result, with columns along ``axis``; ``None`` if that is impossible."""
        ours = inputs[place]
        if not is_f32(*inputs) or ours.shape.rank is None:
            return None
        if place == 0 and (activation := activation_of(op, inputs)) is not None:
            return self._append(PostOp(PostOpKind.ACTIVATION, activation), len(inputs) - 1)
        kind = _kind(op, place)
        if kind is None:
            return None
        other = inputs[1 - place]
        if (row := constant_row(other, ours, axis)) is not None:
            return self._append_row(kind, row)
        paired = sum(post_op.extra >= 0 for post_op in self.post_ops)
        if paired < MAX_EXTRAS and same_shape(other, ours):
            return self._append(PostOp(kind, extra=self.inputs), 1)
        return None

    def _append(self, post_op: PostOp, inputs: int) -> Epilogue:
        return replace(self, post_ops=(*self.post_ops, post_op), inputs=self.inputs + inputs)

    def _append_row(self, kind: PostOpKind, row: Array) -> Epilogue:
        if self.post_ops:
            return self._append(PostOp(kind, row=row), 1)
        if kind is PostOpKind.MULTIPLY:
            return replace(
                self,
                scale=_scaled(self.scale, row),
                shift=_scaled(self.shift, row, 0),
                inputs=self.inputs + 1,
            )
        row = -row if kind is PostOpKind.SUBTRACT else row
        return replace(self, shift=row if self.shift is None else self.shift + row, inputs=self.inputs + 1)


def _scaled(known: Array | None, row: Array, missing: float = 1) -> Array | None:
    if known is None:
        return row if missing else None
    return known * row


KernelFactory = Callable[[Epilogue], Kernel]
"""Makes a kernel that takes its own inputs, then the other inputs of absorbed layers."""


@dataclass(frozen=True)
class FusedKernel:
    """A kernel that absorbs the layers after it as an epilogue.

    ``make`` builds the kernel for an epilogue; the columns are ``axis`` of the result. ``accepts`` also holds with
    absorbed layers: their other inputs have shapes known to fit.
    """

    make: KernelFactory
    axis: int = -1
    epilogue: Epilogue = field(default_factory=Epilogue)
    accepts: Accepts | None = None

    def absorb(self, op: Op, inputs: Sequence[Value], place: int) -> Kernel | None:
        """Return a kernel that also computes ``op``, or ``None``."""
        epilogue = self.epilogue.then(op, inputs, place, self.axis)
        return None if epilogue is None else replace(self, epilogue=epilogue)

    @cached_property
    def _kernel(self) -> Kernel:
        return accepting(self.make(self.epilogue), self.accepts)

    def built(self) -> Kernel:
        """Return the kernel, with packed weights."""
        return self._kernel

    def __call__(self, *arrays: Array) -> Any:
        """Build the kernel if needed, and run it."""
        return self._kernel(*arrays)
