"""Transposed convolutions with constant filters: a convolution for each phase of the strides, as an implicit GEMM.

Element ``o`` of the result reads the data at ``(o + cut - k) / stride``, for those elements ``k`` of the kernel for which
that is an integer. So elements of one phase, ``(o + cut) % stride``, read the same part of the kernel: they are a
convolution with stride 1 (Shi et al. 2016, "Is the deconvolution layer the same as a convolutional layer?",
arXiv:1609.07009). No window is summed into another, and no zeros are multiplied.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from ....ir.operation import Operation
from ....ir.shape import PartialShape
from ....ir.tensor import Array, TensorType, Value
from ....ops.convolution.backward import ConvolutionBackpropData
from ... import Kernel, named
from ...common.layout import channels_first, channels_last, is_f32
from .._backend import backend
from ..packed_memory import aligned_empty
from ._disjoint_windows import are_disjoint, disjoint_kernel
from ._epilogue import Epilogue, FusedKernel
from ._gemm import Gemm, Rows
from ._products import Products, asked_products
from ._window_geometry import Layout, Windows, tap_offsets
from .contiguous import contiguous

__all__: list[str] = []

_Phase = tuple[int, ...]


class Cut(NamedTuple):
    """How many elements are cut off before each spatial axis of the result, and its lengths."""

    begins: tuple[int, ...]
    lengths: tuple[int, ...]


@dataclass(frozen=True)
class _TransposedKernel(FusedKernel):
    """A `FusedKernel` without layers that read another tensor: the rows of a phase are not contiguous in it."""

    def fuse(self, op: Operation, inputs: Sequence[Value], place: int) -> Kernel | None:
        """Return a kernel that also computes ``op``, or ``None``."""
        epilogue = self.epilogue.then(op, inputs, place, self.axis)
        if epilogue is None or any(post_op.extra >= 0 for post_op in epilogue.post_ops):
            return None
        return replace(self, epilogue=epilogue)


@backend.accelerates(ConvolutionBackpropData)
def transposed(
    op: ConvolutionBackpropData, data: Value, filters: Value, output_shape: Value | None = None
) -> Kernel | None:
    """Constant f32 filters that are not smaller than their strides nor dilated; an output shape is constant, too."""
    w, given = filters.known(), () if output_shape is None else (output_shape,)
    if w is None or not w.size or not is_f32(data, filters) or any(value.known() is None for value in given):
        return None
    kernel = w.shape[2:]
    if any(n != 1 for n in op.dilations) or any(k < s for k, s in zip(kernel, op.strides, strict=True)):
        return None

    products = asked_products()
    if are_disjoint(op, kernel, bool(given)):
        tensors = products.bf16_tensors(w.shape[0])._replace(residual=False)
        return _TransposedKernel(lambda epilogue: disjoint_kernel(w, epilogue, products), 1, bf16=tensors)

    @lru_cache(maxsize=64)
    def cut(shape: tuple[int, ...]) -> Cut:
        value = Value(TensorType(data.element, PartialShape(shape)))
        lengths = op.infer(value, filters, *given).static[2:]
        return Cut(tuple(op.begins(shape[2:], kernel, lengths, bool(given))), lengths)

    def make(epilogue: Epilogue) -> Kernel:
        return named(_kernel(_Phases.of(w, op.strides, epilogue, products), cut), products.name)

    return _TransposedKernel(make, 1)


class _Run(NamedTuple):
    """Elements of a phase along an axis: the first one in the result, their number, and the data that the first reads last."""

    first: int
    length: int
    data: int


def _run(phase: int, begin: int, length: int, stride: int) -> _Run:
    first = (phase - begin) % stride
    return _Run(first, -(-(length - first) // stride), (first + begin) // stride)


@dataclass(frozen=True)
class _Phases:
    """The convolutions of all phases.

    Args:
        strides: of the transposed convolution.
        outputs: channels of the result.
        as_words: turns contiguous data into words.
        words: 32-bit words of the channels of an element.
        kernels: the lengths of the part of the kernel of each phase.
        gemms: multiplies with that part; the phases along the last axis are interleaved in the result.
    """

    strides: tuple[int, ...]
    outputs: int
    as_words: Callable[[Array], Array]
    words: int
    kernels: Mapping[_Phase, tuple[int, ...]]
    gemms: Mapping[_Phase, Gemm]

    @classmethod
    def of(cls, w: Array, strides: tuple[int, ...], epilogue: Epilogue, products: Products) -> _Phases:
        """Pack filters ``[C_in, C_out, kernel...]``."""
        channels, outputs = w.shape[:2]
        words, zeros = products.words(channels), aligned_empty(channels)
        zeros[...] = 0
        kernels, gemms = dict[_Phase, tuple[int, ...]](), dict[_Phase, Gemm]()
        for phase in product(*map(range, strides)):
            taken: Any = (
                ...,
                *(slice(first, None, step) for first, step in zip(phase, strides, strict=True)),
            )
            part = w[taken]
            kernels[phase] = part.shape[2:]
            taps = np.flip(part, tuple(range(2, w.ndim))).reshape(channels, outputs, -1).transpose(1, 2, 0)
            panels = products.pack(taps[None], epilogue.scale, epilogue.shift)
            gemms[phase] = Gemm(
                panels, epilogue, outputs, taps.shape[1], words, zeros, products.task, strides[-1]
            )
        return cls(strides, outputs, products.rows_of(channels), words, kernels, gemms)

    def rows(self, x: Array) -> Array:
        """Return the data as words, channels last."""
        return self.as_words(contiguous(channels_last(x)))

    def lines(self, source: Array, shape: tuple[int, ...], ahead: _Phase, runs: Sequence[_Run]) -> Array:
        """Return whole lines of the result, where the phases along the other axes are ``ahead``."""
        counts, last = [run.length for run in runs], self.strides[-1]
        y = np.empty((shape[0], *counts, last, self.outputs), np.float32)
        for place in range(last):
            kernel = self.kernels[*ahead, place]
            pads = [length - 1 - run.data for length, run in zip(kernel, runs, strict=True)]
            describe = _rows(shape, counts, pads, kernel, self.words)
            self.gemms[*ahead, place].run(source, y[..., place, :], (), 1, shape, describe)
        return y.reshape(shape[0], *counts[:-1], counts[-1] * last, self.outputs)


def _kernel(phases: _Phases, cut: Callable[[tuple[int, ...]], Cut]) -> Callable[..., Array]:
    *strides, last = phases.strides

    def compute(x: Array, *_: Array) -> Array:
        begins, lengths = cut(x.shape)
        y = np.empty((len(x), *lengths, phases.outputs), np.float32)
        if not y.size:
            return channels_first(y)
        source, skipped = phases.rows(x), begins[-1] // last
        along = _Run(0, -(-(begins[-1] + lengths[-1]) // last) - skipped, skipped)
        first = begins[-1] - skipped * last
        for ahead in product(*map(range, strides)):
            runs = list(map(_run, ahead, begins, lengths, strides))
            if all(run.length > 0 for run in runs):
                lines = phases.lines(source, x.shape, ahead, [*runs, along])
                places = (slice(run.first, None, step) for run, step in zip(runs, strides, strict=True))
                y[(slice(None), *places)] = lines[..., first : first + lengths[-1], :]
        return channels_first(y)

    return compute


def _rows(
    shape: tuple[int, ...], out: Sequence[int], pads: Sequence[int], kernel: Sequence[int], words: int
) -> Callable[[], Rows]:
    """Return a function that describes the windows of a phase, ``out`` in number."""

    def describe() -> Rows:
        lengths, ones = shape[2:], [1] * len(out)
        geometry = Windows(lengths, out, ones, pads, kernel, ones, 4 * words, 4 * words * math.prod(lengths))
        inside = not any(pads) and all(
            n + k - 1 <= length for n, k, length in zip(out, kernel, lengths, strict=True)
        )
        layout = Layout.VALID if inside else Layout.PADDED
        return Rows(
            shape[0] * math.prod(out), layout, 0, tap_offsets(geometry, layout, False, 1, words), geometry
        )

    return describe
