"""Winograd convolution F(4x4, 3x3) (Lavin and Gray 2016, arXiv:1509.09308): 36 multiplications per tile, not 144.

Tiles of 6 by 6 elements that overlap by 2 are transformed. For each of the 36 transformed elements, the tiles are rows of
a matrix that is multiplied with transformed filters; the inverse transform gives 4 by 4 results per tile. If there are
many tiles, each thread takes blocks of tiles through all phases, in its own cache; else all threads share each phase.

A value that is not finite, or overflows, would spread over its whole tile; such tiles are computed directly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ....ir.tensor import Array
from ..codegen.vectors import LANES
from ..threading.parallel import parallel_for, threads, threads_for
from ..threading.recording import workspace
from ._epilogue import Epilogue
from ._packed_epilogue import PackedEpilogue
from ._panels import PackedPanels
from ._winograd_filters import transform_filters
from ._winograd_tiles import WINOGRAD, WinogradJob
from ._winograd_transforms import TILE_ELEMENTS

__all__ = ["Winograd", "is_profitable"]

# Transformed filters with more channels (inputs times outputs) do not stay in the last-level cache.
MAX_FILTERS = 256 * 256
# Smaller maps have too few tiles and waste too much of them.
MIN_LENGTH = 10
# Most tiles of a block, and bytes of its transformed tiles, which stay in the cache of a thread.
TILE_BLOCK = 24
BLOCK_BYTES = 1 << 19
# The fewest tiles of a thread for which it has a block of its own, and the most bytes of transformed filters: all threads read
# all filters then, but hardly anything that another one has written, which takes longer.
MIN_OWN_TILES, MAX_OWN_FILTERS = 4, 1 << 22


def is_profitable(shape: Sequence[int], out: Sequence[int | None]) -> bool:
    """Return whether Winograd is faster for filters ``[C_out, C_in, 3, 3]`` and results of at least that size."""
    outputs, inputs = shape[:2]
    whole = outputs % LANES == 0 and inputs % LANES == 0
    return (
        whole
        and inputs >= 16
        and outputs * inputs <= MAX_FILTERS
        and all(n is not None and n >= MIN_LENGTH for n in out)
    )


@dataclass(frozen=True)
class Winograd:
    """A convolution with transformed filters, and its epilogue.

    Args:
        filters: ``[C_out, C_in, 3, 3]``.
        epilogue: is applied to the results.
    """

    filters: Array
    epilogue: Epilogue
    panels: PackedPanels = field(init=False)
    packed_epilogue: PackedEpilogue = field(init=False)
    _kept: tuple[Array, Array, Array, Array] = field(init=False)
    _jobs: dict[tuple[int, ...], tuple[Array, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        w = np.ascontiguousarray(self.filters)
        outputs, channels = w.shape[:2]
        scale = np.ones(outputs, np.float32) if self.epilogue.scale is None else self.epilogue.scale
        bias = np.zeros(outputs, np.float32) if self.epilogue.shift is None else self.epilogue.shift
        zeros = np.zeros(max(channels, outputs), np.float32)
        object.__setattr__(self, "panels", transform_filters(w, scale))
        object.__setattr__(self, "packed_epilogue", PackedEpilogue.of(self.epilogue))
        WINOGRAD.prepare()
        object.__setattr__(self, "_kept", (w, np.ascontiguousarray(scale), np.ascontiguousarray(bias), zeros))

    def run(
        self,
        x: Array,
        shape: Sequence[int],
        pads: Sequence[tuple[int, int]],
        y: Array,
        extras: Sequence[Array],
    ) -> None:
        """Convolve ``x``, flat but of NHWC ``shape``, into ``y`` of NHWC shape."""
        key = (*shape, *y.shape, threads())
        if (found := self._jobs.get(key)) is None:
            if len(self._jobs) >= 64:
                self._jobs.clear()
            found = self._jobs[key] = self._job(shape, pads, y.shape)
        job, size = found
        first, second = self.packed_epilogue.extra_arrays(extras, 1)
        if size:
            second = workspace(size)
        parallel_for(WINOGRAD.address, job, y, x, first, second, self._threads(y.shape))

    def _threads(self, out: Sequence[int]) -> int:
        """Return how many threads share the work for a result of NHWC shape."""
        work = TILE_ELEMENTS * _tiles(out) * self.filters.shape[0] * self.filters.shape[1]
        return threads_for(computed=work // 2)

    def _job(
        self, shape: Sequence[int], pads: Sequence[tuple[int, int]], out: Sequence[int]
    ) -> tuple[Array, int]:
        """Return a job, and the size of the scratch memory for transformed tiles that its threads share."""
        n, height, width, channels = shape
        tall, wide, outputs = out[1:]
        tiles, panels = _tiles(out), self.panels
        block, shared = self._block(tiles, max(channels, outputs), self._threads(out))
        w, scale, bias, zeros = self._kept
        job = WinogradJob.fill(
            images=n, height=height, width=width, channels=channels, out_height=tall, out_width=wide,
            out_channels=outputs, pad_top=pads[0][0], pad_left=pads[1][0], block_tiles=block,
            blocks=-(-tiles // block), panels=len(panels) // TILE_ELEMENTS, table=panels.table.ctypes.data,
            weights=panels.numbers.ctypes.data, panel_bias=panels.bias.ctypes.data, bias=bias.ctypes.data,
            zeros=zeros.ctypes.data, epilogue_words=self.packed_epilogue.words.ctypes.data,
            epilogue_numbers=self.packed_epilogue.numbers.ctypes.data, filters=w.ctypes.data,
            scale=scale.ctypes.data, shared=shared,
        )  # fmt: skip
        scratch = TILE_ELEMENTS * (block * (channels + outputs) + 2 * LANES) if shared else 0
        return job, scratch

    def _block(self, tiles: int, channels: int, count: int) -> tuple[int, bool]:
        """Return the tiles of a block, and whether threads share one, phase by phase."""
        block = max(min(TILE_BLOCK, BLOCK_BYTES // (4 * TILE_ELEMENTS * channels) // 6 * 6), 6)
        if count == 1 or tiles >= 2 * count * block:
            return min(block, tiles), False
        if tiles >= count * MIN_OWN_TILES and self.panels.numbers.nbytes <= MAX_OWN_FILTERS:
            rounds = -(-tiles // (count * block))
            return -(-tiles // (count * rounds)), False
        shared = len(self.packed_epilogue.extras) < 2
        return tiles if shared else min(block, tiles), shared


def _tiles(out: Sequence[int]) -> int:
    """Return the tiles of a result of NHWC shape."""
    return out[0] * -(-out[1] // 4) * -(-out[2] // 4)
