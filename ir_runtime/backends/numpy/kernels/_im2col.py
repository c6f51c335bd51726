"""Convolutions as products of patches (im2col) and filters, block by block of rows.

Where a row of patches gives several neighbouring results, data outside their windows are multiplied by zeros. That is wrong
for infinities and NaN: if a result has any, all is computed by filters as they are.

A small layer takes less time than the views of its blocks. They are made once for each scratch memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache, partial
from typing import NamedTuple, TypeAlias

import numpy as np

from ....ir.tensor import Array
from ....ops.convolution.forward import Convolution
from ....ops.window import Pads
from ...common.epilogue import OutOfPlaceEpilogue
from ...common.layout import channels_first, channels_last
from ...common.tape import Tape, replay
from ...common.window_fit import WindowFit, window_fit
from ..math.finite import is_finite
from ..math.gemm import COLUMN_GRAIN, EPILOGUE_COST, apply_epilogue, split_range
from ..math.panels import Panels
from ..math.windows import windows
from ..threading.parallel import parallel_for, thread_count
from ..tiling.scratch import KeptViews, borrow_scratch
from ._padded_rows import PaddedRows
from ._patches import (
    MAX_COLUMNS,
    MIN_ROWS,
    PATCH_BYTES,
    PATCH_COST,
    SHARED_FACTOR,
    Block,
    neighbours,
    pack_filters,
    repeated_filters,
    split_windows,
)

__all__ = ["im2col"]

Compute: TypeAlias = Callable[[Array, Array, OutOfPlaceEpilogue], Array]
"""Computes a convolution from data ``[N, C, spatial...]``, filters, and an epilogue of rows."""


class _Part(NamedTuple):
    """What a thread computes at once: blocks of windows of some rows of the padded data, and which outputs."""

    rows: slice
    blocks: Sequence[Block]
    outputs: slice


@dataclass(frozen=True)
class _Plan:
    """How the images of one shape are computed.

    Where there are fewer windows than outputs, most of the time BLAS reads and packs the filters: threads share the
    outputs, and each copies all patches.
    """

    length: int
    """Rows of the data."""
    pads: Pads
    out: tuple[int, ...]
    """The lengths of the result."""
    padded: tuple[int, ...]
    """The lengths of padded data, and their channels."""
    blocks: Callable[[int], list[Block]]
    """Returns the blocks for a number of threads."""
    parts: Callable[[int], list[_Part]]
    """Returns the parts for a number of threads, of padded data."""
    cost: int
    """Multiplications, or work that takes as long, of an image."""
    bound: KeptViews[_Bound] = field(default_factory=KeptViews)


class _Bound(NamedTuple):
    """The views of a scratch memory for a part."""

    source: PaddedRows
    blocks: list[tuple[Tape, Array, Array, slice]]
    """For each block: the calls that compute it, its results as one row and as rows, and their place in the result."""


def im2col(op: Convolution, w: Array, lengths: Sequence[int | None] = ()) -> Compute:
    """Return a function that computes a convolution by constant filters.

    Args:
        op: the operation.
        w: filters ``[C_out, C_in, kernel...]``.
        lengths: those of the spatial axes of the data, where they are known.
    """
    if len(w) > MAX_COLUMNS // 2:
        return _Im2Col(op, w, 1).compute
    few = w.copy()  # which a later packing may read when the file is gone
    of_count = cache(partial(_Im2Col, op, few))
    count_of = lru_cache(maxsize=16)(partial(neighbours, op, few))
    of_count(count_of(tuple(lengths)))

    def compute(x: Array, w: Array, epilogue: OutOfPlaceEpilogue) -> Array:
        count = count_of(x.shape[2:])
        y = of_count(count).finite(x, epilogue) if count > 1 else None
        return of_count(1).compute(x, w, epilogue) if y is None else y

    return compute


class _Run(NamedTuple):
    """What a run computes from."""

    plan: _Plan
    data: Array
    """``[N, spatial..., C]``."""
    flat: Array
    """Memory for the result, as rows of outputs."""
    epilogue: OutOfPlaceEpilogue
    finite: list[bool]
    """Whether the numbers of each block are finite before the epilogue, where that has to be known."""
    threads: int


class _Windows(NamedTuple):
    """What plans follow from. They do not refer to the convolution, which keeps them: it is freed with its last reference."""

    op: Convolution
    fit: Callable[[tuple[int, ...]], WindowFit]
    neighbours: int
    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    depth: int
    columns: int

    def of(self, data: Array) -> Array:
        """Return the windows of an image that is padded."""
        return windows(data, self.kernel, self.strides, self.op.dilations)

    def plan(self, channels: int, lengths: tuple[int, ...]) -> _Plan:
        """Return how images of this many channels and these lengths are computed."""
        pads, out = self.fit(lengths)
        padded = (*(n + b + e for n, (b, e) in zip(lengths, pads, strict=True)), channels)
        counts = (*out[:-1], out[-1] // self.neighbours)
        cost = math.prod(counts) * (self.columns * (self.depth + EPILOGUE_COST) + self.depth * PATCH_COST)

        @cache
        def blocks(threads: int) -> list[Block]:
            return split_windows(counts, self._most_rows(threads), threads)

        @cache
        def parts(threads: int) -> list[_Part]:
            every = slice(0, self.columns)
            if threads < 2:
                return [_Part(slice(0, padded[0]), blocks(1), every)]
            if math.prod(counts) >= self.columns or self.neighbours > 1:
                return [_Part(self._rows(block), [block], every) for block in blocks(threads)]
            shares = split_range(self.columns, threads, COLUMN_GRAIN)
            return [_Part(self._rows(block), [block], some) for block in blocks(1) for some in shares]

        return _Plan(lengths[0], pads, out, padded, blocks, parts, cost)

    def _rows(self, block: Block) -> slice:
        """Return the padded rows of the windows of a block."""
        rows = block.place[0]
        first, last = (rows.start, rows.stop - 1) if isinstance(rows, slice) else (rows, rows)
        extent = self.op.extent(0, self.kernel[0])
        return slice(first * self.strides[0], last * self.strides[0] + extent)

    def _most_rows(self, threads: int) -> int:
        """Return how many rows of patches to multiply at once."""
        return (SHARED_FACTOR if threads > 1 else 1) * max(
            PATCH_BYTES // (4 * (self.depth + self.columns)), MIN_ROWS // self.neighbours
        )


class _Im2Col:
    """A convolution whose rows of patches give some neighbouring results each."""

    def __init__(self, op: Convolution, w: Array, neighbours: int) -> None:
        self._outputs = len(w)
        kernel = (*w.shape[2:-1], w.shape[-1] + (neighbours - 1) * op.strides[-1])
        strides = (*op.strides[:-1], neighbours * op.strides[-1])
        shape = math.prod(kernel) * w.shape[1], neighbours * len(w)
        if neighbours == 1:
            self._packed = Panels(shape, partial(pack_filters, w), w)
        else:
            self._packed = Panels.of(repeated_filters(w, neighbours, op.strides[-1]).reshape(shape), w)
        sizes = self._packed.depth, self._packed.columns
        self._windows = _Windows(op, window_fit(op, w.shape[2:]), neighbours, kernel, strides, *sizes)
        self._plan = lru_cache(maxsize=16)(self._windows.plan)

    def compute(self, x: Array, w: Array, epilogue: OutOfPlaceEpilogue) -> Array:
        """Return the result."""
        y = self._run(x, epilogue, [])
        assert y is not None
        return y

    def finite(self, x: Array, epilogue: OutOfPlaceEpilogue) -> Array | None:
        """Return the result, ``None`` if some numbers may not be finite before the epilogue."""
        finite: list[bool] = []
        y = self._run(x, epilogue, finite)
        return y if all(finite) else None

    def _run(self, x: Array, epilogue: OutOfPlaceEpilogue, finite: list[bool]) -> Array | None:
        plan = self._plan(x.shape[1], x.shape[2:])
        data = channels_last(x)
        y = np.empty((len(x), *plan.out, self._outputs), np.float32)
        flat = y.reshape(-1, self._outputs)
        run = _Run(plan, data, flat, epilogue, finite, thread_count(plan.cost * len(x)))
        if any(map(any, plan.pads)) or not data.flags.c_contiguous:
            self._run_padded(run)
        else:
            self._run_unpadded(run)
        return channels_first(y)

    def _run_unpadded(self, run: _Run) -> None:
        """Compute blocks of images without padding where they are."""
        plan, data, flat, epilogue, finite, threads = run
        each = math.prod(plan.out)

        def work(chunk: tuple[int, Block]) -> None:
            image, (place, some) = chunk
            view = self._windows.of(data[image])
            patches = np.ascontiguousarray(view[place]).reshape(-1, self._packed.depth)
            first = image * each + some.start * self._windows.neighbours
            rows = flat[first : first + len(patches) * self._windows.neighbours]
            self._packed.multiply(patches, rows.reshape(-1, self._packed.columns))
            if self._windows.neighbours > 1:
                finite.append(is_finite(rows.reshape(-1)))
            epilogue(rows, first)

        blocks = plan.blocks(threads)
        chunks = [(image, block) for image in range(len(data)) for block in blocks]
        parallel_for(work, chunks, plan.cost * len(data))

    def _run_padded(self, run: _Run) -> None:
        """Pad parts of images in scratch memory, whose views are kept, and compute their blocks there."""
        plan, data, flat, epilogue, finite, threads = run
        each, parts = math.prod(plan.out), plan.parts(threads)
        shared = len(parts) > 0 and parts[0].outputs.stop < self._packed.columns

        def work(chunk: tuple[int, int]) -> None:
            image, index = chunk
            part = parts[index]
            with borrow_scratch(sum(self._sizes(plan, part))) as scratch:
                bound = plan.bound.of(scratch, (threads, index), partial(self._bind, plan, part))
                bound.source.fill(data[image])
                for tape, numbers, rows, place in bound.blocks:
                    replay(tape)
                    if self._windows.neighbours > 1:
                        finite.append(is_finite(numbers))
                    first = image * each + place.start
                    out = flat[first : image * each + place.stop]
                    if shared:
                        np.copyto(out[:, part.outputs], rows)
                    else:
                        epilogue(rows, first, out)

        chunks = [(image, index) for image in range(len(data)) for index in range(len(parts))]
        parallel_for(work, chunks, plan.cost * len(data))
        if shared:
            apply_epilogue(flat, epilogue)

    def _sizes(self, plan: _Plan, part: _Part) -> tuple[int, int, int]:
        """Return how many numbers the padded rows of a part have, the patches of a block, and its results."""
        most = max((block.rows.stop - block.rows.start for block in part.blocks), default=0)
        padded = (part.rows.stop - part.rows.start) * math.prod(plan.padded[1:])
        return padded, most * self._packed.depth, most * self._packed.columns

    def _bind(self, plan: _Plan, part: _Part, memory: Array) -> _Bound:
        """Lay out a part in scratch memory, and make the calls that compute it."""
        image, patch, result = self._sizes(plan, part)
        padded = memory[:image].reshape(part.rows.stop - part.rows.start, *plan.padded[1:])
        patches, results = memory[image : image + patch], memory[image + patch : image + patch + result]
        view = self._windows.of(padded)
        outputs, blocks = part.outputs.stop - part.outputs.start, []
        for place, rows in part.blocks:
            count, windows_of = rows.stop - rows.start, view[self._placed(place, part.rows)]
            block = patches[: count * self._packed.depth]
            out = results[: count * outputs]
            tape: Tape = [(np.copyto, (block.reshape(windows_of.shape), windows_of))]
            columns = out.reshape(count, outputs)  # count is 0 where images are empty
            tape += self._packed.tape_of_columns(
                block.reshape(count, self._packed.depth), columns, part.outputs
            )
            whole = slice(rows.start * self._windows.neighbours, rows.stop * self._windows.neighbours)
            blocks.append((tape, out, out.reshape(-1, outputs // self._windows.neighbours), whole))
        return _Bound(PaddedRows.of(part.rows, plan.length, plan.pads, padded), blocks)

    def _placed(self, place: tuple[int | slice, ...], rows: slice) -> tuple[int | slice, ...]:
        """Return the place of windows in those of some rows of the padded data."""
        at, shift = place[0], rows.start // self._windows.strides[0]
        moved = slice(at.start - shift, at.stop - shift) if isinstance(at, slice) else at - shift
        return (moved, *place[1:])
