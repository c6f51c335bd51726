"""Inputs for a model that are nearly right: of other lengths, stored otherwise, with other numbers in them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from ir_runtime.ir.element import ElementType
from ir_runtime.ir.tensor import Array

__all__ = ["Feed", "layouts", "lengths", "ranks", "values"]


class Feed(NamedTuple):
    """Inputs, and what was done to the right ones."""

    what: str
    arrays: tuple[Array, ...]


def lengths(arrays: Sequence[Array]) -> Iterator[Feed]:
    """One axis of one input longer or shorter, two of them swapped, a length changed wherever it stands."""
    for index, x in enumerate(arrays):
        for axis, length in enumerate(x.shape):
            for other in _others(length):
                shape = (*x.shape[:axis], other, *x.shape[axis + 1 :])
                yield _with(arrays, {index: shape}, f"axis {axis} of input {index} is {other}")
        for axis in range(x.ndim):
            for after in range(axis):
                if x.shape[axis] != x.shape[after]:
                    turned = tuple(np.array(x.shape)[_swapped(x.ndim, axis, after)].tolist())
                    yield _with(
                        arrays, {index: turned}, f"axes {after} and {axis} of input {index} swap lengths"
                    )
    common = Counter(length for x in arrays for length in x.shape)
    for length in (n for n, count in common.items() if count > 1):
        for other in _others(length):
            shapes = {i: tuple(other if n == length else n for n in x.shape) for i, x in enumerate(arrays)}
            yield _with(arrays, shapes, f"every length of {length} is {other}")


def _others(length: int) -> list[int]:
    return [
        n for n in dict.fromkeys((length + 1, length - 1, 2 * length, length // 2, 0, 1)) if 0 <= n != length
    ]


def _swapped(rank: int, a: int, b: int) -> list[int]:
    order = list(range(rank))
    order[a], order[b] = b, a
    return order


def ranks(arrays: Sequence[Array]) -> Iterator[Feed]:
    """One input with an axis more or less."""
    for index, x in enumerate(arrays):
        yield _with(arrays, {index: (1, *x.shape)}, f"input {index} has an axis more")
        yield _with(arrays, {index: (*x.shape, 2)}, f"input {index} has a last axis of 2 more")
        if x.ndim:
            yield _with(arrays, {index: x.shape[1:]}, f"input {index} lacks the first axis")
            yield _with(arrays, {index: x.shape[:-1]}, f"input {index} lacks the last axis")


def _with(arrays: Sequence[Array], shapes: dict[int, tuple[int, ...]], what: str) -> Feed:
    """The numbers begin anew where there are too few; nothing lies behind the last one."""
    return Feed(what, tuple(np.resize(x, shapes.get(i, x.shape)).copy() for i, x in enumerate(arrays)))


def layouts(arrays: Sequence[Array]) -> Iterator[Feed]:
    """The same numbers with gaps between them, backwards, from an odd address, columns first, read-only."""
    ways = {
        "with gaps": lambda x: _strided(x, [2 * n for n in _contiguous(x)]),
        "backwards": lambda x: _strided(x, [-n for n in _contiguous(x)]),
        "backwards along the last axis": lambda x: _strided(x, [*_contiguous(x)[:-1], -x.itemsize]),
        "at an odd address": lambda x: _strided(x, _contiguous(x), 1),
        "with odd gaps": lambda x: _strided(x, [n + n // x.itemsize for n in _contiguous(x)], 1),
        "columns first": np.asfortranarray,
        "channels last": _channels_last,
        "all rows the same": lambda x: np.broadcast_to(x[:1], x.shape),
    }
    for what, way in ways.items():
        made = tuple(way(x) if x.ndim and x.size and x.dtype != object else x for x in arrays)
        yield Feed(what, made)
    fixed = tuple(x.copy() for x in arrays)
    for x in fixed:
        x.setflags(write=False)
    yield Feed("read-only", fixed)


def _channels_last(x: Array) -> Array:
    return x if x.ndim < 3 else np.moveaxis(np.ascontiguousarray(np.moveaxis(x, 1, -1)), -1, 1)


def _contiguous(x: Array) -> list[int]:
    """Bytes from one element to the next along each axis, had they no gaps."""
    return [x.itemsize * int(np.prod(x.shape[axis + 1 :])) for axis in range(x.ndim)]


def _strided(x: Array, strides: Sequence[int], offset: int = 0) -> Array:
    """A copy with these strides, in memory that is not a byte larger than it must be."""
    reach = [(n - 1) * stride for n, stride in zip(x.shape, strides, strict=True)]
    before = -sum(n for n in reach if n < 0)
    buffer = np.empty(offset + before + sum(n for n in reach if n > 0) + x.itemsize, np.uint8)
    found = np.ndarray(x.shape, x.dtype, buffer, offset + before, strides)
    found[...] = x
    return found


_WHOLE = (-1, 0, 1, 2, 1 << 31, -(1 << 31), (1 << 31) - 1, (1 << 63) - 1, -(1 << 63), 255, 127)
_REAL = (np.nan, np.inf, -np.inf)


def values(arrays: Sequence[Array]) -> Iterator[Feed]:
    """Other numbers in one input, at one place or everywhere: out of range, not finite."""
    for index, x in enumerate(arrays):
        for number in _numbers(x):
            for what, place in (("everywhere", slice(None)), ("first", 0), ("last", -1)):
                if place != slice(None) and x.size < 2:
                    continue
                made = x.copy()
                made.reshape(-1)[place] = number
                others = (*arrays[:index], made, *arrays[index + 1 :])
                yield Feed(f"{number} {what} in input {index}", others)


def _numbers(x: Array) -> Sequence[float]:
    """Those of interest that an input of this type can hold."""
    if not x.size or x.dtype == object:
        return ()
    if ElementType.from_dtype(x.dtype).real:
        return _REAL
    if x.dtype.kind not in "iu":
        return ()
    bounds = np.iinfo(x.dtype)
    longest = max((n for n in x.shape), default=0)
    return [n for n in (*_WHOLE, longest, longest + 1) if bounds.min <= n <= bounds.max]
