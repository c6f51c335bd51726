"""Convolutions of groups of channels as products of patches and filters, of several small groups at once.

A product of few columns takes nearly as long as one of `WIDTH`, and copying patches of few channels longer than multiplying
them. So small groups are joined, and their filters are blocks on the diagonal of one matrix, among zeros. That is wrong for
infinities and NaN: if a result has any, all is computed group by group.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from ....ir.tensor import Array
from ....ops.convolution.forward import GroupConvolution
from ...common.epilogue import OutOfPlaceEpilogue
from ...common.layout import channels_first, channels_last, pad_spatial
from ...common.tape import replay
from ...common.window_fit import window_fit
from ..math.finite import is_finite
from ..math.gemm import EPILOGUE_COST, split_range
from ..math.panels import TILED, WIDTH, Panels
from ..math.windows import windows
from ..threading.parallel import parallel_for, thread_count
from ._patches import MIN_ROWS, PATCH_BYTES, PATCH_COST, SHARED_FACTOR

__all__ = ["GroupedProducts"]


class GroupedProducts:
    """A convolution by filters ``[G, C_out, C_in, kernel...]``."""

    def __init__(self, op: GroupConvolution, w: Array) -> None:
        self._op, self._kernel, self._joined = op, w.shape[3:], _joined_groups(w)
        self._fit = window_fit(op, self._kernel)
        own = np.ascontiguousarray(np.moveaxis(w, (1, 2), (-1, -2)))
        self._packed = _packed(own, self._joined)
        self._one_by_one = cache(lambda: self._packed if self._joined == 1 else _packed(own, 1))

    def compute(self, x: Array, w: Array, epilogue: OutOfPlaceEpilogue) -> Array:
        """Return the result."""
        y = self._run(x, self._packed, self._joined, epilogue)
        return self._run(x, self._one_by_one(), 1, epilogue) if y is None else y  # type: ignore[return-value]

    def _run(self, x: Array, packed: Panels, joined: int, epilogue: OutOfPlaceEpilogue) -> Array | None:
        """Return the result, ``None`` if groups are joined and some numbers are not finite before the epilogue."""
        pads, out = self._fit(x.shape[2:])
        data = pad_spatial(channels_last(x), pads)
        width = packed.depth // math.prod(self._kernel)
        parts, outputs = x.shape[1] // width, packed.columns
        y = np.empty((len(x), *out, parts * outputs), np.float32)
        inner, finite = math.prod(out[1:]), list[bool]()

        def work(chunk: tuple[int, slice]) -> None:
            image, rows = chunk
            view = windows(data[image], self._kernel, self._op.strides, self._op.dilations)[rows]
            grouped = view.reshape(*view.shape[:-1], parts, width)
            patches = np.ascontiguousarray(np.moveaxis(grouped, -2, 0)).reshape(parts, -1, packed.depth)
            block = y[image, rows].reshape(-1, parts * outputs)
            replay(packed.tape(patches, block.reshape(-1, parts, outputs).transpose(1, 0, 2)))
            if joined > 1:
                finite.append(is_finite(block.reshape(-1)))
            epilogue(block, (image * out[0] + rows.start) * inner)

        positions = len(x) * math.prod(out)
        cost = positions * parts * (packed.size + outputs * EPILOGUE_COST + packed.depth * PATCH_COST)
        count = self._blocks(out, parts * packed.depth, thread_count(cost))
        chunks = [(image, rows) for image in range(len(x)) for rows in split_range(out[0], count)]
        parallel_for(work, chunks if y.size else [], cost)
        return channels_first(y) if all(finite) else None

    @staticmethod
    def _blocks(out: tuple[int, ...], depth: int, threads: int) -> int:
        """Return in how many blocks of rows to multiply."""
        positions = (SHARED_FACTOR if threads > 1 else 1) * max(PATCH_BYTES // (4 * depth), MIN_ROWS)
        return max(-(-math.prod(out) // positions), threads)


def _joined_groups(w: Array) -> int:
    """Return how many groups to join: as many as one panel has columns for, at most."""
    groups, outputs, channels = w.shape[:3]
    most = max(WIDTH // max(outputs, channels), 1)
    return next(n for n in range(min(most, groups), 0, -1) if groups % n == 0)


def _packed(filters: Array, joined: int) -> Panels:
    """Pack filters ``[G, kernel..., C_in, C_out]``, of which some are blocks on the diagonal of one matrix each."""
    groups, *kernel, channels, outputs = filters.shape
    size = math.prod(kernel)
    blocks = np.zeros((groups // joined, size, joined, channels, joined, outputs), np.float32)
    own = filters.reshape(groups // joined, joined, size, channels, outputs)
    for place in range(joined):
        blocks[:, :, place, :, place] = own[:, place]
    matrix = blocks.reshape(groups // joined, size * joined * channels, joined * outputs)
    return Panels.of(matrix, filters, tiled=TILED)
