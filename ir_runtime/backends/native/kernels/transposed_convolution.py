"""Transposed convolutions with constant filters, as products that compute all phases of the strides at once.

Result element ``o`` reads data at ``(o + cut - k) / stride`` for the kernel elements ``k`` that give an
integer inside the data. So the elements of a block, those with the same ``(o + cut) // stride``, read the
same data window, each with a different part of the kernel, selected by the phase ``(o + cut) % stride`` (Shi
et al. 2016, "Is the deconvolution layer the same as a convolutional layer?", arXiv:1609.07009). They are the
columns of one product, which stores each line of a block at its final place, so no windows are accumulated.
If the kernel is not a multiple of the stride, some phases have one element less; they form a separate
product, so that no zeros are multiplied. Blocks at the border are computed whole and cropped.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from typing import NamedTuple

import numpy as np

from ....ir.operation import Operation
from ....ir.shape import PartialShape
from ....ir.tensor import Array, TensorType, Value
from ....ops.convolution import ConvolutionBackpropData
from ... import Kernel, KernelTemplate
from ...common.kept_memory import empty
from ...common.layout import channels_first, channels_last, is_f32
from .._backend import backend
from ..packed_memory import aligned_empty
from ..threading.parallel import replayed
from ._copy import contiguous
from ._epilogue import Epilogue, FusedKernel
from ._gemm import NO_OFFSET, Gemm, Rows
from ._gemm_job import OutputLines
from ._products import Products, asked_products
from ._window_geometry import Layout, Windows, tap_offsets
from .convolution import repeated

__all__: list[str] = []

_Axes = tuple[int, ...]
"""One number for each of three axes."""


def _volume(numbers: Sequence[int], missing: int = 1) -> _Axes:
    """Pad the numbers of the last axes to three axes."""
    return (*[missing] * (3 - len(numbers)), *numbers)


def _is_whole(op: ConvolutionBackpropData, kernel: Sequence[int], sized: bool) -> bool:
    """Return whether blocks, one per window, are not cropped."""
    cuts = (*op.pads_begin, *op.pads_end) if op.auto_pad == "explicit" else ()
    return tuple(kernel) == tuple(op.strides) and not (sized or any(cuts) or any(op.output_padding))


class _Blocks(NamedTuple):
    """The blocks of a result: their number along each axis, and the last element of the first one's window.

    ``begins`` and ``lengths`` select the part of the blocks that is the result.
    """

    counts: _Axes
    firsts: _Axes
    begins: _Axes
    lengths: _Axes

    @classmethod
    def of(cls, begins: Sequence[int], lengths: Sequence[int], strides: _Axes) -> _Blocks:
        """Return the blocks for results of given lengths, cropped by ``begins`` elements at the start."""
        begins, lengths = _volume(begins, 0), _volume(lengths)
        firsts = tuple(begin // stride for begin, stride in zip(begins, strides, strict=True))
        counts = (
            -(-(begin + length) // stride) - first
            for begin, length, stride, first in zip(begins, lengths, strides, firsts, strict=True)
        )
        rest = (begin % stride for begin, stride in zip(begins, strides, strict=True))
        return cls(tuple(counts), firsts, tuple(rest), lengths)

    @property
    def inside(self) -> tuple[slice, ...]:
        """The slice of the blocks that is the result."""
        ends = (begin + length for begin, length in zip(self.begins, self.lengths, strict=True))
        return (slice(None), *map(slice, self.begins, ends))


class _Phases(NamedTuple):
    """Neighbouring phases along an axis with kernel parts of equal length: the first, their number, that length."""

    first: int
    size: int
    taps: int

    @classmethod
    def along(cls, kernel: int, stride: int) -> list[_Phases]:
        """Return all phases of an axis."""
        taps, more = divmod(kernel, stride)
        found = [cls(0, more, taps + 1), cls(more, stride - more, taps)]
        return [each for each in found if each.size]

    def elements(self, stride: int) -> Array:
        """Return the kernel elements ``[phase, tap]``, in the order of the data that they multiply."""
        return self.first + np.arange(self.size)[:, None] + stride * np.arange(self.taps)[::-1]


class _Product(NamedTuple):
    """The product for a range of phases of each axis, given the strides of the transposed convolution."""

    phases: tuple[_Phases, ...]
    strides: _Axes
    gemm: Gemm

    @classmethod
    def of(
        cls, w: Array, phases: tuple[_Phases, ...], strides: _Axes, epilogue: Epilogue, products: Products
    ) -> _Product:
        """Pack the part of filters ``[C_in, C_out, kernel...]``, over three axes, that these phases read."""
        channels, outputs = w.shape[:2]
        for axis, (each, stride) in enumerate(zip(phases, strides, strict=True)):
            w = w.take(each.elements(stride), 2 + 2 * axis)
        deep, tall, wide = (each.size for each in phases)
        filters = w.transpose(2, 4, 6, 1, 3, 5, 7, 0).reshape(deep * tall, wide * outputs, -1, channels)
        every = repeated(epilogue, deep * tall * wide)
        panels = products.pack(filters, every.scale, every.shift)
        words, zeros = products.words(channels), aligned_empty(channels)
        zeros[...] = 0
        columns, taps = deep * tall * wide * outputs, filters.shape[2]
        return cls(phases, strides, Gemm(panels, every, columns, taps, words, zeros, products.task))

    def run(self, rows: Array, shape: tuple[int, ...], y: Array, blocks: _Blocks) -> None:
        """Multiply data of a shape, and store the results of these phases in blocks ``y``."""
        firsts = (slice(each.first, None) for each in self.phases)
        self.gemm.run(rows, y[(slice(None), *firsts)], (), 1, shape, lambda: self._rows(shape, blocks))

    def _rows(self, shape: tuple[int, ...], blocks: _Blocks) -> Rows:
        """Describe the windows of the data."""
        words, outputs = self.gemm.depth, self.gemm.columns // math.prod(each.size for each in self.phases)
        lengths, taps, ones = _volume(shape[2:]), [each.taps for each in self.phases], (1, 1, 1)
        pads = [length - 1 - first for length, first in zip(taps, blocks.firsts, strict=True)]
        geometry = Windows(
            lengths, blocks.counts, ones, pads, taps, ones, 4 * words, 4 * words * math.prod(lengths)
        )
        last = [n - pad + k - 1 for n, pad, k in zip(blocks.counts, pads, taps, strict=True)]
        valid = not any(pads) and all(n <= length for n, length in zip(last, lengths, strict=True))
        layout = Layout.VALID if valid else Layout.PADDED
        (_, tall, wide), (_, height, width) = self.phases, blocks.counts
        lines = OutputLines.fill(
            width=width, height=height, columns=wide.size * outputs, pitch=self.strides[2] * outputs,
            planes=self.strides[0], lines=self.strides[1], group_lines=tall.size,
        )  # fmt: skip
        if valid and blocks.counts == lengths and self.gemm.taps == 1:
            return Rows(shape[0] * math.prod(lengths), Layout.MATRIX, 4 * words, NO_OFFSET, None, lines)
        offsets = tap_offsets(geometry, layout, False, 1, words)
        return Rows(shape[0] * math.prod(blocks.counts), layout, 0, offsets, geometry, lines)


def _products(w: Array, strides: _Axes, epilogue: Epilogue, products: Products) -> list[_Product]:
    """Return the products for all phases of filters ``[C_in, C_out, kernel...]``."""
    kernel = _volume(w.shape[2:])
    w = w.reshape(*w.shape[:2], *kernel)
    axes = (_Phases.along(length, stride) for length, stride in zip(kernel, strides, strict=True))
    return [_Product.of(w, phases, strides, epilogue, products) for phases in product(*axes)]


@dataclass(frozen=True)
class _TransposedKernel(FusedKernel):
    """A `FusedKernel` that only fuses layers without another tensor, since product rows are not contiguous in the result."""

    def fuse(self, op: Operation, inputs: Sequence[Value], place: int) -> _TransposedKernel | None:
        """Return a kernel that also applies ``op``, or ``None`` if it cannot be fused."""
        epilogue = self.epilogue.then(op, inputs, place, self.axis)
        if epilogue is None or any(post_op.extra >= 0 for post_op in epilogue.post_ops):
            return None
        return replace(self, epilogue=epilogue)


@backend.accelerates(ConvolutionBackpropData)
def transposed(
    op: ConvolutionBackpropData, data: Value, filters: Value, output_shape: Value | None = None
) -> KernelTemplate | None:
    """Support constant f32 filters without dilation, at least as long as their strides; an output shape must be constant, too."""
    w, given = filters.known(), () if output_shape is None else (output_shape,)
    if w is None or not w.size or not is_f32(data, filters) or any(value.known() is None for value in given):
        return None
    kernel = w.shape[2:]
    if any(n != 1 for n in op.dilations) or any(k < s for k, s in zip(kernel, op.strides, strict=True)):
        return None

    @lru_cache(maxsize=64)
    def blocks(shape: tuple[int, ...]) -> _Blocks:
        value = Value(TensorType(data.element, PartialShape(shape)))
        lengths = op.infer(value, filters, *given).static[2:]
        begins = op.begins(shape[2:], kernel, lengths, bool(given))
        return _Blocks.of(begins, lengths, _volume(op.strides))

    products = asked_products()

    def make(epilogue: Epilogue) -> Kernel:
        parts = _products(w, _volume(op.strides), epilogue, products)

        def compute(x: Array, *_: Array) -> Array:
            found = blocks(x.shape)
            steps = zip(found.counts, _volume(op.strides), strict=True)
            y = empty((len(x), *map(math.prod, steps), w.shape[1]), epilogue.dtype)
            if y.size:
                rows = products.rows_of(w.shape[0])(contiguous(channels_last(x)))
                for part in parts:
                    part.run(rows, x.shape, y, found)
            inside = contiguous(y[found.inside])
            return channels_first(inside.reshape(len(x), *found.lengths[-len(kernel) :], w.shape[1]))

        return Kernel(compute, name=products.name, replay=replayed())

    tensors = products.bf16_tensors(w.shape[0])
    stored = tensors.result and _is_whole(op, kernel, bool(given))
    return _TransposedKernel(make, 1, bf16=tensors._replace(residual=False, result=stored))
