"""Convolutions as matrix products (im2col + GEMM) over channels-last rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache, partial

import numpy as np

from ....ir.pages import let_go
from ....ir.tensor import Array, Value
from ....ops.convolution.forward import Convolution, ForwardConvolution, GroupConvolution
from ... import KernelTemplate
from ...common.epilogue import OutOfPlaceEpilogue, RowEpilogue, RowKernel
from ...common.layout import FEW_CHANNELS, as_rows, channels_first, channels_last, is_f32, pad_spatial
from ...common.window_fit import window_fit
from ...core.lengths import Accepts, filter_lengths
from .._backend import backend
from ..math.gemm import EPILOGUE_COST, gemm, split_range
from ..math.panels import Panels
from ..math.windows import windows
from ..threading.parallel import parallel_for, thread_count
from ._depthwise import Depthwise
from ._grouped_products import GroupedProducts
from ._im2col import im2col
from ._patches import MIN_ROWS, PATCH_BYTES, SHARED_FACTOR
from ._shifted_products import shifted_products
from ._winograd import suits_winograd, winograd

__all__: list[str] = []

# Copying an element of a patch from rows of an image, with few channels, takes as long as this many multiplications.
PIXEL_COST = 24
# Elements of a row of windows that are better copied at once than from strided rows of an image.
SHORT_PIECE = 16


@backend.accelerates(Convolution)
def convolution(op: Convolution, data: Value, filters: Value) -> KernelTemplate | None:
    """Return a kernel for constant f32 filters over one to three spatial axes."""
    w = filters.known()
    if w is None or not w.size or not is_f32(data, filters):
        return None
    if math.prod(w.shape[2:]) == 1 and not any(map(any, op.pads((1,) * (w.ndim - 2), w.shape[2:]))):
        return _one_position(w) if _is_one_position(data) else _pointwise(op, w)
    lengths = _spatial_lengths(data)
    if (shifted := shifted_products(op, w, lengths)) is not None:
        return RowKernel(shifted, 2, 1, accepts=_accepts(op, w[None]))
    if w.shape[1] <= FEW_CHANNELS and (op.strides[-1] == 1 or w.shape[1] * w.shape[-1] < SHORT_PIECE):
        return _few_channels(op, w, lengths)
    if suits_winograd(op, w, lengths):
        return RowKernel(winograd(op, w, cache(partial(im2col, op, w))), 2, 1, accepts=_accepts(op, w[None]))
    return RowKernel(im2col(op, w, lengths), 2, 1, accepts=_accepts(op, w[None]))


def _accepts(op: ForwardConvolution, w: Array) -> Accepts:
    """Return which lengths suit filters ``[G, C_out, C_in, kernel...]``."""
    extents = [op.extent(axis, length) for axis, length in enumerate(w.shape[3:])]
    return filter_lengths(w.shape[0] * w.shape[2], extents)


def _is_one_position(data: Value) -> bool:
    """Return whether the data are one image of one position."""
    shape = data.shape
    return shape.is_static and shape.static[0] == 1 and set(shape.static[2:]) == {1}


def _spatial_lengths(data: Value) -> tuple[int | None, ...]:
    """Return the lengths of the spatial axes, where they are known."""
    return () if data.shape.rank is None else tuple(n.min if n.is_static else None for n in data.shape)[2:]


def _one_position(w: Array) -> RowKernel:
    """Return a pointwise convolution of maps of one position: a product of one row, which reads each weight once."""
    matrix = np.array(w.reshape(w.shape[:2]).T, order="C")
    let_go(w)

    def compute(x: Array, _: Array, epilogue: RowEpilogue) -> Array:
        y = np.empty((1, matrix.shape[1]), np.float32)
        np.dot(x.reshape(1, -1), matrix, y)
        epilogue(y, 0)
        return y.reshape(1, -1, *x.shape[2:])

    return RowKernel(compute, 2, 1)


def _pointwise(op: Convolution, w: Array) -> RowKernel:
    """Return a pointwise (1x1) convolution, which is one product."""
    columns = len(w)
    packed = Panels.of(w.reshape(w.shape[:2]).T, w)
    steps = (slice(None), slice(None), *(slice(None, None, s) for s in op.strides))
    strided = any(s != 1 for s in op.strides)
    fit = window_fit(op, w.shape[2:])

    def compute(x: Array, _: Array, epilogue: RowEpilogue) -> Array:
        fit(x.shape[2:])  # raises if no window fits
        sampled = x[steps] if strided else x
        y = np.empty((len(sampled), *sampled.shape[2:], columns), np.float32)
        gemm(as_rows(sampled, 1), packed, y.reshape(-1, columns), epilogue)
        return channels_first(y)

    return RowKernel(compute, 2, 1, accepts=_accepts(op, w[None]))


def _cost(out: Array, depth: int, copy: int) -> int:
    """Return the multiplications of a convolution, and what takes as long: its epilogue, and ``copy`` for each element of patches."""
    positions = out.size // max(out.shape[-1], 1)
    cost: int = positions * (out.shape[-1] * (depth + EPILOGUE_COST) + depth * copy)
    return cost


def _few_channels(op: Convolution, w: Array, lengths: Sequence[int | None]) -> Kernel:
    """With few channels, stored first, im2col copies along rows of the image instead of along channels."""
    outputs, _, *kernel = w.shape
    packed = Panels.of(w.reshape(outputs, -1).T, w)
    fit = window_fit(op, tuple(kernel))
    axes = len(kernel)
    # From windows of images [channel, position..., 1, element..., 1].
    order = (0, *range(axes + 1, 2 * axes + 2), *range(1, axes + 1), 2 * axes + 2)
    of_channels_last = cache(partial(im2col, op, w, lengths))

    def compute(x: Array, w: Array, epilogue: OutOfPlaceEpilogue) -> Array:
        if x.shape[1] > 1 and channels_last(x).flags.c_contiguous:
            return of_channels_last()(x, w, epilogue)
        pads, out = fit(x.shape[2:])
        inner = math.prod(out[1:])
        y = np.empty((len(x), *out, outputs), np.float32)
        images = pad_spatial(x[..., None], ((0, 0), *pads))

        def work(chunk: tuple[int, slice]) -> None:
            image, out_rows = chunk
            window_view = windows(images[image], (1, *kernel), (1, *op.strides), (1, *op.dilations))
            patches = np.ascontiguousarray(window_view[:, out_rows].transpose(order)).reshape(
                packed.depth, -1
            )
            rows = y[image, out_rows].reshape(-1, outputs)
            packed.multiply(patches.T, rows)
            epilogue(rows, image * out[0] * inner + out_rows.start * inner)

        cost = _cost(y, packed.depth, PIXEL_COST)
        blocks = _block_count(out[0], packed.depth, inner, thread_count(cost))
        parallel_for(work, [(n, part) for n in range(len(x)) for part in split_range(out[0], blocks)], cost)
        return channels_first(y)

    return RowKernel(compute, 2, 1, accepts=_accepts(op, w[None]))


def _block_count(rows: int, size: int, inner: int, threads: int) -> int:
    """Return the number of blocks of rows; several threads take larger blocks, at least one each."""
    if threads < 2:
        return -(-rows // _rows_per_block(size, inner))
    return max(-(-rows // _rows_per_block(size, inner, SHARED_FACTOR)), threads)


def _rows_per_block(size: int, inner: int, factor: int = 1) -> int:
    """Return how many rows of ``inner`` patches of ``size`` elements to multiply at once."""
    rows = factor * max(PATCH_BYTES // (4 * size), MIN_ROWS)
    return max(rows // max(inner, 1), 1)


@backend.accelerates(GroupConvolution)
def group_convolution(op: GroupConvolution, data: Value, filters: Value) -> KernelTemplate | None:
    """Return a kernel for constant f32 filters, depthwise or of several channels for each group."""
    w = filters.known()
    if w is None or not w.size or not is_f32(data, filters):
        return None
    if w.shape[1:3] == (1, 1):
        return RowKernel(Depthwise(op, w).compute, 2, 1, accepts=_accepts(op, w))
    return RowKernel(GroupedProducts(op, w).compute, 2, 1, accepts=_accepts(op, w))
