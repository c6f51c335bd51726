"""Matrix products of activations that are rounded to 8 bits in each run, with integer weights: in f32, of the rounded ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ....ir.element import ElementType
from ....ir.operation import Operation
from ....ir.quantized_weights import QuantizedWeights
from ....ir.tensor import Array, Value
from ... import Kernel, KernelTemplate
from ...common.dynamic_quantization import ActivationGroups, asked_integers, round_activations
from ...core.lengths import Accepts, axis_length

__all__ = ["RoundedProduct", "activation_groups", "in_f32"]


def activation_groups(weights: QuantizedWeights, rows: bool) -> ActivationGroups | None:
    """Return the groups in which the compilation rounds activations; ``None`` if it does not, or weights are no integers."""
    matrix = asked_integers(weights, rows)
    return None if matrix is None else matrix.groups


def in_f32(weights: QuantizedWeights) -> QuantizedWeights:
    """Return weights whose products with scales are not rounded to a narrower type."""
    scale, zero = (
        None if array is None else array.astype(np.float32) for array in (weights.scale, weights.zero)
    )
    return replace(weights, scale=scale, zero=zero, arithmetic=ElementType.f32)


@dataclass(frozen=True)
class RoundedProduct(KernelTemplate):
    """A product that first rounds its rows.

    Args:
        product: the kernel of the product, with the layers that it fuses.
        groups: those that share a scale.
    """

    product: KernelTemplate
    groups: ActivationGroups

    @property
    def accepts(self) -> Accepts:
        """Any rows of the right length; fused layers have inputs of shapes known to fit."""
        return axis_length(-1, self.groups.groups * self.groups.length)

    def fuse(self, op: Operation, inputs: Sequence[Value], place: int) -> RoundedProduct | None:
        """Return a kernel that also computes ``op``, or ``None``."""
        found = self.product.fuse(op, inputs, place)
        return None if found is None else replace(self, product=found)

    def prepare(self) -> Kernel:
        """Return the kernel for the run loop."""
        product = self.product.prepare().whole

        def kernel(x: Array, *others: Array) -> Array | tuple[Array, ...]:
            return product(round_activations(x, self.groups), *others)

        return Kernel(kernel, accepts=self.accepts)
