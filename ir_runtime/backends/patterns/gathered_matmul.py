"""Pattern of a few rows multiplied by matrices gathered from a constant table, as in mixtures of experts."""

from __future__ import annotations

from typing import NamedTuple

from ...ir.element import ElementType
from ...ir.graph import Layer, Port
from ...ir.tensor import Array, Value
from ...ops.matrix import MatMul
from ...ops.movement.gather import GatherBase
from .. import MatchContext, Refusal
from ..common.layout import is_f32

__all__ = ["GatheredMatMul", "match_gathered_matmul"]

# The largest number of rows; for more rows, kernels with tiles of several rows are faster.
MAX_ROWS = 8


class GatheredMatMul(NamedTuple):
    """A matched Gather and MatMul; ``reads`` are the rows, the table of matrices, the indices and the axis."""

    layers: tuple[Layer, Layer]
    reads: tuple[Port, ...]
    gather: GatherBase
    matmul: MatMul
    matrices: Array


def match_gathered_matmul(context: MatchContext, layer: Layer) -> GatheredMatMul | Refusal | None:
    """Match few f32 rows multiplied by matrices that Gather takes from a constant ``[matrices, depth, columns]``.

    Returns a `Refusal` if rows or indices are unsuitable, and ``None`` if the layer multiplies by no such matrices.
    """
    x, chosen = context.sources(layer)
    gather, op = context.producer(chosen, "Gather"), layer.op
    if gather is None or not isinstance(op, MatMul) or not isinstance(gather.op, GatherBase):
        return None
    table, indices, axis = context.sources(gather)
    matrices = context.value(table).known()
    if matrices is None or matrices.ndim != 3 or context.value(axis).ints() not in ((0,), (-3,)):
        return None
    if gather.op.batch or context.value(indices).element not in (ElementType.i32, ElementType.i64):
        return Refusal("indices share an axis with the matrices, or are neither i32 nor i64")
    rows = context.value(x)
    if not is_f32(rows, context.value(table)) or op.transpose_a or not _are_few(rows):
        return Refusal(f"the first input is not f32, is transposed, or does not have 1 to {MAX_ROWS} rows")
    reads = context.reads([gather, layer], x, table, indices)
    return GatheredMatMul((gather, layer), reads, gather.op, op, matrices)


def _are_few(x: Value) -> bool:
    rank = x.shape.rank or 0
    most = x.shape[rank - 2].max if rank > 1 else None
    return most is not None and 0 < most <= MAX_ROWS
