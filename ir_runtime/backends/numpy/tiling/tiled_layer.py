"""One layer of those that are computed some lines of the map at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from ....ir.tensor import Array
from ....ops.convolution.forward import ForwardConvolution
from ....ops.window import Pads
from ...common.epilogue import PostOp, RowEpilogue
from ...common.tape import Tape

__all__ = ["Part", "Taken"]


class Taken(NamedTuple):
    """Room for lines of data, laid out as a kernel reads them."""

    room: Array
    clear: Callable[[], Tape]
    """Clears what is around the data."""
    copy: Callable[[Array], Tape]
    """Copies lines ``[height, width, C]`` there."""
    inside: Array | None
    """Where the lines lie, if they lie as they are: what makes them may put them there."""


Alone: TypeAlias = Callable[[Array, RowEpilogue], Array]
"""A whole convolution, of data as ``[N, C, H, W]``."""


@dataclass(frozen=True)
class Part:
    """A convolution with constant filters over two axes, or what needs no neighbours; and what is done in place."""

    op: ForwardConvolution | None
    kernel: tuple[int, int]
    columns: int
    """Channels of the result."""
    cost: int
    """Multiplications, or what takes as long, for each position of the result."""
    calls: Callable[[Array, Array, Array, slice], Tape]
    """From lines ``[height, width, C]``, or what ``take`` makes of them, to some channels of the results; with
    spare memory."""
    take: Callable[[tuple[int, int, int], Pads, Array], Taken] | None = None
    """Makes room in memory for lines of a shape, with padding around; ``None`` if it needs no neighbours."""
    alone: Alone | None = None
    """How to run it where it is not computed line by line."""
    ready: Callable[[], object] | None = None
    """Packs the filters; called once it is known which kernel computes the layer."""
    post_ops: tuple[PostOp, ...] = ()
    spare: bool = False
    """Whether it needs spare memory, as much as its results."""

    def extent(self, axis: int) -> int:
        """Elements of the data that a window covers along an axis."""
        return 1 if self.op is None else self.op.extent(axis, self.kernel[axis])

    def taken(self, lines: tuple[int, int, int], pads: Pads) -> int:
        """The most elements that ``take`` makes room for."""
        if self.take is None or self.op is None:
            return 0
        (top, bottom), (left, right) = pads
        columns = left + lines[1] + right + self.op.strides[1]
        return (top + lines[0] + bottom) * columns * lines[2]
