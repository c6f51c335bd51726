"""Convolutions of 3 by 3 by Winograd's F(4, 3): 36 products of tiles instead of 144 of windows.

Tiles of 6 by 6 elements that overlap by 2 are transformed, and of each transformed element the tiles are
the rows of a matrix, which is multiplied with one of 36 matrices of transformed filters; transformed
back, a tile gives 4 by 4 results. Where there are many tiles, each thread takes blocks of them through
all of it, in its own cache; else all threads share each of the three phases.

What overflows, or was not finite, spreads over the whole tile on that way; such a tile is computed
directly instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ....ir.tensor import Array
from ..codegen.vectors import LANES
from ..threading.parallel import parallel_for, threads
from ._epilogue import Epilogue
from ._packed_epilogue import PackedEpilogue
from ._panels import PackedPanels
from ._winograd_tiles import WINOGRAD
from ._winograd_transforms import TILE_ELEMENTS, transform_filters

__all__ = ["Winograd", "is_profitable"]

# Filters of more channels than this, once transformed, do not stay in the last cache.
MAX_FILTERS = 256 * 256
# Smaller maps have too few tiles, and waste too much of those.
MIN_LENGTH = 10
# Tiles that a thread takes through all phases; and bytes of them once transformed, which stay in its cache.
TILE_BLOCK = 24
BLOCK_BYTES = 1 << 19


def is_profitable(shape: Sequence[int], out: Sequence[int | None]) -> bool:
    """Whether filters ``[C_out, C_in, 3, 3]`` are better transformed, for results of at least that size."""
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
    """Transformed filters, and what is done to the results.

    Args:
        filters: ``[C_out, C_in, 3, 3]``, as they are stored.
        epilogue: what follows.
    """

    filters: Array
    epilogue: Epilogue
    panels: PackedPanels = field(init=False)
    finish: PackedEpilogue = field(init=False)
    _kept: tuple[Array, Array, Array, Array] = field(init=False)
    _jobs: dict[Any, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        w = np.ascontiguousarray(self.filters)
        outputs, channels = w.shape[:2]
        scale = np.ones(outputs, np.float32) if self.epilogue.scale is None else self.epilogue.scale
        bias = np.zeros(outputs, np.float32) if self.epilogue.shift is None else self.epilogue.shift
        zeros = np.zeros(max(channels, outputs), np.float32)
        object.__setattr__(self, "panels", transform_filters(w, scale))
        object.__setattr__(self, "finish", PackedEpilogue.of(self.epilogue))
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
        """Convolve ``x``, ``[N, height, width, C]`` but 1-D, of that shape, into ``y``, ``[N, height, width, C]``."""
        key = (*shape, *y.shape, threads())
        if (found := self._jobs.get(key)) is None:
            if len(self._jobs) >= 64:
                self._jobs.clear()
            found = self._jobs[key] = self._job(shape, pads, y.shape)
        job, size = found
        first, second = self.finish.extra_arrays(extras, 1)
        if size:
            second = np.empty(size, np.float32)
        parallel_for(WINOGRAD.address, job, y, x, first, second, threads())

    def _job(
        self, shape: Sequence[int], pads: Sequence[tuple[int, int]], out: Sequence[int]
    ) -> tuple[Array, int]:
        """A job, and how much room for transformed tiles its threads share."""
        n, height, width, channels = shape
        tall, wide, outputs = out[1:]
        tiles = n * -(-tall // 4) * -(-wide // 4)
        block = max(min(TILE_BLOCK, BLOCK_BYTES // (4 * TILE_ELEMENTS * max(channels, outputs)) // 6 * 6), 6)
        shared = tiles < 2 * threads() * block and threads() > 1 and len(self.finish.extras) < 2
        block = tiles if shared else min(block, tiles)
        panels = self.panels
        w, scale, bias, zeros = self._kept
        words = [
            n, height, width, channels, tall, wide, outputs, pads[0][0], pads[1][0], block, -(-tiles // block),
            len(panels) // TILE_ELEMENTS, panels.table.ctypes.data, panels.numbers.ctypes.data, panels.bias.ctypes.data,
            bias.ctypes.data, zeros.ctypes.data, self.finish.words.ctypes.data, self.finish.numbers.ctypes.data,
            w.ctypes.data, scale.ctypes.data, shared,
        ]  # fmt: skip
        room = TILE_ELEMENTS * (block * (channels + outputs) + 2 * LANES) if shared else 0
        return np.array(words, np.int64), room
