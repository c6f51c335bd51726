"""Binary and activations, element by element."""

from __future__ import annotations

import math

import numpy as np

from ....ir.tensor import Array, Value
from ....ops import Op
from ....ops.arithmetic.binary import Divide, Maximum, Minimum
from ... import Kernel, Unary
from ...common.activations import ACTIVATIONS, broadcast_binary
from ...common.epilogue import (
    BINARY_UFUNCS,
    MINMAX_UFUNCS,
    RowEpilogue,
    RowKernel,
    binary_ufunc,
    constant_row,
)
from ...common.layout import is_f32, moved
from ...common.tape import Tape
from ...core.lengths import any_lengths
from .._backend import backend
from ..math.gemm import FINISHING, blocks_of
from ..threading.parallel import each
from ..tiling.fused_layers import Lines
from ..tiling.tiled_layer import Part
from ._chain import SMALL, Chain, mapped, shifted
from .convolution import following

__all__: list[str] = []


@backend.accelerates(*BINARY_UFUNCS, *MINMAX_UFUNCS)
def by_rows(op: Op, a: Value, b: Value) -> Kernel | None:
    """A large f32 tensor and a constant for each channel, with what follows it, block by block."""
    if not is_f32(a, b) or (ufunc := binary_ufunc(op, 0, b)) is None or not a.shape.rank or a.shape.rank < 3:
        return None
    least = math.prod(length.min for length in a.shape)
    if least <= SMALL or not b.shape.rank:
        return None
    axis, row = 1, constant_row(b, a, 1)
    if row is None:
        axis, row = -1, constant_row(b, a, -1)
    if row is None:
        return None
    run = broadcast_binary(ufunc, row)

    def compute(x: Array, finish: RowEpilogue) -> Array:
        seen = np.ascontiguousarray(moved(x, axis, -1))
        y = np.empty(seen.shape, np.float32)
        rows, out = seen.reshape(-1, row.size), y.reshape(-1, row.size)

        def work(block: slice) -> None:
            run(rows[block].reshape(-1), out[block].reshape(-1))
            finish(out[block], block.start)

        each(work, blocks_of(out), out.size * FINISHING)
        return moved(y, -1, axis)

    def calls(source: Array, out: Array, spare: Array, some: slice) -> Tape:
        return [(run, (np.ascontiguousarray(source).reshape(-1), out.reshape(-1)))]

    if axis == 1 and a.shape.rank == 4:
        return Lines((Part(None, (1, 1), row.size, 0, calls, alone=compute),), following, row.size)
    return RowKernel(lambda x, _, finish: compute(x, finish), 2, axis, accepts=any_lengths)


@backend.accelerates(*BINARY_UFUNCS, *MINMAX_UFUNCS)
def arithmetic(op: Op, a: Value, b: Value) -> Kernel | None:
    """f32; a constant on the right or, where it makes no difference, on the left. Integers by the ufunc itself."""
    if not is_f32(a, b):
        return _of_integers(op, a, b)
    if (ufunc := binary_ufunc(op, 0, b)) is None:
        return None
    if (right := shifted(ufunc, b, a)) is not None:
        return Chain(Unary(right), 2)
    if binary_ufunc(op, 1, a) and (left := shifted(ufunc, a, b)) is not None:
        return Chain(Unary(left, 1), 2)
    if a.shape.rank or b.shape.rank:
        return Chain(ufunc, 2)
    return Chain(lambda x, y: np.asarray(ufunc(x, y)), 2)


def _of_integers(op: Op, a: Value, b: Value) -> Kernel | None:
    """Most of shape arithmetic: a few numbers, for which every call counts."""
    kinds = {value.element.dtype.kind for value in (a, b)}
    if isinstance(op, Divide | Maximum | Minimum) or kinds - set("iu") or not (a.shape.rank or b.shape.rank):
        return None
    return binary_ufunc(op, 0, b)


@backend.accelerates(*ACTIVATIONS)
def activation(op: Op, data: Value, *others: Value) -> Kernel | None:
    """f32, with settings that are constant."""
    inputs = (data, *others)
    run = mapped(op, inputs) if is_f32(*inputs) else None
    return None if run is None else Chain(Unary(run), len(inputs))
