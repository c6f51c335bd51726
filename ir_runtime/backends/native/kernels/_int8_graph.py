"""The convolutions and poolings of quantized subgraphs that integer kernels support."""

from __future__ import annotations

from typing import TypeAlias

from ....ir.graph import Port
from ....ops.convolution import Convolution, ForwardConvolution
from ... import MatchContext
from ...patterns.quantized_graph import MAX_LEVEL, MaxPool, Node, Pooled, Product, Subgraph
from ._int8_weights import IntegerWeights, integer_weights
from ._int8_windows import FORMS

__all__ = ["IntegerKernels", "IntegerNode", "IntegerPooled", "IntegerProduct", "IntegerSubgraph"]

IntegerNode: TypeAlias = Node[IntegerWeights]
IntegerPooled: TypeAlias = Pooled[IntegerWeights]
IntegerProduct: TypeAlias = Product[IntegerWeights]
IntegerSubgraph: TypeAlias = Subgraph[IntegerWeights]


class IntegerKernels:
    """The integer kernels; see `Kernels` of `backends.patterns.quantized_graph`."""

    def weights(self, context: MatchContext, filters: Port, op: ForwardConvolution) -> IntegerWeights | None:
        """Return integer weights, or ``None`` if no kernel supports them."""
        weights = integer_weights(context, filters, op)
        return weights if weights is not None and _fits(op, weights) else None

    def compute_pooling(self, op: MaxPool, data: IntegerNode) -> bool:
        """Return whether windows are dense, and the level of zero in the border is never the maximum."""
        if any(n != 1 for n in op.spread()):
            return False
        return not (data.quantizer.zero and any(map(any, op.pads(data.shape[2:], op.kernel))))

    def add_residual(self, op: ForwardConvolution) -> bool:
        """Return whether the layer is a convolution without groups."""
        return isinstance(op, Convolution)


def _fits(op: ForwardConvolution, weights: IntegerWeights) -> bool:
    """Return whether a kernel supports these weights, without overflow of the sums."""
    if weights.numbers.ndim != (4 if isinstance(op, Convolution) else 5):
        return False
    if isinstance(op, Convolution):
        return bool(weights.numbers[0].size * MAX_LEVEL * 128 < 1 << 31)
    _, outputs, channels, tall, wide = weights.numbers.shape
    known = (wide, op.strides[1]) in FORMS and all(n == 1 for n in op.dilations)
    return outputs == channels == 1 and known and tall * wide * MAX_LEVEL * 128 < 1 << 24
