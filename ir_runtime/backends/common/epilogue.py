"""Epilogues: post-ops (bias, residual, activation) applied in place to rows of a result while they are in the cache."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import TypeAlias

import numpy as np

from ...ir.operation import Operation
from ...ir.tensor import Array, Value
from ...ops.arithmetic import Add, Divide, Maximum, Minimum, Multiply, Subtract
from ...ops.elementwise import Binary
from ...ops.quantization import FakeQuantize
from .. import Kernel, KernelTemplate
from ..core.kernel import Accepts
from .activations import Activation, activation_of, broadcast_binary
from .layout import as_rows, repeat_row
from .post_op import PostOp, fake_quantize_passes, limit_rows, match_post_op

__all__ = [
    "BINARY_UFUNCS",
    "MINMAX_UFUNCS",
    "RowEpilogue",
    "RowKernel",
    "RowPostOp",
    "binary_ufunc",
    "in_place",
]


RowEpilogue: TypeAlias = Callable[[Array, int], None]
"""A function ``(rows, first)`` that updates contiguous rows of a result in place; ``first`` is the index of the first row."""


BINARY_UFUNCS: dict[type[Operation], np.ufunc] = {
    Add: np.add,
    Multiply: np.multiply,
    Subtract: np.subtract,
    Divide: np.divide,
}
MINMAX_UFUNCS: dict[type[Operation], np.ufunc] = {Maximum: np.maximum, Minimum: np.minimum}


@dataclass(frozen=True)
class RowPostOp:
    """An elementwise layer, applied in place to contiguous rows of a result.

    Args:
        inputs: the number of inputs of the layer other than the result.
        run: updates rows in place, given these and, if ``full_tensor``, the same rows of the other operand.
        full_tensor: whether the other operand has the shape of the result.
    """

    inputs: int
    run: Callable[[Array, Array], object]
    full_tensor: bool = False


@dataclass(frozen=True)
class RowKernel(KernelTemplate):
    """A kernel that computes its result in blocks of rows, and applies an epilogue to each block while it is in the cache.

    ``compute`` takes ``arity`` inputs and a `RowEpilogue`. ``axis`` is the axis of the result that rows run along. Fusing a
    layer does not change ``accepts``: the shapes of its other inputs are known to fit.
    """

    compute: Callable[..., Array]
    arity: int
    axis: int = -1
    post_ops: tuple[RowPostOp, ...] = ()
    accepts: Accepts | None = None

    def fuse(self, op: Operation, inputs: Sequence[Value], place: int) -> RowKernel | None:
        """Return a kernel that also applies ``op`` to the result, or ``None`` if it cannot."""
        post_op = row_post_op(match_post_op(op, inputs, place), self.axis)
        return None if post_op is None else replace(self, post_ops=(*self.post_ops, post_op))

    def prepare(self) -> Kernel:
        """Return a kernel that takes the inputs of ``compute``, then the other inputs of the fused layers."""
        compute, arity, bind = self.compute, self.arity, epilogue_factory(self.post_ops, self.axis)

        def kernel(*arrays: Array) -> Array:
            return compute(*arrays[:arity], bind(arrays[arity:]))

        return Kernel(kernel, accepts=self.accepts)


def epilogue_factory(post_ops: Sequence[RowPostOp], axis: int) -> Callable[[Sequence[Array]], RowEpilogue]:
    """Return a function that makes a `RowEpilogue` of post-ops, given all of their inputs other than the result, in order.

    Args:
        post_ops: the post-ops.
        axis: the axis of the result that rows run along.
    """
    if not any(post_op.full_tensor for post_op in post_ops):
        always = _row_epilogue([(post_op.run, None) for post_op in post_ops])
        return lambda extras: always
    places = list(accumulate((post_op.inputs for post_op in post_ops), initial=0))

    def bind(extras: Sequence[Array]) -> RowEpilogue:
        pairs = zip(post_ops, places, strict=False)
        return _row_epilogue(
            [(s.run, as_rows(extras[place], axis) if s.full_tensor else None) for s, place in pairs]
        )

    return bind


def _row_epilogue(pairs: Sequence[tuple[Callable[[Array, Array], object], Array | None]]) -> RowEpilogue:
    def epilogue(block: Array, first: int) -> None:
        for run, other in pairs:
            run(block, block if other is None else other[first : first + len(block)])

    return epilogue


def row_post_op(post_op: PostOp | None, axis: int) -> RowPostOp | None:
    """Return a post-op as a function of rows along ``axis`` of the result; ``None`` if there is none, or that is impossible."""
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
        return RowPostOp(post_op.extra_inputs, in_place(activation))
    if (ufunc := binary_ufunc(post_op.op, post_op.place, operand)) is None:
        return None
    if (row := post_op.row(axis)) is not None:
        return _bind_row(ufunc, row)
    if post_op.has_full_operand:
        return RowPostOp(1, lambda block, rows: ufunc(block, rows, out=block), full_tensor=True)
    return None


def _bind_row(ufunc: np.ufunc, row: Array) -> RowPostOp:
    repeated = repeat_row(row)
    many, rows = in_place(broadcast_binary(ufunc, repeated)), repeated.reshape(-1, row.size)

    def run(block: Array, other: Array) -> None:
        if block.ndim == 2 and len(block) <= len(rows):
            ufunc(block, rows[: len(block)], out=block)
        else:
            many(block, other)

    return RowPostOp(1, run)


def _quantize_rows(rows: Array) -> RowPostOp | None:
    passes = fake_quantize_passes(rows)
    return None if passes is None else RowPostOp(4, in_place(passes))


def in_place(activation: Activation) -> Callable[[Array, Array], None]:
    """Return a function for `RowPostOp.run` that applies an activation in place, and ignores its operand."""

    def run(block: Array, _: Array) -> None:
        line = block.reshape(-1)
        activation(line, line)

    return run


def binary_ufunc(op: Operation, place: int, other: Value) -> np.ufunc | None:
    """Return the ufunc that computes a binary operation as ``ufunc(data, other)``, or ``None`` if there is none.

    Subtract and Divide need the data as their first input. So do Maximum and Minimum, and a constant without NaN as the other:
    NumPy's results are NaN where either operand is, OpenVINO's only where the first is.

    Args:
        op: the operation.
        place: the index of the data among the inputs.
        other: the other input.
    """
    if not isinstance(op, Binary) or op.auto_broadcast != "numpy":
        return None
    if isinstance(op, Maximum | Minimum):
        known = other.known()
        return None if place or known is None or np.isnan(known).any() else MINMAX_UFUNCS[type(op)]
    return None if place and isinstance(op, Subtract | Divide) else BINARY_UFUNCS.get(type(op))
