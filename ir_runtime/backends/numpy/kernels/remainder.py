"""Remainders of f32, in f64: NumPy's own take fifty times as long as a division."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

from ....ir.tensor import Array, Value
from ....ops.arithmetic.binary import FloorMod, Mod
from ... import Kernel
from ...common.layout import flat_view, is_f32
from ...core.lengths import accepting, any_lengths
from .._backend import backend

__all__: list[str] = []

# Numbers of a block, whose quotients stay in the L2 cache, and numbers for which every call counts.
BLOCK, FEW = 1 << 14, 1 << 8
# Up to this quotient, that of two f32 is rounded to a whole number in f64 only if it is one, and its product with the divisor
# is exact.
LARGEST = 2.0**28


@backend.accelerates(Mod, FloorMod)
def remainder(op: Mod | FloorMod, a: Value, b: Value) -> Kernel | None:
    """Return a kernel for f32."""
    if not is_f32(a, b) or op.auto_broadcast != "numpy" or not (a.shape.rank or b.shape.rank):
        return None
    passes = _truncated if isinstance(op, Mod) else _floored

    def kernel(x: Array, y: Array) -> Array:
        shape = np.broadcast_shapes(x.shape, y.shape)
        if math.prod(shape) <= FEW:
            return op.evaluate(x, y)
        x, y = np.broadcast_to(x, shape), np.broadcast_to(y, shape)
        out = np.empty_like(x if 0 in y.strides else y)
        if x.strides == y.strides == out.strides and (flat := flat_view(out)) is not None:
            _by_blocks(passes, x.ravel("K"), y.ravel("K"), flat)
        else:
            _by_blocks(passes, x, y, out)
        return out

    return accepting(kernel, any_lengths)


def _by_blocks(passes: Callable[[Array, Array, Array, Array], None], x: Array, y: Array, out: Array) -> None:
    """Call ``passes`` with blocks of arrays of the same shape, and scratch memory for three of them."""
    memory = np.empty((3, min(BLOCK, out.size)))
    for place in _blocks(out.shape):
        block = out[place]
        scratch = memory[:, : block.size].reshape(3, *block.shape)
        passes(x[place], y[place], block, scratch)


def _blocks(shape: tuple[int, ...]) -> Iterator[tuple[int | slice, ...]]:
    """Return slices of an array, each of at most `BLOCK` numbers."""
    axis, inner = len(shape) - 1, 1
    while axis > 0 and inner * shape[axis] <= BLOCK:
        inner *= shape[axis]
        axis -= 1
    step = max(BLOCK // inner, 1)
    for first in np.ndindex(*shape[:axis]):
        for start in range(0, shape[axis], step):
            yield *first, slice(start, start + step)


def _floored(x: Array, y: Array, out: Array, scratch: Array) -> None:
    """Compute what the reference does, in its order."""
    dividend, divisor, quotient = scratch
    dividend[...], divisor[...] = x, y
    np.divide(dividend, divisor, out=quotient)
    np.floor(quotient, out=quotient)
    np.multiply(divisor, quotient, out=quotient)
    np.subtract(dividend, quotient, out=out, casting="same_kind")


def _truncated(x: Array, y: Array, out: Array, scratch: Array) -> None:
    """Compute the exact remainder; what has large quotients or is not finite, by NumPy."""
    dividend, divisor, quotient = scratch
    dividend[...], divisor[...] = x, y
    np.divide(dividend, divisor, out=quotient)
    np.trunc(quotient, out=quotient)
    flat = quotient.reshape(-1)
    small = np.dot(flat, flat) < LARGEST**2
    if small:
        np.multiply(quotient, divisor, out=quotient)
        np.subtract(dividend, quotient, out=quotient)
    if not small or not math.isfinite(np.dot(flat, flat)):
        np.fmod(x, y, out=out)
        return
    np.copysign(quotient, x, out=out, casting="same_kind")  # where it is 0
