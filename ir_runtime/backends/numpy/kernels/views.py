"""Reshape, Transpose, Broadcast, Squeeze and Slice with constant parameters, as views prepared at compile time.

For data of static shape, a view is a single call of NumPy; for dynamic shapes, the call is cached by shape. Layers with the
same parameters share the function.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from operator import itemgetter, methodcaller
from typing import Any, TypeAlias

import numpy as np

from ....errors import IRError
from ....ir.shape import PartialShape
from ....ir.tensor import Array, Value
from ....ops import Op
from ....ops.movement.extend import Broadcast, Broadcast1, Pad1, Pad12, PadBase
from ....ops.movement.reorder import Transpose
from ....ops.movement.slice import Slice, StridedSlice
from ....ops.shape import Reshape, Squeeze, Squeeze1, Unsqueeze
from ... import Kernel
from ...core.kernel import any_lengths
from .._backend import backend

__all__ = ["MAX_SHARED", "Index", "Shape", "region_bounds", "shape_only", "take_regions", "unary_kernel"]

Shape: TypeAlias = tuple[int, ...]

Index: TypeAlias = tuple[Any, ...]
"""An index of a NumPy array."""

# The number of shapes for which a layer caches its view; a cache cannot help lengths that grow with every run.
MAX_REMEMBERED = 64
# The number of functions cached for sharing among layers.
MAX_SHARED = 1 << 10


def unary_kernel(
    shape: PartialShape,
    describe: Callable[[Shape], Any],
    make: Callable[[Any], Any],
    view: bool = True,
    only: tuple[int, int] | None = None,
) -> Kernel | None:
    """Return a kernel that reads only the data and depends on its shape, or ``None`` if the shape is static and invalid.

    Args:
        shape: the shape of the data.
        describe: returns parameters, such as a target shape, for data of a shape, or raises an error.
        make: returns the function of the data for these parameters.
        view: whether that function never copies.
        only: see `Kernel`.
    """
    if not shape.is_static:
        cached = lru_cache(maxsize=MAX_REMEMBERED)(lambda actual: make(describe(actual)))
        return Kernel.unary(lambda x: cached(x.shape)(x), view=view, only=only)
    try:
        return Kernel.unary(make(describe(shape.static)), view=view, only=only)
    except (IRError, ValueError, IndexError):
        return None  # the operation raises the error when it runs


@backend.accelerates(Reshape, Squeeze, Squeeze1, Unsqueeze)
def reshape(op: Op, data: Value, *others: Value) -> Kernel | None:
    """Return a kernel that reshapes its data, to a shape that is constant or, for Reshape, computed; else ``None``."""
    known = [other.known() for other in others]
    if any(array is None for array in known):
        return _dynamic_reshape(op) if isinstance(op, Reshape) else None

    def target(shape: Shape) -> Shape:
        result: Shape = op.evaluate(shape_only(shape), *known).shape
        return result

    return unary_kernel(data.shape, target, _reshape, type(op) is not Reshape)


@lru_cache(MAX_SHARED)
def _reshape(lengths: Shape) -> Callable[[Any], Any]:
    return methodcaller("reshape", *lengths) if lengths else methodcaller("reshape", ())


def shape_only(shape: Shape) -> Array:
    """Return an array of a shape, a broadcast zero without memory, to evaluate the shape of a result."""
    return np.broadcast_to(_ZERO, shape)


_ZERO = np.zeros((), np.int8)


def _dynamic_reshape(op: Reshape) -> Kernel:
    """Return a kernel for a target shape that other layers compute."""

    def kernel(x: Array, shape: Array) -> Array:
        lengths = shape.tolist()
        if (0 in lengths and op.special_zero) or min(lengths, default=0) < -1 or not x.size:
            return op.evaluate(x, shape)
        try:
            return x.reshape(lengths)
        except ValueError:
            return op.evaluate(x, shape)  # raises the error

    return Kernel(kernel, accepts=any_lengths)


@backend.accelerates(Broadcast, Broadcast1)
def broadcast(op: Broadcast | Broadcast1, data: Value, target: Value, *mapping: Value) -> Kernel | None:
    """Return a kernel for a constant target shape, with NumPy's or bidirectional broadcasting, else ``None``."""
    known = target.known()
    if known is None or mapping or op.mode == "pdpd":
        return None
    plain = data.element.dtype.kind in "fiub"  # types that NumPy exports as a buffer

    def lengths(shape: Shape) -> tuple[Shape, Shape, bool]:
        return shape, op.evaluate(shape_only(shape), known).shape, plain

    return unary_kernel(data.shape, lengths, lambda parameters: _broadcast(*parameters))


@lru_cache(MAX_SHARED)
def _broadcast(shape: Shape, lengths: Shape, plain: bool) -> Callable[[Any], Any]:
    """Return a function that broadcasts arrays of ``shape`` to ``lengths``; contiguous ones in a fifth of NumPy's time.

    ``plain`` tells whether NumPy exports arrays of the type as a buffer, which that shortcut needs.
    """
    view, broadcast = np.ndarray, np.broadcast_to
    if not plain or not math.prod(lengths):
        return lambda x: broadcast(x, lengths)
    strides = _strides(shape, len(lengths))

    def run(x: Any) -> Any:
        if not x.flags.c_contiguous:
            return broadcast(x, lengths)
        size = x.itemsize
        y = view(lengths, x.dtype, x, 0, [step * size for step in strides])
        y.setflags(write=False)
        return y

    return run


def _strides(shape: Shape, rank: int) -> list[int]:
    """Return the strides, in elements, of a contiguous array of ``shape`` broadcast to ``rank`` axes."""
    strides, step = [0] * rank, 1
    for place in range(-1, -len(shape) - 1, -1):
        strides[place] = step if shape[place] > 1 else 0
        step *= shape[place]
    return strides


@backend.accelerates(Transpose)
def transpose(op: Transpose, data: Value, order: Value) -> Kernel | None:
    """Return a kernel for a constant permutation of axes, else ``None``."""
    axes = order.ints()
    if axes is None:
        return None
    return Kernel.unary(_transpose(axes), view=True)


@lru_cache(MAX_SHARED)
def _transpose(axes: tuple[int, ...]) -> Callable[[Any], Any]:
    return methodcaller("transpose", *axes)


@backend.accelerates(Slice, StridedSlice)
def slice_view(op: Slice | StridedSlice, data: Value, *others: Value) -> Kernel | None:
    """Return a kernel for constant bounds, else ``None``."""
    index = region_bounds(op, others)
    return None if index is None else unary_kernel(data.shape, index, take_regions)


def region_bounds(op: Slice | StridedSlice, others: Sequence[Value]) -> Callable[[Shape], Index] | None:
    """Return a function from the shape of the data to the index of a region, or ``None`` if bounds are not constant."""
    known: list[Any] = [other.known() for other in others]
    if any(array is None for array in known):
        return None
    if isinstance(op, Slice) and len(known) == 3:
        known.append(None)  # `index` takes axes even if they are absent
    return lambda shape: op.index(shape, *known)


def take_regions(*regions: Index) -> Callable[[Any], Any]:
    """Return a function that takes the region of an array that an index selects, or a tuple of several regions."""
    return _take_regions(tuple(tuple(map(_hashable, region)) for region in regions))


def _hashable(part: Any) -> Any:
    """Return an element of an index as a hashable key: a slice as a tuple."""
    return (part.start, part.stop, part.step) if isinstance(part, slice) else part


@lru_cache(MAX_SHARED)
def _take_regions(hashable: tuple[Index, ...]) -> Callable[[Any], Any]:
    regions = [tuple(slice(*p) if isinstance(p, tuple) else p for p in region) for region in hashable]
    return itemgetter(*(region[0] if len(region) == 1 else region for region in regions))


@backend.accelerates(Pad1, Pad12)
def no_padding(op: PadBase, data: Value, begin: Value, end: Value, *fill: Value) -> Kernel | None:
    """Return the identity for constant padding of 0 elements, which exporters write."""
    before, after = begin.known(), end.known()
    if before is None or after is None or before.any() or after.any():
        return None
    return Kernel.unary(lambda x: x, view=True) if data.shape.rank == before.size == after.size else None
