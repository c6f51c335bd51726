"""Other shapes, orders and regions of a tensor, as views that are known when compiling.

What they follow from is constant, but for the shape of the data. Where that is known, too, a view is one
call of NumPy; where it is not, what a shape leads to is remembered. Layers that do the same share the function.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from operator import itemgetter, methodcaller
from typing import Any, TypeAlias

import numpy as np

from ....errors import IRError
from ....ir.shape import PartialShape
from ....ir.tensor import Array, Value
from ....ops import Op
from ....ops.movement.slice import Slice
from ....ops.movement.strided_slice import StridedSlice
from ....ops.movement.transpose import Transpose
from ....ops.shape.reshape import Reshape
from ....ops.shape.squeeze import Squeeze, Squeeze1, Unsqueeze
from ... import Kernel, Unary
from ...core.lengths import accepting, any_lengths
from .._backend import backend

__all__ = ["SHARED", "Index", "Shape", "bounds", "nothing", "taking", "unary"]

Shape: TypeAlias = tuple[int, ...]

Index: TypeAlias = tuple[Any, ...]
"""What NumPy takes in brackets."""

# Shapes for which a view is remembered; lengths that grow with every run need no more of the past.
REMEMBERED = 64
# Functions that are kept for layers that do the same.
SHARED = 1 << 10


def unary(
    shape: PartialShape,
    of: Callable[[Shape], Any],
    how: Callable[[Any], Any],
    view: bool = True,
    only: tuple[int, int] | None = None,
) -> Kernel | None:
    """A kernel of the data alone, which may have one shape or many.

    Args:
        shape: what is known of the shape of the data.
        of: what is to be done to data of a shape; raises where that cannot be.
        how: the function of the data that does it.
        view: whether that never copies.
        only: as `Unary` has it.
    """
    if not shape.is_static:
        remembered = lru_cache(maxsize=REMEMBERED)(lambda found: how(of(found)))
        return Unary(lambda x: remembered(x.shape)(x), view=view, only=only)
    try:
        return Unary(how(of(shape.static)), view=view, only=only)
    except (IRError, ValueError, IndexError):
        return None  # what is wrong, the operation says when it runs


@backend.accelerates(Reshape, Squeeze, Squeeze1, Unsqueeze)
def shaped(op: Op, data: Value, *others: Value) -> Kernel | None:
    """The same elements in another shape."""
    known = [other.known() for other in others]
    if any(array is None for array in known):
        return _as_asked(op) if isinstance(op, Reshape) else None

    def target(shape: Shape) -> Shape:
        found: Shape = op.evaluate(nothing(shape), *known).shape
        return found

    return unary(data.shape, target, _reshaping, type(op) is not Reshape)


@lru_cache(SHARED)
def _reshaping(lengths: Shape) -> Callable[[Any], Any]:
    return methodcaller("reshape", *lengths) if lengths else methodcaller("reshape", ())


def nothing(shape: Shape) -> Array:
    """An array that has a shape, but takes no memory: what is done to it tells what is to be done to data."""
    return np.broadcast_to(_NOTHING, shape)


_NOTHING = np.zeros((), np.int8)


def _as_asked(op: Reshape) -> Kernel:
    """The shape comes from other layers: mostly it holds nothing but lengths, and at most one -1."""

    def kernel(x: Array, shape: Array) -> Array:
        lengths = shape.tolist()
        if (0 in lengths and op.special_zero) or min(lengths, default=0) < -1 or not x.size:
            return op.evaluate(x, shape)
        try:
            return x.reshape(lengths)
        except ValueError:
            return op.evaluate(x, shape)  # which says what is wrong

    return accepting(kernel, any_lengths)


@backend.accelerates(Transpose)
def ordered(op: Transpose, data: Value, order: Value) -> Kernel | None:
    """The axes in a known order."""
    axes = order.ints()
    if axes is None:
        return None
    return Unary(_transposing(axes), view=True)


@lru_cache(SHARED)
def _transposing(axes: tuple[int, ...]) -> Callable[[Any], Any]:
    return methodcaller("transpose", *axes)


@backend.accelerates(Slice, StridedSlice)
def region(op: Slice | StridedSlice, data: Value, *others: Value) -> Kernel | None:
    """A region between known bounds."""
    found = bounds(op, others)
    return None if found is None else unary(data.shape, found, taking)


def bounds(op: Slice | StridedSlice, others: Sequence[Value]) -> Callable[[Shape], Index] | None:
    """The region of data of a shape, if what says so is known."""
    known: list[Any] = [other.known() for other in others]
    if any(array is None for array in known):
        return None
    if isinstance(op, Slice) and len(known) == 3:
        known.append(None)  # it is asked about its axes even where they are absent
    return lambda shape: op.index(shape, *known)


def taking(*regions: Index) -> Callable[[Any], Any]:
    """The function that gives a region of an array, or a tuple of several."""
    return _taking(tuple(tuple(map(_spelled, region)) for region in regions))


def _spelled(part: Any) -> Any:
    """Part of an index as something that can be looked up."""
    return (part.start, part.stop, part.step) if isinstance(part, slice) else part


@lru_cache(SHARED)
def _taking(spelled: tuple[Index, ...]) -> Callable[[Any], Any]:
    regions = [tuple(slice(*p) if isinstance(p, tuple) else p for p in region) for region in spelled]
    return itemgetter(*(region[0] if len(region) == 1 else region for region in regions))
