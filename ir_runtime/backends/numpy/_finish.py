"""What is done in place to a fresh result: the work of layers that a kernel takes over."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from ...ir.tensor import Array, Value
from ...ops import Op
from ...ops.arithmetic.binary import Add, Arithmetic, Multiply, Subtract
from .. import Kernel
from ._curves import curve_of
from ._memory import channel_axis, is_f32, rows_of, same_shape, spread

__all__ = ["Chain", "Finish", "Rows"]

Finish: TypeAlias = Callable[[Array, int], None]
"""Takes rows of a result, contiguous, and the index of the first; changes them in place."""

# Elements of one inner loop against a repeated row: long enough that its set-up does not count, and
# few enough to stay in the first cache.
LOOP = 2048


@dataclass(frozen=True)
class Stage:
    """One layer, done to rows in place. If ``operand``, it also takes the same rows of another tensor."""

    op: Op
    place: int
    inputs: int
    run: Callable[..., None]
    operand: bool = False


@dataclass(frozen=True)
class Rows:
    """A kernel that computes a matrix of rows, block by block, each finished while it is in the cache.

    ``compute`` takes ``arity`` inputs and a `Finish`.
    """

    compute: Callable[..., Array]
    arity: int
    stages: tuple[Stage, ...] = ()

    def absorb(self, op: Op, inputs: Sequence[Value], place: int) -> Kernel | None:
        """A kernel that also does what ``op`` does, row by row."""
        stage = stage_of(op, inputs, place)
        return None if stage is None else replace(self, stages=(*self.stages, stage))

    def __call__(self, *arrays: Array) -> Array:
        return self.compute(*arrays[: self.arity], self._finish(arrays[self.arity :]))

    def _finish(self, extras: Sequence[Array]) -> Finish:
        pairs, start = [], 0
        for stage in self.stages:
            given = extras[start : start + stage.inputs]
            pairs.append((stage.run, rows_of(given[0]) if stage.operand else None))
            start += stage.inputs

        def finish(block: Array, first: int) -> None:
            for run, operand in pairs:
                if operand is None:
                    run(block)
                else:
                    run(block, operand[first : first + len(block)])

        return finish


@dataclass(frozen=True)
class Chain:
    """A kernel with a fresh result, and layers done to it in place if memory allows."""

    head: Kernel
    arity: int
    stages: tuple[Stage, ...] = ()

    def absorb(self, op: Op, inputs: Sequence[Value], place: int) -> Kernel | None:
        """A kernel that also does what ``op`` does."""
        stage = stage_of(op, inputs, place)
        return None if stage is None else replace(self, stages=(*self.stages, stage))

    def __call__(self, *arrays: Array) -> Array:
        out = self.head(*arrays[: self.arity])
        assert isinstance(out, np.ndarray)
        start = self.arity
        for stage in self.stages:
            extras = arrays[start : start + stage.inputs]
            out = _apply(stage, out, extras)
            start += stage.inputs
        return out


def _apply(stage: Stage, out: Array, extras: Sequence[Array]) -> Array:
    rows = rows_of(out) if out.ndim and out.size else None
    if rows is None or not rows.flags.c_contiguous or not np.may_share_memory(rows, out):
        before, after = extras[: stage.place], extras[stage.place :]
        return np.asarray(stage.op.evaluate(*before, out, *after))
    if stage.operand:
        stage.run(rows, rows_of(extras[0]))
    else:
        stage.run(rows)
    return out


def stage_of(op: Op, inputs: Sequence[Value], place: int) -> Stage | None:
    """How to do a layer in place on its input ``place``, or ``None``."""
    ours = inputs[place]
    if not is_f32(*inputs) or ours.shape.rank is None or not ours.shape.rank:
        return None
    if (curve := curve_of(op, inputs)) is not None and place == 0:
        return Stage(op, 0, len(inputs) - 1, lambda block: curve(_line(block), _line(block)))
    if type(op) in (Add, Multiply, Subtract) and isinstance(op, Arithmetic) and len(inputs) == 2:
        return _binary(op, inputs[1 - place], ours, place)
    return None


def _binary(op: Arithmetic, other: Value, ours: Value, place: int) -> Stage | None:
    if op.auto_broadcast != "numpy" or (isinstance(op, Subtract) and place == 1):
        return None
    if (row := _row(other, ours)) is not None:
        return Stage(op, place, 1, along(op.ufunc, row))
    if same_shape(other, ours):
        ufunc = op.ufunc
        return Stage(op, place, 1, lambda block, rows: ufunc(block, rows, out=block), operand=True)
    return None


def _row(other: Value, ours: Value) -> Array | None:
    """A constant that is one number per channel, as a row."""
    known, rank = other.known(), ours.shape.rank
    if known is None or rank is None or known.ndim > rank:
        return None
    axis = channel_axis(rank)
    channels = ours.shape[axis]
    lengths = (1,) * (rank - known.ndim) + known.shape
    if not channels.is_static or any(n != 1 for i, n in enumerate(lengths) if i != axis):
        return None
    if lengths[axis] not in (1, channels.min) or channels.min == 0:
        return None
    return np.broadcast_to(known.reshape(-1), (channels.min,)).copy()


def along(ufunc: np.ufunc, row: Array) -> Callable[[Array], None]:
    """Apply ``ufunc`` to each row of a block and ``row``, in place."""
    tile = spread(row, LOOP)

    def run(block: Array) -> None:
        line = _line(block)
        whole = line.size // tile.size * tile.size
        loops, rest = line[:whole].reshape(-1, tile.size), line[whole:]
        ufunc(loops, tile, out=loops)
        if rest.size:
            ufunc(rest, tile[: rest.size], out=rest)

    return run


def _line(block: Array) -> Array:
    return block.reshape(-1)
