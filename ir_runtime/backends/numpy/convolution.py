"""Convolutions as matrix products over rows of channels."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ...ir.tensor import Array, Value
from ...ops._window import Pads
from ...ops.convolution.forward import Convolution, Forward, GroupConvolution
from .. import Kernel
from ._backend import backend
from ._finish import Finish, Rows
from ._memory import channels_first, channels_last, is_f32, padded, rows_of
from ._products import multiply, parts
from ._threads import each, share

__all__ = ["windows"]

# Patches are copied side by side for one matrix product; so many bytes of them stay in the second cache.
PATCHES = 600_000
# Fewer rows than this are not worth that BLAS packs the filters for each product.
LEAST_ROWS = 224
# A multiplication of a depthwise convolution takes as long as so many of a product.
DEPTHWISE = 6
# Elements in an inner loop of a depthwise convolution, where a row of the map has as many.
LOOP = 2048


class Fit(NamedTuple):
    """Where windows lie in data of one shape."""

    pads: Pads
    out: tuple[int, ...]


def _fit(op: Forward, kernel: tuple[int, ...]) -> Callable[[tuple[int, ...]], Fit]:
    @lru_cache(maxsize=64)
    def fit(lengths: tuple[int, ...]) -> Fit:
        return Fit(op.pads(lengths, kernel), op.windows(lengths, kernel))

    return fit


@backend.accelerates(Convolution)
def dense(op: Convolution, data: Value, filters: Value) -> Kernel | None:
    """Constant f32 filters over one to three spatial axes."""
    w = filters.known()
    if w is None or not w.size or not is_f32(data, filters):
        return None
    if math.prod(w.shape[2:]) == 1 and not any(map(any, op.pads((1,) * (w.ndim - 2), w.shape[2:]))):
        return _pointwise(op, w)
    return _dense(op, w)


def _pointwise(op: Convolution, w: Array) -> Kernel:
    packed = np.ascontiguousarray(w.reshape(w.shape[:2]).T)
    steps = (slice(None), slice(None), *(slice(None, None, s) for s in op.strides))
    strided = any(s != 1 for s in op.strides)

    def compute(x: Array, w: Array, finish: Finish) -> Array:
        op.windows(x.shape[2:], w.shape[2:])  # says so if none fits
        seen = x[steps] if strided else x
        rows = rows_of(seen, 1)
        y = np.empty((len(seen), *seen.shape[2:], packed.shape[1]), np.float32)
        flat = y.reshape(-1, packed.shape[1])
        multiply(rows, packed, flat, finish)
        return channels_first(y)

    return Rows(compute, 2, 1)


def _dense(op: Convolution, w: Array) -> Kernel:
    outputs, kernel = len(w), w.shape[2:]
    packed = np.ascontiguousarray(np.moveaxis(w, (1, 0), (-2, -1)).reshape(-1, outputs))
    fit = _fit(op, kernel)

    def compute(x: Array, w: Array, finish: Finish) -> Array:
        pads, out = fit(x.shape[2:])
        y = np.empty((len(x), *out, outputs), np.float32)
        flat = y.reshape(len(x), math.prod(out), outputs)
        for index, image in enumerate(padded(channels_last(x), pads)):
            every = windows(image, kernel, op.strides, op.dilations)
            _image(every, packed, flat[index], finish, index * flat.shape[1])
        return channels_first(y)

    return Rows(compute, 2, 1)


def _image(every: Array, packed: Array, out: Array, finish: Finish, first: int) -> None:
    """The rows of one image: patches of a few lines at a time, or all of them if the filters are more."""
    size, outputs = packed.shape
    if len(out) < outputs:
        patches = np.ascontiguousarray(every).reshape(len(out), size)
        multiply(patches, packed, out, lambda block, start: finish(block, first + start))
        return
    inner = len(out) // max(len(every), 1)

    def work(part: slice) -> None:
        patches = np.ascontiguousarray(every[part]).reshape(-1, size)
        start = part.start * inner
        rows = out[start : start + len(patches)]
        np.matmul(patches, packed, out=rows)
        finish(rows, first + start)

    lines = _lines(size, inner)
    each(work, [slice(line, line + lines) for line in range(0, len(every), lines)], out.size * size)


def _lines(size: int, inner: int) -> int:
    """How many lines of ``inner`` patches of ``size`` elements to multiply at once."""
    rows = max(PATCHES // (4 * size), LEAST_ROWS)
    return max(rows // max(inner, 1), 1)


@backend.accelerates(GroupConvolution)
def grouped(op: GroupConvolution, data: Value, filters: Value) -> Kernel | None:
    """Constant f32 filters; those of one channel each, and those of several."""
    w = filters.known()
    if w is None or not w.size or not is_f32(data, filters):
        return None
    if w.shape[1:3] == (1, 1) and w.ndim == 5:
        return _depthwise(op, w)
    return _grouped(op, w)


def _grouped(op: GroupConvolution, w: Array) -> Kernel:
    groups, outputs, channels, *kernel = w.shape
    packed = np.ascontiguousarray(np.moveaxis(w, (1, 2), (-1, -2)).reshape(groups, -1, outputs))
    fit = _fit(op, tuple(kernel))
    size = packed.shape[1]

    def compute(x: Array, w: Array, finish: Finish) -> Array:
        pads, out = fit(x.shape[2:])
        inner = math.prod(out[1:])
        lines = _lines(size * groups, inner)
        y = np.empty((len(x), *out, groups * outputs), np.float32)
        flat, first = y.reshape(-1, groups * outputs), 0
        for image in padded(channels_last(x), pads):
            every = windows(image, tuple(kernel), op.strides, op.dilations)
            apart = every.reshape(*every.shape[:-1], groups, channels)
            for line in range(0, out[0], lines):
                part = np.moveaxis(apart[line : line + lines], -2, 0)
                block = part.reshape(groups, -1, size)
                rows = flat[first : first + block.shape[1]]
                np.matmul(block, packed, out=rows.reshape(-1, groups, outputs).transpose(1, 0, 2))
                finish(rows, first)
                first += len(rows)
        return channels_first(y)

    return Rows(compute, 2, 1)


def _depthwise(op: GroupConvolution, w: Array) -> Kernel:
    channels, kernel = len(w), w.shape[3:]
    packed = np.ascontiguousarray(w[:, 0, 0].transpose(1, 2, 0))
    fit = _fit(op, kernel)

    @lru_cache(maxsize=16)
    def tiled(times: int) -> Array:
        return np.tile(packed, times)

    def compute(x: Array, w: Array, finish: Finish) -> Array:
        pads, out = fit(x.shape[2:])
        times = _run(out[1], channels) if op.strides[1] == 1 else 1
        filters = tiled(times)
        y = np.empty((len(x), *out, channels), np.float32)
        data = padded(channels_last(x), pads)

        def work(piece: tuple[int, slice]) -> None:
            image, lines = piece
            every = windows(data[image], kernel, op.strides, op.dilations, times)[lines]
            result = y[image, lines]
            runs = result.reshape(len(result), -1, filters.shape[-1])
            np.einsum("hwabc,abc->hwc", every, filters, out=runs)
            first = (image * out[0] + lines.start) * out[1]
            finish(result.reshape(-1, channels), first)

        size = y.size * math.prod(kernel) * DEPTHWISE
        each(work, [(image, lines) for image in range(len(x)) for lines in parts(out[0], share(size))], size)
        return channels_first(y)

    return Rows(compute, 2, 1)


def _run(columns: int, channels: int) -> int:
    """How many neighbouring windows to take as one: with stride 1 their channels lie in a row.

    A loop of several thousand elements halves the time of 96 channels, and takes a quarter of that of 32.
    """
    wanted = max(LOOP // channels, 1)
    return next((n for n in range(wanted, columns + 1) if columns % n == 0), columns) if columns else 1


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
