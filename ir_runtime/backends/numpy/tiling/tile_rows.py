"""How to cut a map into blocks of lines that go through several parts while they are in the second cache."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ....ir.tensor import Array
from ....ops.window import Pads
from ..math.gemm import FINISHING, blocks_for, parts
from ..math.windows import fitting
from ..threading.parallel import share
from .tiled_layer import Part

__all__ = ["Block", "Plan", "plan_of", "turns"]

# Lines made twice may take so much of the time of all.
TWICE = 0.2
# Where it is more than this, each block has some of the channels instead of some lines, if that is possible:
# multiples of so many, which is a panel of a product.
BETTER, GROUP = 0.05, 32


class Block(NamedTuple):
    """Lines of the data, and those of the results of each part."""

    lines: tuple[slice, ...]
    around: tuple[Pads, ...]
    """The padding around what each part reads."""
    channels: slice | None = None
    """Those that are made, by each part; ``None`` for all."""

    def made(self, part: Part) -> slice:
        """The channels that a part makes."""
        return slice(0, part.columns) if self.channels is None else self.channels


@dataclass(frozen=True)
class Plan:
    """How to go about data of one shape."""

    maps: tuple[tuple[int, int], ...]
    """Height and width of the data, and of the result of each part."""
    blocks: tuple[Block, ...]
    """Empty if it is better to run the parts alone."""
    size: int
    """Multiplications, or what takes as long, of one image."""
    rooms: tuple[int, int, int]
    """The most elements that a block needs at once: in two places, what is read and what is written; and to spare."""
    bound: dict[tuple[int, int], tuple[Array, list[Any]]] = field(default_factory=dict)
    """By the id of the scratch and the number of the block: its memory, and what to call."""


def plan_of(chain: Sequence[Part], height: int, width: int, threads: int) -> Plan:
    """The blocks for data of a height and width."""
    maps, pads = [(height, width)], list[Pads]()
    for part in chain:
        if part.op is None:
            pads.append(((0, 0), (0, 0)))
            maps.append(maps[-1])
        else:
            fit = fitting(part.op, part.kernel)(maps[-1])
            pads.append(fit.pads)
            maps.append((fit.out[0], fit.out[1]))
    costs = [w * (part.cost + FINISHING * part.columns) for part, (_, w) in zip(chain, maps[1:], strict=True)]
    size = sum(cost * h for cost, (h, _) in zip(costs, maps[1:], strict=True))
    most = min(share(size), threads)
    between = sum(h * w * part.columns for part, (h, w) in zip(chain[:-1] or chain, maps[1:], strict=False))
    count = blocks_for(between, most)
    heights, columns = [h for h, _ in maps], chain[-1].columns
    blocks = tuple(_block(chain, lines, heights, pads) for lines in parts(heights[-1], count))
    made = sum(
        cost * (lines.stop - lines.start)
        for block in blocks
        for cost, lines in zip(costs, block.lines[1:], strict=True)
    )
    if made > (1 + BETTER) * size and _splits(chain):
        whole = _block(chain, slice(0, heights[-1]), heights, pads)
        blocks = tuple(whole._replace(channels=some) for some in parts(columns, count, GROUP))
    elif len(chain) > 1 and made > (1 + TWICE) * size:
        blocks = ()
    needs = [_needs(chain, maps, block) for block in blocks]
    rooms = [max((need[place] for need in needs), default=0) for place in range(3)]
    return Plan(tuple(maps), blocks, size, (rooms[0], rooms[1], rooms[2]))


def _splits(chain: Sequence[Part]) -> bool:
    """Whether all parts can make some channels without the others: what mixes them may only come first."""
    if any(part.op is None or part.take is None for part in chain[1:]) or chain[0].op is None:
        return False
    return not any(post_op.full_tensor for part in chain for post_op in part.post_ops)


def turns(chain: Sequence[Part]) -> Iterator[tuple[int, int]]:
    """For each part, in which of two places lies what it takes of the data, and in which what it makes."""
    place = 1
    for part in chain:
        taken = place if part.take is None else 1 - place
        place = 1 - taken
        yield taken, place


def _needs(chain: Sequence[Part], maps: Sequence[tuple[int, int]], block: Block) -> tuple[int, int, int]:
    """The most elements in either place, and those to spare."""
    sizes, spare = [0, 0], 0
    for number, (part, (taken, place)) in enumerate(zip(chain, turns(chain), strict=True)):
        before, lines = (some.stop - some.start for some in block.lines[number : number + 2])
        channels = block.made(part)
        count = channels.stop - channels.start
        made = lines * maps[number + 1][1] * count
        takes = part.taken((before, maps[number][1], count), block.around[number])
        sizes[taken], sizes[place] = max(sizes[taken], takes), max(sizes[place], made)
        spare = max(spare, made if part.spare else 0)
    return sizes[0], sizes[1], spare


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
