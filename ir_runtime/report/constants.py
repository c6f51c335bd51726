"""Collect the constants of a model for its report: consumers, sizes, values and statistics."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._util.escaping import shown
from ..ir.array import Array, Packed
from ..ir.element import ElementType
from .items import Item, Items
from .text import dims, numbers

__all__ = ["BINS", "Constants", "histogram", "sample", "statistics"]

_SHOWN = 4
# Default limits of embedded values in bytes: of a single constant, and of all together.
_EMBEDDED, _EMBEDDED_TOGETHER = 1 << 10, 4 << 10
_QUICK = 64 << 10
"""The largest constant, in bytes, that a quick report computes statistics of."""


class Constants:
    """The constants of a model, including layers computed from constants alone, with their statistics.

    Args:
        listing: all layers of the model.
        limit: the largest constant to include values of, in bytes; by default, values of a few small ones are included.
        quick: skip the statistics of large constants, as computing them reads all elements.
    """

    def __init__(self, listing: Items, limit: int | None = None, quick: bool = False) -> None:
        self._listing, self._limit = listing, limit
        self._counted = _QUICK if quick else sys.maxsize
        self._left = _EMBEDDED_TOGETHER
        self.items = [item for item in listing.items if item.is_constant]
        self._numbers = {item.index: number for number, item in enumerate(self.items)}
        self.statistics: dict[int, _Statistics] = {}
        """Statistics by constant number."""
        self._bytes: dict[int, int] = {}

    def number(self, index: int) -> int:
        """Return the number of a constant, given its index in the list of all layers."""
        return self._numbers[index]

    def of(self, index: int) -> list[int]:
        """Return the numbers of the constants that a layer reads, directly or through constant layers."""
        seen: dict[int, None] = {}
        waiting = [i for i in self._listing.above[index] if i in self._numbers]
        while waiting:
            current = waiting.pop(0)
            if current not in seen:
                seen[current] = None
                waiting += self._listing.above[current]
        return [self._numbers[i] for i in seen]

    def bytes_of(self, index: int) -> int:
        """Return the total size of the constants that a layer reads, in bytes of the weights file."""
        return sum(self._size(self.items[number]) for number in self.of(index))

    def sizes(self) -> list[int]:
        """Return the size of each constant in bytes of the weights file."""
        return [self._size(item) for item in self.items]

    def note(self, index: int) -> str:
        """Return a short text for the largest constant input of a layer: its values if they are few, or else its shape."""
        direct = [self._listing.items[i] for i in self._listing.above[index] if i in self._numbers]
        values = [(item, value) for item in direct if (value := item.value(0)) is not None]
        if not values:
            return ""
        item, value = max(values, key=lambda pair: pair[1].count.min)
        known = self._array(item)
        if known is not None and known.size <= _SHOWN and known.dtype.kind in "fiub":
            return f"[{numbers(known)}]" if known.ndim else numbers(known)
        return dims(value.shape)

    def records(self) -> list[dict[str, Any]]:
        """Return the constants as records for JSON."""
        return [self._record(number, item) for number, item in enumerate(self.items)]

    def _record(self, number: int, item: Item) -> dict[str, Any]:
        value = item.value(0)
        record: dict[str, Any] = {
            "n": shown(item.layer.name),
            "t": shown(item.layer.type),
            "line": item.layer.where.line,
        }
        if value is not None:
            record |= {"e": value.element.label, "s": dims(value.shape)}
        if item.layer.type == "Constant" and (array := self._stored_values(item)) is not None:
            record["bytes"] = size = self._size(item)
            if size <= self._counted:
                element = value.element if value is not None else ElementType.dynamic
                self.statistics[number] = statistics(array, element)
                record["x"] = self.statistics[number].record
            if self._is_embedded(size) and (values := _embeddable(array)) is not None:
                record["w"] = values
        return record

    def _is_embedded(self, size: int) -> bool:
        """Return whether to include the values of a constant, charging its bytes to the total limit."""
        if self._limit is not None:
            return size <= self._limit
        if size > min(_EMBEDDED, self._left):
            return False
        self._left -= size
        return True

    def _stored_values(self, item: Item) -> Any:
        return getattr(item.layer.op, "value", None)

    def _array(self, item: Item) -> Array | None:
        value = item.value(0)
        return None if value is None else value.known()

    def _size(self, item: Item) -> int:
        value = item.value(0)
        if item.layer.type != "Constant" or value is None or value.shape.is_dynamic:
            return 0
        return value.element.nbytes(value.count.min)


BINS = 32
_MOST = 1 << 22
"""The most elements to compute statistics of; larger arrays are sampled at equal distances."""
_SMALL = 64


# Element types in the notation of .npy files. Other types are converted to f32, which is exact.
_STORED = ("f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "b1")


def _embeddable(value: Array | Packed) -> list[Any] | None:
    r"""Return dtype, shape and bytes of an array in ``.npy`` notation; ``None`` for strings.

    >>> _embeddable(np.int16([[1, 2]]))
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
class _Statistics:
    """Statistics of an array."""

    record: dict[str, Any]
    values: Array
    """The finite elements that the statistics are computed from."""


def sample(value: Array | Packed) -> Array:
    """Return the elements to compute statistics of: flat, and sampled at equal distances if there are too many."""
    if isinstance(value, Packed):
        value = value.unpack()
    flat = value.reshape(-1)
    return flat[:: -(-flat.size // _MOST)] if flat.size > _MOST else flat


def statistics(value: Array | Packed, element: ElementType) -> _Statistics:
    """Compute minimum, maximum, mean, deviation, the fraction of zeros and the number of non-finite elements of an array."""
    flat = sample(value)
    if flat.dtype.kind == "O" or element is ElementType.string or not flat.size:
        return _Statistics({"values": numbers(flat)} if flat.size else {}, np.empty(0))
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
    return _Statistics({key: _short(entry) for key, entry in record.items()}, finite)


def _short(entry: Any) -> Any:
    return float(f"{entry:.5g}") if isinstance(entry, float) else entry


def histogram(values: Array, bins: int = BINS) -> tuple[list[int], float, float] | None:
    """Return the counts of a histogram with equal bins, and its bounds; ``None`` unless there are two distinct finite values."""
    finite = values[np.isfinite(values)] if values.dtype.kind == "f" else values
    if finite.size < 2 or finite.min() == finite.max():
        return None
    low, high = float(finite.min()), float(finite.max())
    counts, _ = np.histogram(finite, bins=bins, range=(low, high))
    return counts.tolist(), low, high
