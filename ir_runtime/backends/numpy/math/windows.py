"""Where windows lie, and views of them: what im2col would copy, NumPy reads through strides."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ....ir.tensor import Array
from ....ops.convolution.forward import ForwardConvolution
from ....ops.window import Pads

__all__ = ["window_fit", "windows"]


class Fit(NamedTuple):
    """Where windows lie in data of one shape."""

    pads: Pads
    out: tuple[int, ...]


def window_fit(op: ForwardConvolution, kernel: tuple[int, ...]) -> Callable[[tuple[int, ...]], Fit]:
    """Where the windows lie, by lengths of the data."""

    @lru_cache(maxsize=64)
    def fit(lengths: tuple[int, ...]) -> Fit:
        return Fit(op.pads(lengths, kernel), op.windows(lengths, kernel))

    return fit


def windows(
    x: Array, kernel: tuple[int, ...], strides: tuple[int, ...], dilations: tuple[int, ...], run: int = 1
) -> Array:
    """A view ``[position..., element..., C]`` of windows over a contiguous ``x[spatial..., C]``.

    With ``run``, and a stride of 1 along the last spatial axis, so many neighbours are taken as one.
    """
    extent = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    count = [max((n - e) // s + 1, 0) for n, e, s in zip(x.shape, extent, strides, strict=False)]
    # From the shape: the strides of axes of length 1 may be anything.
    spatial = [x.itemsize * math.prod(x.shape[axis + 1 :]) for axis in range(len(kernel))]
    between = [n * s for n, s in zip(spatial, strides, strict=True)]
    within = [n * d for n, d in zip(spatial, dilations, strict=True)]
    count[-1], between[-1] = count[-1] // run, between[-1] * run
    shape = (*count, *kernel, x.shape[-1] * run)
    # A tenth of what `as_strided` takes, and the bounds are checked.
    return np.ndarray(shape, x.dtype, x, 0, (*between, *within, x.itemsize))
