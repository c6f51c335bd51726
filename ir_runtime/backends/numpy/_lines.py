"""Convolutions over a map one behind the other, some lines of the last result at a time.

A depthwise convolution needs few lines of what the product before it makes, and the product behind it
none but its own. So a block of lines goes through all of them while it is in the second cache, and
threads meet once for all of them. Lines that two blocks need are made twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import NamedTuple, TypeAlias

import numpy as np

from ...ir.tensor import Array, Value
from ...ops import Op
from ...ops._window import Pads
from ...ops.convolution.forward import Forward
from .. import Kernel
from ._finish import Finish, Stage, finish_of, stage_of
from ._memory import channels_first, channels_last
from ._products import FINISHING, blocks_for, parts
from ._threads import each, share
from ._windows import fitting

__all__ = ["Lines", "Part"]

# With fewer multiplications, or what takes as long, two threads wait longer for the interpreter, after each of
# many short calls of NumPy, than each of them saves the other: 0.6 ms become 0.8, 1.4 ms become 1.1.
WORTH = 1 << 25
# Lines made twice may take so much of the time of all.
TWICE = 0.2
AXIS = 1


Alone: TypeAlias = Callable[[Array, Finish], Array]
"""A whole convolution, of data as ``[N, C, H, W]``."""


@dataclass(frozen=True)
class Part:
    """A convolution with constant filters over two axes, or what needs no neighbours; and what is done in place."""

    op: Forward | None
    kernel: tuple[int, int]
    columns: int
    """Channels of the result."""
    cost: int
    """Multiplications, or what takes as long, for each position of the result."""
    run: Callable[[Array, Array], None]
    """From lines ``[height, width, C]``, or what ``take`` makes of them, to lines of results."""
    take: Callable[[Array, Pads], Array] | None = None
    """Copies lines, with padding around them, to where ``run`` wants them; ``None`` if it needs no neighbours."""
    alone: Alone | None = None
    """How to run it where it is not computed line by line."""
    ready: Callable[[], object] | None = None
    """Packs the filters; called once it is known which kernel computes the layer."""
    stages: tuple[Stage, ...] = ()


class Block(NamedTuple):
    """Lines of the data, and those of the results of each part."""

    lines: tuple[slice, ...]
    around: tuple[Pads, ...]
    """The padding around what each part reads."""


class Plan(NamedTuple):
    """How to go about data of one shape."""

    maps: tuple[tuple[int, int], ...]
    """Height and width of the result of each part."""
    blocks: tuple[Block, ...]
    """Empty if it is better to run the parts alone."""
    size: int
    """Multiplications, or what takes as long, of one image."""


@dataclass(frozen=True)
class Lines:
    """A kernel that runs its parts, one or several, over blocks of lines.

    ``following`` makes a part of an operation, or declines. It is also told what the last part is.
    """

    parts: tuple[Part, ...]
    following: Callable[[Op, Sequence[Value], Part], Part | None]

    def absorb(self, op: Op, inputs: Sequence[Value], place: int) -> Kernel | None:
        """A kernel that also does what ``op`` does."""
        *before, last = self.parts
        if (stage := stage_of(op, inputs, place, AXIS)) is not None:
            return replace(self, parts=(*before, replace(last, stages=(*last.stages, stage))))
        # With two parts that need neighbours, more would be made twice; without, there is nothing to gain.
        if place or (before and last.take is None):
            return None
        part = self.following(op, inputs, last)
        return None if part is None else replace(self, parts=(*self.parts, part))

    def __call__(self, *arrays: Array) -> Array:
        """Build and run, where nobody did so before."""
        return self._kernel(*arrays)  # type: ignore[return-value]

    def built(self) -> Kernel:
        """The kernel for the run loop."""
        return self._kernel

    @cached_property
    def _kernel(self) -> Kernel:
        for part in self.parts:
            if part.ready is not None:
                part.ready()
        apart = [part.alone or _together((part,)) for part in self.parts]
        together = _together(self.parts) if len(apart) > 1 else apart[0]
        places = self._places()

        def kernel(*arrays: Array) -> Array:
            x, *others = arrays
            finishes = [
                finish_of(part.stages, others[place:], AXIS)
                for part, place in zip(self.parts, places, strict=True)
            ]
            y = together(x, *finishes)
            if y is not None:
                return y
            for alone, finish in zip(apart, finishes, strict=True):
                x = alone(x, finish)  # type: ignore[assignment]
            return x

        return kernel

    def _places(self) -> list[int]:
        """Where what is behind the filters of each part is among the inputs."""
        places = [1]
        for part in self.parts:
            places.append(places[-1] + sum(stage.inputs for stage in part.stages) + 1)
        return places[:-1]


def _together(chain: Sequence[Part]) -> Callable[..., Array | None]:
    """What runs parts one behind the other over blocks of lines, or tells that it is better to run them alone."""
    plan_for = lru_cache(maxsize=16)(lambda *how: _plan(chain, *how))
    last, worth = chain[-1], _worth(chain)

    def run(x: Array, *finishes: Finish) -> Array | None:
        plan = plan_for(x.shape[2], x.shape[3], share(1 << 62))
        if not plan.blocks:
            return None
        data = channels_last(x)
        y = np.empty((len(x), *plan.maps[-1], last.columns), np.float32)

        def work(piece: tuple[int, Block]) -> None:
            image, block = piece
            found = data[image, block.lines[0]]
            steps = zip(chain, block.around, block.lines[1:], plan.maps, finishes, strict=True)
            for part, around, lines, (height, width), finish in steps:
                source = found if part.take is None else part.take(found, around)
                shape = (lines.stop - lines.start, width, part.columns)
                found = y[image, lines] if part is last else np.empty(shape, np.float32)
                part.run(source, found)
                finish(found.reshape(-1, part.columns), (image * height + lines.start) * width)

        size = plan.size * len(x)
        pieces = [(image, block) for image in range(len(x)) for block in plan.blocks]
        each(work, pieces, size if size >= worth else 0)
        return channels_first(y)

    return run


def _worth(chain: Sequence[Part]) -> int:
    """What is worth a second thread; `each` has a limit of its own."""
    return WORTH if any(part.take is not None for part in chain) else 0


def _plan(chain: Sequence[Part], height: int, width: int, threads: int) -> Plan:
    lengths, maps, pads = (height, width), [], list[Pads]()
    for part in chain:
        if part.op is None:
            pads.append(((0, 0), (0, 0)))
        else:
            fit = fitting(part.op, part.kernel)(lengths)
            lengths = (fit.out[0], fit.out[1])
            pads.append(fit.pads)
        maps.append(lengths)
    costs = [w * (part.cost + FINISHING * part.columns) for part, (_, w) in zip(chain, maps, strict=True)]
    size = sum(cost * h for cost, (h, _) in zip(costs, maps, strict=True))
    lines, columns = maps[-1]
    most = min(share(size), threads) if size >= _worth(chain) else 1
    between = sum(h * w * part.columns for part, (h, w) in zip(chain, maps, strict=True))
    between -= lines * columns * chain[-1].columns
    count = blocks_for(between, most)
    blocks = tuple(_block(chain, part, [height, *(h for h, _ in maps)], pads) for part in parts(lines, count))
    made = sum(
        cost * (lines.stop - lines.start)
        for block in blocks
        for cost, lines in zip(costs, block.lines[1:], strict=True)
    )
    worth = len(chain) == 1 or made <= (1 + TWICE) * size
    return Plan(tuple(maps), blocks if worth else (), size)


def _block(chain: Sequence[Part], lines: slice, heights: Sequence[int], pads: Sequence[Pads]) -> Block:
    """What each part makes for some lines of the last result."""
    found, around = [lines], list[Pads]()
    for part, height, (top, sides) in zip(chain[::-1], heights[-2::-1], pads[::-1], strict=True):
        stride, dilation = (1, 1) if part.op is None else (part.op.strides[0], part.op.dilations[0])
        reach = (part.kernel[0] - 1) * dilation + 1
        first = found[0].start * stride - top[0]
        needed = (found[0].stop - found[0].start - 1) * stride + reach
        start = min(max(first, 0), height)
        stop = min(max(first + needed, start), height)
        above = min(max(-first, 0), needed)
        found.insert(0, slice(start, stop))
        around.insert(0, ((above, needed - above - (stop - start)), sides))
    return Block(tuple(found), tuple(around))
