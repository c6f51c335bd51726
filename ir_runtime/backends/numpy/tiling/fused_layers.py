"""Convolutions over a map one behind the other, some lines of the last result at a time.

A depthwise convolution needs few lines of what the product before it makes, and the product behind it
none but its own. So a block of lines goes through all of them while it is in the second cache, and
threads meet once for all of them. Lines that two blocks need are made twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ....cached import cached_property
from ....ir.tensor import Array, Value
from ....ops import Op
from ... import Kernel
from ...common.epilogue import epilogue_factory, match_post_op
from ...core.lengths import Accepts, accepting, filter_lengths
from .depth_first import together
from .tiled_layer import Part

__all__ = ["Lines"]

AXIS = 1


@dataclass(frozen=True)
class Lines:
    """A kernel that runs its parts, one or several, over blocks of lines.

    ``following`` makes a part of an operation, or declines. It is also told what the last part is. The data have so
    many ``channels``.
    """

    parts: tuple[Part, ...]
    following: Callable[[Op, Sequence[Value], Part], Part | None]
    channels: int

    def absorb(self, op: Op, inputs: Sequence[Value], place: int) -> Kernel | None:
        """A kernel that also does what ``op`` does."""
        *before, last = self.parts
        if (post_op := match_post_op(op, inputs, place, AXIS)) is not None:
            return replace(self, parts=(*before, replace(last, post_ops=(*last.post_ops, post_op))))
        # With two parts that need neighbours, more would be made twice; without, there is nothing to gain.
        if place or (before and last.take is None):
            return None
        part = self.following(op, inputs, last)
        return None if part is None else replace(self, parts=(*self.parts, part))

    def __call__(self, *arrays: Array) -> Array:
        """Build and run, where nobody did so before."""
        return self._kernel(*arrays)  # type: ignore[return-value]

    def built(self) -> Kernel:
        """The kernel for the run loop."""
        return self._kernel

    @cached_property
    def _kernel(self) -> Kernel:
        for part in self.parts:
            if part.ready is not None:
                part.ready()
        apart = [part.alone or together((part,)) for part in self.parts]
        all_of_them = together(self.parts) if len(apart) > 1 else apart[0]
        finishing = [epilogue_factory(part.post_ops, AXIS) for part in self.parts]
        behind = list(zip(finishing, self._places(), strict=True))

        def kernel(*arrays: Array) -> Array:
            x, *others = arrays
            finishes = [finish(others[place:]) for finish, place in behind]
            y = all_of_them(x, *finishes)
            if y is not None:
                return y
            for alone, finish in zip(apart, finishes, strict=True):
                x = alone(x, finish)  # type: ignore[assignment]
            return x

        return accepting(kernel, self._accepts())

    def _accepts(self) -> Accepts:
        """One part at most has windows of more than one element, and what comes before it keeps the lengths."""
        extents = [part.extent(axis) for axis in (0, 1) for part in self.parts]
        count = len(self.parts)
        return filter_lengths(self.channels, (max(extents[:count]), max(extents[count:])))

    def _places(self) -> list[int]:
        """Where what is behind the filters of each part is among the inputs."""
        places = [1]
        for part in self.parts:
            places.append(places[-1] + sum(post_op.inputs for post_op in part.post_ops) + 1)
        return places[:-1]
