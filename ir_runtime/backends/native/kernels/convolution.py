"""Convolutions, dense or with several channels per group, by filters that are constant or computed and packed in the run.

They are implicit GEMMs: windows are rows of a product, without im2col. If no window reaches into padding, a
kernel row is contiguous and one tap; otherwise each element is a tap, or lines are copied with zero padding.
In f32, images with few channels stay planar (NCHW) and are padded first, and a tap is a kernel row in one
channel. In bf16, their pixels become four numbers.

With few output channels, a filter is repeated, shifted by one stride each time, so that one window gives
several neighbouring results, and windows are correspondingly further apart. A shifted filter multiplies data
outside its window by zeros, which is wrong for infinities and NaN; such data is computed one result at a
time.
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
from ._gemm_kernel import F32_PRODUCTS, GEMM_OF_RUN, Layout, Products, Windows, asked_products, tap_offsets
from ._panels import FilterPacking, FusedOfRun, pack_panels
from ._rows import clear_row
from ._winograd import Winograd, is_profitable
from .depthwise import is_by_windows
from .padding import pad_images

__all__ = ["neighbours", "repeated"]

PIXEL = 4
"""The number of values in a pixel."""
PIXEL_BYTES = 2 * PIXEL


class PictureJob(Descriptor):
    """The job of `_pictures`: sizes of data and result, and the position of the data in the result."""

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
    """Round `LANES` numbers of four channels to bf16, and store them pixel by pixel."""
    builder, pairs = emit.builder, []
    for first, second in ((a, b), (c, d)):
        low, high = (builder.zext(as_bf16(emit, emit.load(each)), INTS) for each in (first, second))
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
    """Convert images to bf16 pixels; a unit is a result row."""
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
    """Convert images ``[N, C, H, W]`` to bf16 ``[N, H', W', 4]`` with zero borders.

    Args:
        x: the f32 images, of up to four channels.
        pads: the borders before and after each of the last two axes.
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


# The most results that one window gives, and the share of the work that must be saved.
MAX_NEIGHBOURS = 16
MIN_SAVED = 0.25


def neighbours(op: Convolution, data: Value, w: Array) -> int:
    """Return the number of neighbouring results that one window should give; 1 to leave the filters unchanged."""
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


def widened(
    op: Convolution, w: Array, epilogue: Epilogue, count: int, make: Callable[[Convolution, Array, Epilogue],
    Kernel],
) -> Kernel:  # fmt: skip
    """Return the kernel that ``make`` builds for filters giving ``count`` neighbouring results at once."""
    outputs, wide, step = len(w), w.shape[-1], op.strides[-1]
    filters = np.zeros((count, *w.shape[:-1], wide + (count - 1) * step), np.float32)
    for place in range(count):
        filters[place, ..., place * step : place * step + wide] = w
    strided = op.replace(strides=(*op.strides[:-1], count * step))
    kernel = make(strided, filters.reshape(-1, *filters.shape[2:]), repeated(epilogue, count)).run
    read = {post_op.extra for post_op in epilogue.post_ops}

    @cache
    def by_itself() -> Compute:
        return make(op, w, epilogue).run

    def compute(x: Array, given: Array, *extras: Array) -> Array | tuple[Array, ...]:
        if not _is_finite(x):
            return by_itself()(x, given, *extras)
        others = (_reshaped(extra, outputs * count) if i in read else extra for i, extra in enumerate(extras))
        y = kernel(x, given, *others)
        assert isinstance(y, np.ndarray)
        return _reshaped(y, outputs)

    return Kernel(compute)


def _is_finite(x: Array) -> bool:
    """Return whether all numbers are finite; numbers whose sum overflows may count as infinite."""
    with np.errstate(all="ignore"):
        return math.isfinite(x.sum())


def _reshaped(x: Array, channels: int) -> Array:
    """Reshape the same memory to another number of channels: row neighbours become channels, or the reverse."""
    stored = contiguous(moveaxis(x, 1, -1))
    *lead, columns, known = stored.shape
    return channels_first(stored.reshape(*lead, columns * known // channels, channels))


def repeated(epilogue: Epilogue, count: int) -> Epilogue:
    """Return the epilogue with columns repeated ``count`` times."""
    scale, shift = (None if row is None else np.tile(row, count) for row in (epilogue.scale, epilogue.shift))
    post_ops = tuple(_repeated_post_op(post_op, count) for post_op in epilogue.post_ops)
    return replace(epilogue, scale=scale, shift=shift, post_ops=post_ops)


def _repeated_post_op(post_op: TilePostOp, count: int) -> TilePostOp:
    row = post_op.row
    if row is None or (post_op.kind is PostOpKind.QUANTIZE and row.shape[-1] == 1):
        return post_op
    return replace(post_op, row=np.tile(row, count))


# Images with up to this many channels stay planar; with more, vectors of channels are faster.
MAX_PLANAR_CHANNELS = 4
# Those with at least this many have pixels of four numbers in bf16.
MIN_BF16_CHANNELS, PICTURE_RANK = 3, 4


@backend.accelerates(Convolution)
def dense(op: Convolution, data: Value, filters: Value) -> KernelTemplate | None:
    """Support constant f32 filters over one to three spatial axes."""
    w = filters.known()
    if w is None or not w.size or not is_f32(data, filters):
        return None
    make, bf16 = _algorithm(op, data, w)
    return FusedKernel(make, 1, accepts=_accepts(op, w.shape[1], w.shape[2:]), bf16=bf16)


def _algorithm(op: Convolution, data: Value, w: Array) -> tuple[KernelFactory, Bf16Tensors]:
    """Return the algorithm for filters, and the tensors that it can read and store in bf16."""
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
    """Return the algorithm for filters with one result per window, and the tensors that may be bf16."""
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
    """Support constant f32 filters with several channels per group."""
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
    """Return whether windows are single elements, without stride and padding."""
    single = math.prod(kernel) == 1 and all(s == 1 for s in op.strides)
    return single and not any(map(any, op.pads((1,) * len(kernel), kernel)))


def _prefers_winograd(op: ForwardConvolution, data: Value, w: Array, products: Products) -> bool:
    """Return whether Winograd in f32 is faster."""
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


@backend.accelerates(Convolution)
def computed_dense(op: Convolution, data: Value, filters: Value) -> KernelTemplate | None:
    """Support f32 filters of static shape over one to three spatial axes."""
    return _offer(op, data, filters, (1, *filters.shape.static) if filters.shape.is_static else None)


@backend.accelerates(GroupConvolution)
def computed_groups(op: GroupConvolution, data: Value, filters: Value) -> KernelTemplate | None:
    """Support f32 filters of static shape with several channels per group."""
    shape = filters.shape.static if filters.shape.is_static else None
    return None if shape is None or shape[1:3] == (1, 1) else _offer(op, data, filters, shape)


def _offer(
    op: ForwardConvolution, data: Value, filters: Value, shape: tuple[int, ...] | None
) -> KernelTemplate | None:
    """Return a kernel for filters ``[G, C_out, C_in, kernel...]``, or ``None`` if they are not supported."""
    if shape is None or 0 in shape or filters.known() is not None or not is_f32(data, filters):
        return None
    return FusedOfRun(
        lambda epilogue: _kernel(op, shape, epilogue),
        1,
        accepts=_accepts_computed(op, filters.shape.static, shape),
    )


def _accepts_computed(op: ForwardConvolution, given: tuple[int, ...], shape: Sequence[int]) -> Accepts:
    """Accept filters of this shape and matching data."""
    extents = [op.extent(axis, length) for axis, length in enumerate(shape[3:])]
    fits = filter_lengths(shape[0] * shape[2], extents)
    return lambda x, w, *_: w.shape == given and fits(x)


def _kernel(op: ForwardConvolution, shape: tuple[int, ...], epilogue: Epilogue) -> Kernel:
    packing = FilterPacking.of(shape, epilogue.scale, epilogue.shift)
    product = WindowProduct(op, shape, packing.panels, epilogue, F32_PRODUCTS, GEMM_OF_RUN)

    def compute(x: Array, w: Array, *extras: Array) -> Array:
        return product(x, extras, packing.pack(contiguous(w)))

    return Kernel(compute, replay=replayed())
