"""Summaries of tensors for tables."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import numpy as np

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
    """Return bounds, mean, and the top entries of what looks like a vector of scores."""
    kind, shape = _type(array, element), array.shape
    if array.dtype.kind not in "biuf":
        if array.dtype.kind in "OSU":
            return Summary(kind, shape)
        array = array.astype(np.float32)  # the types that NumPy lacks all fit
    real = array.dtype.kind == "f"
    nan = int(np.count_nonzero(np.isnan(array))) if real else 0
    inf = int(np.count_nonzero(np.isinf(array))) if real else 0
    numbers = array[~np.isnan(array)] if nan else array
    if not numbers.size:
        return Summary(kind, shape, nan=nan, inf=inf)
    with np.errstate(all="ignore"):
        mean = float(numbers.mean(dtype=np.float64))
    return Summary(kind, shape, _python(numbers.min()), mean, _python(numbers.max()), nan, inf, _top(array))


def _type(array: Array, element: ElementType) -> str:
    return str(element if element is not ElementType.dynamic else ElementType.from_dtype(array.dtype))


def _top(array: Array) -> tuple[tuple[int, float | int], ...] | None:
    is_vector = array.ndim > 0 and array.shape[-1] >= TOP and array.size == array.shape[-1]
    if not is_vector or array.dtype.kind == "b":
        return None
    scores = array.reshape(-1)
    best = np.argsort(-scores.astype(np.float64), kind="stable")[:TOP]
    return tuple((int(i), _python(scores[i])) for i in best)


def _python(value: np.generic) -> float | int:
    return float(value) if value.dtype.kind == "f" else int(value)
