"""Element-wise work on a whole fresh result, in whatever order it lies in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...ir.tensor import Array, Value
from ...ops import Op
from .. import Kernel
from ._curves import Curve, along, curve_of
from ._finish import UFUNCS, fits, row_for
from ._memory import flat, is_f32, moved, same_shape

__all__ = ["Chain", "bent", "shifted"]


@dataclass(frozen=True)
class Link:
    """One layer: takes the result so far and its ``inputs`` others, returns the result."""

    inputs: int
    run: Callable[..., Array]


@dataclass(frozen=True)
class Chain:
    """A kernel with a fresh result, and layers done to it, in place where its memory allows."""

    head: Kernel
    arity: int
    links: tuple[Link, ...] = ()

    def absorb(self, op: Op, inputs: Sequence[Value], place: int) -> Kernel | None:
        """A kernel that also does what ``op`` does."""
        link = _link(op, inputs, place)
        return None if link is None else replace(self, links=(*self.links, link))

    def __call__(self, *arrays: Array) -> Array:
        out = self.head(*arrays[: self.arity])
        assert isinstance(out, np.ndarray)
        start = self.arity
        for link in self.links:
            out = link.run(out, *arrays[start : start + link.inputs])
            start += link.inputs
        return out


def _link(op: Op, inputs: Sequence[Value], place: int) -> Link | None:
    ours = inputs[place]
    if not is_f32(*inputs) or ours.shape.rank is None:
        return None
    if place == 0 and (curve := curve_of(op, inputs)) is not None:
        return Link(len(inputs) - 1, lambda out, *_: bent(curve, out, out))
    if not fits(op, place):
        return None
    other, ufunc = inputs[1 - place], UFUNCS[type(op)]
    if (run := shifted(ufunc, other, ours)) is not None:
        return Link(1, lambda out, _: run(out, out))
    if same_shape(other, ours):
        return Link(1, lambda out, array: ufunc(out, array, out=out))
    return None


def bent(curve: Curve, x: Array, out: Array | None = None) -> Array:
    """A curve of every element, into ``out`` or a new array that lies as ``x`` does."""
    line = flat(x)
    if line is None:
        x = out = x.copy(order="C")
        line = x.reshape(-1)
    result = np.empty_like(x) if out is None else out
    target = flat(result)
    assert target is not None
    curve(line, target)
    return result


def shifted(ufunc: np.ufunc, other: Value, ours: Value) -> Callable[..., Array] | None:
    """A ufunc of a tensor and a constant that varies along one axis only, or ``None``.

    Along the axis that is stored last, the constant is repeated, for longer inner loops.
    """
    axes = range(-(ours.shape.rank or 0), 0)
    found = next(((axis, row) for axis in axes if (row := row_for(other, ours, axis)) is not None), None)
    if found is None:
        return None
    axis, row = found
    run = along(ufunc, row)
    shaped = row.reshape(-1, *(1,) * (-1 - axis))

    def kernel(x: Array, out: Array | None = None) -> Array:
        result = np.empty_like(x) if out is None else out
        source, target = moved(x, axis, -1), moved(result, axis, -1)
        if source.flags.c_contiguous and target.flags.c_contiguous:
            run(source.reshape(-1), target.reshape(-1))
        else:
            ufunc(x, shaped, out=result)
        return result

    return kernel
