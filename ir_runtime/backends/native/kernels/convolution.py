"""Convolutions, dense or in groups of several channels, with filters that are constant or packed in every run.

Convolutions are implicit GEMMs: windows are rows of a product, without im2col. If no window reaches into padding, a row of
the window is contiguous and is one tap; otherwise each element is a tap, or lines are copied and padded with zeros. Images
with few channels are padded first: in f32 they stay planar (NCHW), and a tap is a row of the window in one channel; in bf16
they become NHWC with four channels.

With few output channels, filters are repeated, each copy shifted by one stride, so that one window gives several
neighbouring results and the stride of windows grows accordingly. A shifted filter multiplies data outside its own window by
zeros, which is wrong for infinities and NaN, so such data is computed with the original filters.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache

import numpy as np

from ....ir.shape import PartialShape
from ....ir.tensor import Array, Value
from ....ops.convolution import Convolution, ForwardConvolution, GroupConvolution
from ... import Compute, Kernel, KernelTemplate
from ...common.kept_memory import empty
from ...common.layout import channels_first, is_f32, moveaxis
from ...common.windows import window_fit
from ...core.kernel import Accepts, filter_lengths
from .._backend import backend
from ..codegen import ir
from ..codegen.bf16 import as_bf16
from ..codegen.descriptor import Descriptor, i64
from ..codegen.language import device, instruction, types
from ..codegen.vectors import INTS, LANES, Emit, splat_bits
from ..codegen.vectors import Value as Register
from ..threading.capture import replayed
from ..threading.parallel import parallel_for, threads_for
from ..threading.task import UNUSED, Task, each_unit
from ._copy import contiguous
from ._epilogue import (
    BF16,
    NO_BF16,
    Bf16Tensors,
    Epilogue,
    FusedKernel,
    KernelFactory,
    PostOpKind,
    TilePostOp,
)
from ._gemm import Gemm, Rows, WindowProduct, flat
from ._gemm_kernel import (
    F32_PRODUCTS,
    GEMM_OF_RUN,
    Layout,
    Products,
    Windows,
    requested_products,
    tap_offsets,
)
from ._panels import FilterPacking, FusedOfRun, pack_panels
from ._rows import clear_row
from ._winograd import Winograd, is_profitable
from .depthwise import is_by_windows
from .padding import pad_images

__all__ = ["neighbours", "repeat_columns"]

PIXEL = 4
"""The number of channels of a bf16 picture, with padding."""
PIXEL_BYTES = 2 * PIXEL


class PictureJob(Descriptor):
    """Parameters of `_pictures`.

    ``top`` and ``left`` are the lines and columns of padding before an image; ``zeros`` is the address of zeros.
    """

    images: i64
    channels: i64
    height: i64
    width: i64
    out_height: i64
    out_width: i64
    top: i64
    left: i64
    zeros: i64


@instruction(*[types.int64] * 5)
def _interleave(emit: Emit, a: Register, b: Register, c: Register, d: Register, out: Register) -> None:
    """Load `LANES` f32 elements of each of four channels, round them to bf16, and store them pixel by pixel."""
    builder, pairs = emit.builder, []
    for first, second in ((a, b), (c, d)):
        low, high = (builder.zext(as_bf16(emit, emit.load(address)), INTS) for address in (first, second))
        pairs.append(builder.or_(low, builder.shl(high, splat_bits(16))))
    for half in range(2):
        order = [half * LANES // 2 + lane // 2 + lane % 2 * LANES for lane in range(LANES)]
        pixels = builder.shuffle_vector(pairs[0], pairs[1], ir.Constant(INTS, order))
        emit.store(pixels, emit.at(out, half * 4 * LANES))


@device
def _convert_row(source: int, plane: int, channels: int, width: int, zeros: int, target: int) -> None:
    for start in range(0, width, LANES):
        at = min(start, width - LANES)
        place = source + 4 * at
        _interleave(
            place, place + plane if channels > 1 else zeros, place + 2 * plane if channels > 2 else zeros,
            place + 3 * plane if channels > 3 else zeros, target + PIXEL_BYTES * at,
        )  # fmt: skip


@Task
def _pictures(call: int, job: PictureJob, out: int, x: int) -> None:
    """Convert planar f32 images to padded NHWC bf16 images; a unit of work is a result row."""
    channels, height = job.channels, job.height
    width, tall = job.width, job.out_height
    wide, left = job.out_width, job.left
    plane, rows = 4 * height * width, job.images * tall
    words = PIXEL_BYTES // 4
    for unit in each_unit(call, rows):
        image, target = unit // tall, out + PIXEL_BYTES * wide * unit
        row = unit - image * tall - job.top
        if 0 <= row < height:
            source, inside = x + image * channels * plane + 4 * row * width, target + PIXEL_BYTES * left
            clear_row(target, words * left)
            _convert_row(source, plane, channels, width, job.zeros, inside)
            clear_row(inside + PIXEL_BYTES * width, words * (wide - left - width))
        else:
            clear_row(target, words * wide)


_ZEROS = np.zeros(LANES, np.float32)


def bf16_pictures(x: Array, pads: Sequence[tuple[int, int]]) -> Array:
    """Convert f32 images ``[N, C, H, W]`` to bf16 ``[N, H', W', 4]``, padded with zeros.

    Args:
        x: the images, with up to four channels.
        pads: the padding before and after each of the last two axes.
    """
    n, channels, height, width = x.shape
    (top, bottom), (left, right) = pads
    shape = n, top + height + bottom, left + width + right, PIXEL
    if width < LANES:
        y = np.zeros(shape, BF16)
        y[:, top : top + height, left : left + width, :channels] = x.transpose(0, 2, 3, 1)
        return y
    source = np.ascontiguousarray(x)
    job = PictureJob.fill(
        images=n, channels=channels, height=height, width=width, out_height=shape[1], out_width=shape[2],
        top=top, left=left, zeros=_ZEROS,
    )  # fmt: skip
    y = empty(shape, BF16)
    count = threads_for(moved=2 * x.nbytes)
    parallel_for(_pictures.address, job, y, source, UNUSED, UNUSED, count)
    return y


# The most results per window, and the least fraction of the work that repeated filters must save.
MAX_NEIGHBOURS = 16
MIN_SAVED = 0.25


def neighbours(op: Convolution, data: Value, w: Array) -> int:
    """Return how many neighbouring results to compute per window, by repeated filters; 1 if these are not faster."""
    shape, outputs, wide = data.shape, len(w), w.shape[-1]
    if wide == 1 or outputs > LANES // 2 or op.auto_pad != "explicit" or op.dilations[-1] != 1:
        return 1
    if shape.rank != w.ndim or shape[-1].is_dynamic:
        return 1
    step = op.strides[-1]
    columns = (shape[-1].min + op.pads_begin[-1] + op.pads_end[-1] - wide) // step + 1
    counts = [n for n in range(1, MAX_NEIGHBOURS + 1) if columns > 0 and columns % n == 0]
    work = {n: -(-n * outputs // LANES) * (wide + (n - 1) * step) / n for n in counts or [1]}
    best = min(work, key=work.__getitem__)
    return best if work[best] < (1 - MIN_SAVED) * wide else 1


def repeat_filters(
    op: Convolution, w: Array, epilogue: Epilogue, count: int, make: Callable[[Convolution, Array, Epilogue],
    Kernel],
) -> Kernel:  # fmt: skip
    """Return a kernel that computes ``count`` neighbouring results per window.

    Args:
        op: the convolution.
        w: the filters, ``[C_out, C_in, kernel...]``.
        epilogue: the fused layers.
        count: the number of results per window.
        make: builds the kernel of a convolution with constant filters and an epilogue.
    """
    outputs, wide, step = len(w), w.shape[-1], op.strides[-1]
    filters = np.zeros((count, *w.shape[:-1], wide + (count - 1) * step), np.float32)
    for place in range(count):
        filters[place, ..., place * step : place * step + wide] = w
    strided = op.replace(strides=(*op.strides[:-1], count * step))
    kernel = make(strided, filters.reshape(-1, *filters.shape[2:]), repeat_columns(epilogue, count)).run
    tensors = {post_op.extra for post_op in epilogue.post_ops}

    @cache
    def original() -> Compute:
        return make(op, w, epilogue).run

    def compute(x: Array, constant: Array, *extras: Array) -> Array | tuple[Array, ...]:
        if not _is_finite(x):
            return original()(x, constant, *extras)
        others = (
            _fold_columns(extra, outputs * count) if i in tensors else extra for i, extra in enumerate(extras)
        )
        y = kernel(x, constant, *others)
        assert isinstance(y, np.ndarray)
        return _fold_columns(y, outputs)

    return Kernel(compute)


def _is_finite(x: Array) -> bool:
    """Return whether the sum of an array is finite, so that all its elements are."""
    with np.errstate(all="ignore"):
        return math.isfinite(x.sum())


def _fold_columns(x: Array, channels: int) -> Array:
    """Reshape a channels-last map to ``channels`` channels, turning neighbouring columns into channels, or the reverse."""
    stored = contiguous(moveaxis(x, 1, -1))
    *lead, columns, depth = stored.shape
    return channels_first(stored.reshape(*lead, columns * depth // channels, channels))


def repeat_columns(epilogue: Epilogue, count: int) -> Epilogue:
    """Return the epilogue for a product whose columns are repeated ``count`` times."""
    scale, shift = (None if row is None else np.tile(row, count) for row in (epilogue.scale, epilogue.shift))
    post_ops = tuple(_repeat_row(post_op, count) for post_op in epilogue.post_ops)
    return replace(epilogue, scale=scale, shift=shift, post_ops=post_ops)


def _repeat_row(post_op: TilePostOp, count: int) -> TilePostOp:
    row = post_op.row
    if row is None or (post_op.kind is PostOpKind.QUANTIZE and row.shape[-1] == 1):
        return post_op
    return replace(post_op, row=np.tile(row, count))


# Images with up to this many channels stay planar; with more channels, channels-last is faster.
MAX_PLANAR_CHANNELS = 4
# In bf16, images with at least this many channels are converted to four channels-last channels.
MIN_BF16_CHANNELS, PICTURE_RANK = 3, 4


@backend.accelerates(Convolution)
def dense(op: Convolution, data: Value, filters: Value) -> KernelTemplate | None:
    """Return a Convolution kernel for f32 data and constant filters over one to three spatial axes, else ``None``."""
    w = filters.known()
    if w is None or not w.size or not is_f32(data, filters):
        return None
    make, bf16 = _algorithm(op, data, w)
    return FusedKernel(make, 1, accepts=_accepts(op, w.shape[1], w.shape[2:]), bf16=bf16)


def _algorithm(op: Convolution, data: Value, w: Array) -> tuple[KernelFactory, Bf16Tensors]:
    """Choose the algorithm for constant filters; return its kernel factory and the tensors that may be stored in bf16."""
    products = requested_products()
    if _is_pointwise(op, w.shape[2:]):
        return lambda epilogue: _pointwise_kernel(w, epilogue, products), products.bf16_tensors(w.shape[1])
    if (count := neighbours(op, data, w)) > 1:
        return lambda epilogue: repeat_filters(
            op, w, epilogue, count, lambda op, w, rest: _window_algorithm(op, data, w, products)[0](rest)
        ), NO_BF16
    return _window_algorithm(op, data, w, products)


def _window_algorithm(
    op: Convolution, data: Value, w: Array, products: Products
) -> tuple[KernelFactory, Bf16Tensors]:
    """Choose the algorithm for one result per window; return the same as `_algorithm`."""
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
    """Return a GroupConvolution kernel for constant f32 filters with several channels per group, else ``None``.

    Filters that `is_by_windows` accepts are left to the `depthwise` kernel.
    """
    w = filters.known()
    if w is None or not w.size or not is_f32(data, filters) or w.shape[1:3] == (1, 1) or is_by_windows(w):
        return None
    accepts = _accepts(op, w.shape[0] * w.shape[2], w.shape[3:])
    requested = requested_products()
    products = (
        F32_PRODUCTS if w.shape[2] % requested.per_word else requested
    )  # a word must not span two groups
    return FusedKernel(
        lambda epilogue: _windows_kernel(op, w, epilogue, products), 1, accepts=accepts,
        bf16=products.bf16_tensors(w.shape[2]),
    )  # fmt: skip


def _is_pointwise(op: ForwardConvolution, kernel: Sequence[int]) -> bool:
    """Return whether windows are single pixels, without stride and padding."""
    single = math.prod(kernel) == 1 and all(s == 1 for s in op.strides)
    return single and not any(map(any, op.pads((1,) * len(kernel), kernel)))


def _prefers_winograd(op: ForwardConvolution, data: Value, w: Array, products: Products) -> bool:
    """Return whether f32 Winograd is applicable and faster than ``products``."""
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
    """Return an implicit GEMM over channels-last windows, for filters ``[G, C_out, C_in, kernel...]``."""
    groups, outputs, channels = w.shape[:3]
    filters = w.reshape(groups, outputs, channels, -1).transpose(0, 1, 3, 2)
    panels = products.pack(filters, epilogue.scale, epilogue.shift, 8 * filters.shape[2])
    product = WindowProduct(op, w.shape, panels, epilogue, products)

    def compute(x: Array, _: Array, *extras: Array) -> Array:
        return product(x, extras)

    return Kernel(compute, name=products.name, replay=replayed())


def _planar_kernel(op: ForwardConvolution, w: Array, epilogue: Epilogue) -> Kernel:
    """Return an implicit GEMM over planar f32 images of few channels."""
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
    """Return an implicit GEMM over images of few channels that are converted by `bf16_pictures`."""
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
    """Return ``x[N, C, ...]`` padded with zeros along its spatial axes, contiguous."""
    if not any(map(any, pads)):
        return contiguous(x)
    if x.ndim == 4:
        return pad_images(x, pads)
    lengths = [n + sum(pad) for n, pad in zip(x.shape[2:], pads, strict=True)]
    padded = np.zeros((*x.shape[:2], *lengths), np.float32)
    inside = tuple(slice(begin, begin + n) for n, (begin, _) in zip(x.shape[2:], pads, strict=True))
    padded[:, :, *inside] = x
    return padded


@backend.accelerates(Convolution)
def computed_dense(op: Convolution, data: Value, filters: Value) -> KernelTemplate | None:
    """Return a Convolution kernel for f32 filters that are not constant but have a static shape, else ``None``."""
    shape = (1, *filters.shape.static) if filters.shape.is_static else None
    return _computed_template(op, data, filters, shape)


@backend.accelerates(GroupConvolution)
def computed_groups(op: GroupConvolution, data: Value, filters: Value) -> KernelTemplate | None:
    """Return a GroupConvolution kernel for f32 filters that are not constant, with several channels per group.

    Returns ``None`` for other filters, and if their shape is not static.
    """
    shape = filters.shape.static if filters.shape.is_static else None
    return None if shape is None or shape[1:3] == (1, 1) else _computed_template(op, data, filters, shape)


def _computed_template(
    op: ForwardConvolution, data: Value, filters: Value, shape: tuple[int, ...] | None
) -> KernelTemplate | None:
    """Return a kernel for computed f32 filters of shape ``[G, C_out, C_in, kernel...]``, or ``None`` if unsupported."""
    if shape is None or 0 in shape or filters.known() is not None or not is_f32(data, filters):
        return None
    return FusedOfRun(
        lambda epilogue: _kernel(op, shape, epilogue),
        1,
        accepts=_accepts_computed(op, filters.shape.static, shape),
    )


def _accepts_computed(op: ForwardConvolution, filters: tuple[int, ...], shape: Sequence[int]) -> Accepts:
    """Return a check of the inputs: filters must have the shape ``filters``, and the data must fit them.

    ``shape`` is the same shape as ``[G, C_out, C_in, kernel...]``.
    """
    extents = [op.extent(axis, length) for axis, length in enumerate(shape[3:])]
    fits = filter_lengths(shape[0] * shape[2], extents)
    return lambda x, w, *_: w.shape == filters and fits(x)


def _kernel(op: ForwardConvolution, shape: tuple[int, ...], epilogue: Epilogue) -> Kernel:
    packing = FilterPacking.of(shape, epilogue.scale, epilogue.shift)
    product = WindowProduct(op, shape, packing.panels, epilogue, F32_PRODUCTS, GEMM_OF_RUN)

    def compute(x: Array, w: Array, *extras: Array) -> Array:
        return product(x, extras, packing.pack(contiguous(w)))

    return Kernel(compute, replay=replayed())
