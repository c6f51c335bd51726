"""Epilogues: post-ops (bias, residual, activation) that a kernel applies in place to the rows it has just computed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate
from typing import Protocol, TypeAlias

import numpy as np

from ...ir.tensor import Array, Value
from ...ops import Op
from ...ops.arithmetic.binary import Add, Divide, Maximum, Minimum, Multiply, Subtract
from ...ops.elementwise import Binary
from .. import Kernel
from ..core.lengths import Accepts, accepting
from .activations import Activation, activation_of, broadcast_binary
from .layout import as_rows, is_f32, same_shape
from .tape import Call

__all__ = [
    "BINARY_UFUNCS",
    "MINMAX_UFUNCS",
    "OutOfPlaceEpilogue",
    "PostOp",
    "RowEpilogue",
    "RowKernel",
    "binary_ufunc",
    "constant_row",
    "epilogue_factory",
    "match_post_op",
]


RowEpilogue: TypeAlias = Callable[[Array, int], None]
"""Takes contiguous rows of a result and the index of the first; changes them in place."""


class OutOfPlaceEpilogue(Protocol):
    """A `RowEpilogue` that can write the result of its last post-op to another array."""

    def __call__(self, block: Array, first: int, out: Array | None = None) -> None: ...


BINARY_UFUNCS: dict[type[Op], np.ufunc] = {
    Add: np.add,
    Multiply: np.multiply,
    Subtract: np.subtract,
    Divide: np.divide,
}
MINMAX_UFUNCS: dict[type[Op], np.ufunc] = {Maximum: np.maximum, Minimum: np.minimum}


@dataclass(frozen=True)
class PostOp:
    """One element-wise layer, applied to rows; if ``full_tensor``, its other input has the shape of the result.

    ``call`` takes contiguous rows ``[..., C]``, the array for the results, which may be the same or strided, and the
    same rows of the other input.
    """

    inputs: int
    call: Callable[[Array, Array, Array], Call]
    full_tensor: bool = False
    for_channels: Callable[[slice], PostOp] | None = None
    """Returns the post-op for some of the channels, where it depends on the channel."""

    def part(self, channels: slice) -> PostOp:
        """Return the post-op for some of the channels."""
        return self if self.for_channels is None else self.for_channels(channels)


@dataclass(frozen=True)
class RowKernel:
    """A kernel that computes a matrix block by block of rows, and applies the epilogue while a block is in the cache.

    ``compute`` takes ``arity`` inputs and a `RowEpilogue`. The columns are ``axis`` of the result. ``accepts`` also
    holds with the layers that it absorbs: their other inputs have shapes known to fit.
    """

    compute: Callable[..., Array]
    arity: int
    axis: int = -1
    post_ops: tuple[PostOp, ...] = ()
    accepts: Accepts | None = None

    def absorb(self, op: Op, inputs: Sequence[Value], place: int) -> Kernel | None:
        """Return a kernel that also applies ``op`` to each row, or ``None``."""
        post_op = match_post_op(op, inputs, place, self.axis)
        return None if post_op is None else replace(self, post_ops=(*self.post_ops, post_op))

    def __call__(self, *arrays: Array) -> Array:
        """Build and run the kernel; compiled models call what `built` returns."""
        return self.built()(*arrays)

    def built(self) -> Callable[..., Array]:
        """Return the kernel for the run loop."""
        compute, arity, bind = self.compute, self.arity, epilogue_factory(self.post_ops, self.axis)

        def kernel(*arrays: Array) -> Array:
            return compute(*arrays[:arity], bind(arrays[arity:]))

        return accepting(kernel, self.accepts)


def epilogue_factory(
    post_ops: Sequence[PostOp], axis: int
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
        for place, (call, other) in enumerate(pairs):
            to = block if out is None or place < last else out
            rows = block if other is None else other[first : first + len(block)]
            function, args = call(block, to, rows)
            function(*args)

    return epilogue


def match_post_op(op: Op, inputs: Sequence[Value], place: int, axis: int) -> PostOp | None:
    """Return the post-op that applies an operation to each row of its input ``place``, or ``None``."""
    data = inputs[place]
    if not is_f32(*inputs) or data.shape.rank is None:
        return None
    if place == 0 and (activation := activation_of(op, inputs)) is not None:
        return PostOp(len(inputs) - 1, partial(_call, activation, activation))
    if len(inputs) != 2:
        return None
    other = inputs[1 - place]
    if (ufunc := binary_ufunc(op, place, other)) is None:
        return None
    if (row := constant_row(other, data, axis)) is not None:
        return _row_post_op(ufunc, row)
    if same_shape(other, data):
        return PostOp(1, lambda block, out, rows: (ufunc, (block, rows, out)), full_tensor=True)
    return None


def _row_post_op(ufunc: np.ufunc, row: Array) -> PostOp:
    def strided(block: Array, out: Array) -> None:
        ufunc(block, row, out=out)

    call = partial(_call, broadcast_binary(ufunc, row), strided)
    return PostOp(1, call, for_channels=lambda channels: _row_post_op(ufunc, row[channels]))


def _call(contiguous: Activation, strided: Activation, block: Array, out: Array, _: Array) -> Call:
    """Return the call over 1-D views if the output is contiguous, else over strided rows."""
    if out.flags.c_contiguous:
        return contiguous, (block.reshape(-1), out.reshape(-1))
    return strided, (block, out)


def binary_ufunc(op: Op, place: int, other: Value) -> np.ufunc | None:
    """Return the ufunc of the data and ``other`` for a binary operation, if the data, at ``place``, may come first.

    NumPy's maximum is NaN where either operand is; OpenVINO's only where the first is.
    """
    if not isinstance(op, Binary) or op.auto_broadcast != "numpy":
        return None
    if isinstance(op, Maximum | Minimum):
        known = other.known()
        return None if place or known is None or np.isnan(known).any() else MINMAX_UFUNCS[type(op)]
    return None if place and isinstance(op, Subtract | Divide) else BINARY_UFUNCS.get(type(op))


# A longer row is not a row of channels, and not worth a copy.
MAX_COLUMNS = 1 << 22


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
