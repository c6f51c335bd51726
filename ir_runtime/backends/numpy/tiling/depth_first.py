"""Run a chain of layers tile by tile (depth-first), in scratch memory that is reused, with views that are made once."""

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
from ..threading.parallel import parallel_for, thread_count
from .scratch import MAX_KEPT, Scratch, borrow_scratch
from .tile_plan import Tile, TilePlan, ping_pong, plan_tiles
from .tiled_layer import PaddedBuffer, TiledLayer

__all__ = ["run_depth_first"]


class TileRun(NamedTuple):
    """The arrays of one run of a tile."""

    source: Array
    """Rows of the data."""
    out: Array
    """Rows of the result."""
    epilogues: Sequence[OutOfPlaceEpilogue]
    """The epilogue of each layer."""
    image: int


Step: TypeAlias = Callable[[TileRun], None]
Operand: TypeAlias = Array | Callable[[TileRun], Array]
"""An array in scratch memory, or one that differs from run to run."""

SOURCE: Callable[[TileRun], Array] = attrgetter("source")
OUT: Callable[[TileRun], Array] = attrgetter("out")


def run_depth_first(chain: Sequence[TiledLayer]) -> Callable[..., Array | None]:
    """Return a function that runs a chain tile by tile, or returns ``None`` if layers are faster one by one."""
    plan_for = lru_cache(maxsize=16)(lambda *how: plan_tiles(chain, *how))

    def run(x: Array, *epilogues: OutOfPlaceEpilogue) -> Array | None:
        plan: TilePlan = plan_for(x.shape[2], x.shape[3], thread_count(1 << 62))
        if not plan.tiles:
            return None
        data = channels_last(x)
        y = np.empty((len(x), *plan.maps[-1], chain[-1].channels), np.float32)

        def work(chunk: tuple[int, int]) -> None:
            image, index = chunk
            rows, channels = plan.tiles[index].rows, plan.tiles[index].channels
            source, out = data[image, rows[0]], y[image, rows[-1]]
            if channels is not None:
                source, out = source if chain[0].pad is None else source[..., channels], out[..., channels]
            tile_run = TileRun(source, out, epilogues, image)
            with borrow_scratch(sum(plan.buffer_sizes)) as scratch:
                for step in _steps(chain, plan, index, scratch):
                    step(tile_run)

        chunks = [(image, index) for image in range(len(x)) for index in range(len(plan.tiles))]
        parallel_for(work, chunks, plan.cost * len(x))
        return channels_first(y)

    return run


def _steps(chain: Sequence[TiledLayer], plan: TilePlan, index: int, scratch: Scratch) -> list[Step]:
    """Return the steps of a tile in some scratch memory; built when it first runs there."""
    memory, steps = plan.bound.get((scratch.id, index), (None, list[Step]()))
    if memory is not scratch.memory:
        steps = _Binding(chain, plan, plan.tiles[index], scratch.memory).steps()
        if scratch.memory.size <= MAX_KEPT:
            plan.bound[scratch.id, index] = scratch.memory, steps
    return steps


def _step(make: Callable[..., Tape], *operands: Operand) -> Step:
    """Replay the tape that ``make`` returns: made once if all operands are in scratch memory, else for each run."""
    if any(map(callable, operands)):
        return lambda run: replay(
            make(*(operand(run) if callable(operand) else operand for operand in operands))
        )
    tape = make(*operands)
    return lambda run: replay(tape)


class _Binding:
    """Lays out the scratch memory of a tile, and makes the steps that compute it there."""

    def __init__(self, chain: Sequence[TiledLayer], plan: TilePlan, tile: Tile, memory: Array) -> None:
        self._chain, self._maps, self._tile = chain, plan.maps, tile
        self._channels = [tile.channels_of(layer) for layer in chain]
        self._heights = [rows.stop - rows.start for rows in tile.rows]
        *buffers, self._scratch = np.split(memory, np.cumsum(plan.buffer_sizes)[:2])
        turns = list(enumerate(ping_pong(chain)))
        self._padded = [self._padded_input(index, buffers[source]) for index, (source, _) in turns]
        self._results = [self._result(index, buffers[output]) for index, (_, output) in turns]

    def _padded_input(self, index: int, memory: Array) -> PaddedBuffer | None:
        layer, channels = self._chain[index], self._channels[index]
        shape = (self._heights[index], self._maps[index][1], channels.stop - channels.start)
        return None if layer.pad is None else layer.pad(shape, self._tile.pads[index], memory)

    def _result(self, index: int, memory: Array) -> Array:
        channels = self._channels[index]
        shape = (self._heights[index + 1], self._maps[index + 1][1], channels.stop - channels.start)
        return memory[: math.prod(shape)].reshape(shape)

    def steps(self) -> list[Step]:
        """Return the steps in order."""
        steps, data = list[Step](), cast(Operand, SOURCE)
        for index, (padded, result) in enumerate(zip(self._padded, self._results, strict=True)):
            if padded is not None:
                steps += [] if index else self._clear(0)
                steps += [_step(padded.copy, data)] if not index or self._target(index - 1) is data else []
                data = padded.array
            steps += [*self._compute(index, data), *self._clear(index + 1), *self._epilogue(index)]
            data = result
        return steps

    def _compute(self, index: int, data: Operand) -> list[Step]:
        """Without post-ops, write the result to its target at once."""
        layer, channels = self._chain[index], self._channels[index]
        direct = not layer.post_ops and self._tile.channels is None
        out = self._target(index) if direct else self._results[index]
        return [_step(lambda source, out: layer.tape(source, out, self._scratch, channels), data, out)]

    def _clear(self, index: int) -> list[Step]:
        """Clear the padding of a layer's input, before anything is written to it."""
        padded = self._padded[index] if index < len(self._padded) else None
        return [] if padded is None else [_step(padded.clear)]

    def _target(self, index: int) -> Operand:
        """Return where the final result of a layer is written."""
        if index == len(self._chain) - 1:
            return OUT
        post_ops, following = self._chain[index].post_ops, self._padded[index + 1]
        out_of_place = post_ops and not any(post_op.full_tensor for post_op in post_ops)
        if following is None or following.interior is None or not out_of_place:
            return self._results[index]
        return following.interior

    def _epilogue(self, index: int) -> list[Step]:
        result, target, channels = self._results[index], self._target(index), self._channels[index]
        post_ops = [post_op.part(channels) for post_op in self._chain[index].post_ops]
        if any(post_op.full_tensor for post_op in post_ops):
            return [self._full_tensor_epilogue(index)]
        if not post_ops:
            direct = target is result or self._tile.channels is None
            return [] if direct else [_step(lambda out: [(np.copyto, (out, result))], target)]
        *before, last = post_ops
        in_place: Tape = [post_op.call(result, result, result) for post_op in before]
        return [_step(lambda: in_place), _step(lambda out: [last.call(result, out, result)], target)]

    def _full_tensor_epilogue(self, index: int) -> Step:
        """Apply post-ops that read the same rows of other tensors."""
        result, last = self._results[index], index == len(self._chain) - 1
        start, (height, width) = self._tile.rows[index + 1].start, self._maps[index + 1]
        rows = result.reshape(-1, result.shape[-1])

        def step(run: TileRun) -> None:
            first = (run.image * height + start) * width
            run.epilogues[index](rows, first, run.out.reshape(rows.shape) if last else None)

        return step
