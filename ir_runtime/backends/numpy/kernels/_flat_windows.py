"""Convolutions of few channels: im2col copies what an element of the kernel meets at many positions as one run.

In a padded image that is stored channels first, the numbers that an element of the kernel meets at successive positions
follow each other, and from one row to the next, too, with some of no use in between. With few channels, such runs are
much longer than those of a window, which NumPy would copy one by one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from ....ir.tensor import Array
from ....ops.convolution.forward import Convolution
from ....ops.window import Pads
from ...common.epilogue import RowEpilogue
from ...common.layout import channels_first
from ...common.tape import Tape, replay
from ...common.window_fit import window_fit
from ..math.gemm import split_range
from ..math.panels import Panels
from ..threading.parallel import parallel_for, thread_count
from ..tiling.scratch import MAX_KEPT, Scratch, borrow_scratch

__all__ = ["flat_convolution", "suits_flat_windows"]

# With more channels, windows have long runs themselves; with more outputs, BLAS takes longer to multiply patches that are
# stored position by position than all that is saved.
MAX_CHANNELS, MAX_OUTPUTS = 8, 16
# Bytes of im2col patches for one product: they stay in the L2 cache.
PATCH_BYTES = 600_000
# The most positions that are computed for one of the result.
MAX_POSITIONS = 2


def suits_flat_windows(op: Convolution, w: Array) -> bool:
    """Return whether im2col should copy many positions at once, where they are dense enough."""
    few = w.shape[1] <= MAX_CHANNELS and w.shape[0] <= MAX_OUTPUTS
    return few and all(stride == 1 for stride in op.strides)


def flat_convolution(
    op: Convolution, w: Array, fallback: Callable[[], Callable[..., Array]]
) -> Callable[[Array, Array, RowEpilogue], Array]:
    """Return a function that computes a convolution with strides of 1 from data, filters and a `RowEpilogue`.

    ``fallback`` returns a kernel for small maps with much padding.
    """
    outputs, channels, *kernel = w.shape
    packed = Panels.of(w.reshape(outputs, -1).T, w)
    fit = window_fit(op, tuple(kernel))

    @lru_cache(maxsize=16)
    def layout_of(lengths: tuple[int, ...]) -> _Layout:
        pads, out = fit(lengths)
        return _Layout((channels, *kernel), op.dilations, lengths, pads, out)

    def compute(x: Array, w: Array, epilogue: RowEpilogue) -> Array:
        layout = layout_of(x.shape[2:])
        if not layout.is_dense:
            return fallback()(x, w, epilogue)
        y = np.empty((len(x), *layout.out, outputs), np.float32)
        row = math.prod(layout.out[1:])

        def work(chunk: tuple[int, slice]) -> None:
            image, rows = chunk
            out = y[image, rows]
            with borrow_scratch(layout.scratch_size(rows, packed)) as scratch:
                _block(layout, rows, packed, scratch).run(x[image], out)
            epilogue(out.reshape(-1, outputs), (image * layout.out[0] + rows.start) * row)

        multiplied = y.size * packed.depth
        most = max(PATCH_BYTES // (4 * packed.depth * layout.steps[0]), 1)
        blocks = max(-(-layout.out[0] // most), thread_count(multiplied))
        chunks = [(image, rows) for image in range(len(x)) for rows in split_range(layout.out[0], blocks)]
        parallel_for(work, chunks, multiplied)
        return channels_first(y)

    return compute


@dataclass(frozen=True)
class _Layout:
    """Where the windows are in a padded image that is stored channels first."""

    kernel: tuple[int, ...]
    """``[C, kernel...]``."""
    dilations: tuple[int, ...]
    lengths: tuple[int, ...]
    """Those of the data, without padding."""
    pads: Pads
    out: tuple[int, ...]
    bound: dict[tuple[int, int, int], tuple[Array, _Block]] = field(default_factory=dict)
    """By the id of the scratch memory and the rows: that memory, and the block that is bound to it."""

    @property
    def inner(self) -> tuple[int, ...]:
        """The padded lengths behind the first spatial axis."""
        return tuple(n + sum(both) for n, both in zip(self.lengths[1:], self.pads[1:], strict=True))

    @property
    def steps(self) -> tuple[int, ...]:
        """The elements between neighbours along each spatial axis."""
        return tuple(math.prod(self.inner[axis:]) for axis in range(len(self.out)))

    @property
    def is_dense(self) -> bool:
        """Return whether most positions are those of windows."""
        return self.steps[0] <= MAX_POSITIONS * math.prod(self.out[1:])

    def padded_shape(self, rows: slice) -> tuple[int, ...]:
        """Return the shape of the padded data for some rows of the result."""
        extent = (self.kernel[1] - 1) * self.dilations[0]
        return (self.kernel[0], rows.stop - rows.start + extent, *self.inner)

    def positions(self, rows: slice) -> int:
        """Return the number of positions from the first window of some rows to their last."""
        ends = (rows.stop - rows.start, *self.out[1:])
        last: int = sum((n - 1) * step for n, step in zip(ends, self.steps, strict=True))
        return last + 1

    def scratch_size(self, rows: slice, packed: Panels) -> int:
        """Return the elements of the padded data, the patches and the products of some rows."""
        products: int = (rows.stop - rows.start) * self.steps[0] * packed.columns
        return math.prod(self.padded_shape(rows)) + self.positions(rows) * packed.depth + products


class _Block:
    """Some rows of the result, computed in scratch memory with views that are made once."""

    def __init__(self, layout: _Layout, rows: slice, packed: Panels, memory: Array) -> None:
        shape, count = layout.padded_shape(rows), layout.positions(rows)
        starts = np.cumsum([math.prod(shape), count * packed.depth])
        padded, patches, products = np.split(memory[: layout.scratch_size(rows, packed)], starts)
        matrix = products.reshape(-1, packed.columns)
        self._interior, self._source = _interior(layout, rows, padded.reshape(shape))
        self._clear: Tape = [(padded.fill, (0,))] if self._interior.size < padded.size else []
        met = _met(layout, padded.reshape(shape), count)
        self._tape: Tape = [
            (np.copyto, (patches.reshape(met.shape), met)),
            *packed.tape(patches.reshape(-1, count).T, matrix[:count]),
        ]
        by_row = matrix.reshape(-1, *layout.inner, packed.columns)
        self._windows = by_row[(slice(None), *map(slice, layout.out[1:]))]

    def run(self, image: Array, out: Array) -> None:
        """Compute the rows from an image ``[C, spatial...]``."""
        replay(self._clear)
        np.copyto(self._interior, image[:, self._source])
        replay(self._tape)
        np.copyto(out, self._windows)


def _block(layout: _Layout, rows: slice, packed: Panels, scratch: Scratch) -> _Block:
    """Return a block of rows in some scratch memory; built when it is first needed there."""
    memory, block = layout.bound.get((scratch.id, rows.start, rows.stop), (None, None))
    if block is None or memory is not scratch.memory:
        block = _Block(layout, rows, packed, scratch.memory)
        if scratch.memory.size <= MAX_KEPT:
            layout.bound[scratch.id, rows.start, rows.stop] = scratch.memory, block
    return block


def _interior(layout: _Layout, rows: slice, padded: Array) -> tuple[Array, slice]:
    """Return the part of the padded data inside the padding, and the rows of the data that it holds."""
    first, length = rows.start - layout.pads[0][0], layout.lengths[0]
    start, stop = (min(max(row, 0), length) for row in (first, first + padded.shape[1]))
    sides = zip(layout.lengths[1:], layout.pads[1:], strict=True)
    inside = (slice(begin, begin + n) for n, (begin, _) in sides)
    return padded[(slice(None), slice(start - first, stop - first), *inside)], slice(start, stop)


def _met(layout: _Layout, padded: Array, count: int) -> Array:
    """Return a view ``[C, kernel..., position]`` of what the elements of the kernel meet."""
    between = (padded.itemsize * n * d for n, d in zip(layout.steps, layout.dilations, strict=True))
    strides = (padded.strides[0], *between, padded.itemsize)
    return np.ndarray((*layout.kernel, count), padded.dtype, padded, 0, strides)
