"""A layer that can be computed tile by tile: some rows of the feature map at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from ....ir.tensor import Array
from ....ops.convolution.forward import ForwardConvolution
from ....ops.window import Pads
from ...common.epilogue import RowEpilogue, RowPostOp
from ...common.tape import Tape

__all__ = ["PaddedBuffer", "TiledLayer"]


class PaddedBuffer(NamedTuple):
    """A buffer for rows of the input and their padding, in the layout that a kernel reads."""

    array: Array
    clear: Callable[[], Tape]
    """Returns the calls that fill the padding with zeros."""
    copy: Callable[[Array], Tape]
    """Returns the calls that copy rows ``[height, width, C]`` into the buffer."""
    interior: Array | None
    """The part inside the padding, if rows are stored there unchanged: the layer before may write to it."""


Untiled: TypeAlias = Callable[[Array, RowEpilogue], Array]
"""Computes the whole layer from data ``[N, C, H, W]``."""


@dataclass(frozen=True)
class TiledLayer:
    """A 2-D convolution with constant filters, or an element-wise layer (without ``op``), and its post-ops.

    Its ten fields are what a chain needs of a layer: shape, cost, the ways to run it, and its post-ops.
    """

    op: ForwardConvolution | None
    kernel: tuple[int, int]
    channels: int
    """Channels of the result."""
    cost: int
    """Multiplications (or work that takes as long) for each position of the result."""
    tape: Callable[[Array, Array, Array, slice], Tape]
    """Returns the calls from rows ``[height, width, C]``, or a padded buffer, to some channels of the result; the third
    array is scratch memory."""
    pad: Callable[[tuple[int, int, int], Pads, Array], PaddedBuffer] | None = None
    """Lays out a padded buffer for rows of a shape in memory; ``None`` if windows are single elements."""
    untiled: Untiled | None = None
    """Computes the layer where it is not tiled."""
    pack: Callable[[], object] | None = None
    """Packs the filters; called once it is known which kernel computes the layer."""
    post_ops: tuple[RowPostOp, ...] = ()
    needs_scratch: bool = False
    """Whether ``tape`` needs scratch memory, as much as its results."""

    def extent(self, axis: int) -> int:
        """Return the length of a window along an axis."""
        return 1 if self.op is None else self.op.extent(axis, self.kernel[axis])

    def padded_size(self, rows: tuple[int, int, int], pads: Pads) -> int:
        """Return the most elements of the padded buffer for rows of a shape."""
        if self.pad is None or self.op is None:
            return 0
        (top, bottom), (left, right) = pads
        columns = left + rows[1] + right + self.op.strides[1]
        return (top + rows[0] + bottom) * columns * rows[2]
