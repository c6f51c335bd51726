"""Convolutions as matrix products over rows of channels."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache, partial

import numpy as np

from ....ir.tensor import Array, Value
from ....ops import Op
from ....ops.convolution.forward import Convolution, ForwardConvolution, GroupConvolution
from ... import Kernel
from ...common.epilogue import RowEpilogue, RowKernel
from ...common.layout import FEW, channels_first, channels_last, is_f32, padded, rows_of
from ...common.tape import Tape
from ...core.lengths import Accepts, filter_lengths
from .._backend import backend
from ..math.gemm import multiply, parts
from ..math.panels import Panels
from ..math.windows import fitting, windows
from ..threading.parallel import each, share
from ..tiling.fused_layers import Lines
from ..tiling.tiled_layer import Part
from ._winograd import suits, winograd
from .depthwise import depthwise

__all__ = ["following"]

# Patches are copied side by side for one matrix product; so many bytes of them stay in the second cache.
PATCHES = 600_000
# Threads take so many times as much: they may wait for each other after each call of NumPy.
SHARED = 4
# Fewer rows than this are not worth that BLAS packs the filters for each product.
LEAST_ROWS = 224


@backend.accelerates(Convolution)
def dense(op: Convolution, data: Value, filters: Value) -> Kernel | None:
    """Constant f32 filters over one to three spatial axes."""
    w = filters.known()
    if w is None or not w.size or not is_f32(data, filters):
        return None
    if math.prod(w.shape[2:]) == 1 and not any(map(any, op.pads((1,) * (w.ndim - 2), w.shape[2:]))):
        return _pointwise(op, w)
    if w.shape[1] <= FEW:
        return _few(op, w)
    if suits(op, w, _lengths(data)):
        return RowKernel(winograd(op, w, cache(partial(_dense, op, w))), 2, 1, accepts=_accepts(op, w[None]))
    return RowKernel(_dense(op, w), 2, 1, accepts=_accepts(op, w[None]))


def _accepts(op: ForwardConvolution, w: Array) -> Accepts:
    """Of filters ``[G, C_out, C_in, kernel...]``."""
    extents = [op.extent(axis, length) for axis, length in enumerate(w.shape[3:])]
    return filter_lengths(w.shape[0] * w.shape[2], extents)


def _lengths(data: Value) -> tuple[int | None, ...]:
    """Those behind the channels, where they are known."""
    return () if data.shape.rank is None else tuple(n.min if n.is_static else None for n in data.shape)[2:]


def _pointwise(op: Convolution, w: Array) -> Kernel:
    """One product; over two axes, a part of what is computed line by line."""
    columns = len(w)
    packed = cache(partial(Panels.of, w.reshape(w.shape[:2]).T, w))
    steps = (slice(None), slice(None), *(slice(None, None, s) for s in op.strides))
    strided = any(s != 1 for s in op.strides)
    fit = fitting(op, w.shape[2:])

    def compute(x: Array, finish: RowEpilogue) -> Array:
        fit(x.shape[2:])  # says so if no window fits
        seen = x[steps] if strided else x
        rows = rows_of(seen, 1)
        y = np.empty((len(seen), *seen.shape[2:], columns), np.float32)
        multiply(rows, packed(), y.reshape(-1, columns), finish)
        return channels_first(y)

    def calls(source: Array, out: Array, spare: Array, some: slice) -> Tape:
        rows = source.reshape(-1, source.shape[-1])
        return packed().some(rows, out.reshape(-1, out.shape[-1]), some)

    if w.ndim != 4 or strided:
        packed()
        return RowKernel(lambda x, _, finish: compute(x, finish), 2, 1, accepts=_accepts(op, w[None]))
    return Lines(
        (Part(op, (1, 1), columns, w.size, calls, alone=compute, ready=packed),), following, w.shape[1]
    )


def following(op: Op, inputs: Sequence[Value], last: Part) -> Part | None:
    """A convolution of one channel each behind a product of channels, a product behind anything else."""
    if len(inputs) != 2:
        return None
    product = last.op is not None and last.take is None
    shape = inputs[1].shape.static if inputs[1].shape.is_static else ()
    if not product and isinstance(op, Convolution) and shape[2:] == (1, 1):
        kernel = dense(op, *inputs)
    elif product and isinstance(op, GroupConvolution) and shape[1:3] == (1, 1):
        kernel = grouped(op, *inputs)
    else:
        return None
    return kernel.parts[0] if isinstance(kernel, Lines) else None


def _dense(op: Convolution, w: Array) -> Callable[..., Array]:
    outputs, kernel = len(w), w.shape[2:]
    packed = Panels((w[0].size, outputs), partial(_packed, w), w)
    fit = fitting(op, kernel)

    def compute(x: Array, w: Array, finish: RowEpilogue) -> Array:
        pads, out = fit(x.shape[2:])
        y = np.empty((len(x), *out, outputs), np.float32)
        flat = y.reshape(len(x), math.prod(out), outputs)
        for index, image in enumerate(padded(channels_last(x), pads)):
            every = windows(image, kernel, op.strides, op.dilations)
            _image(every, packed, flat[index], finish, index * flat.shape[1])
        return channels_first(y)

    return compute


def _packed(w: Array, columns: slice, out: Array) -> None:
    """Some filters ``[outputs, C, kernel...]`` into ``[panel, element of the kernel and channel, output]``."""
    _, channels, *kernel = w.shape
    panels, _, width = out.shape
    filters = w[columns].reshape(panels, width, channels, -1).transpose(0, 3, 2, 1)
    out.reshape(panels, math.prod(kernel), channels, width)[...] = filters


def _image(every: Array, packed: Panels, out: Array, finish: RowEpilogue, first: int) -> None:
    """The rows of one image: patches of a few lines at a time, or all of them if the filters are more."""
    size = packed.depth
    if len(out) < packed.columns:
        patches = np.ascontiguousarray(every).reshape(len(out), size)
        multiply(patches, packed, out, lambda block, start: finish(block, first + start))
        return
    inner = len(out) // max(len(every), 1)

    def work(part: slice) -> None:
        patches = np.ascontiguousarray(every[part]).reshape(-1, size)
        start = part.start * inner
        rows = out[start : start + len(patches)]
        packed.multiply(patches, rows)
        finish(rows, first + start)

    count = _blocks(len(every), size, inner, share(out.size * size))
    each(work, parts(len(every), count), out.size * size)


def _few(op: Convolution, w: Array) -> Kernel:
    """Of a picture's few channels, patches are copied element by element of the kernel: along lines, not channels."""
    outputs, _, *kernel = w.shape
    packed = Panels.of(w.reshape(outputs, -1).T, w)
    fit = fitting(op, tuple(kernel))
    axes = len(kernel)
    # From windows of images [channel, position..., 1, element..., 1].
    order = (0, *range(axes + 1, 2 * axes + 2), *range(1, axes + 1), 2 * axes + 2)

    def compute(x: Array, w: Array, finish: RowEpilogue) -> Array:
        pads, out = fit(x.shape[2:])
        inner = math.prod(out[1:])
        y = np.empty((len(x), *out, outputs), np.float32)
        images = padded(x[..., None], ((0, 0), *pads))

        def work(piece: tuple[int, slice]) -> None:
            image, lines = piece
            every = windows(images[image], (1, *kernel), (1, *op.strides), (1, *op.dilations))
            patches = np.ascontiguousarray(every[:, lines].transpose(order)).reshape(packed.depth, -1)
            rows = y[image, lines].reshape(-1, outputs)
            packed.multiply(patches.T, rows)
            finish(rows, image * out[0] * inner + lines.start * inner)

        multiplied = y.size * packed.depth
        blocks = _blocks(out[0], packed.depth, inner, share(multiplied))
        each(work, [(n, part) for n in range(len(x)) for part in parts(out[0], blocks)], multiplied)
        return channels_first(y)

    return RowKernel(compute, 2, 1, accepts=_accepts(op, w[None]))


def _blocks(lines: int, size: int, inner: int, threads: int) -> int:
    """In how many blocks to take lines of patches: where threads share them, larger ones, and one for each."""
    some = _lines(size, inner)
    return -(-lines // some) if threads < 2 else max(-(-lines // (SHARED * some)), threads)


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
        return Lines((depthwise(op, w),), following, len(w))
    return _grouped(op, w)


def _grouped(op: GroupConvolution, w: Array) -> Kernel:
    groups, outputs, channels, *kernel = w.shape
    packed = np.ascontiguousarray(np.moveaxis(w, (1, 2), (-1, -2)).reshape(groups, -1, outputs))
    fit = fitting(op, tuple(kernel))
    size = packed.shape[1]

    def compute(x: Array, w: Array, finish: RowEpilogue) -> Array:
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

    return RowKernel(compute, 2, 1, accepts=_accepts(op, w))
