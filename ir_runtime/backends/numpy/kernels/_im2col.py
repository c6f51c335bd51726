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
from ...common.layout import FEW_CHANNELS, channels_first, channels_last, pad_spatial
from ...common.tape import Tape, replay
from ...common.window_fit import window_fit
from ..math.finite import is_finite
from ..math.gemm import EPILOGUE_COST
from ..math.panels import Panels
from ..math.windows import windows
from ..threading.parallel import parallel_for, thread_count
from ..tiling.scratch import MAX_KEPT, Scratch, borrow_scratch
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


@dataclass(frozen=True)
class _Plan:
    """How the images of one shape are computed."""

    pads: Pads
    out: tuple[int, ...]
    """The lengths of the result."""
    padded: tuple[int, ...]
    """The lengths of padded data, and their channels."""
    blocks: Callable[[int], list[Block]]
    """Returns the blocks for a number of threads."""
    cost: int
    """Multiplications, or work that takes as long, of an image."""
    sizes: tuple[int, int, int]
    """How many numbers a padded image has, the patches of a block, and its results."""
    bound: dict[int, tuple[Array, _Bound]] = field(default_factory=dict)
    """By the id of a scratch memory: that memory, and the views of it."""


class _Bound(NamedTuple):
    """The views of a scratch memory."""

    inside: Array
    """Where an image is, in the middle of its padding."""
    clear: Tape
    """Fills the padding with zeros."""
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


class _Im2Col:
    """A convolution whose rows of patches give some neighbouring results each."""

    def __init__(self, op: Convolution, w: Array, neighbours: int) -> None:
        self._op, self._neighbours, self._outputs = op, neighbours, len(w)
        self._kernel = (*w.shape[2:-1], w.shape[-1] + (neighbours - 1) * op.strides[-1])
        self._strides = (*op.strides[:-1], neighbours * op.strides[-1])
        self._fit = window_fit(op, w.shape[2:])
        shape = math.prod(self._kernel) * w.shape[1], neighbours * len(w)
        if neighbours == 1:
            self._packed = Panels(shape, partial(pack_filters, w), w)
        else:
            self._packed = Panels.of(repeated_filters(w, neighbours, op.strides[-1]).reshape(shape), w)
        self._plan = lru_cache(maxsize=16)(self._planned)

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

    def _planned(self, channels: int, lengths: tuple[int, ...]) -> _Plan:
        pads, out = self._fit(lengths)
        padded = (*(n + b + e for n, (b, e) in zip(lengths, pads, strict=True)), channels)
        counts = (*out[:-1], out[-1] // self._neighbours)
        depth, columns = self._packed.depth, self._packed.columns
        cost = math.prod(counts) * (columns * (depth + EPILOGUE_COST) + depth * PATCH_COST)
        blocks = cache(lambda threads: split_windows(counts, self._most_rows(threads), threads))
        most = max((block.rows.stop - block.rows.start for block in blocks(1)), default=0)
        return _Plan(pads, out, padded, blocks, cost, (math.prod(padded), most * depth, most * columns))

    def _most_rows(self, threads: int) -> int:
        """Return how many rows of patches to multiply at once."""
        return (SHARED_FACTOR if threads > 1 else 1) * max(
            PATCH_BYTES // (4 * (self._packed.depth + self._packed.columns)), MIN_ROWS // self._neighbours
        )

    def _run(self, x: Array, epilogue: OutOfPlaceEpilogue, finite: list[bool]) -> Array | None:
        plan = self._plan(x.shape[1], x.shape[2:])
        data = channels_last(x)
        y = np.empty((len(x), *plan.out, self._outputs), np.float32)
        flat = y.reshape(-1, self._outputs)
        threads = thread_count(plan.cost * len(x))
        if threads < 2 and (any(map(any, plan.pads)) or not data.flags.c_contiguous):
            self._run_kept(plan, data, flat, epilogue, finite)
        else:
            self._run_parallel(plan, pad_spatial(data, plan.pads), flat, epilogue, finite, threads)
        return channels_first(y)

    def _run_parallel(
        self,
        plan: _Plan,
        data: Array,
        flat: Array,
        epilogue: OutOfPlaceEpilogue,
        finite: list[bool],
        threads: int,
    ) -> None:
        """Compute blocks of padded images, on several threads."""
        each = math.prod(plan.out)

        def work(chunk: tuple[int, Block]) -> None:
            image, (place, some) = chunk
            view = windows(data[image], self._kernel, self._strides, self._op.dilations)
            patches = np.ascontiguousarray(view[place]).reshape(-1, self._packed.depth)
            first = image * each + some.start * self._neighbours
            rows = flat[first : first + len(patches) * self._neighbours]
            self._packed.multiply(patches, rows.reshape(-1, self._packed.columns))
            if self._neighbours > 1:
                finite.append(is_finite(rows.reshape(-1)))
            epilogue(rows, first)

        blocks = plan.blocks(threads)
        chunks = [(image, block) for image in range(len(data)) for block in blocks]
        parallel_for(work, chunks, plan.cost * len(data))

    def _run_kept(
        self, plan: _Plan, data: Array, flat: Array, epilogue: OutOfPlaceEpilogue, finite: list[bool]
    ) -> None:
        """Compute block by block in scratch memory, whose views are kept."""
        each = math.prod(plan.out)
        with borrow_scratch(sum(plan.sizes)) as scratch:
            bound = self._bound(plan, scratch)
            replay(bound.clear)
            for image, array in enumerate(data):
                _copy_image(array, bound.inside)
                for tape, numbers, rows, place in bound.blocks:
                    replay(tape)
                    if self._neighbours > 1:
                        finite.append(is_finite(numbers))
                    first = image * each + place.start
                    epilogue(rows, first, flat[first : image * each + place.stop])

    def _bound(self, plan: _Plan, scratch: Scratch) -> _Bound:
        """Return the views of a scratch memory, made when it is first used."""
        memory, bound = plan.bound.get(scratch.id, (None, None))
        if memory is scratch.memory and bound is not None:
            return bound
        bound = self._bind(plan, scratch.memory)
        if scratch.memory.size <= MAX_KEPT:
            plan.bound[scratch.id] = scratch.memory, bound
        return bound

    def _bind(self, plan: _Plan, memory: Array) -> _Bound:
        image, patch, result = plan.sizes
        padded = memory[:image].reshape(plan.padded)
        patches, results = memory[image : image + patch], memory[image + patch : image + patch + result]
        view = windows(padded, self._kernel, self._strides, self._op.dilations)
        blocks = []
        for index, rows in plan.blocks(1):
            count = rows.stop - rows.start
            block = patches[: count * self._packed.depth]
            out = results[: count * self._packed.columns]
            tape: Tape = [(np.copyto, (block.reshape(view[index].shape), view[index]))]
            columns = out.reshape(count, self._packed.columns)  # count is 0 where images are empty
            tape += self._packed.tape(block.reshape(count, self._packed.depth), columns)
            place = slice(rows.start * self._neighbours, rows.stop * self._neighbours)
            blocks.append((tape, out, out.reshape(-1, self._outputs), place))
        inside, edges = _places(plan.pads, plan.padded)
        return _Bound(padded[inside], [(padded[edge].fill, (0,)) for edge in edges], blocks)


def _copy_image(image: Array, inside: Array) -> None:
    if image.shape[-1] <= FEW_CHANNELS and not image.flags.c_contiguous:
        for channel in range(image.shape[-1]):
            inside[..., channel] = image[..., channel]
    else:
        np.copyto(inside, image)


def _places(pads: Pads, padded: tuple[int, ...]) -> tuple[tuple[slice, ...], list[tuple[slice, ...]]]:
    """Return where the data are in padded data, and where the edges."""
    inside, edges = tuple(slice(b, n - e) for (b, e), n in zip(pads, padded, strict=False)), []
    for axis, (begin, end) in enumerate(pads):
        edges += [(*inside[:axis], slice(begin))] if begin else []
        edges += [(*inside[:axis], slice(padded[axis] - end, None))] if end else []
    return inside, edges
