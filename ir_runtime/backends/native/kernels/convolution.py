"""Convolutions with constant filters, dense or of groups with several channels each.

They are implicit GEMMs: windows are rows of a product, without im2col. If no window reaches into padding, a row of the
kernel is contiguous, and one tap; else each element is a tap, or lines are copied between zeros. In f32, images with few
channels stay planar (NCHW) and are padded first: there, a tap is a row of the kernel in one channel.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ....ir.shape import PartialShape
from ....ir.tensor import Array, Value
from ....ops.convolution.forward import Convolution, ForwardConvolution, GroupConvolution
from ... import Kernel, KernelTemplate
from ...common.kept_memory import empty
from ...common.layout import channels_first, is_f32
from ...common.window_fit import window_fit
from ...core.lengths import Accepts, filter_lengths
from .._backend import backend
from ..threading.capture import replayed
from ..threading.task import UNUSED
from ._bf16_pictures import PIXEL, bf16_pictures
from ._epilogue import NO_BF16, Bf16Tensors, Epilogue, FusedKernel, KernelFactory
from ._few_channels import neighbours, widened
from ._gemm import Gemm, Rows
from ._pack_panels import pack_panels
from ._products import F32_PRODUCTS, Products, asked_products
from ._window_geometry import Layout, Windows, tap_offsets
from ._window_product import WindowProduct, flat
from ._winograd import Winograd, is_profitable
from .contiguous import contiguous
from .depthwise import is_by_windows
from .padding import pad_images

__all__: list[str] = []

# Images with up to this many channels stay planar; with more, vectors of channels are faster.
MAX_PLANAR_CHANNELS = 4
# Those with at least this many have pixels of four numbers in bf16.
MIN_BF16_CHANNELS, PICTURE_RANK = 3, 4


@backend.accelerates(Convolution)
def dense(op: Convolution, data: Value, filters: Value) -> KernelTemplate | None:
    """Constant f32 filters over one to three spatial axes."""
    w = filters.known()
    if w is None or not w.size or not is_f32(data, filters):
        return None
    make, bf16 = _algorithm(op, data, w)
    return FusedKernel(make, 1, accepts=_accepts(op, w.shape[1], w.shape[2:]), bf16=bf16)


def _algorithm(op: Convolution, data: Value, w: Array) -> tuple[KernelFactory, Bf16Tensors]:
    """Return the algorithm that suits the filters, and what it can read and store in bf16."""
    products = asked_products()
    if _pointwise(op, w.shape[2:]):
        return lambda epilogue: _pointwise_kernel(w, epilogue, products), products.bf16_tensors(w.shape[1])
    if (count := neighbours(op, data, w)) > 1:
        return lambda epilogue: widened(
            op, w, epilogue, count, lambda op, w, rest: _one_at_a_time(op, data, w, products)[0](rest)
        ), NO_BF16
    return _one_at_a_time(op, data, w, products)


def _one_at_a_time(
    op: Convolution, data: Value, w: Array, products: Products
) -> tuple[KernelFactory, Bf16Tensors]:
    """Return the algorithm for filters whose windows give one result each, and what it can read and store in bf16."""
    if w.shape[1] <= MAX_PLANAR_CHANNELS and w.ndim == PICTURE_RANK and op.dilations[-1] == 1:
        if not products.is_faster:
            return lambda epilogue: _planar_kernel(op, w, epilogue), NO_BF16
        if w.shape[1] >= MIN_BF16_CHANNELS:
            tensors = products.bf16_tensors(PIXEL)._replace(data=False)
            return lambda epilogue: _picture_kernel(op, w, epilogue, products), tensors
    if _prefers_winograd(op, data, w, products):
        return lambda epilogue: _winograd_kernel(op, w, epilogue), NO_BF16
    return lambda epilogue: _windows_kernel(op, w[None], epilogue, products), products.bf16_tensors(
        w.shape[1]
    )


def _accepts(op: ForwardConvolution, channels: int, kernel: Sequence[int]) -> Accepts:
    return filter_lengths(channels, [op.extent(axis, length) for axis, length in enumerate(kernel)])


@backend.accelerates(GroupConvolution)
def grouped(op: GroupConvolution, data: Value, filters: Value) -> KernelTemplate | None:
    """Constant f32 filters of several channels each."""
    w = filters.known()
    if w is None or not w.size or not is_f32(data, filters) or w.shape[1:3] == (1, 1) or is_by_windows(w):
        return None
    accepts = _accepts(op, w.shape[0] * w.shape[2], w.shape[3:])
    asked = asked_products()
    products = F32_PRODUCTS if w.shape[2] % asked.per_word else asked  # else a word would be of two groups
    return FusedKernel(
        lambda epilogue: _windows_kernel(op, w, epilogue, products), 1, accepts=accepts,
        bf16=products.bf16_tensors(w.shape[2]),
    )  # fmt: skip


def _pointwise(op: ForwardConvolution, kernel: Sequence[int]) -> bool:
    """Return whether windows are single elements without stride and padding."""
    single = math.prod(kernel) == 1 and all(s == 1 for s in op.strides)
    return single and not any(map(any, op.pads((1,) * len(kernel), kernel)))


def _prefers_winograd(op: ForwardConvolution, data: Value, w: Array, products: Products) -> bool:
    """Return whether Winograd, in f32, is faster."""
    if w.shape[2:] != (3, 3) or any(n != 1 for n in (*op.strides, *op.dilations)) or data.shape.rank != 4:
        return False
    out = [dim.min for dim in op.slide(data.shape[2:], PartialShape(w.shape[2:]))]
    return is_profitable(w.shape, out) and products.prefers_winograd(w.shape)


def _winograd_kernel(op: ForwardConvolution, w: Array, epilogue: Epilogue) -> Kernel:
    winograd, fit = Winograd(w, epilogue), window_fit(op, (3, 3))

    def compute(x: Array, _: Array, *extras: Array) -> Array:
        (n, channels), lengths = x.shape[:2], x.shape[2:]
        pads, out = fit(lengths)
        y = empty((n, *out, len(w)), np.float32)
        if y.size:
            winograd.run(flat(x), (n, *lengths, channels), pads, y, extras)
        return channels_first(y)

    return Kernel(compute, replay=replayed())


def _pointwise_kernel(w: Array, epilogue: Epilogue, products: Products) -> Kernel:
    outputs, channels = w.shape[:2]
    panels = products.pack(w.reshape(1, outputs, 1, channels), epilogue.scale, epilogue.shift)
    dense = Gemm(panels, epilogue, outputs, 1, products.words(channels), UNUSED, products.task)
    rows = products.rows_of(channels)

    def kernel(x: Array, _: Array, *extras: Array) -> Array:
        y = empty((len(x), *x.shape[2:], outputs), epilogue.dtype)
        dense.multiply(rows(flat(x)), y, extras, 1)
        return channels_first(y)

    return Kernel(kernel, name=products.name, replay=replayed())


def _windows_kernel(op: ForwardConvolution, w: Array, epilogue: Epilogue, products: Products) -> Kernel:
    """Return an implicit GEMM for filters ``[G, C_out, C_in, kernel...]``."""
    groups, outputs, channels = w.shape[:3]
    filters = w.reshape(groups, outputs, channels, -1).transpose(0, 1, 3, 2)
    panels = products.pack(filters, epilogue.scale, epilogue.shift, 8 * filters.shape[2])
    product = WindowProduct(op, w.shape, panels, epilogue, products)

    def compute(x: Array, _: Array, *extras: Array) -> Array:
        return product(x, extras)

    return Kernel(compute, name=products.name, replay=replayed())


def _planar_kernel(op: ForwardConvolution, w: Array, epilogue: Epilogue) -> Kernel:
    """Return an implicit GEMM for few channels in planar layout."""
    (outputs, channels), kernel = w.shape[:2], w.shape[2:]
    panels = pack_panels(w.reshape(1, outputs, 1, -1), epilogue.scale, epilogue.shift)
    lines = math.prod(kernel[:-1])
    dense = Gemm(panels, epilogue, outputs, channels * lines, kernel[-1], UNUSED)

    fit = window_fit(op, kernel)

    def compute(x: Array, _: Array, *extras: Array) -> Array:
        pads, out = fit(x.shape[2:])
        y = empty((len(x), *out, outputs), np.float32)
        if not y.size:
            return channels_first(y)
        pictures = _pad(x, pads)
        lengths = pictures.shape[2:]

        def describe() -> Rows:
            plane = 4 * math.prod(lengths)
            geometry = Windows(
                lengths, out, op.strides, [0] * len(kernel), kernel, op.dilations, 4, channels * plane
            )
            within = tap_offsets(geometry, Layout.VALID, True, 1, 1)
            offsets = (plane * np.arange(channels)[:, None] + within).reshape(-1)
            return Rows(math.prod(y.shape[:-1]), Layout.VALID, 0, offsets, geometry)

        dense.run(pictures, y, extras, 1, x.shape, describe)
        return channels_first(y)

    return Kernel(compute, replay=replayed())


def _picture_kernel(op: ForwardConvolution, w: Array, epilogue: Epilogue, products: Products) -> Kernel:
    """Return an implicit GEMM for few channels, whose pixels become words of bf16."""
    (outputs, channels), kernel = w.shape[:2], w.shape[2:]
    filters = np.zeros((1, outputs, math.prod(kernel), PIXEL), np.float32)
    filters[0, ..., :channels] = w.reshape(outputs, channels, -1).transpose(0, 2, 1)
    panels, words = products.pack(filters, epilogue.scale, epilogue.shift), products.words(PIXEL)
    dense = Gemm(panels, epilogue, outputs, kernel[0], words * kernel[1], UNUSED, products.task)

    fit = window_fit(op, kernel)

    def compute(x: Array, _: Array, *extras: Array) -> Array:
        pads, out = fit(x.shape[2:])
        y = empty((len(x), *out, outputs), epilogue.dtype)
        if not y.size:
            return channels_first(y)
        pictures = bf16_pictures(x, pads)

        def describe() -> Rows:
            lengths, pixel = pictures.shape[1:3], 4 * words
            geometry = Windows(
                lengths, out, op.strides, [0, 0], kernel, op.dilations, pixel, pixel * math.prod(lengths)
            )
            offsets = tap_offsets(geometry, Layout.VALID, True, 1, words)
            return Rows(math.prod(y.shape[:-1]), Layout.VALID, 0, offsets, geometry)

        dense.run(pictures, y, extras, 1, x.shape, describe)
        return channels_first(y)

    return Kernel(compute, name=products.name, replay=replayed())


def _pad(x: Array, pads: Sequence[tuple[int, int]]) -> Array:
    """Return ``x`` contiguous, padded with zeros."""
    if not any(map(any, pads)):
        return contiguous(x)
    if x.ndim == 4:
        return pad_images(x, pads)
    lengths = [n + sum(pad) for n, pad in zip(x.shape[2:], pads, strict=True)]
    found = np.zeros((*x.shape[:2], *lengths), np.float32)
    inside = tuple(slice(begin, begin + n) for n, (begin, _) in zip(x.shape[2:], pads, strict=True))
    found[:, :, *inside] = x
    return found
