"""Epilogues: post-ops (bias, residual, activation) that a kernel applies in place to the rows it has just computed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate
from typing import Protocol, TypeAlias

import numpy as np

from ...ir.operation import Operation
from ...ir.tensor import Array, Value
from ...ops.arithmetic.binary import Add, Divide, Maximum, Minimum, Multiply, Subtract
from ...ops.elementwise import Binary
from ...ops.quantization import FakeQuantize
from .. import Kernel, KernelTemplate
from ..core.lengths import Accepts
from .activations import Activation, activation_of, broadcast_binary
from .fake_quantize import fake_quantize_passes, limit_rows
from .layout import as_rows, repeat_row
from .post_op import PostOp, match_post_op
from .tape import Call

__all__ = [
    "BINARY_UFUNCS",
    "MINMAX_UFUNCS",
    "OutOfPlaceEpilogue",
    "RowEpilogue",
    "RowKernel",
    "RowPostOp",
    "binary_ufunc",
    "epilogue_factory",
    "row_post_op",
]


RowEpilogue: TypeAlias = Callable[[Array, int], None]
"""Takes contiguous rows of a result and the index of the first; changes them in place."""


class OutOfPlaceEpilogue(Protocol):
    """A `RowEpilogue` that can write its result to another array; without post-ops, it copies."""

    def __call__(self, block: Array, first: int, out: Array | None = None) -> None: ...


BINARY_UFUNCS: dict[type[Operation], np.ufunc] = {
    Add: np.add,
    Multiply: np.multiply,
    Subtract: np.subtract,
    Divide: np.divide,
}
MINMAX_UFUNCS: dict[type[Operation], np.ufunc] = {Maximum: np.maximum, Minimum: np.minimum}


@dataclass(frozen=True)
class RowPostOp:
    """One element-wise layer, applied to rows; if ``full_tensor``, its other input has the shape of the result.

    ``call`` takes contiguous rows ``[..., C]``, the array for the results, which may be the same or strided, and the
    same rows of the other input.
    """

    inputs: int
    call: Callable[[Array, Array, Array], Call]
    full_tensor: bool = False


@dataclass(frozen=True)
class RowKernel(KernelTemplate):
    """A kernel that computes a matrix block by block of rows, and applies the epilogue while a block is in the cache.

    ``compute`` takes ``arity`` inputs and a `RowEpilogue`. The columns are ``axis`` of the result. ``accepts`` also
    holds with the layers that it fuses: their other inputs have shapes known to fit.
    """

    compute: Callable[..., Array]
    arity: int
    axis: int = -1
    post_ops: tuple[RowPostOp, ...] = ()
    accepts: Accepts | None = None

    def fuse(self, op: Operation, inputs: Sequence[Value], place: int) -> RowKernel | None:
        """Return a kernel that also applies ``op`` to each row, or ``None``."""
        post_op = row_post_op(match_post_op(op, inputs, place), self.axis)
        return None if post_op is None else replace(self, post_ops=(*self.post_ops, post_op))

    def prepare(self) -> Kernel:
        """Return the kernel for the run loop."""
        compute, arity, bind = self.compute, self.arity, epilogue_factory(self.post_ops, self.axis)

        def kernel(*arrays: Array) -> Array:
            return compute(*arrays[:arity], bind(arrays[arity:]))

        return Kernel(kernel, accepts=self.accepts)


def epilogue_factory(
    post_ops: Sequence[RowPostOp], axis: int
) -> Callable[[Sequence[Array]], OutOfPlaceEpilogue]:
    """Return a function from the other inputs of post-ops to the epilogue of rows, whose columns are ``axis``."""
    if not any(post_op.full_tensor for post_op in post_ops):
        always = _row_epilogue([(post_op.call, None) for post_op in post_ops])
        return lambda extras: always
    places = list(accumulate((post_op.inputs for post_op in post_ops), initial=0))

    def bind(extras: Sequence[Array]) -> OutOfPlaceEpilogue:
        pairs = zip(post_ops, places, strict=False)
        return _row_epilogue(
            [(s.call, as_rows(extras[place], axis) if s.full_tensor else None) for s, place in pairs]
        )

    return bind


def _row_epilogue(pairs: Sequence[tuple[Callable[..., Call], Array | None]]) -> OutOfPlaceEpilogue:
    last = len(pairs) - 1

    def epilogue(block: Array, first: int, out: Array | None = None) -> None:
        if out is not None and last < 0:
            np.copyto(out, block)
        for place, (call, other) in enumerate(pairs):
            to = block if out is None or place < last else out
            rows = block if other is None else other[first : first + len(block)]
            function, args = call(block, to, rows)
            function(*args)

    return epilogue


def row_post_op(post_op: PostOp | None, axis: int) -> RowPostOp | None:
    """Lower a post-op to rows whose columns are ``axis`` of the result; ``None`` if that is impossible."""
    if post_op is None:
        return None
    operand = post_op.operand
    if isinstance(post_op.op, FakeQuantize):
        rows = limit_rows(post_op.op, post_op.inputs, axis)
        return None if rows is None else _quantize_rows(rows)
    if operand is None:
        activation = activation_of(post_op.op, post_op.inputs)
        if activation is None:
            return None
        return RowPostOp(post_op.extra_inputs, partial(_call, activation, activation))
    if (ufunc := binary_ufunc(post_op.op, post_op.place, operand)) is None:
        return None
    if (row := post_op.row(axis)) is not None:
        return _with_row(ufunc, row)
    if post_op.has_full_operand:
        return RowPostOp(1, lambda block, out, rows: (ufunc, (block, rows, out)), full_tensor=True)
    return None


def _with_row(ufunc: np.ufunc, row: Array) -> RowPostOp:
    def strided(block: Array, out: Array) -> None:
        ufunc(block, row, out=out)

    repeated = repeat_row(row)
    contiguous, rows = broadcast_binary(ufunc, repeated), repeated.reshape(-1, row.size)

    def call(block: Array, out: Array, other: Array) -> Call:
        if block.ndim == 2 and len(block) <= len(rows):
            return ufunc, (block, rows[: len(block)], out)
        return _call(contiguous, strided, block, out, other)

    return RowPostOp(1, call)


def _quantize_rows(rows: Array) -> RowPostOp | None:
    passes = fake_quantize_passes(rows)
    if passes is None:
        return None

    def strided(block: Array, out: Array) -> None:
        passes(block.reshape(-1), block.reshape(-1))
        out[...] = block

    return RowPostOp(4, partial(_call, passes, strided))


def _call(contiguous: Activation, strided: Activation, block: Array, out: Array, _: Array) -> Call:
    """Return the call over 1-D views if the output is contiguous, else over strided rows."""
    if out.flags.c_contiguous:
        return contiguous, (block.reshape(-1), out.reshape(-1))
    return strided, (block, out)


def binary_ufunc(op: Operation, place: int, other: Value) -> np.ufunc | None:
    """Return the ufunc of the data and ``other`` for a binary operation, if the data, at ``place``, may come first.

    NumPy's maximum is NaN where either operand is; OpenVINO's only where the first is.
    """
    if not isinstance(op, Binary) or op.auto_broadcast != "numpy":
        return None
    if isinstance(op, Maximum | Minimum):
        known = other.known()
        return None if place or known is None or np.isnan(known).any() else MINMAX_UFUNCS[type(op)]
    return None if place and isinstance(op, Subtract | Divide) else BINARY_UFUNCS.get(type(op))
