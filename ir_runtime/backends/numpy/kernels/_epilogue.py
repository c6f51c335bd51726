"""What is done in place to fresh rows: the work of layers that a kernel takes over."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate
from typing import Protocol, TypeAlias

import numpy as np

from ....ir.tensor import Array, Value
from ....ops import Op
from ....ops._elementwise import Binary
from ....ops.arithmetic.binary import Add, Divide, Maximum, Minimum, Multiply, Subtract
from ... import Kernel
from ...common.layout import is_f32, rows_of, same_shape
from ...core.lengths import Accepts, accepting
from ..math.activations import Curve, along, curve_of
from ..tiling.tape import Call

__all__ = [
    "BOUNDS",
    "UFUNCS",
    "Finish",
    "Finishing",
    "Rows",
    "Stage",
    "finishing_of",
    "row_for",
    "stage_of",
    "ufunc_of",
]


Finish: TypeAlias = Callable[[Array, int], None]
"""Takes rows of a result, contiguous, and the index of the first; changes them in place."""


class Finishing(Protocol):
    """A `Finish` that can put what its last stage makes elsewhere."""

    def __call__(self, block: Array, first: int, out: Array | None = None) -> None: ...


UFUNCS: dict[type[Op], np.ufunc] = {
    Add: np.add,
    Multiply: np.multiply,
    Subtract: np.subtract,
    Divide: np.divide,
}
BOUNDS: dict[type[Op], np.ufunc] = {Maximum: np.maximum, Minimum: np.minimum}


@dataclass(frozen=True)
class Stage:
    """One layer, done to rows, and, if ``paired``, to the same rows of its other input.

    ``call`` takes contiguous rows ``[..., C]``, where to put the results, which may be the same place or lie
    apart, and those other rows.
    """

    inputs: int
    call: Callable[[Array, Array, Array], Call]
    paired: bool = False
    narrowed: Callable[[slice], Stage] | None = None
    """The same for some of the channels, where it is not the same for all."""

    def part(self, channels: slice) -> Stage:
        """The same for some of the channels."""
        return self if self.narrowed is None else self.narrowed(channels)


@dataclass(frozen=True)
class Rows:
    """A kernel that computes a matrix of rows, block by block, each finished while it is in the cache.

    ``compute`` takes ``arity`` inputs and a `Finish`. The columns are ``axis`` of the result. What it says of lengths in
    ``accepts`` also holds with the layers that it absorbs: their other inputs have shapes known to fit.
    """

    compute: Callable[..., Array]
    arity: int
    axis: int = -1
    stages: tuple[Stage, ...] = ()
    accepts: Accepts | None = None

    def absorb(self, op: Op, inputs: Sequence[Value], place: int) -> Kernel | None:
        """A kernel that also does what ``op`` does, row by row."""
        stage = stage_of(op, inputs, place, self.axis)
        return None if stage is None else replace(self, stages=(*self.stages, stage))

    def __call__(self, *arrays: Array) -> Array:
        """Build and run, where nobody did so before."""
        return self.built()(*arrays)

    def built(self) -> Callable[..., Array]:
        """The kernel for the run loop."""
        compute, arity, finishing = self.compute, self.arity, finishing_of(self.stages, self.axis)

        def kernel(*arrays: Array) -> Array:
            return compute(*arrays[:arity], finishing(arrays[arity:]))

        return accepting(kernel, self.accepts)


def finishing_of(stages: Sequence[Stage], axis: int) -> Callable[[Sequence[Array]], Finishing]:
    """Makes what does all stages to rows, the columns of which are ``axis``, from their other inputs."""
    if not any(stage.paired for stage in stages):
        always = _finishing([(stage.call, None) for stage in stages])
        return lambda extras: always
    places = list(accumulate((stage.inputs for stage in stages), initial=0))

    def finishing(extras: Sequence[Array]) -> Finishing:
        pairs = zip(stages, places, strict=False)
        return _finishing(
            [(s.call, rows_of(extras[place], axis) if s.paired else None) for s, place in pairs]
        )

    return finishing


def _finishing(pairs: Sequence[tuple[Callable[..., Call], Array | None]]) -> Finishing:
    last = len(pairs) - 1

    def finish(block: Array, first: int, out: Array | None = None) -> None:
        for place, (call, other) in enumerate(pairs):
            to = block if out is None or place < last else out
            rows = block if other is None else other[first : first + len(block)]
            function, args = call(block, to, rows)
            function(*args)

    return finish


def stage_of(op: Op, inputs: Sequence[Value], place: int, axis: int) -> Stage | None:
    """What an operation does to each row of its input ``place``, or ``None``."""
    ours = inputs[place]
    if not is_f32(*inputs) or ours.shape.rank is None:
        return None
    if place == 0 and (curve := curve_of(op, inputs)) is not None:
        return Stage(len(inputs) - 1, partial(_called, curve, curve))
    if len(inputs) != 2:
        return None
    other = inputs[1 - place]
    if (ufunc := ufunc_of(op, place, other)) is None:
        return None
    if (row := row_for(other, ours, axis)) is not None:
        return _with_row(ufunc, row)
    if same_shape(other, ours):
        return Stage(1, lambda block, out, rows: (ufunc, (block, rows, out)), paired=True)
    return None


def _with_row(ufunc: np.ufunc, row: Array) -> Stage:
    def apart(block: Array, out: Array) -> None:
        ufunc(block, row, out=out)

    call = partial(_called, along(ufunc, row), apart)
    return Stage(1, call, narrowed=lambda channels: _with_row(ufunc, row[channels]))


def _called(flat: Curve, apart: Curve, block: Array, out: Array, _: Array) -> Call:
    """One behind the other, where the results are put so; else as they lie."""
    if out.flags.c_contiguous:
        return flat, (block.reshape(-1), out.reshape(-1))
    return apart, (block, out)


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
