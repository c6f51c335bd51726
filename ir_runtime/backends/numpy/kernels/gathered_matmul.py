"""Matrix products with matrices of a table that indices choose, as the experts of a mixture: read where they are.

Without the pattern, Gather copies the matrices of every run.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from ....ir.element import ElementType
from ....ir.graph import Layer
from ....ir.tensor import Array, Value
from ....ops.matrix.matmul import MatMul
from ....ops.movement.gather import GatherBase
from ... import Fusion, MatchContext, Refusal
from ...common.layout import is_f32
from .._backend import backend
from ._chain import Chain

__all__: list[str] = []

# The most products that are computed one by one, and of how many rows; the least numbers of a matrix: to copy smaller ones
# takes no longer.
MOST, MAX_ROWS, LEAST_SIZE = 16, 8, 1 << 10


@backend.pattern(MatMul)
def gathered_matmul(context: MatchContext, layer: Layer) -> Fusion | Refusal | None:
    """Match products with matrices that Gather takes of a constant ``[matrices, depth, columns]``, f32."""
    x, chosen = context.sources(layer)
    gather, op = context.producer(chosen, "Gather"), layer.op
    if gather is None or not isinstance(op, MatMul) or not isinstance(gather.op, GatherBase):
        return None
    table, indices, axis = context.sources(gather)
    known, rows = context.value(table).known(), context.value(x)
    if known is None or known.ndim != 3 or math.prod(known.shape[1:]) < LEAST_SIZE:
        return None
    if context.value(axis).ints() not in ((0,), (-3,)):
        return None
    if gather.op.batch or context.value(indices).element not in (ElementType.i32, ElementType.i64):
        return Refusal("indices share an axis with the matrices, or are neither i32 nor i64")
    if not is_f32(rows, context.value(table)) or op.transpose_a or not _are_few(rows):
        return Refusal(f"the first input is not f32, is transposed, or does not have 1 to {MAX_ROWS} rows")
    kernel = Chain(partial(_multiply, gather.op, bool(op.transpose_b)), 4)
    return Fusion((gather, layer), context.reads([gather, layer], x, table, indices), kernel)


def _are_few(x: Value) -> bool:
    rank = x.shape.rank or 0
    most = x.shape[rank - 2].max if rank > 1 else None
    return most is not None and most <= MAX_ROWS


def _multiply(
    gather: GatherBase, transposed: bool, x: Array, table: Array, indices: Array, _: Array
) -> Array:
    """Multiply by the matrix of each index; where one is out of range, Gather gives zeros."""
    batch = np.broadcast_shapes(x.shape[:-2], indices.shape)
    places = np.broadcast_to(indices, batch).reshape(-1).tolist()
    matrices = table.swapaxes(1, 2) if transposed else table
    count = len(table)
    inside = bool(places) and -count <= min(places) and max(places) < count
    if not inside or len(places) > MOST or not x.size:
        copies = np.asarray(gather.evaluate(matrices, indices, np.array(0)))
        return np.asarray(np.matmul(x, copies))
    out = np.empty((*batch, x.shape[-2], matrices.shape[2]), np.float32)
    rows = x if x.shape[:-2] == batch else np.broadcast_to(x, (*batch, *x.shape[-2:]))
    for left, place, target in zip(
        rows.reshape(-1, *x.shape[-2:]), places, out.reshape(-1, *out.shape[-2:]), strict=True
    ):
        np.matmul(left, matrices[place], target)
    return out
