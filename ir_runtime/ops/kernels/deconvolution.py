"""Transposed convolution (deconvolution): one GEMM for each kernel element, scattered and added."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from types import EllipsisType

import numpy as np

from ..._util.arrays import Array
from .matmul import accumulator_dtype, from_accumulator

__all__ = ["deconvolve"]


def deconvolve(
    x: Array,
    w: Array,
    strides: Sequence[int],
    dilations: Sequence[int],
    begins: Sequence[int],
    lengths: Sequence[int],
) -> Array:
    """Spread ``x[N, G*C, ...]`` with ``w[G, C, O, ...]`` over trailing axes of given ``lengths``.

    Element ``i`` reaches position ``i * stride + k * dilation - begin`` through element ``k`` of the kernel;
    positions outside are dropped.
    """
    groups, channels, outputs, *kernel = w.shape
    work = accumulator_dtype(x.dtype)
    wide = x.astype(work, copy=False).reshape(len(x), groups, channels, *x.shape[2:])
    y = np.zeros((len(x), groups, outputs, *lengths), work)
    for element in itertools.product(*map(range, kernel)):
        reached = [
            _clip_positions(k * d - b, s, n, length)
            for k, d, b, s, n, length in zip(
                element, dilations, begins, strides, x.shape[2:], lengths, strict=True
            )
        ]
        sources = wide[_last(source for source, _ in reached)]
        if not sources.size:
            continue
        weights = np.swapaxes(w[_last(element)], 1, 2).astype(work, copy=False)
        sums = weights @ sources.reshape(*sources.shape[:3], -1)
        y[_last(target for _, target in reached)] += sums.reshape(*sums.shape[:3], *sources.shape[3:])
    return from_accumulator(y.reshape(len(x), groups * outputs, *lengths), x.dtype)


def _last(places: Iterable[int | slice]) -> tuple[EllipsisType | int | slice, ...]:
    """Return an index into the last axes."""
    return ..., *places


def _clip_positions(offset: int, stride: int, count: int, length: int) -> tuple[slice, slice]:
    """Return the positions ``offset + i * stride`` that are inside, as slices of source and target."""
    first = max(-(offset // stride), 0)
    last = min((length - 1 - offset) // stride + 1, count)
    if last <= first:
        return slice(0, 0), slice(0, 0)
    start = offset + first * stride
    return slice(first, last), slice(start, start + (last - first - 1) * stride + 1, stride)
