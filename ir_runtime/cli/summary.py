"""Summaries of tensors for tables."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..ir.blocks import blocks
from ..ir.element import ElementType
from ..ir.tensor import Array

if TYPE_CHECKING:
    from .render import Record

__all__ = ["Summary", "summarize"]

TOP = 5


@dataclass(frozen=True)
class Summary:
    """A summary of a tensor; ``None`` where it has no numbers. NaN is counted, and excluded from the rest."""

    type: str
    shape: tuple[int, ...]
    min: float | int | None = None
    mean: float | None = None
    max: float | int | None = None
    nan: int = 0
    inf: int = 0
    top: tuple[tuple[int, float | int], ...] | None = None

    def record(self) -> Record:
        """Return the same as data for JSON."""
        top = None if self.top is None else [{"index": i, "value": v} for i, v in self.top]
        return {**asdict(self), "top": top}


def summarize(array: Array, element: ElementType) -> Summary:
    """Return bounds, mean, and the top entries of an array that looks like a vector of scores."""
    kind, shape = _type(array, element), array.shape
    if array.dtype.kind in "OSU":
        return Summary(kind, shape)
    nan = inf = numbers = 0
    total, low, high = 0.0, None, None
    for block in map(_numbers, blocks(array)):
        if block.dtype.kind == "f":
            is_nan = np.isnan(block)
            nan += int(np.count_nonzero(is_nan))
            inf += int(np.count_nonzero(np.isinf(block)))
            block = block[~is_nan]
        if block.size:
            low = block.min() if low is None else min(low, block.min())
            high = block.max() if high is None else max(high, block.max())
            with np.errstate(all="ignore"):
                total += float(block.sum(dtype=np.float64))
            numbers += block.size
    if low is None or high is None:
        return Summary(kind, shape, nan=nan, inf=inf)
    return Summary(kind, shape, _python(low), total / numbers, _python(high), nan, inf, _top(array))


def _numbers(block: tuple[Array, ...]) -> Array:
    """Convert a block of a type that NumPy lacks to f32, which holds all its values."""
    (numbers,) = block
    return numbers if numbers.dtype.kind in "biuf" else numbers.astype(np.float32)


def _type(array: Array, element: ElementType) -> str:
    return (element if element is not ElementType.dynamic else ElementType.from_dtype(array.dtype)).label


def _top(array: Array) -> tuple[tuple[int, float | int], ...] | None:
    is_vector = array.ndim > 0 and array.shape[-1] >= TOP and array.size == array.shape[-1]
    if not is_vector or array.dtype.kind == "b":
        return None
    places, scores, start = np.empty(0, np.int64), _numbers((array.reshape(-1)[:0],)), 0
    for block in map(_numbers, blocks(array)):
        last = scores[-1] if len(scores) == TOP else None
        better = np.flatnonzero(block > last) if last is not None and last == last else np.arange(block.size)
        if better.size:
            scores = np.concatenate([scores, block[better]])
            places = np.concatenate([places, better + start])
            best = np.argsort(-scores.astype(np.float64), kind="stable")[:TOP]
            places, scores = places[best], scores[best]
        start += block.size
    return tuple((int(place), _python(score)) for place, score in zip(places, scores, strict=True))


def _python(value: np.generic) -> float | int:
    return float(value) if value.dtype.kind == "f" else int(value)
