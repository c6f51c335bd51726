"""Packed epilogues: post-ops in the kernels' layout, and the functions that apply them to blocks of a result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np

from ....ir.tensor import Array
from ...common.layout import moveaxis
from ..codegen.descriptor import Descriptor, concatenate, f32, i64
from ..codegen.language import Instruction, instruction, routine, types
from ..codegen.vectors import Emit, Value
from ..threading.task import UNUSED
from ._activation_code import ActivationKind, apply_activation
from ._copy import contiguous
from ._elementwise_code import fake_quantize
from ._epilogue import MAX_EXTRAS, Epilogue, PostOpKind, TilePostOp

__all__ = [
    "EpilogueField",
    "EpilogueRecord",
    "PackedEpilogue",
    "add_rows",
    "apply_epilogue",
    "apply_post_ops",
]

# An integer, as kernels cannot use enumerations.
QUANTIZE = int(PostOpKind.QUANTIZE)
# The work per element in multiplications; 4 for kinds that are not listed.
_COSTS = {PostOpKind.ACTIVATION: 24, PostOpKind.QUANTIZE: 16}
_NO_EXTRAS = [UNUSED] * MAX_EXTRAS


class EpilogueRecord(Descriptor):
    """The header of an epilogue: whether it has a residual, bounds of the result after it, and the number of `PostOpRecord`s."""

    has_residual: i64
    low: f32
    high: f32
    post_ops: i64


EpilogueField = Annotated[EpilogueRecord, np.int64]
"""The address of an epilogue in a job."""


class PostOpRecord(Descriptor):
    """A post-op: its `PostOpKind` and `ActivationKind`, the index of its extra tensor, and the address of its row; 0 for none.

    The planes of a row are ``plane`` bytes apart. The activation has parameters ``a`` and ``b``.
    """

    kind: i64
    activation: i64
    extra: i64
    row: i64
    plane: i64
    a: f32
    b: f32


@dataclass(frozen=True)
class PackedEpilogue:
    """The post-ops of an epilogue in the kernels' layout.

    Args:
        record: an `EpilogueRecord` and the `PostOpRecord`s.
        extras: the indices of the additional inputs that are read, in this order.
        cost: the work per element, in multiplications.
        has_rows: whether a post-op has one number per column.
    """

    record: Array
    extras: tuple[int, ...]
    cost: int = 0
    has_rows: bool = False

    @classmethod
    def of(cls, epilogue: Epilogue, columns: int = 0) -> PackedEpilogue:
        """Pack an epilogue; a leading residual and bounds are kept apart from the post-ops.

        Args:
            epilogue: the epilogue.
            columns: the number of columns that the kernel computes, if more than the result has; rows are
                padded.
        """
        post_ops = [_padded(post_op, columns) for post_op in epilogue.post_ops]
        extras = tuple(post_op.extra for post_op in post_ops if post_op.extra >= 0)
        residual = bool(post_ops) and post_ops[0].kind is PostOpKind.ADD and post_ops[0].extra >= 0
        if residual:
            del post_ops[0]
        low, high = -np.inf, np.inf
        if post_ops and post_ops[0].activation.kind is ActivationKind.CLAMP:
            _, low, high = post_ops.pop(0).activation
        slots = iter(range(1 + residual, MAX_EXTRAS + 1))
        records = [
            PostOpRecord.fill(
                kind=post_op.kind, activation=post_op.activation.kind,
                extra=next(slots) if post_op.extra >= 0 else 0,
                row=post_op.row,
                plane=0 if post_op.row is None else 4 * post_op.row.shape[-1], a=post_op.activation.a,
                b=post_op.activation.b,
            )
            for post_op in post_ops
        ]  # fmt: skip
        cost = 8 + sum(_COSTS.get(post_op.kind, 4) for post_op in post_ops)
        first = EpilogueRecord.fill(has_residual=residual, low=low, high=high, post_ops=len(post_ops))
        has_rows = any(post_op.row is not None for post_op in post_ops)
        return cls(concatenate(first, *records), extras, cost, has_rows)

    def extra_arrays(self, extras: Sequence[Array], axis: int) -> list[Array]:
        """Return the additional tensors, columns last, as `MAX_EXTRAS` arrays."""
        if not self.extras:
            return _NO_EXTRAS
        found = [contiguous(moveaxis(extras[index], axis, -1)) for index in self.extras]
        return found + [UNUSED] * (MAX_EXTRAS - len(found))


def _padded(post_op: TilePostOp, columns: int) -> TilePostOp:
    row = post_op.row
    if (
        row is None
        or row.shape[-1] >= columns
        or (post_op.kind is PostOpKind.QUANTIZE and row.shape[-1] == 1)
    ):
        return post_op
    sides = [(0, 0)] * (row.ndim - 1) + [(0, columns - row.shape[-1])]
    return replace(post_op, row=np.pad(row, sides))


def _row_instruction(name: str, combine: Callable[[Emit, Value, Value], Value]) -> Instruction:
    """Return an instruction ``(out, other, count)`` that combines two rows element-wise, in place."""

    def write(emit: Emit, out: Value, other: Value, count: Value) -> None:
        for offset, load, store in emit.vectors(count):
            place = emit.at(out, offset)
            store(combine(emit, load(place), load(emit.at(other, offset))), place)

    write.__name__ = name
    return instruction(*[types.int64] * 3)(write)


add_rows = _row_instruction("add_rows", lambda emit, x, y: emit.add(x, y))
_multiply = _row_instruction("multiply_rows", lambda emit, x, y: emit.multiply(x, y))
_subtract = _row_instruction("subtract_rows", lambda emit, x, y: emit.subtract(x, y))


@routine(*[types.int64] * 9)
def apply_epilogue(  # noqa: PLR0913 (values in registers)
    epilogue: EpilogueRecord, first: int, second: int, out: int, start: int, column: int, rows: int, count: int, stride: int
) -> None:  # fmt: skip
    """Apply residual, bounds and post-ops to a stored block; see `apply_post_ops` for the parameters."""
    low, high = epilogue.low, epilogue.high
    row_count, length = rows, count
    if stride == 4 * count:  # contiguous rows are one
        row_count, length = 1, rows * count
    if epilogue.has_residual != 0:
        for row in range(row_count):
            at = start + row * stride
            add_rows(out + at, first + at, length)
    if low > -np.inf or high < np.inf:
        apply_activation(out + start, stride, row_count, length, 1, low, high)
    if epilogue.post_ops > 0:
        apply_post_ops(epilogue, first, second, out, start, column, rows, count, stride)


@routine(*[types.int64] * 9)
def apply_post_ops(  # noqa: PLR0913 (values in registers)
    epilogue: EpilogueRecord, first: int, second: int, out: int, start: int, column: int, rows: int, count: int, stride: int
) -> None:  # fmt: skip
    """Apply the post-ops to a stored block.

    Args:
        epilogue: an `EpilogueRecord` and the `PostOpRecord`s.
        first: the first extra tensor; 0 if there is none.
        second: the second one.
        out: the result.
        start: the byte offset of the block in the result and in the extra tensors.
        column: the byte offset of the block in a row.
        rows: the number of rows of the block.
        count: the number of elements in a row of the block.
        stride: the bytes between rows.
    """
    post_ops = epilogue + 8 * EpilogueRecord.words
    for stage in range(epilogue.post_ops):
        at = PostOpRecord.at(post_ops, stage)
        kind, curve, slot, row = at.kind, at.activation, at.extra, at.row
        other, apart = row + column, 0
        if slot != 0:
            other, apart = (first if slot == 1 else second) + start, stride
        lines, length = rows, count
        if kind == QUANTIZE:
            plane = at.plane
            if plane == 4 and stride == 4 * count:  # contiguous rows are one
                lines, length = 1, rows * count
            limits = row if plane == 4 else other
            fake_quantize(out + start, out + start, stride, limits, plane, 0, plane == 4, lines, length)
            continue
        if row == 0 and stride == 4 * count:  # contiguous rows are one
            lines, length = 1, rows * count
        if kind == 0:
            apply_activation(out + start, stride, lines, length, curve, at.a, at.b)
            continue
        for i in range(lines):
            target, partner = out + start + i * stride, other + i * apart
            if kind == 1:
                add_rows(target, partner, length)
            elif kind == 2:
                _multiply(target, partner, length)
            else:
                _subtract(target, partner, length)
