"""What is done in place to fresh rows: the work of layers that a kernel takes over."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from ...ir.tensor import Array, Value
from ...ops import Op
from ...ops._elementwise import Binary
from ...ops.arithmetic.binary import Add, Divide, Maximum, Minimum, Multiply, Subtract
from .. import Kernel
from ._curves import along, curve_of
from ._memory import is_f32, rows_of, same_shape

__all__ = ["BOUNDS", "UFUNCS", "Finish", "Rows", "Stage", "finish_of", "row_for", "stage_of", "ufunc_of"]

Finish: TypeAlias = Callable[[Array, int], None]
"""Takes rows of a result, contiguous, and the index of the first; changes them in place."""

UFUNCS: dict[type[Op], np.ufunc] = {
    Add: np.add,
    Multiply: np.multiply,
    Subtract: np.subtract,
    Divide: np.divide,
}
BOUNDS: dict[type[Op], np.ufunc] = {Maximum: np.maximum, Minimum: np.minimum}


@dataclass(frozen=True)
class Stage:
    """One layer, done in place to rows, and, if ``paired``, to the same rows of its other input."""

    inputs: int
    run: Callable[..., None]
    paired: bool = False


@dataclass(frozen=True)
class Rows:
    """A kernel that computes a matrix of rows, block by block, each finished while it is in the cache.

    ``compute`` takes ``arity`` inputs and a `Finish`. The columns are ``axis`` of the result.
    """

    compute: Callable[..., Array]
    arity: int
    axis: int = -1
    stages: tuple[Stage, ...] = ()

    def absorb(self, op: Op, inputs: Sequence[Value], place: int) -> Kernel | None:
        """A kernel that also does what ``op`` does, row by row."""
        stage = stage_of(op, inputs, place, self.axis)
        return None if stage is None else replace(self, stages=(*self.stages, stage))

    def __call__(self, *arrays: Array) -> Array:
        return self.compute(*arrays[: self.arity], finish_of(self.stages, arrays[self.arity :], self.axis))


def finish_of(stages: Sequence[Stage], extras: Sequence[Array], axis: int) -> Finish:
    """What does all stages to rows, the columns of which are ``axis``; ``extras`` are their other inputs."""
    pairs, start = [], 0
    for stage in stages:
        pairs.append((stage.run, rows_of(extras[start], axis) if stage.paired else None))
        start += stage.inputs

    def finish(block: Array, first: int) -> None:
        for run, other in pairs:
            if other is None:
                run(block)
            else:
                run(block, other[first : first + len(block)])

    return finish


def stage_of(op: Op, inputs: Sequence[Value], place: int, axis: int) -> Stage | None:
    """What an operation does to each row of its input ``place``, or ``None``."""
    ours = inputs[place]
    if not is_f32(*inputs) or ours.shape.rank is None:
        return None
    if place == 0 and (curve := curve_of(op, inputs)) is not None:
        return Stage(len(inputs) - 1, lambda block: curve(block.reshape(-1), block.reshape(-1)))
    if len(inputs) != 2:
        return None
    other = inputs[1 - place]
    if (ufunc := ufunc_of(op, place, other)) is None:
        return None
    if (row := row_for(other, ours, axis)) is not None:
        run = along(ufunc, row)
        return Stage(1, lambda block: run(block.reshape(-1), block.reshape(-1)))
    if same_shape(other, ours):
        return Stage(1, lambda block, rows: ufunc(block, rows, out=block), paired=True)
    return None


def ufunc_of(op: Op, place: int, other: Value) -> np.ufunc | None:
    """The ufunc of ours and ``other`` that a binary operation is, if ours may come first; ours is at ``place``.

    The larger one of two is NaN in NumPy where either is; in OpenVINO only where the first is.
    """
    if not isinstance(op, Binary) or op.auto_broadcast != "numpy":
        return None
    if isinstance(op, Maximum | Minimum):
        known = other.known()
        return None if place or known is None or np.isnan(known).any() else BOUNDS[type(op)]
    return None if place and isinstance(op, Subtract | Divide) else UFUNCS.get(type(op))


# A longer row than this is no row of channels, and not worth a copy.
MOST_COLUMNS = 1 << 22


def row_for(other: Value, ours: Value, axis: int) -> Array | None:
    """A constant that is the same everywhere but along ``axis`` of another tensor, as a row."""
    known, rank = other.known(), ours.shape.rank
    if known is None or rank is None or known.ndim > rank or not rank:
        return None
    columns = ours.shape[axis]
    if not columns.is_static or not 0 < columns.min <= MOST_COLUMNS:
        return None
    lengths = [1] * (rank - known.ndim) + list(known.shape)
    length = lengths.pop(axis)
    if any(n != 1 for n in lengths) or length not in (1, columns.min):
        return None
    return np.broadcast_to(known.reshape(-1), (columns.min,)).copy()
