"""Post-ops: element-wise layers that a kernel can apply to its result.

`match_post_op` describes the effect of a layer on a result; each backend lowers it to its own form.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...ir.operation import Operation
from ...ir.tensor import Array, Value
from ...ops.elementwise import Binary
from .layout import is_f32, same_shape

__all__ = ["PostOp", "constant_row", "match_post_op"]

# A longer row is not a row of channels, and not worth a copy.
MAX_COLUMNS = 1 << 22


@dataclass(frozen=True)
class PostOp:
    """An elementwise f32 layer that reads the result of a kernel.

    Args:
        op: its operation.
        inputs: the `Value` of each of its inputs.
        place: which of them is the result.
    """

    op: Operation
    inputs: tuple[Value, ...]
    place: int

    @property
    def extra_inputs(self) -> int:
        """The number of other inputs."""
        return len(self.inputs) - 1

    @property
    def data(self) -> Value:
        """The `Value` of the result."""
        return self.inputs[self.place]

    @property
    def operand(self) -> Value | None:
        """The other operand of a binary operation; ``None`` for an activation."""
        return self.inputs[1 - self.place] if isinstance(self.op, Binary) else None

    def row(self, axis: int) -> Array | None:
        """Return the operand if it is a constant that varies along ``axis`` of the result only."""
        return None if self.operand is None else constant_row(self.operand, self.data, axis)

    @property
    def has_full_operand(self) -> bool:
        """Whether the operand certainly has the result's shape."""
        return self.operand is not None and same_shape(self.operand, self.data)


def match_post_op(op: Operation, inputs: Sequence[Value], place: int) -> PostOp | None:
    """Return the post-op of an operation whose input ``place`` is a result; ``None`` unless it is element-wise on f32."""
    if not is_f32(*inputs) or inputs[place].shape.rank is None:
        return None
    if isinstance(op, Binary):
        return PostOp(op, tuple(inputs), place) if op.auto_broadcast == "numpy" else None
    return PostOp(op, tuple(inputs), place) if place == 0 else None


def constant_row(other: Value, data: Value, axis: int) -> Array | None:
    """Return a constant that varies along ``axis`` of the data only, as a row; ``None`` for others."""
    known, rank = other.known(), data.shape.rank
    if known is None or rank is None or known.ndim > rank or not rank:
        return None
    columns = data.shape[axis]
    if not columns.is_static or not 0 < columns.min <= MAX_COLUMNS:
        return None
    lengths = [1] * (rank - known.ndim) + list(known.shape)
    length = lengths.pop(axis)
    if any(n != 1 for n in lengths) or length not in (1, columns.min):
        return None
    return np.broadcast_to(known.reshape(-1), (columns.min,)).copy()
