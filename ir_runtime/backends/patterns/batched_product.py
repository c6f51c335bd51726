"""Products of matrices in batches, whichever operation computes them: MatMul, or an Einsum that is one."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ...ir.dimension import Dimension
from ...ir.graph import Layer, Port
from ...ops.matrix.einsum import Einsum
from ...ops.matrix.matmul import MatMul
from .. import MatchContext
from ..common.einsum import einsum_product

__all__ = ["Axes", "BatchedProduct", "batched_product"]

Axes = tuple[int, ...]
"""An order of the axes of a tensor."""


@dataclass(frozen=True)
class BatchedProduct:
    """A layer that multiplies two batches of matrices of the same rank.

    Args:
        left: reads the left matrices.
        right: reads the right ones.
        left_axes: those of the left input, in the order of batches, rows, and the axis that is summed over.
        right_axes: those of the right one, in the order of batches, the axis that is summed over, and columns.
        output_axes: the order of batches, rows and columns in the result.
    """

    left: Port
    right: Port
    left_axes: Axes
    right_axes: Axes
    output_axes: Axes

    @property
    def is_ordered(self) -> bool:
        """Whether the result has batches, rows and columns in this order."""
        return self.output_axes == tuple(range(len(self.output_axes)))

    def by_left(self) -> BatchedProduct:
        """Return the same with batches in the order in which the left input has them."""
        count = len(self.left_axes) - 2
        order = (*sorted(range(count), key=self.left_axes.__getitem__), count, count + 1)
        return replace(
            self,
            left_axes=tuple(self.left_axes[axis] for axis in order),
            right_axes=tuple(self.right_axes[axis] for axis in order),
            output_axes=tuple(map(order.index, self.output_axes)),
        )


def batched_product(context: MatchContext, layer: Layer | None) -> BatchedProduct | None:
    """Return the product computed by a layer, if it has batches of one rank and matching lengths."""
    if layer is None or len(layer.inputs) != 2:
        return None
    ranks = [context.value(port).shape.rank for port in context.sources(layer)]
    if ranks[0] is None or ranks[0] != ranks[1] or ranks[0] < 3:
        return None
    if isinstance(layer.op, MatMul):
        return _of_matmul(context, layer, layer.op, ranks[0])
    return _of_einsum(context, layer, layer.op) if isinstance(layer.op, Einsum) else None


def _of_matmul(context: MatchContext, layer: Layer, op: MatMul, rank: int) -> BatchedProduct:
    plain = tuple(range(rank))
    swapped = (*plain[:-2], rank - 1, rank - 2)
    left, right = context.sources(layer)
    return BatchedProduct(
        left, right, swapped if op.transpose_a else plain, swapped if op.transpose_b else plain, plain
    )


def _of_einsum(context: MatchContext, layer: Layer, op: Einsum) -> BatchedProduct | None:
    """Match an Einsum with one axis of rows, columns and what is summed over; the latter, it would broadcast."""
    sources = context.sources(layer)
    shapes = [context.value(port).shape for port in sources]
    found = einsum_product(op.equation, tuple(len(shape) for shape in shapes))
    if found is None or not found.is_plain or not found.batches:
        return None
    left, right = reversed(sources) if found.swapped else sources
    depth = context.value(left).shape[found.left[-1]], context.value(right).shape[found.right[-2]]
    if not _are_equal(*depth):
        return None
    return BatchedProduct(left, right, found.left, found.right, found.output)


def _are_equal(one: Dimension, other: Dimension) -> bool:
    """Return whether two lengths are certainly equal."""
    if one.is_static or other.is_static:
        return one == other and one.is_static
    return one.symbol is not None and one.symbol is other.symbol
