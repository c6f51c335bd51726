"""How activations lie in memory."""

from __future__ import annotations

import math
from functools import cache, lru_cache
from typing import Any

import numpy as np

from ...ir.element import ElementType
from ...ir.tensor import Array, Value
from ...limits import room
from ...ops.window import Pads

__all__ = [
    "FEW",
    "by_memory",
    "channels_first",
    "channels_last",
    "flat",
    "is_f32",
    "keep_freed_memory",
    "moved",
    "padded",
    "rows_of",
    "same_shape",
    "spread",
]

# The most that glibc's allocator can be taught to keep.
KEPT = 31 << 20

# Elements of an inner loop. Where one operand is repeated, shorter ones than NumPy's buffer cost a pass
# over the data twice as much, and those against a scalar four times.
LOOP = 1 << 13

# A picture that comes with its few channels apart is copied one channel at a time: that loops over rows.
FEW = 4


def keep_freed_memory() -> None:
    """Let the allocator keep what is freed, for the next result, and not return it to the system.

    After one large block was freed, glibc takes smaller ones for usual and keeps up to twice as much.
    Without, pages are fetched and cleared anew in every run: a fifth of MobileNet's time. The block is
    never touched, so it costs nothing; with another allocator, it has no effect.
    """
    np.empty(KEPT, np.uint8)


def is_f32(*values: Value) -> bool:
    """Whether all of these are f32, the only type that kernels here compute in."""
    return all(value.element is ElementType.f32 for value in values)


def same_shape(a: Value, b: Value) -> bool:
    """Whether two tensors have the same shape for certain: equal numbers or the same unknowns."""
    if a.shape.rank is None or a.shape.rank != b.shape.rank:
        return False
    pairs = zip(a.shape, b.shape, strict=True)
    return all(
        x.min == y.min if x.is_static and y.is_static else _same_unknown(x.symbol, y.symbol) for x, y in pairs
    )


def _same_unknown(a: object, b: object) -> bool:
    return a is not None and a is b


def channels_first(x: Array) -> Array:
    """``[N, spatial..., C]`` seen as ``[N, C, spatial...]``."""
    return moved(x, -1, 1)


def channels_last(x: Array) -> Array:
    """``[N, C, spatial...]`` seen as ``[N, spatial..., C]``: contiguous, if it comes from a kernel here."""
    return moved(x, 1, -1)


def rows_of(x: Array, axis: int) -> Array:
    """A matrix with ``axis`` as its columns; a view if ``x`` is stored so."""
    return moved(x, axis, -1).reshape(-1, x.shape[axis])


def moved(x: Array, source: int, target: int) -> Array:
    """As `np.moveaxis`, in a tenth of the time."""
    return x.transpose(_moved(x.ndim, source, target))


@cache
def _moved(rank: int, source: int, target: int) -> list[int]:
    order = list(range(rank))
    order.insert(target % rank, order.pop(source))
    return order


def by_memory(x: Array, axis: int) -> list[int]:
    """The axes in the order in which they lie in memory, ``axis`` last."""
    strides = x.strides
    return [*sorted((a for a in range(x.ndim) if a != axis), key=lambda a: -strides[a]), axis]


def flat(x: Array) -> Array | None:
    """All elements in the order of memory as a 1-D view, or ``None`` if they lie apart."""
    if x.flags.c_contiguous:
        return x.reshape(-1)
    ordered = x.transpose(sorted(range(x.ndim), key=lambda axis: -x.strides[axis]))
    return ordered.reshape(-1) if ordered.flags.c_contiguous else None


def spread(row: Array) -> Array:
    """A row repeated until it is long enough for the inner loop of a ufunc; read-only."""
    return _tile(row.tobytes(), row.dtype) if row.size == 1 else _tiled(row)


@lru_cache(256)
def _tile(number: bytes, dtype: np.dtype[Any]) -> Array:
    """The same row serves all layers that use the same number."""
    return _tiled(np.frombuffer(number, dtype))


def _tiled(row: Array) -> Array:
    tile = np.tile(row, -(-LOOP // max(row.size, 1)))
    tile.setflags(write=False)
    return tile


def padded(x: Array, pads: Pads, fill: float = 0) -> Array:
    """``x[N, spatial..., C]``, contiguous, with so many elements of ``fill`` around the spatial axes."""
    if not any(map(any, pads)):
        return np.ascontiguousarray(x)
    n, *lengths, channels = x.shape
    shape = (n, *(m + b + e for m, (b, e) in zip(lengths, pads, strict=True)), channels)
    room(math.prod(shape), x.itemsize)
    out = np.empty(shape, x.dtype)
    for axis, (length, (begin, _)) in enumerate(zip(lengths, pads, strict=True)):
        before = (slice(None),) * (axis + 1)
        out[(*before, slice(None, begin))] = fill
        out[(*before, slice(begin + length, None))] = fill
    inside = out[(slice(None), *(slice(b, b + m) for m, (b, _) in zip(lengths, pads, strict=True)))]
    if channels <= FEW and not x.flags.c_contiguous:
        for channel in range(channels):
            inside[..., channel] = x[..., channel]
    else:
        inside[...] = x
    return out
