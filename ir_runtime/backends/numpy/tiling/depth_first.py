"""Parts run one behind the other over blocks of lines, in memory that stays: its views are made once."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from operator import attrgetter
from typing import NamedTuple, TypeAlias, cast

import numpy as np

from ....ir.tensor import Array
from ...common.epilogue import OutOfPlaceEpilogue
from ...common.layout import channels_first, channels_last
from ...common.tape import Tape, replay
from ..threading.parallel import each, share
from .scratch import MAX_KEPT, Scratch, borrow_scratch
from .tile_rows import Block, Plan, plan_of, turns
from .tiled_layer import Part, Taken

__all__ = ["together"]


class Job(NamedTuple):
    """A block of one image."""

    source: Array
    """Lines of the data."""
    out: Array
    """Where to put lines of the results."""
    finishes: Sequence[OutOfPlaceEpilogue]
    """What is done to the results of each part."""
    image: int


Act: TypeAlias = Callable[[Job], None]
Place: TypeAlias = Array | Callable[[Job], Array]
"""An array that stays where it is, or one that each job brings."""

SOURCE: Callable[[Job], Array] = attrgetter("source")
OUT: Callable[[Job], Array] = attrgetter("out")


def together(chain: Sequence[Part]) -> Callable[..., Array | None]:
    """What runs parts over blocks of lines, or tells that it is better to run them alone."""
    plan_for = lru_cache(maxsize=16)(lambda *how: plan_of(chain, *how))

    def run(x: Array, *finishes: OutOfPlaceEpilogue) -> Array | None:
        plan: Plan = plan_for(x.shape[2], x.shape[3], share(1 << 62))
        if not plan.blocks:
            return None
        data = channels_last(x)
        y = np.empty((len(x), *plan.maps[-1], chain[-1].columns), np.float32)

        def work(piece: tuple[int, int]) -> None:
            image, number = piece
            lines, some = plan.blocks[number].lines, plan.blocks[number].channels
            source, out = data[image, lines[0]], y[image, lines[-1]]
            if some is not None:
                source, out = source if chain[0].take is None else source[..., some], out[..., some]
            job = Job(source, out, finishes, image)
            with borrow_scratch(sum(plan.rooms)) as scratch:
                for act in _bound(chain, plan, number, scratch):
                    act(job)

        pieces = [(image, number) for image in range(len(x)) for number in range(len(plan.blocks))]
        each(work, pieces, plan.size * len(x))
        return channels_first(y)

    return run


def _bound(chain: Sequence[Part], plan: Plan, number: int, scratch: Scratch) -> list[Act]:
    """What to do for a block in some scratch memory; built when that is used for it first."""
    memory, acts = plan.bound.get((scratch.id, number), (None, list[Act]()))
    if memory is not scratch.memory:
        acts = _Binding(chain, plan, plan.blocks[number], scratch.memory).acts()
        if scratch.memory.size <= MAX_KEPT:
            plan.bound[scratch.id, number] = scratch.memory, acts
    return acts


def _act(make: Callable[..., Tape], *places: Place) -> Act:
    """Plays what ``make`` puts together of arrays: now, if they stay where they are, or else for each job."""
    if any(map(callable, places)):
        return lambda job: replay(make(*(place(job) if callable(place) else place for place in places)))
    tape = make(*places)
    return lambda job: replay(tape)


class _Binding:
    """Lays out the memory for a block, and puts together what is done there."""

    def __init__(self, chain: Sequence[Part], plan: Plan, block: Block, memory: Array) -> None:
        self._chain, self._maps, self._block = chain, plan.maps, block
        self._some = [block.made(part) for part in chain]
        self._lengths = [lines.stop - lines.start for lines in block.lines]
        *rooms, self._spare = np.split(memory, np.cumsum(plan.rooms)[:2])
        where = list(enumerate(turns(chain)))
        self._takes = [self._taken(number, rooms[taken]) for number, (taken, _) in where]
        self._made = [self._room(number, rooms[made]) for number, (_, made) in where]

    def _taken(self, number: int, memory: Array) -> Taken | None:
        part, some = self._chain[number], self._some[number]
        shape = (self._lengths[number], self._maps[number][1], some.stop - some.start)
        return None if part.take is None else part.take(shape, self._block.around[number], memory)

    def _room(self, number: int, memory: Array) -> Array:
        some = self._some[number]
        shape = (self._lengths[number + 1], self._maps[number + 1][1], some.stop - some.start)
        return memory[: math.prod(shape)].reshape(shape)

    def acts(self) -> list[Act]:
        """What is done, in order."""
        acts, data = list[Act](), cast(Place, SOURCE)
        for number, (take, made) in enumerate(zip(self._takes, self._made, strict=True)):
            if take is not None:
                acts += [] if number else self._clearing(0)
                acts += [_act(take.copy, data)] if not number or self._goal(number - 1) is data else []
                data = take.room
            acts += [*self._computing(number, data), *self._clearing(number + 1), *self._finishing(number)]
            data = made
        return acts

    def _computing(self, number: int, data: Place) -> list[Act]:
        """What has nothing done to it after is put where it belongs at once."""
        part, some = self._chain[number], self._some[number]
        straight = not part.post_ops and self._block.channels is None
        goal = self._goal(number) if straight else self._made[number]
        return [_act(lambda source, out: part.calls(source, out, self._spare, some), data, goal)]

    def _clearing(self, number: int) -> list[Act]:
        """Before anything is put into the room of a part that comes behind another."""
        take = self._takes[number] if number < len(self._takes) else None
        return [] if take is None else [_act(take.clear)]

    def _goal(self, number: int) -> Place:
        """Where the finished results of a part are put."""
        if number == len(self._chain) - 1:
            return OUT
        post_ops, following = self._chain[number].post_ops, self._takes[number + 1]
        straight = post_ops and not any(post_op.full_tensor for post_op in post_ops)
        if following is None or following.inside is None or not straight:
            return self._made[number]
        return following.inside

    def _finishing(self, number: int) -> list[Act]:
        made, goal, some = self._made[number], self._goal(number), self._some[number]
        post_ops = [post_op.part(some) for post_op in self._chain[number].post_ops]
        if any(post_op.full_tensor for post_op in post_ops):
            return [self._with_others(number)]
        if not post_ops:
            straight = goal is made or self._block.channels is None
            return [] if straight else [_act(lambda to: [(np.copyto, (to, made))], goal)]
        *before, last = post_ops
        in_place: Tape = [post_op.call(made, made, made) for post_op in before]
        return [_act(lambda: in_place), _act(lambda to: [last.call(made, to, made)], goal)]

    def _with_others(self, number: int) -> Act:
        """Stages that need the same rows of other inputs."""
        made, last = self._made[number], number == len(self._chain) - 1
        start, (height, width) = self._block.lines[number + 1].start, self._maps[number + 1]
        rows = made.reshape(-1, made.shape[-1])

        def act(job: Job) -> None:
            first = (job.image * height + start) * width
            job.finishes[number](rows, first, job.out.reshape(rows.shape) if last else None)

        return act
