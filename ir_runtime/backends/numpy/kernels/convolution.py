"""Convolutions as matrix products over channels-last rows, block by block.

Windows are copied to patches (im2col), which filters multiply. If windows mostly cover padding, as with dilations as long as
the map, each kernel element multiplies a shifted part of the map instead, which skips the padding. Depthwise convolutions
use `np.einsum` over windows, NumPy's only fused multiply-add.

A transposed convolution is one GEMM over channels-last rows, then the sum of overlapping windows (col2im).

3x3 convolutions use Winograd's minimal filtering F(4x4, 3x3), which needs a quarter of the multiplications (Lavin & Gray,
Fast Algorithms for Convolutional Neural Networks, 2016). Tiles of 6x6 elements, and filters, are evaluated as polynomials at
36 points; at each point, the convolution is a GEMM over channels:

    filters:  G w Gt           once, when compiling
    data:     Bt x B           36 points of every tile
    product:  over channels, at every point
    result:   At y A           4x4 elements of every tile

The points are 0, ±11/16, ±11/8 and infinity. They are exact in binary, and have a quarter of the error of the usual
0, ±1, ±2: at most 2e-6 of the largest result, 1e-6 on average.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cache, lru_cache, partial
from itertools import product
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ....ir.pages import let_go
from ....ir.shape import PartialShape
from ....ir.tensor import Array, TensorType, Value
from ....limits import check_array_size
from ....ops.convolution import Convolution, ConvolutionBackpropData, ForwardConvolution, GroupConvolution
from ... import KernelTemplate
from ...common.epilogue import RowEpilogue, RowKernel
from ...common.layout import as_rows, channels_first, channels_last, is_f32, pad_spatial
from ...common.windows import window_fit
from ...core.kernel import Accepts, filter_lengths
from .._backend import backend
from ..parallel import parallel_for, thread_count
from ._gemm import EPILOGUE_COST, apply_epilogue, block_count, gemm, is_finite, own_matrix, split_range

__all__ = ["shifted_products", "suits_winograd", "windows", "winograd"]


def windows(
    x: Array,
    kernel: tuple[int, ...],
    strides: tuple[int, ...],
    dilations: tuple[int, ...],
    neighbours: int = 1,
) -> Array:
    """Return a view ``[position..., element..., C]`` of the windows of a contiguous ``x[spatial..., C]``.

    With a stride of 1 along the last spatial axis, every ``neighbours`` windows can be joined to one of
    ``neighbours * C`` channels.
    """
    extent = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    count = [max((n - e) // s + 1, 0) for n, e, s in zip(x.shape, extent, strides, strict=False)]
    # Strides are computed from the shape, since NumPy's strides of axes of length 1 are arbitrary.
    spatial = [x.itemsize * math.prod(x.shape[axis + 1 :]) for axis in range(len(kernel))]
    between = [n * s for n, s in zip(spatial, strides, strict=True)]
    within = [n * d for n, d in zip(spatial, dilations, strict=True)]
    count[-1], between[-1] = count[-1] // neighbours, between[-1] * neighbours
    shape = (*count, *kernel, x.shape[-1] * neighbours)
    # This takes a tenth of the time of `as_strided`, and checks the bounds.
    return np.ndarray(shape, x.dtype, x, 0, (*between, *within, x.itemsize))


OUT, KERNEL = 4, 3
TILE = OUT + KERNEL - 1
POINT_COUNT = TILE * TILE
POINTS = (0.0, 11 / 16, -11 / 16, 11 / 8, -11 / 8)

# Elements of transformed tiles and of their results per block, so that several passes find them in the L2 cache.
BLOCK_SIZE = 400_000
# The maximum size of filters: transformed, they take four times the memory, and large ones save little time.
MAX_FILTERS = 1 << 16
# With fewer channels, or on smaller feature maps, the transforms cost more than they save.
MIN_CHANNELS = 32
MIN_MAP = 10


def suits_winograd(op: Convolution, w: Array, lengths: tuple[int | None, ...]) -> bool:
    """Return whether Winograd's algorithm is faster; ``lengths`` are the spatial lengths of the data, ``None`` if unknown."""
    outputs, channels, *kernel = w.shape
    if kernel != [KERNEL, KERNEL] or any(n != 1 for n in (*op.strides, *op.dilations)):
        return False
    if min(outputs, channels) < MIN_CHANNELS or outputs * channels > MAX_FILTERS:
        return False
    return all(n is None or n >= MIN_MAP for n in lengths)


def winograd(
    op: Convolution, w: Array, fallback: Callable[[], Callable[..., Array]]
) -> Callable[[Array, Array, RowEpilogue], Array]:
    """Return a function of data, filters and a `RowEpilogue` that computes a convolution.

    A NaN, infinity or overflow would spread over its tile. If the result has any, the function that ``fallback()`` returns
    computes the convolution again.
    """
    outputs, channels = w.shape[:2]
    filters = _transform_filters(w)
    fit = window_fit(op, (KERNEL, KERNEL))

    def compute(x: Array, w: Array, epilogue: RowEpilogue) -> Array:
        ((top, bottom), (left, right)), (height, width) = fit(x.shape[2:])
        rows, columns = -(-height // OUT), -(-width // OUT)
        pads = (top, bottom + OUT * rows - height), (left, right + OUT * columns - width)
        data = pad_spatial(channels_last(x), pads)
        y, finite = np.empty((len(x), height, width, outputs), np.float32), list[bool]()

        def work(chunk: tuple[int, slice]) -> None:
            image, part = chunk
            results = _tiles(data[image, OUT * part.start : OUT * part.stop + KERNEL - 1], filters)
            finite.append(is_finite(results.reshape(-1)))
            block = y[image, OUT * part.start : OUT * part.stop]
            _place(results, block)
            epilogue(block.reshape(-1, outputs), (image * height + OUT * part.start) * width)

        cost = y.size * w.size // outputs
        blocks = rows * columns * POINT_COUNT * (channels + outputs) // BLOCK_SIZE
        parts = split_range(rows, max(blocks, thread_count(cost)))
        parallel_for(work, [(image, part) for image in range(len(x)) for part in parts], cost)
        return channels_first(y) if all(finite) else fallback()(x, w, epilogue)

    return compute


def _tiles(rows: Array, filters: Array) -> Array:
    """Return the convolution of padded ``rows[row, column, C]`` as tiles ``[4, 4, tile row, tile column, output]``.

    ``filters`` are those of `_transform_filters`.
    """
    tiles = windows(rows, (TILE, TILE), (OUT, OUT), (1, 1)).transpose(2, 3, 0, 1, 4)
    *_, height, width, channels = tiles.shape
    data = _DATA @ tiles.reshape(POINT_COUNT, -1)
    products = np.matmul(data.reshape(POINT_COUNT, -1, channels), filters)
    results: Array = _RESULT @ products.reshape(POINT_COUNT, -1)
    return results.reshape(OUT, OUT, height, width, -1)


def _place(results: Array, out: Array) -> None:
    """Copy the results of tiles into ``out[height, width, outputs]``; tiles at its lower and right edge are cropped."""
    *_, rows, columns, outputs = results.shape
    placed = results.transpose(2, 0, 3, 1, 4)
    if out.shape[:2] == (rows * OUT, columns * OUT):
        out.reshape(placed.shape)[...] = placed
    else:
        out[...] = placed.reshape(rows * OUT, columns * OUT, outputs)[: out.shape[0], : out.shape[1]]


def _transforms() -> tuple[Array, Array, Array]:
    """Return the matrices ``At``, ``G`` and ``Bt`` for one axis (Toom-Cook); the last point is infinity."""
    denominators = [math.prod(p - q for q in POINTS if q != p) for p in POINTS]
    result = np.zeros((OUT, TILE))
    filters = np.zeros((TILE, KERNEL))
    data = np.zeros((TILE, TILE))
    for i, (p, d) in enumerate(zip(POINTS, denominators, strict=True)):
        result[:, i] = [p**k for k in range(OUT)]
        filters[i] = [p**k / d for k in range(KERNEL)]
        data[i, :-1] = np.poly([q for q in POINTS if q != p])[::-1]
    result[-1, -1] = filters[-1, -1] = 1
    data[-1] = np.poly(POINTS)[::-1]
    return result, filters, data


_AT, _G, _BT = _transforms()
# Both axes in one product: 36 points from 9 weights or 36 elements, and 16 results from 36 points.
_FILTERS = np.kron(_G, _G).astype(np.float32)
_DATA = np.kron(_BT, _BT).astype(np.float32)
_RESULT = np.kron(_AT, _AT).astype(np.float32)


def _transform_filters(w: Array) -> Array:
    """Return the matrix ``[C, outputs]`` of filters ``[outputs, C, 3, 3]`` at each point."""
    outputs, channels = w.shape[:2]
    with np.errstate(all="ignore"):  # values that are not finite show in the results
        filters: Array = _FILTERS @ w.transpose(2, 3, 1, 0).reshape(KERNEL * KERNEL, -1)
    let_go(w)
    return filters.reshape(POINT_COUNT, channels, outputs)


# The patches of a block: at most as many bytes as stay in the L2 cache, but enough patches to amortize the packing of the
# filters by BLAS. With several threads, blocks are larger by a factor, since threads may wait for each other (GIL) after
# each call.
PATCH_BYTES, MIN_PATCHES, SHARED_FACTOR = 600_000, 224, 4
# The cost of copying an element of a patch, in multiplications.
PATCH_COST = 8

Block: TypeAlias = "tuple[int | slice, ...]"
"""The index of a block of consecutive positions of a result."""


class Im2Col:
    """A convolution with filters ``[G, C_out, C_in, kernel...]`` by im2col."""

    def __init__(self, op: ForwardConvolution, w: Array) -> None:
        groups, outputs, channels, *kernel = w.shape
        self._op, self._kernel = op, tuple(kernel)
        self._fit = window_fit(op, self._kernel)
        filters = np.empty((groups, *kernel, channels, outputs), np.float32)
        filters[...] = w.transpose(0, *range(3, w.ndim), 2, 1)
        self._filters = filters.reshape(groups, -1, outputs)
        let_go(w)

    def compute(self, x: Array, w: Array, epilogue: RowEpilogue) -> Array:
        """Return the result for data ``x[N, C, spatial...]``; ``w`` is ignored, as the filters are packed."""
        pads, out = self._fit(x.shape[2:])
        data = pad_spatial(channels_last(x), pads)
        groups, depth, outputs = self._filters.shape
        y = np.empty((len(x), *out, groups * outputs), np.float32)
        count = math.prod(out)
        cost = len(x) * count * groups * (depth * (outputs + PATCH_COST) + outputs * EPILOGUE_COST)
        threads = thread_count(cost)
        if groups == 1 and threads > 1 and count < outputs:
            self._share_filters(data, y, epilogue)
            return channels_first(y)

        def work(chunk: tuple[int, Block, int]) -> None:
            image, block, first = chunk
            rows = y[(image, *block)].reshape(-1, groups * outputs)
            patches = self._patches(data[image], block)
            np.matmul(patches, self._filters, rows.reshape(-1, groups, outputs).swapaxes(0, 1))
            epilogue(rows, image * count + first)

        blocks = list(_split(out, self._patches_at_once(threads), threads)) if y.size else []
        parallel_for(work, [(image, *block) for image in range(len(x)) for block in blocks], cost)
        return channels_first(y)

    def _share_filters(self, data: Array, y: Array, epilogue: RowEpilogue) -> None:
        """Compute the result with output channels shared among threads, so that they pack filters in parallel."""
        count = math.prod(y.shape[1:-1])
        for image, rows in enumerate(y):
            patches = self._patches(data[image], (slice(None),))[0]

            def apply_to_image(block: Array, first: int, image: int = image) -> None:
                epilogue(block, image * count + first)

            gemm(patches, self._filters[0], rows.reshape(count, -1), apply_to_image)

    def _patches(self, image: Array, block: Block) -> Array:
        """Copy the windows of a block of positions to patches ``[G, position, depth]``."""
        groups, depth, _ = self._filters.shape
        view = windows(image, self._kernel, self._op.strides, self._op.dilations)[block]
        grouped = np.moveaxis(view.reshape(*view.shape[:-1], groups, -1), -2, 0) if groups > 1 else view
        return np.ascontiguousarray(grouped).reshape(groups, -1, depth)

    def _patches_at_once(self, threads: int) -> int:
        groups, depth, _ = self._filters.shape
        return (SHARED_FACTOR if threads > 1 else 1) * max(PATCH_BYTES // (4 * groups * depth), MIN_PATCHES)


def _split(out: tuple[int, ...], most: int, threads: int) -> Iterator[tuple[Block, int]]:
    """Split the positions of a result into blocks; yield the index of each, and the number of positions before it.

    Args:
        out: the spatial lengths of the result.
        most: the maximum number of positions of a block.
        threads: the minimum number of blocks, unless a block is a part of a slice along the first axis.
    """
    sizes = [math.prod(out[axis + 1 :]) for axis in range(len(out))]
    axis = next((axis for axis, size in enumerate(sizes) if size <= most), len(out) - 1)
    count = max(-(-out[axis] // max(most // sizes[axis], 1)), threads if not axis else 1)
    for prefix in product(*map(range, out[:axis])):
        before = sum(index * size for index, size in zip(prefix, sizes, strict=False))
        for part in split_range(out[axis], count):
            yield (*prefix, part), before + part.start * sizes[axis]


# One product per kernel element pays off only if it takes at most this share of the multiplications of im2col, and saves at
# least this many for each product.
MAX_SHARE, MIN_SAVED = 0.6, 400_000


class _Element(NamedTuple):
    """A kernel element, the positions of the result at which it is inside the map, and the elements that it meets there."""

    place: tuple[int, ...]
    """The index in the kernel."""
    out: tuple[slice, ...]
    source: tuple[slice, ...]

    def restrict_rows(self, rows: slice) -> _Element:
        """Restrict the positions to ``rows`` of the first spatial axis."""
        out, source = self.out[0], self.source[0]
        start = max(out.start, rows.start)
        stop = max(min(out.stop, rows.stop), start)
        shift = source.start - out.start
        return _Element(
            self.place,
            (slice(start, stop), *self.out[1:]),
            (slice(start + shift, stop + shift), *self.source[1:]),
        )

    @property
    def size(self) -> int:
        """The number of positions."""
        return math.prod(part.stop - part.start for part in self.out)


def shifted_products(
    op: Convolution, w: Array, lengths: Sequence[int | None]
) -> Callable[[Array, Array, RowEpilogue], Array] | None:
    """Return a function of data, filters and a `RowEpilogue` that computes a convolution by a product for each kernel element.

    Returns ``None`` if lengths are unknown, a stride is not 1, a filter is not finite, or im2col is faster.

    Args:
        op: the operation.
        w: filters ``[C_out, C_in, kernel...]``.
        lengths: the spatial lengths of the data, ``None`` if unknown.
    """
    known = tuple(n for n in lengths if n is not None)
    if len(known) < w.ndim - 2 or any(stride != 1 for stride in op.strides) or not np.isfinite(w).all():
        return None
    out, elements = _elements(op, w.shape[2:], known)
    outputs, channels = w.shape[:2]
    met = [element for element in elements if element.size]
    positions, all_positions = sum(element.size for element in met), len(elements) * math.prod(out)
    saved = (all_positions - positions) * channels * outputs
    if positions > MAX_SHARE * all_positions or saved < MIN_SAVED * len(met):
        return None
    by_element = w.transpose(*range(2, w.ndim), 1, 0)
    packed = [own_matrix(by_element[element.place], w) for element in met]

    def compute(x: Array, w: Array, epilogue: RowEpilogue) -> Array:
        data = channels_last(x)
        y = np.empty((len(x), *out, outputs), np.float32)

        def work(chunk: tuple[int, slice]) -> None:
            image, rows = chunk
            result = y[image]
            result[rows].fill(0)
            for element, filters in zip(met, packed, strict=True):
                _add(data[image], result, element.restrict_rows(rows), filters)
            epilogue(result[rows].reshape(-1, outputs), (image * out[0] + rows.start) * math.prod(out[1:]))

        multiplied = len(x) * positions * channels * outputs
        parts = split_range(out[0], thread_count(multiplied))
        parallel_for(work, [(image, rows) for image in range(len(x)) for rows in parts], multiplied)
        return channels_first(y)

    return compute


def _elements(
    op: Convolution, kernel: tuple[int, ...], lengths: tuple[int, ...]
) -> tuple[tuple[int, ...], list[_Element]]:
    """Return the spatial lengths of the result and the kernel elements, given the kernel's lengths and those of the data."""
    pads, out = window_fit(op, kernel)(lengths)
    axes = zip(kernel, op.dilations, pads, lengths, out, strict=True)
    places = [
        [_overlap(index * dilation - begin, length, count) for index in range(size)]
        for size, dilation, (begin, _), length, count in axes
    ]
    elements = []
    for place in product(*map(range, kernel)):
        parts = [axis[index] for axis, index in zip(places, place, strict=True)]
        elements.append(
            _Element(place, tuple(part.out for part in parts), tuple(part.source for part in parts))
        )
    return out, elements


class _Overlap(NamedTuple):
    """Along an axis, the positions of the result at which a kernel element meets the data, and the elements that it meets."""

    out: slice
    source: slice


def _overlap(shift: int, length: int, count: int) -> _Overlap:
    """Return which of ``count`` positions, moved by ``shift``, are within data of ``length`` elements."""
    start = min(max(-shift, 0), count)
    stop = max(min(count, length - shift), start)
    return _Overlap(slice(start, stop), slice(start + shift, stop + shift))


def _add(data: Array, result: Array, element: _Element, filters: Array) -> None:
    """Add the product of the data that a kernel element meets and the element's filters to the result."""
    if element.size:
        target = result[element.out]
        np.add(target, np.matmul(np.ascontiguousarray(data[element.source]), filters), out=target)


# The cost of a multiplication of a depthwise convolution, relative to one of a GEMM.
COST = 6
# Elements of an inner loop, if a row of the feature map is that long.
INNER_LOOP = 2048

_POSITION, _ELEMENT = "uvw", "xyz"


class Depthwise:
    """A depthwise convolution with filters ``[C, 1, 1, kernel...]``.

    If the last stride is 1, the channels of neighbouring windows are contiguous, so that several windows are computed as one.
    """

    def __init__(self, op: GroupConvolution, w: Array) -> None:
        self._op, self._kernel = op, w.shape[3:]
        self._fit = window_fit(op, self._kernel)
        self._filters = np.ascontiguousarray(np.moveaxis(w[:, 0, 0], 0, -1))
        axes = len(self._kernel)
        position, element = _POSITION[:axes], _ELEMENT[:axes]
        self._subscripts = f"{position}{element}c,{element}c->{position}c"
        self._repeated = lru_cache(maxsize=16)(partial(np.tile, self._filters))

    def compute(self, x: Array, w: Array, epilogue: RowEpilogue) -> Array:
        """Return the result for data ``x[N, C, spatial...]``; ``w`` is ignored, as the filters are packed."""
        pads, out = self._fit(x.shape[2:])
        channels = x.shape[1]
        data = pad_spatial(channels_last(x), pads)
        y = np.empty((len(x), *out, channels), np.float32)
        inner, (step, *_) = math.prod(out[1:]), self._op.strides
        extent = self._op.extent(0, self._kernel[0])

        def work(chunk: tuple[int, slice]) -> None:
            image, rows = chunk
            source = data[image, rows.start * step : (rows.stop - 1) * step + extent]
            self._windows(source, y[image, rows])
            epilogue(y[image, rows].reshape(-1, channels), (image * out[0] + rows.start) * inner)

        size = y.size * math.prod(self._kernel) * COST
        blocks = block_count(y[:1].size, thread_count(size))
        parts = [(image, rows) for image in range(len(x)) for rows in split_range(out[0], blocks)]
        parallel_for(work, parts if y.size else [], size)
        return channels_first(y)

    def _windows(self, source: Array, out: Array) -> None:
        """Compute the windows of rows, joined in groups; the remaining windows of each row form a smaller group."""
        *_, columns, channels = out.shape
        times = min(max(INNER_LOOP // channels, 1), columns) if self._op.strides[-1] == 1 else 1
        whole = columns // times * times
        self._compute_joined(source, out[..., :whole, :], times)
        if whole < columns:
            self._compute_joined(source[..., whole:, :], out[..., whole:, :], columns - whole)

    def _compute_joined(self, source: Array, out: Array, times: int) -> None:
        """Compute windows joined in groups of ``times``."""
        view = windows(
            np.ascontiguousarray(source), self._kernel, self._op.strides, self._op.dilations, times
        )
        *before, columns, channels = out.shape
        joined = out.reshape(*before, columns // times, times * channels)
        place = tuple(slice(length) for length in joined.shape[:-1])
        np.einsum(self._subscripts, view[place], self._repeated(times), out=joined)


@backend.accelerates(Convolution)
def convolution(op: Convolution, data: Value, filters: Value) -> KernelTemplate | None:
    """Return a kernel for f32 data and constant filters over one to three spatial axes, else ``None``."""
    w = filters.known()
    if w is None or not w.size or not is_f32(data, filters):
        return None
    if math.prod(w.shape[2:]) == 1 and not any(map(any, op.pads((1,) * (w.ndim - 2), w.shape[2:]))):
        return _one_position(w) if _is_one_position(data) else _pointwise(op, w)
    lengths = _spatial_lengths(data)
    if (shifted := shifted_products(op, w, lengths)) is not None:
        return RowKernel(shifted, 2, 1, accepts=_accepts(op, w[None]))
    if suits_winograd(op, w, lengths):
        few = w.copy()  # for the fallback: the file may be gone by then
        direct = cache(lambda: Im2Col(op, few[None]).compute)
        return RowKernel(winograd(op, w, direct), 2, 1, accepts=_accepts(op, w[None]))
    return RowKernel(Im2Col(op, w[None]).compute, 2, 1, accepts=_accepts(op, w[None]))


def _accepts(op: ForwardConvolution, w: Array) -> Accepts:
    """Return the check of data lengths for filters ``[G, C_out, C_in, kernel...]``."""
    extents = [op.extent(axis, length) for axis, length in enumerate(w.shape[3:])]
    return filter_lengths(w.shape[0] * w.shape[2], extents)


def _is_one_position(data: Value) -> bool:
    """Return whether the data are a single image of a single position."""
    shape = data.shape
    return shape.is_static and shape.static[0] == 1 and set(shape.static[2:]) == {1}


def _spatial_lengths(data: Value) -> tuple[int | None, ...]:
    """Return the spatial lengths, ``None`` for each unknown one."""
    return () if data.shape.rank is None else tuple(n.min if n.is_static else None for n in data.shape)[2:]


def _one_position(w: Array) -> RowKernel:
    """Return a pointwise convolution of a single position: a product of one row, which reads each weight once."""
    matrix = own_matrix(w.reshape(w.shape[:2]).T, w)

    def compute(x: Array, _: Array, epilogue: RowEpilogue) -> Array:
        y = np.empty((1, matrix.shape[1]), np.float32)
        np.dot(x.reshape(1, -1), matrix, y)
        epilogue(y, 0)
        return y.reshape(1, -1, *x.shape[2:])

    return RowKernel(compute, 2, 1)


def _pointwise(op: Convolution, w: Array) -> RowKernel:
    """Return a pointwise (1x1) convolution, which is a single GEMM."""
    columns = len(w)
    matrix = own_matrix(w.reshape(w.shape[:2]).T, w)
    steps = (slice(None), slice(None), *(slice(None, None, s) for s in op.strides))
    strided = any(s != 1 for s in op.strides)
    fit = window_fit(op, w.shape[2:])

    def compute(x: Array, _: Array, epilogue: RowEpilogue) -> Array:
        fit(x.shape[2:])  # raises if no window fits
        sampled = x[steps] if strided else x
        y = np.empty((len(sampled), *sampled.shape[2:], columns), np.float32)
        gemm(as_rows(sampled, 1), matrix, y.reshape(-1, columns), epilogue)
        return channels_first(y)

    return RowKernel(compute, 2, 1, accepts=_accepts(op, w[None]))


@backend.accelerates(GroupConvolution)
def group_convolution(op: GroupConvolution, data: Value, filters: Value) -> KernelTemplate | None:
    """Return a kernel for constant f32 filters, depthwise or with several channels per group, else ``None``."""
    w = filters.known()
    if w is None or not w.size or not is_f32(data, filters):
        return None
    if w.shape[1:3] == (1, 1):
        return RowKernel(Depthwise(op, w).compute, 2, 1, accepts=_accepts(op, w))
    return RowKernel(Im2Col(op, w).compute, 2, 1, accepts=_accepts(op, w))


@backend.accelerates(ConvolutionBackpropData)
def transposed_convolution(
    op: ConvolutionBackpropData, data: Value, filters: Value, output_shape: Value | None = None
) -> KernelTemplate | None:
    """Return a kernel for constant f32 filters, and an output shape that is constant or absent, else ``None``."""
    w = filters.known()
    if w is None or not w.size or not is_f32(data, filters):
        return None
    if output_shape is not None and output_shape.known() is None:
        return None
    outputs, kernel = w.shape[1], w.shape[2:]
    blocks = set(op.dilations) == {1} and not any(k % s for k, s in zip(kernel, op.strides, strict=True))
    columns = _split_into_blocks(w, op.strides) if blocks else np.moveaxis(w, 1, -1)
    matrix = own_matrix(columns.reshape(len(w), -1), w)
    shape_input = () if output_shape is None else (output_shape,)

    @lru_cache(maxsize=64)
    def fit(shape: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return how many elements are cropped at the begin of each axis, and the spatial lengths of the output."""
        value = Value(TensorType(data.element, PartialShape(shape)))
        lengths = op.infer(value, filters, *shape_input).static[2:]
        return tuple(op.begins(shape[2:], kernel, lengths, bool(shape_input))), lengths

    def compute(x: Array, w: Array, *rest: object) -> Array:
        epilogue: RowEpilogue = rest[-1]  # type: ignore[assignment]
        begins, lengths = fit(x.shape)
        rows = np.ascontiguousarray(as_rows(x, 1))
        check_array_size(len(rows) * matrix.shape[1], x.itemsize)
        products = np.empty((len(rows), matrix.shape[1]), np.float32)
        gemm(rows, matrix, products, lambda block, first: None)
        windows = products.reshape(len(x), *x.shape[2:], *columns.shape[1:])
        if blocks:
            y = _add_blocks(windows, begins, lengths)
        else:
            y = _col2im(windows, op.strides, op.dilations, begins, lengths)
        apply_epilogue(y.reshape(-1, outputs), epilogue)
        return channels_first(y)

    return RowKernel(compute, 2 + len(shape_input), 1)


def _split_into_blocks(w: Array, strides: tuple[int, ...]) -> Array:
    """Split the kernel of ``w[inputs, outputs, kernel...]`` into blocks: ``[inputs, block..., phase..., outputs]``.

    Blocks are as long as the strides; a phase is a position within a block.
    """
    axes = len(strides)
    lengths = (n for k, s in zip(w.shape[2:], strides, strict=True) for n in (k // s, s))
    order = (*range(2, 2 * axes + 2, 2), *range(3, 2 * axes + 2, 2))
    return w.reshape(*w.shape[:2], *lengths).transpose(0, *order, 1)


def _add_blocks(windows: Array, begins: tuple[int, ...], lengths: tuple[int, ...]) -> Array:
    """Add ``windows[N, spatial..., block..., phase..., outputs]`` at their positions, and crop the output, like `_col2im`.

    Blocks are as long as the strides, so that the blocks of all windows are aligned, and one call adds a block of every window.

    Args:
        windows: the windows.
        begins: how many elements to crop at the begin of each spatial axis.
        lengths: the spatial lengths of the output.
    """
    axes = len(lengths)
    counts, blocks, strides = (windows.shape[1 + n * axes : 1 + (n + 1) * axes] for n in range(3))
    reach = [
        max(n + k - 1, -(-(b + m) // s))
        for n, k, s, b, m in zip(counts, blocks, strides, begins, lengths, strict=True)
    ]
    lined_up = (axis + more for axis in range(1, axes + 1) for more in (0, 2 * axes))
    windows = windows.transpose(*range(axes + 1, 2 * axes + 1), 0, *lined_up, 3 * axes + 1)
    whole = [n * s for n, s in zip(reach, strides, strict=True)]
    check_array_size(windows.shape[axes] * math.prod(whole) * windows.shape[-1], windows.itemsize)
    if math.prod(blocks) == 1 and tuple(reach) == counts:
        y = np.ascontiguousarray(windows[(0,) * axes])  # no windows overlap
    else:
        shape = (n for both in zip(reach, strides, strict=True) for n in both)
        y = np.zeros((windows.shape[axes], *shape, windows.shape[-1]), windows.dtype)
        for block in product(*map(range, blocks)) if windows.size else ():
            target = (
                places
                for b, n in zip(block, counts, strict=True)
                for places in (slice(b, b + n), slice(None))
            )
            inside = y[(slice(None), *target)]
            np.add(inside, windows[block], out=inside)
    y = y.reshape(len(y), *whole, y.shape[-1])
    cropped = y[(slice(None), *(slice(b, b + m) for b, m in zip(begins, lengths, strict=True)))]
    return np.ascontiguousarray(cropped)


def _col2im(
    windows: Array,
    strides: tuple[int, ...],
    dilations: tuple[int, ...],
    begins: tuple[int, ...],
    lengths: tuple[int, ...],
) -> Array:
    """Add overlapping ``windows[N, spatial..., kernel..., outputs]`` at their positions, and crop the output.

    Args:
        windows: the windows.
        strides: the distance of neighbouring windows along each axis.
        dilations: the distance of neighbouring elements of a window along each axis.
        begins: how many elements to crop at the begin of each axis.
        lengths: the spatial lengths of the output.
    """
    axes = len(strides)
    counts, kernel = windows.shape[1 : axes + 1], windows.shape[axes + 1 : -1]
    reach = [
        max((n - 1) * s + (k - 1) * d + 1, b + m)
        for n, s, k, d, b, m in zip(counts, strides, kernel, dilations, begins, lengths, strict=True)
    ]
    check_array_size(len(windows) * math.prod(reach) * windows.shape[-1], windows.itemsize)
    y = np.zeros((len(windows), *reach, windows.shape[-1]), windows.dtype)
    for element in product(*map(range, kernel)) if windows.size else ():
        target = tuple(
            slice(e * d, e * d + (n - 1) * s + 1, s)
            for e, d, n, s in zip(element, dilations, counts, strides, strict=True)
        )
        index: Any = (..., *element, slice(None))
        inside = y[(slice(None), *target)]
        np.add(inside, windows[index], out=inside)
    cropped = y[(slice(None), *(slice(b, b + m) for b, m in zip(begins, lengths, strict=True)))]
    return np.ascontiguousarray(cropped)
