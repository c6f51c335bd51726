"""The base of all versions of Interpolate: padding, and costs."""

from __future__ import annotations

import math

import numpy as np

from ...errors import InferenceError
from ...ir.dimension import Dimension
from ...ir.formula import Count
from ...ir.operands import Operands
from ...ir.tensor import Array
from ...limits import check_array_size
from .._define.operation import Op, attr
from .._resampling import resampling

__all__ = ["InterpolateBase", "check_source"]


class InterpolateBase(Op):
    """Base of all versions: pad the data with zeros before resizing."""

    pads_begin: tuple[int, ...] = attr((0,), ge=0, doc="zeros to add before each axis; none where it ends")
    pads_end: tuple[int, ...] = attr((0,), ge=0, doc="zeros to add behind each axis; none where it ends")
    antialias: bool = attr(False, doc="for mode linear: wider averages where the data shrinks")

    def pads(self, rank: int) -> list[tuple[int, int]]:
        """Return the zeros before and after each axis; pads for further axes are ignored."""
        before, after = ((*pads, *[0] * rank)[:rank] for pads in (self.pads_begin, self.pads_end))
        return list(zip(before, after, strict=True))

    def padded(self, data: Array) -> Array:
        """Return the data with zeros around them."""
        pads = self.pads(data.ndim)
        if not any(map(any, pads)):
            return data
        check_array_size(
            math.prod(n + sum(around) for n, around in zip(data.shape, pads, strict=True)), data.itemsize
        )
        return np.pad(data, pads)

    def flops(self, operands: Operands) -> Count:
        """Return the FLOPs: two for each neighbour of an element, more with antialiasing."""
        return resampling(vars(self)["mode"], operands)


def check_source(old: Dimension, new: Dimension, axis: int) -> None:
    """Require a non-empty axis to sample from."""
    if old == 0 and new.min:
        raise InferenceError(
            f"data has length 0 along axis {axis}, so it cannot be resized to {new}",
            clause="data is not empty along an axis that is enlarged",
        )
