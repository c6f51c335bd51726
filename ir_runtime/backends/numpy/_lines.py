"""Convolutions over a map one behind the other, some lines of the last result at a time.

A depthwise convolution needs few lines of what the product before it makes, and the product behind it
none but its own. So a block of lines goes through all of them while it is in the second cache, and
threads meet once for all of them. Lines that two blocks need are made twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np

from ...ir.tensor import Array, Value
from ...ops import Op
from ...ops.convolution.forward import Forward
from .. import Kernel
from ._finish import Finish, Stage, finish_of, stage_of
from ._memory import channels_first, channels_last, padded
from ._products import FINISHING, parts
from ._threads import each, share
from ._windows import fitting

__all__ = ["Lines", "Part"]

# Elements of what goes from one part to the next that stay in the second cache.
BETWEEN = 160_000
# Lines made twice may take so much of the time of all.
TWICE = 0.2
# Blocks of maps with fewer lines are as many as threads.
FEW_LINES = 28
AXIS = 1


@dataclass(frozen=True)
class Part:
    """A convolution with constant filters over two axes, and what is done to its result in place."""

    op: Forward
    kernel: tuple[int, int]
    columns: int
    """Channels of the result."""
    cost: int
    """Multiplications, or what takes as long, for each position of the result."""
    run: Callable[[Array, Array], None]
    """From lines ``[height, width, C]``, with all that the windows need around them, to lines of results."""
    alone: Callable[[Array, Array, Finish], Array]
    """The whole convolution, of data and filters."""
    wide: bool
    """Whether it needs neighbours, or padding."""
    stages: tuple[Stage, ...] = ()


class Block(NamedTuple):
    """Lines of results of each part, from the first part to the last, and those of the data before them."""

    lines: tuple[slice, ...]
    around: tuple[tuple[int, int], ...]
    """Lines of padding above and below what each part reads."""


class Plan(NamedTuple):
    """How to go about data of one shape."""

    maps: tuple[tuple[int, int], ...]
    """Height and width of the result of each part."""
    sides: tuple[tuple[int, int], ...]
    """Columns of padding left and right of what each part reads."""
    blocks: tuple[Block, ...]
    """Empty if it is better to run the parts alone."""
    size: int
    """Multiplications, or what takes as long, of one image."""


@dataclass(frozen=True)
class Lines:
    """A kernel that runs its parts, one or several, over blocks of lines.

    ``following`` makes a part of an operation, or declines. It is also told whether the last part needs
    neighbours.
    """

    parts: tuple[Part, ...]
    following: Callable[[Op, Sequence[Value], bool], Part | None]

    def absorb(self, op: Op, inputs: Sequence[Value], place: int) -> Kernel | None:
        """A kernel that also does what ``op`` does."""
        *before, last = self.parts
        if (stage := stage_of(op, inputs, place, AXIS)) is not None:
            return replace(self, parts=(*before, replace(last, stages=(*last.stages, stage))))
        # With two parts that need neighbours, more would be made twice; without, there is nothing to gain.
        if place or (before and not last.wide):
            return None
        part = self.following(op, inputs, last.wide)
        return None if part is None else replace(self, parts=(*self.parts, part))

    def __call__(self, *arrays: Array) -> Array:
        return self._kernel(*arrays)  # type: ignore[return-value]

    def built(self) -> Kernel:
        """The kernel for the run loop."""
        return self._kernel

    @cached_property
    def _kernel(self) -> Kernel:
        planned = lru_cache(maxsize=16)(self._plan)
        places = self._places()

        def kernel(*arrays: Array) -> Array:
            finishes = [
                finish_of(part.stages, arrays[place + 1 :], AXIS)
                for part, place in zip(self.parts, places, strict=True)
            ]
            x = arrays[0]
            plan = planned(x.shape[2], x.shape[3], share(1 << 62)) if len(self.parts) > 1 else None
            if plan is not None and plan.blocks:
                return self._together(x, plan, finishes)
            for part, place, finish in zip(self.parts, places, finishes, strict=True):
                x = part.alone(x, arrays[place], finish)
            return x

        return kernel

    def _places(self) -> list[int]:
        """Where the filters of each part are among the inputs."""
        places = [1]
        for part in self.parts:
            places.append(places[-1] + 1 + sum(stage.inputs for stage in part.stages))
        return places[:-1]

    def _plan(self, height: int, width: int, threads: int) -> Plan:
        lengths, maps, sides, tops = (height, width), [], [], []
        for part in self.parts:
            fit = fitting(part.op, part.kernel)(lengths)
            tops.append(fit.pads[0][0])
            sides.append(fit.pads[1])
            lengths = (fit.out[0], fit.out[1])
            maps.append(lengths)
        costs = [
            w * (part.cost + FINISHING * part.columns) for part, (_, w) in zip(self.parts, maps, strict=True)
        ]
        size = sum(cost * h for cost, (h, _) in zip(costs, maps, strict=True))
        between = sum(h * w * part.columns for part, (h, w) in zip(self.parts[:-1], maps[:-1], strict=True))
        lines = maps[-1][0]
        most = min(share(size), threads)
        least = 1 if most < 2 else most if lines < FEW_LINES else 2 * most
        heights = [height, *(h for h, _ in maps)]
        blocks = tuple(
            self._block(part, heights, tops) for part in parts(lines, max(least, between // BETWEEN))
        )
        made = sum(
            cost * (lines.stop - lines.start)
            for block in blocks
            for cost, lines in zip(costs, block.lines[1:], strict=True)
        )
        return Plan(tuple(maps), tuple(sides), blocks if made <= (1 + TWICE) * size else (), size)

    def _block(self, lines: slice, heights: Sequence[int], tops: Sequence[int]) -> Block:
        """What each part makes for some lines of the last result."""
        found, around = [lines], list[tuple[int, int]]()
        for part, height, top in zip(self.parts[::-1], heights[-2::-1], tops[::-1], strict=True):
            last = found[0]
            first = last.start * part.op.strides[0] - top
            needed = (last.stop - 1 - last.start) * part.op.strides[0]
            needed += (part.kernel[0] - 1) * part.op.dilations[0] + 1
            start = min(max(first, 0), height)
            stop = min(max(first + needed, start), height)
            above = min(max(-first, 0), needed)
            found.insert(0, slice(start, stop))
            around.insert(0, (above, needed - above - (stop - start)))
        return Block(tuple(found), tuple(around))

    def _together(self, x: Array, plan: Plan, finishes: Sequence[Finish]) -> Array:
        data = channels_last(x)
        y = np.empty((len(x), *plan.maps[-1], self.parts[-1].columns), np.float32)

        def work(piece: tuple[int, Block]) -> None:
            image, block = piece
            found = data[image, block.lines[0]]
            for index, part in enumerate(self.parts):
                lines, (height, width) = block.lines[index + 1], plan.maps[index]
                if part.wide:
                    found = padded(found[None], (block.around[index], plan.sides[index]))[0]
                last = index == len(self.parts) - 1
                shape = (lines.stop - lines.start, width, part.columns)
                out = y[image, lines] if last else np.empty(shape, np.float32)
                part.run(found, out)
                finishes[index](out.reshape(-1, part.columns), (image * height + lines.start) * width)
                found = out

        each(work, [(image, block) for image in range(len(x)) for block in plan.blocks], plan.size * len(x))
        return channels_first(y)
