"""Products of rows with matrices gathered from a table, as in mixtures of experts, without copying the matrices."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from ....ir.graph import Layer
from ....ir.tensor import Array
from ....ops.matrix import MatMul
from ....ops.movement.gather import GatherBase
from ... import Fusion, Kernel, MatchContext, Refusal
from ...patterns.gathered_matmul import GatheredMatMul, match_gathered_matmul
from .._backend import backend
from .elementwise import Chain

__all__: list[str] = []

# The maximum number of products computed one by one, and the minimum elements of a matrix; copying a smaller one is as fast.
MOST, LEAST_SIZE = 16, 1 << 10


@backend.pattern(MatMul, after="Gather")
def gathered_matmul(context: MatchContext, layer: Layer) -> Fusion | Refusal | None:
    """Match few rows multiplied by gathered matrices of at least `LEAST_SIZE` elements; return ``None`` for smaller ones."""
    match = match_gathered_matmul(context, layer)
    if not isinstance(match, GatheredMatMul):
        return match
    if math.prod(match.matrices.shape[1:]) < LEAST_SIZE:
        return None
    kernel = Chain(Kernel(partial(_multiply, match.gather, bool(match.matmul.transpose_b))), 4)
    return Fusion(match.layers, match.reads, kernel)


def _multiply(
    gather: GatherBase, transposed: bool, x: Array, table: Array, indices: Array, _: Array
) -> Array:
    """Multiply ``x`` by the matrix at each index; the matrix of an index out of range is 0."""
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
