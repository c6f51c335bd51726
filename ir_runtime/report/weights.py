"""Statistics of the constants of a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..ir.array import Array, Packed
from ..ir.element import ElementType
from .text import numbers

__all__ = ["BINS", "Statistics", "embeddable", "histogram", "sampled", "statistics"]

BINS = 32
_MOST = 1 << 22
"""The most elements that are counted; larger arrays are sampled at equal distances."""
_SMALL = 64


# Types of elements as NumPy's files describe them. Others are written as f32, which holds all their numbers.
_STORED = ("f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "b1")


def embeddable(value: Array | Packed) -> list[Any] | None:
    r"""Return the type, the shape and the bytes of an array, as an ``.npy`` has them; ``None`` for text.

    >>> embeddable(np.int16([[1, 2]]))
    ['<i2', [1, 2], b'\x01\x00\x02\x00']
    """
    array = value.unpack() if isinstance(value, Packed) else value
    if array.dtype.kind in "OSU":
        return None
    if array.dtype.str[1:] not in _STORED:
        array = array.astype(np.float32)
    stored = array.astype(array.dtype.newbyteorder("<"), copy=False)
    return [stored.dtype.str, list(stored.shape), stored.tobytes()]


@dataclass(frozen=True)
class Statistics:
    """Statistics of an array."""

    record: dict[str, Any]
    values: Array
    """The finite numbers that were looked at."""


def sampled(value: Array | Packed) -> Array:
    """Return the elements that are counted, unpacked, in one dimension."""
    if isinstance(value, Packed):
        value = value.unpack()
    flat = value.reshape(-1)
    return flat[:: -(-flat.size // _MOST)] if flat.size > _MOST else flat


def statistics(value: Array | Packed, element: ElementType) -> Statistics:
    """Return the range, mean and deviation of an array, how many elements are 0, and how many not finite."""
    flat = sampled(value)
    if flat.dtype.kind == "O" or element is ElementType.string or not flat.size:
        return Statistics({"values": numbers(flat)} if flat.size else {}, np.empty(0))
    wide = flat.astype(np.float32 if flat.dtype.itemsize <= 4 and flat.dtype.kind != "i" else np.float64)
    is_finite = np.isfinite(wide)
    finite = wide if is_finite.all() else wide[is_finite]
    record: dict[str, Any] = {}
    if finite.size:
        record |= {"min": float(finite.min()), "max": float(finite.max())}
        record |= {"mean": float(finite.mean(dtype=np.float64)), "std": float(finite.std(dtype=np.float64))}
    record["zeros"] = float(np.count_nonzero(wide == 0) / wide.size)
    if finite.size < wide.size:
        record["not finite"] = int(wide.size - finite.size)
    if flat.size <= _SMALL:
        record["values"] = numbers(flat)
    if flat.size < value.size:
        record["sampled"] = int(flat.size)
    return Statistics({key: _short(entry) for key, entry in record.items()}, finite)


def _short(entry: Any) -> Any:
    return float(f"{entry:.5g}") if isinstance(entry, float) else entry


def histogram(values: Array, bins: int = BINS) -> tuple[list[int], float, float] | None:
    """Return a histogram: the counts in equal intervals, and the lower and upper bound."""
    finite = values[np.isfinite(values)] if values.dtype.kind == "f" else values
    if finite.size < 2 or finite.min() == finite.max():
        return None
    low, high = float(finite.min()), float(finite.max())
    counts, _ = np.histogram(finite, bins=bins, range=(low, high))
    return counts.tolist(), low, high
