"""The windows of convolutions, as rows of a product read them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple

import numpy as np

from ....ir.tensor import Array
from ._gemm_job import WindowRecord

__all__ = ["Layout", "Windows", "tap_offsets"]


class Layout(IntEnum):
    """How rows are stored in the data; the last one is `PADDED`, of which copies are read."""

    MATRIX = 0
    VALID = 1
    PADDED = 2
    COPIED = 3


class Windows(NamedTuple):
    """The windows of a convolution; up to three numbers for spatial axes, and missing axes have length 1.

    Args:
        lengths: of the data.
        out: of the result.
        strides: between windows.
        pads: before the data.
        kernel: lengths of a window.
        dilations: between elements of a window.
        element: bytes between neighbours along the last axis.
        image: bytes between images.
    """

    lengths: Sequence[int]
    out: Sequence[int]
    strides: Sequence[int]
    pads: Sequence[int]
    kernel: Sequence[int]
    dilations: Sequence[int]
    element: int
    image: int

    def share_inside(self) -> float:
        """Return how much of the kernel is inside the data on average, along all axes but that of rows."""
        if 0 in self.out:
            return 0.0  # of an empty result
        share = 1.0
        for axis in range(len(self.kernel) - 1):
            first = np.arange(self.out[axis]) * self.strides[axis] - self.pads[axis]
            places = first[:, None] + np.arange(self.kernel[axis]) * self.dilations[axis]
            share *= float(((places >= 0) & (places < self.lengths[axis])).mean())
        return share

    def volume(self, name: str) -> tuple[int, ...]:
        """Return one of the fields for three spatial axes."""
        numbers = getattr(self, name)
        return (*[int(name != "pads")] * (3 - len(numbers)), *numbers)

    def record(self) -> Array:
        """Return the record that kernels read."""
        axes = {name: self.volume(name) for name in self._fields[:-2]}
        return WindowRecord.fill(**axes, element=self.element, image=self.image)


def tap_offsets(g: Windows, layout: Layout, merged: bool, groups: int, words: int) -> Array:
    """Return the byte offset of each tap from the address of a row, for each group of ``words`` words of a pixel."""
    within = np.zeros(math.prod(g.kernel), np.int64)
    if layout is Layout.VALID:
        along = [1] * len(g.kernel)
        for axis in range(len(g.kernel) - 2, -1, -1):
            along[axis] = along[axis + 1] * g.lengths[axis + 1]
        kernel = [*g.kernel[:-1], 1] if merged else g.kernel
        places = np.indices(kernel).reshape(len(kernel), -1)
        steps = [step * dilation * g.element for step, dilation in zip(along, g.dilations, strict=True)]
        within = (np.array(steps)[:, None] * places).sum(axis=0)
    return (within + 4 * words * np.arange(groups)[:, None]).reshape(-1).astype(np.int64)
