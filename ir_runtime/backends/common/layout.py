"""Memory layouts: channels-last (NHWC) feature maps, padding, repeated rows, and the order of LSTM gates."""

from __future__ import annotations

import math
from functools import cache, lru_cache
from typing import TypeAlias

import numpy as np

from ..._util.arrays import DType
from ...ir.element import ElementType
from ...ir.tensor import Array, Value
from ...limits import check_array_size
from ...ops.window import Pads

__all__ = [
    "as_rows",
    "channels_first",
    "channels_last",
    "flat_view",
    "is_f32",
    "moveaxis",
    "pad_spatial",
    "repeat_row",
    "same_shape",
    "sigmoid_gates_first",
]

# Elements of an inner loop of a ufunc. With a broadcast operand, a pass takes twice as long if loops are shorter than NumPy's
# buffer; with a scalar, four times.
INNER_LOOP = 1 << 13

_Place: TypeAlias = "tuple[slice, ...]"

# Images of at most this many channels, if stored channels first, are copied channel by channel.
FEW_CHANNELS = 4


def is_f32(*values: Value) -> bool:
    """Return whether all values are f32, the only type that most kernels support."""
    return all(value.element is ElementType.f32 for value in values)


def same_shape(a: Value, b: Value) -> bool:
    """Return whether two tensors are known to have the same shape: equal lengths, or the same symbol, along each axis."""
    if a.shape.rank is None or a.shape.rank != b.shape.rank:
        return False
    pairs = zip(a.shape, b.shape, strict=True)
    return all(
        x.min == y.min if x.is_static and y.is_static else _same_symbol(x.symbol, y.symbol) for x, y in pairs
    )


def _same_symbol(a: object, b: object) -> bool:
    return a is not None and a is b


def channels_first(x: Array) -> Array:
    """Return ``[N, spatial..., C]`` as a view ``[N, C, spatial...]``."""
    return moveaxis(x, -1, 1)


def channels_last(x: Array) -> Array:
    """Return ``[N, C, spatial...]`` as a view ``[N, spatial..., C]``; contiguous for results of NumPy and native kernels."""
    return moveaxis(x, 1, -1)


def as_rows(x: Array, axis: int) -> Array:
    """Return ``x`` as a matrix whose rows run along ``axis``; a view if that axis is stored last."""
    return moveaxis(x, axis, -1).reshape(-1, x.shape[axis])


def moveaxis(x: Array, source: int, target: int) -> Array:
    """Move one axis like `numpy.moveaxis`, in a tenth of the time."""
    return x.transpose(_axis_order(x.ndim, source, target))


@cache
def _axis_order(rank: int, source: int, target: int) -> list[int]:
    order = list(range(rank))
    order.insert(target % rank, order.pop(source))
    return order


def flat_view(x: Array) -> Array | None:
    """Return a 1-D view of all elements in memory order, or ``None`` if they are not stored one after another."""
    if x.flags.c_contiguous:
        return x.reshape(-1)
    ordered = x.transpose(sorted(range(x.ndim), key=lambda axis: -x.strides[axis]))
    return ordered.reshape(-1) if ordered.flags.c_contiguous else None


def repeat_row(row: Array) -> Array:
    """Repeat a row to at least `INNER_LOOP` elements, as a read-only array; a row that is long and read-only is returned itself."""
    if row.size >= INNER_LOOP and not row.flags.writeable:
        return row
    return _shared_row(row.tobytes(), row.dtype) if row.size == 1 else _tile_row(row)


@lru_cache(256)
def _shared_row(scalar: bytes, dtype: DType) -> Array:
    """Return a repeated scalar, shared by all layers that use it."""
    return _tile_row(np.frombuffer(scalar, dtype))


def _tile_row(row: Array) -> Array:
    tile = np.tile(row, -(-INNER_LOOP // max(row.size, 1)))
    tile.setflags(write=False)
    return tile


# Results of at most this many elements are zeroed as a whole, which is faster than filling their edges one by one.
MAX_CLEARED = 1 << 15


def pad_spatial(x: Array, pads: Pads, fill: float = 0) -> Array:
    """Pad the spatial axes of ``x[N, spatial..., C]`` with ``fill``; the result is contiguous.

    ``pads`` has the number of elements to add at the begin and at the end of each axis.
    """
    if not any(map(any, pads)):
        return np.ascontiguousarray(x)
    shape, place, edges = _plan_padding(x.shape, tuple(pads))
    size = math.prod(shape)
    check_array_size(size, x.itemsize)
    if not fill and size <= MAX_CLEARED:
        out = np.zeros(shape, x.dtype)
    else:
        out = np.empty(shape, x.dtype)
        for edge in edges:
            out[edge] = fill
    inside, channels = out[place], x.shape[-1]
    if channels <= FEW_CHANNELS and not x.flags.c_contiguous:
        for channel in range(channels):
            inside[..., channel] = x[..., channel]
    else:
        inside[...] = x
    return out


@lru_cache(maxsize=256)
def _plan_padding(shape: tuple[int, ...], pads: Pads) -> tuple[tuple[int, ...], _Place, list[_Place]]:
    """Return the shape of a padded array, the slices of the data within it, and those of each edge."""
    lengths = shape[1:-1]
    longer = (length + begin + end for length, (begin, end) in zip(lengths, pads, strict=True))
    inside = (slice(None), *(slice(b, b + n) for n, (b, _) in zip(lengths, pads, strict=True)))
    edges = []
    for axis, (length, (begin, end)) in enumerate(zip(lengths, pads, strict=True)):
        before = inside[: axis + 1]
        edges += [(*before, slice(None, begin))] if begin else []
        edges += [(*before, slice(begin + length, None))] if end else []
    return (shape[0], *longer, shape[-1]), inside, edges


# OpenVINO stores the gates f, i, c, o; of these, c alone has no sigmoid.
_F_I_O_C = (0, 1, 3, 2)


def sigmoid_gates_first(array: Array, hidden: int, axis: int = 0) -> Array:
    """Copy the weights or biases of an LSTM with the gates reordered from f, i, c, o to f, i, o, c.

    The sigmoid gates f, i and o are then adjacent, so that one call computes them.

    Args:
        array: weights or biases of four gates, ``hidden`` rows each.
        hidden: the size of the hidden state.
        axis: the axis of the gates.
    """
    shape = array.shape
    gates = array.reshape(*shape[:axis], 4, hidden, *shape[axis + 1 :])
    return np.take(gates, _F_I_O_C, axis).reshape(shape)
