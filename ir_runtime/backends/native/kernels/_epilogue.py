"""Epilogues: layers that a kernel applies to its result while it is in the cache.

An `Epilogue` describes the layers. A `FusedKernel` fuses one layer at a time, and is prepared once, after the last one.
Leading multiplications and additions of one number per column are folded into the weights and the bias. A residual and
then bounds are applied to accumulators in registers; all other post-ops are applied to a block of the result just after
it is stored.

A `PackedEpilogue` is the `Epilogue` in the layout that compiled kernels read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Annotated, NamedTuple

import numpy as np

from ...._util.arrays import DType
from ...._util.forks import cached_property
from ....ir.element import ElementType
from ....ir.operation import Operation
from ....ir.tensor import Array, Value
from ....ops.activation import (
    Clamp,
    Elu,
    Exp,
    Gelu,
    Gelu2,
    HardSigmoid,
    HSigmoid,
    HSwish,
    Mish,
    PReLU,
    ReLU,
    Selu,
    Sigmoid,
    SoftPlus,
    SoftSign,
    Swish,
)
from ....ops.arithmetic import Add, Erf, Multiply, Subtract, Tanh
from ....ops.quantization import FakeQuantize
from ... import Kernel, KernelTemplate
from ...common.layout import is_f32, moveaxis
from ...common.post_op import PostOp, limit_rows, match_post_op
from ...core.kernel import Accepts
from ..codegen.descriptor import Descriptor, concatenate, f32, i64
from ..codegen.language import Instruction, instruction, routine, types
from ..codegen.vectors import Emit
from ..codegen.vectors import Value as Register
from ..threading.task import UNUSED
from ._copy import contiguous
from ._elementwise_code import ActivationKind, apply_activation, fake_quantize

__all__ = [
    "activation_of",
    "ACTIVATION_TYPES",
    "add_rows",
    "apply_epilogue",
    "apply_post_ops",
    "Bf16Tensors",
    "Epilogue",
    "EpilogueField",
    "FusedKernel",
    "KernelFactory",
    "MAX_EXTRAS",
    "NO_BF16",
    "PackedEpilogue",
    "PostOpKind",
    "TilePostOp",
]

_INFINITE = float("inf")


class Activation(NamedTuple):
    """An activation function with its two parameters."""

    kind: ActivationKind
    a: float = 0.0
    b: float = 0.0


def activation_of(op: Operation, inputs: Sequence[Value]) -> Activation | None:
    """Return the activation that an f32 operation applies to its first input.

    Returns ``None`` for other operations and element types, and for parameters that kernels do not support.
    """
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


def _parametric(kind: ActivationKind) -> Callable[[Operation, Sequence[Value]], Activation | None]:
    """Return the converter of an operation whose second and third inputs are the parameters of ``kind``."""

    def activation(op: Operation, inputs: Sequence[Value]) -> Activation | None:
        a, b = (_scalar(value) for value in inputs[1:])
        return None if a is None or b is None else Activation(kind, a, b)

    return activation


def _scalar(value: Value) -> float | None:
    constant = value.known()
    return float(constant.reshape(())) if constant is not None and constant.size == 1 else None


def _constant_activation(
    kind: ActivationKind, a: float = 0.0, b: float = 0.0
) -> Callable[[Operation, Sequence[Value]], Activation | None]:
    activation = Activation(kind, a, b)
    return lambda op, inputs: activation


_CONVERTERS: dict[type[Operation], Callable[[Operation, Sequence[Value]], Activation | None]] = {
    ReLU: _constant_activation(ActivationKind.CLAMP, 0.0, _INFINITE),
    Clamp: _clamp,
    Sigmoid: _constant_activation(ActivationKind.SIGMOID),
    Swish: _swish,
    Tanh: _constant_activation(ActivationKind.TANH),
    Gelu: _gelu,
    Gelu2: _gelu,
    HSigmoid: _constant_activation(ActivationKind.HARD_SIGMOID, 1 / 6, 0.5),
    HSwish: _constant_activation(ActivationKind.HSWISH),
    Elu: _elu,
    Exp: _constant_activation(ActivationKind.EXP),
    PReLU: _prelu,
    Mish: _constant_activation(ActivationKind.MISH),
    Erf: _constant_activation(ActivationKind.ERF),
    SoftPlus: _constant_activation(ActivationKind.SOFTPLUS),
    SoftSign: _constant_activation(ActivationKind.SOFTSIGN),
    HardSigmoid: _parametric(ActivationKind.HARD_LINE),
    Selu: _parametric(ActivationKind.SELU),
}
ACTIVATION_TYPES = tuple(_CONVERTERS)


# The inputs of a product, before the additional inputs of fused layers.
OPERANDS = 2
BF16, F32 = ElementType.bf16.dtype, ElementType.f32.dtype
MAX_EXTRAS = 2
"""The most tensors of the result's shape that a kernel's post-ops can read."""


class PostOpKind(IntEnum):
    """Kinds of post-ops, as numbered in kernels."""

    ACTIVATION = 0
    ADD = 1
    MULTIPLY = 2
    SUBTRACT = 3
    QUANTIZE = 4


_POST_OP_KINDS: dict[type[Operation], PostOpKind] = {
    Add: PostOpKind.ADD,
    Multiply: PostOpKind.MULTIPLY,
    Subtract: PostOpKind.SUBTRACT,
}


def _kind(post_op: PostOp) -> PostOpKind | None:
    """Return the kind of a binary post-op, or ``None`` if unsupported, such as Subtract with the result as second input."""
    return (
        None if post_op.place and isinstance(post_op.op, Subtract) else _POST_OP_KINDS.get(type(post_op.op))
    )


_IDENTITY = Activation(ActivationKind.NONE)


@dataclass(frozen=True)
class TilePostOp:
    """A fused layer that is applied to the result, not folded into the weights or the bias.

    Args:
        kind: the operation.
        activation: the activation function of an `ACTIVATION`.
        row: a constant operand that all rows share, ``[columns]``; for a FakeQuantize its parameters, ``[10, 1 or
            columns]``, in the order of `QuantizeParameter`.
        extra: the index of the operand among the additional inputs; -1 if it is none of them.
    """

    kind: PostOpKind
    activation: Activation = _IDENTITY
    row: Array | None = None
    extra: int = -1


@dataclass(frozen=True)
class Epilogue:
    """The layers fused into a kernel, in order of execution: scale, shift, post-ops.

    Args:
        scale: a factor for each column of the weights; ``None`` for 1.
        shift: the bias of each column; ``None`` for 0.
        post_ops: the layers that follow.
        inputs: the number of additional inputs of all layers.
        rounds: whether the result is rounded to bf16.
    """

    scale: Array | None = None
    shift: Array | None = None
    post_ops: tuple[TilePostOp, ...] = ()
    inputs: int = 0
    rounds: bool = False

    @property
    def residual(self) -> int:
        """The index of the additional input that the first post-op adds; -1 for none."""
        first = self.post_ops[0] if self.post_ops else None
        return first.extra if first is not None and first.kind is PostOpKind.ADD else -1

    @property
    def can_round(self) -> bool:
        """Whether no post-op but a leading residual reads a tensor of the result's shape.

        The other post-ops can then be applied to a block of f32 before it is rounded to bf16.
        """
        return all(post_op.extra in (-1, self.residual) for post_op in self.post_ops)

    @property
    def dtype(self) -> DType:
        """The dtype of the result: bf16 or f32."""
        return BF16 if self.rounds else F32

    def unfold_weights(self) -> Epilogue:
        """Return the same epilogue with scale and shift as post-ops, for kernels that do not pack weights."""
        rows = (PostOpKind.MULTIPLY, self.scale), (PostOpKind.ADD, self.shift)
        first = [TilePostOp(kind, row=np.ascontiguousarray(row)) for kind, row in rows if row is not None]
        return replace(self, scale=None, shift=None, post_ops=(*first, *self.post_ops))

    def then(self, op: Operation, inputs: Sequence[Value], place: int, axis: int) -> Epilogue | None:
        """Return the epilogue with a layer appended, or ``None`` if the layer cannot be fused.

        Args:
            op: the operation of the layer.
            inputs: its inputs.
            place: the index of the input that is the result so far.
            axis: the axis of the columns in the result.
        """
        matched = match_post_op(op, inputs, place)
        if matched is None:
            return None
        if isinstance(op, FakeQuantize):
            limits = limit_rows(op, inputs, axis)
            return None if limits is None else self._append(TilePostOp(PostOpKind.QUANTIZE, row=limits), 4)
        if matched.operand is None:
            if (activation := activation_of(op, inputs)) is None:
                return None
            return self._append(TilePostOp(PostOpKind.ACTIVATION, activation), matched.extra_inputs)
        if (kind := _kind(matched)) is None:
            return None
        if (row := matched.row(axis)) is not None:
            return self._append_row(kind, row)
        extras = sum(post_op.extra >= 0 for post_op in self.post_ops)
        if extras < MAX_EXTRAS and matched.has_full_operand:
            return self._append(TilePostOp(kind, extra=self.inputs), 1)
        return None

    def _append(self, post_op: TilePostOp, inputs: int) -> Epilogue:
        return replace(self, post_ops=(*self.post_ops, post_op), inputs=self.inputs + inputs)

    def _append_row(self, kind: PostOpKind, row: Array) -> Epilogue:
        if self.post_ops:
            return self._append(TilePostOp(kind, row=row), 1)
        if kind is PostOpKind.MULTIPLY:
            return replace(
                self,
                scale=_multiply_row(self.scale, row),
                shift=_multiply_row(self.shift, row, 0),
                inputs=self.inputs + 1,
            )
        row = -row if kind is PostOpKind.SUBTRACT else row
        return replace(self, shift=row if self.shift is None else self.shift + row, inputs=self.inputs + 1)


def _multiply_row(values: Array | None, row: Array, missing: float = 1) -> Array | None:
    """Return ``values * row``, where ``values`` of ``None`` stands for ``missing``: 1, or 0, for which it returns ``None``."""
    if values is None:
        return row if missing else None
    return values * row


class Bf16Tensors(NamedTuple):
    """Whether a kernel supports bf16 storage of its first input, of the residual, and of the result."""

    data: bool = False
    residual: bool = False
    result: bool = False


NO_BF16 = Bf16Tensors()
KernelFactory = Callable[[Epilogue], Kernel]
"""Builds a kernel that takes its own inputs, followed by the additional inputs of fused layers."""


@dataclass(frozen=True)
class FusedKernel(KernelTemplate):
    """A kernel template that fuses the layers after it into an epilogue.

    Args:
        make: builds the kernel for an epilogue.
        axis: the axis of the result that the columns of the epilogue run along.
        epilogue: the layers fused so far.
        accepts: the check of the kernel's own inputs; additional inputs of fused layers need none.
        bf16: the tensors that may be stored in bf16.
    """

    make: KernelFactory
    axis: int = -1
    epilogue: Epilogue = field(default_factory=Epilogue)
    accepts: Accepts | None = None
    bf16: Bf16Tensors = NO_BF16

    def reads_bf16(self, place: int) -> bool:
        """Return whether input ``place`` may be stored in bf16."""
        if place < OPERANDS:
            return self.bf16.data and place == 0
        return self.bf16.residual and place - OPERANDS == self.epilogue.residual

    def storing_bf16(self) -> FusedKernel | None:
        """Return this kernel with its result stored in bf16, or ``None`` if unsupported."""
        epilogue = self.epilogue
        if (
            not self.bf16.result
            or not epilogue.can_round
            or (epilogue.residual >= 0 and not self.bf16.residual)
        ):
            return None
        return replace(self, epilogue=replace(epilogue, rounds=True))

    def fuse(self, op: Operation, inputs: Sequence[Value], place: int) -> FusedKernel | None:
        """Return this kernel with ``op`` appended to its epilogue, or ``None`` if ``op`` cannot be fused."""
        epilogue = self.epilogue.then(op, inputs, place, self.axis)
        return None if epilogue is None else replace(self, epilogue=epilogue)

    @cached_property
    def _kernel(self) -> Kernel:
        kernel = self.make(self.epilogue)
        return kernel if self.accepts is None else replace(kernel, accepts=self.accepts)

    def prepare(self) -> Kernel:
        """Pack the weights, once, and return the kernel."""
        return self._kernel


# An integer, as kernels cannot use enumerations.
QUANTIZE = int(PostOpKind.QUANTIZE)
# The cost per element in multiplications; 4 for kinds that are not listed.
_COSTS = {PostOpKind.ACTIVATION: 24, PostOpKind.QUANTIZE: 16}
_NO_EXTRAS = [UNUSED] * MAX_EXTRAS


class EpilogueRecord(Descriptor):
    """The header of a packed epilogue, followed by ``post_ops`` `PostOpRecord`s.

    The result is clamped to ``low`` and ``high`` after the residual, if any, is added.
    """

    has_residual: i64
    low: f32
    high: f32
    post_ops: i64


EpilogueField = Annotated[EpilogueRecord, np.int64]
"""The address of an epilogue in a job."""


class PostOpRecord(Descriptor):
    """A packed post-op.

    ``kind`` is a `PostOpKind`, ``activation`` an `ActivationKind` with parameters ``a`` and ``b``. ``extra`` is the
    extra tensor that the post-op reads: 1, 2, or 0 for none. ``row`` is the address of its row, or 0; if the row has
    several planes, they are ``plane`` bytes apart.
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
    """An epilogue in the layout that compiled kernels read.

    Args:
        record: an `EpilogueRecord` followed by `PostOpRecord`s.
        extras: the indices of the additional inputs that the post-ops read, in order.
        cost: the cost per element, in multiplications.
        has_rows: whether a post-op reads a row of one number per column.
    """

    record: Array
    extras: tuple[int, ...]
    cost: int = 0
    has_rows: bool = False

    @classmethod
    def of(cls, epilogue: Epilogue, columns: int = 0) -> PackedEpilogue:
        """Pack an epilogue; a leading residual and a clamp after it become fields of the `EpilogueRecord`.

        Args:
            epilogue: the epilogue.
            columns: the number of columns that the kernel computes; shorter rows are padded with zeros.
        """
        post_ops = [_pad_row(post_op, columns) for post_op in epilogue.post_ops]
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
        """Return the extra tensors that the post-ops read, contiguous with ``axis`` last, padded to `MAX_EXTRAS` arrays."""
        if not self.extras:
            return _NO_EXTRAS
        tensors = [contiguous(moveaxis(extras[index], axis, -1)) for index in self.extras]
        return tensors + [UNUSED] * (MAX_EXTRAS - len(tensors))


def _pad_row(post_op: TilePostOp, columns: int) -> TilePostOp:
    row = post_op.row
    if (
        row is None
        or row.shape[-1] >= columns
        or (post_op.kind is PostOpKind.QUANTIZE and row.shape[-1] == 1)
    ):
        return post_op
    sides = [(0, 0)] * (row.ndim - 1) + [(0, columns - row.shape[-1])]
    return replace(post_op, row=np.pad(row, sides))


def _row_instruction(name: str, combine: Callable[[Emit, Register, Register], Register]) -> Instruction:
    """Return an instruction ``(out, other, count)`` that stores ``combine(out, other)`` of two rows in ``out``."""

    def write(emit: Emit, out: Register, other: Register, count: Register) -> None:
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
    """Apply the residual, the bounds and the post-ops to a block of the result in memory; parameters as in `apply_post_ops`."""
    low, high = epilogue.low, epilogue.high
    row_count, length = rows, count
    if stride == 4 * count:  # process contiguous rows as one
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
    """Apply the post-ops, without residual and bounds, to a block of the result in memory.

    Args:
        epilogue: an `EpilogueRecord` followed by `PostOpRecord`s.
        first: the address of the first extra tensor, or 0.
        second: the address of the second extra tensor, or 0.
        out: the address of the result.
        start: the byte offset of the block in the result and in the extra tensors.
        column: the byte offset of the block in the rows of post-ops.
        rows: the number of rows of the block.
        count: the number of elements in a row of the block.
        stride: the bytes between rows of the result and of the extra tensors.
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
            if plane == 4 and stride == 4 * count:  # process contiguous rows as one
                lines, length = 1, rows * count
            limits = row if plane == 4 else other
            fake_quantize(out + start, out + start, stride, limits, plane, 0, plane == 4, lines, length)
            continue
        if row == 0 and stride == 4 * count:  # process contiguous rows as one
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
