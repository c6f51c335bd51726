"""What the executor knows of a kernel.

A kernel is a function of arrays. It may also have

* ``accepts(*arrays)``: says whether it computes inputs of these shapes (see `core.lengths`);
* ``absorb(op, inputs, place)``: returns a kernel that applies one more layer to the result (`FusingKernel`);
* ``built()``: allocates what it needs and packs weights, once it is known what it absorbs; before, it only describes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias, runtime_checkable

from ...ir.operation import Operation
from ...ir.tensor import Array, Value

__all__ = ["FusingKernel", "Kernel", "Offer"]

Kernel: TypeAlias = Callable[..., "Array | tuple[Array, ...]"]
"""Takes the inputs of a layer, returns its outputs; never changes an input."""

Offer: TypeAlias = Callable[..., "Kernel | None"]
"""Takes an operation and what is known of its inputs; returns a kernel, or ``None`` where it has none."""


@runtime_checkable
class FusingKernel(Protocol):
    """A kernel that can compute the layer that alone reads its result, as an epilogue."""

    def absorb(self, op: Operation, inputs: Sequence[Value], place: int) -> Kernel | None:
        """Return a kernel that computes that layer, too, or ``None``.

        It takes what this kernel takes, then the layer's other inputs.

        Args:
            op: the operation of the layer.
            inputs: what is known of its inputs.
            place: which of them is this kernel's result.
        """
