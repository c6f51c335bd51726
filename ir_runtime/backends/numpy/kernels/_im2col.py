"""Convolutions as products of patches (im2col) and filters, block by block of rows."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product
from typing import TypeAlias

import numpy as np

from ....ir.pages import let_go
from ....ir.tensor import Array
from ....ops.convolution.forward import ForwardConvolution
from ...common.epilogue import RowEpilogue
from ...common.layout import channels_first, channels_last, pad_spatial
from ...common.window_fit import window_fit
from ..math.gemm import EPILOGUE_COST, gemm, split_range
from ..math.windows import windows
from ..parallel import parallel_for, thread_count

__all__ = ["Im2Col"]

# Bytes of the patches of a block, which stay in the L2 cache; and fewer patches than this do not amortize the packing of
# the filters by BLAS. Blocks of several threads are larger: after each call, threads may wait for each other (GIL).
PATCH_BYTES, MIN_PATCHES, SHARED_FACTOR = 600_000, 224, 4
# Copying an element of a patch takes as long as this many multiplications.
PATCH_COST = 8

Block: TypeAlias = "tuple[int | slice, ...]"
"""The index of some neighbouring rows among all positions of a result."""


class Im2Col:
    """A convolution by filters ``[G, C_out, C_in, kernel...]``, each group of channels by its own."""

    def __init__(self, op: ForwardConvolution, w: Array) -> None:
        groups, outputs, channels, *kernel = w.shape
        self._op, self._kernel = op, tuple(kernel)
        self._fit = window_fit(op, self._kernel)
        filters = np.empty((groups, *kernel, channels, outputs), np.float32)
        filters[...] = w.transpose(0, *range(3, w.ndim), 2, 1)
        self._filters = filters.reshape(groups, -1, outputs)
        let_go(w)

    def compute(self, x: Array, w: Array, epilogue: RowEpilogue) -> Array:
        """Return the result for data ``[N, C, spatial...]``."""
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
        """Share the outputs among threads if they outnumber the patches, to pack filters in parallel."""
        count = math.prod(y.shape[1:-1])
        for image, rows in enumerate(y):
            patches = self._patches(data[image], (slice(None),))[0]

            def of_image(block: Array, first: int, image: int = image) -> None:
                epilogue(block, image * count + first)

            gemm(patches, self._filters[0], rows.reshape(count, -1), of_image)

    def _patches(self, image: Array, block: Block) -> Array:
        """Copy the windows of a block of positions: ``[G, position, depth]``."""
        groups, depth, _ = self._filters.shape
        view = windows(image, self._kernel, self._op.strides, self._op.dilations)[block]
        grouped = np.moveaxis(view.reshape(*view.shape[:-1], groups, -1), -2, 0) if groups > 1 else view
        return np.ascontiguousarray(grouped).reshape(groups, -1, depth)

    def _patches_at_once(self, threads: int) -> int:
        groups, depth, _ = self._filters.shape
        return (SHARED_FACTOR if threads > 1 else 1) * max(PATCH_BYTES // (4 * groups * depth), MIN_PATCHES)


def _split(out: tuple[int, ...], most: int, threads: int) -> Iterator[tuple[Block, int]]:
    """Yield blocks of at most ``most`` positions, or of one row, and the number of positions before each."""
    sizes = [math.prod(out[axis + 1 :]) for axis in range(len(out))]
    axis = next((axis for axis, size in enumerate(sizes) if size <= most), len(out) - 1)
    count = max(-(-out[axis] // max(most // sizes[axis], 1)), threads if not axis else 1)
    for prefix in product(*map(range, out[:axis])):
        before = sum(index * size for index, size in zip(prefix, sizes, strict=False))
        for part in split_range(out[axis], count):
            yield (*prefix, part), before + part.start * sizes[axis]
