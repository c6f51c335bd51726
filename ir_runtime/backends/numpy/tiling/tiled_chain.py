"""Chains of convolutions that are computed together, tile by tile.

A depthwise convolution needs few rows of the pointwise convolution before it, and the pointwise convolution behind it
needs only its own. So a tile of rows goes through all of them while it is in the L2 cache (depth-first), and threads
synchronize once for the whole chain. Rows that two tiles need are computed twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ...._util.cached import cached_property
from ....ir.operation import Operation
from ....ir.tensor import Array, Value
from ... import Kernel, KernelTemplate
from ...common.epilogue import epilogue_factory, row_post_op
from ...common.post_op import match_post_op
from ...core.lengths import Accepts, filter_lengths
from .depth_first import run_depth_first
from .tiled_layer import TiledLayer

__all__ = ["TiledChain"]

CHANNEL_AXIS = 1


@dataclass(frozen=True)
class TiledChain(KernelTemplate):
    """A kernel that runs one layer or several tile by tile.

    ``next_layer`` makes a tiled layer of an operation behind a given layer, or declines. The data have this many
    ``channels``.
    """

    layers: tuple[TiledLayer, ...]
    next_layer: Callable[[Operation, Sequence[Value], TiledLayer], TiledLayer | None]
    channels: int

    def fuse(self, op: Operation, inputs: Sequence[Value], place: int) -> TiledChain | None:
        """Return a kernel that also computes ``op``, or ``None``."""
        *before, last = self.layers
        if (post_op := row_post_op(match_post_op(op, inputs, place), CHANNEL_AXIS)) is not None:
            return replace(self, layers=(*before, replace(last, post_ops=(*last.post_ops, post_op))))
        # With two layers of larger windows, more would be recomputed; with none, there is nothing to gain.
        if place or (before and last.pad is None):
            return None
        layer = self.next_layer(op, inputs, last)
        return None if layer is None else replace(self, layers=(*self.layers, layer))

    def prepare(self) -> Kernel:
        """Return the kernel for the run loop."""
        return self._kernel

    @cached_property
    def _kernel(self) -> Kernel:
        for layer in self.layers:
            if layer.pack is not None:
                layer.pack()
        one_by_one = [layer.untiled or run_depth_first((layer,)) for layer in self.layers]
        run_chain = run_depth_first(self.layers) if len(one_by_one) > 1 else one_by_one[0]
        factories = [epilogue_factory(layer.post_ops, CHANNEL_AXIS) for layer in self.layers]
        bindings = list(zip(factories, self._post_op_inputs(), strict=True))

        def kernel(*arrays: Array) -> Array:
            x, *others = arrays
            epilogues = [bind(others[first:]) for bind, first in bindings]
            y = run_chain(x, *epilogues)
            if y is not None:
                return y
            for run_layer, epilogue in zip(one_by_one, epilogues, strict=True):
                x = run_layer(x, epilogue)  # type: ignore[assignment]
            return x

        return Kernel(kernel, accepts=self._accepts())

    def _accepts(self) -> Accepts:
        """Only one layer has windows of more than one element, and the layers before it keep the lengths."""
        extents = [layer.extent(axis) for axis in (0, 1) for layer in self.layers]
        count = len(self.layers)
        return filter_lengths(self.channels, (max(extents[:count]), max(extents[count:])))

    def _post_op_inputs(self) -> list[int]:
        """Return the index of the first input of each layer's post-ops, which follow its filters."""
        places = [1]
        for layer in self.layers:
            places.append(places[-1] + sum(post_op.inputs for post_op in layer.post_ops) + 1)
        return places[:-1]
