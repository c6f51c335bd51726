"""Convolutions with much padding: a product for each kernel element, without im2col.

A kernel element multiplies a shifted part of the feature map and skips padding. With dilations as long as the
map this saves most of the work, and for maps of one position nearly all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

from ....ir.tensor import Array
from ....ops.convolution.forward import Convolution
from ...common.epilogue import RowEpilogue
from ...common.layout import channels_first, channels_last
from ...common.window_fit import window_fit
from ..math.gemm import own_matrix, split_range
from ..parallel import parallel_for, thread_count

__all__ = ["shifted_products"]

# Small products take longer than one of all rows, unless this part of it suffices, and it saves this many multiplications
# for each of the calls that they take.
MAX_SHARE, MIN_SAVED = 0.6, 400_000


class _Element(NamedTuple):
    """An element of the kernel: the positions of the result whose windows have it inside the map, and where it is there."""

    place: tuple[int, ...]
    """Its index in the kernel."""
    out: tuple[slice, ...]
    source: tuple[slice, ...]

    def in_rows(self, rows: slice) -> _Element:
        """Return the part in some rows of the first spatial axis."""
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
    """Return a function that computes a convolution from data, filters and a `RowEpilogue`; ``None`` if im2col is faster.

    Args:
        op: the operation.
        w: filters ``[C_out, C_in, kernel...]``.
        lengths: those of the spatial axes of the data; ``None`` for unknown ones.
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
                _add(data[image], result, element.in_rows(rows), filters)
            epilogue(result[rows].reshape(-1, outputs), (image * out[0] + rows.start) * math.prod(out[1:]))

        multiplied = len(x) * positions * channels * outputs
        parts = split_range(out[0], thread_count(multiplied))
        parallel_for(work, [(image, rows) for image in range(len(x)) for rows in parts], multiplied)
        return channels_first(y)

    return compute


def _elements(
    op: Convolution, kernel: tuple[int, ...], lengths: tuple[int, ...]
) -> tuple[tuple[int, ...], list[_Element]]:
    """Return the lengths of the result, and the elements of the kernel."""
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
    """The positions of the result along an axis at which an element of the kernel meets the data, and those of the data."""

    out: slice
    source: slice


def _overlap(shift: int, length: int, count: int) -> _Overlap:
    """Return where ``count`` positions, shifted, are among those of data of a length."""
    start = min(max(-shift, 0), count)
    stop = max(min(count, length - shift), start)
    return _Overlap(slice(start, stop), slice(start + shift, stop + shift))


def _add(data: Array, result: Array, element: _Element, filters: Array) -> None:
    """Add the products of an element of the kernel to the result."""
    if element.size:
        target = result[element.out]
        np.add(target, np.matmul(np.ascontiguousarray(data[element.source]), filters), out=target)
