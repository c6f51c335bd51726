"""Compare the results of two runtimes, within a tolerance for each element type."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..ir.element import ElementType
from ..ir.tensor import Array

__all__ = ["Agreement", "compare"]

# The tolerance by the size of an element in bytes, relative to the largest magnitude of the output: sums of thousands of
# products have few accurate digits near zero.
_TOLERANCES = {1: 1e-1, 2: 1e-2}
# The tolerance for larger elements; also for f64, which OpenVINO computes in f32.
_USUAL = 1e-4
# The tolerance for any output type if products are rounded to less than f32.
_NARROW = 1e-1
# The maximum columns and rows of results that are searched for reordered rows.
_COLUMNS, _ROWS = 10, 10_000


@dataclass(frozen=True)
class Agreement:
    """The result of a comparison.

    Args:
        agree: whether every output agrees.
        difference: the largest difference, relative to the largest magnitude of its output; infinite if shapes, positions of
            NaN or infinities, or values of exact types differ.
        output: the index of that output.
        moved: the number of reordered rows if results differ only in their order, as for detections of equal score; the
            difference is then that of matching rows.
    """

    agree: bool
    difference: float
    output: int
    moved: int = 0


def compare(ours: Sequence[Array], theirs: Sequence[Array], narrow: bool = False) -> Agreement:
    """Compare outputs in order: floating-point values within a tolerance, all others exactly.

    Args:
        ours: the outputs of one side.
        theirs: the outputs of the other side.
        narrow: whether a side rounds products to less than f32.

    >>> compare([np.float32([1, 2])], [np.float32([1, 2.00001])]).agree
    True
    >>> compare([np.int32([1, 2])], [np.int32([1, 3])])
    Agreement(agree=False, difference=inf, output=0, moved=0)
    """
    if len(ours) != len(theirs):
        return Agreement(False, np.inf, min(len(ours), len(theirs)))
    least = _NARROW if narrow else 0.0
    agreement = _compare_in_order(ours, theirs, least)
    if not agreement.agree and (place := _match_rows(ours, theirs)) is not None:
        ordered = _compare_in_order(ours, [array[place] for array in theirs], least)
        if ordered.agree:
            return replace(ordered, agree=False, moved=int((place != np.arange(len(place))).sum()))
    return agreement


def _compare_in_order(ours: Sequence[Array], theirs: Sequence[Array], least: float) -> Agreement:
    differences = [_difference(a, b) for a, b in zip(ours, theirs, strict=True)]
    allowed = [max(_tolerance(a, b), least) for a, b in zip(ours, theirs, strict=True)]
    worst = max(range(len(differences)), key=lambda index: differences[index] / allowed[index], default=0)
    agree = all(difference <= most for difference, most in zip(differences, allowed, strict=True))
    return Agreement(agree, differences[worst] if differences else 0.0, worst)


def _match_rows(ours: Sequence[Array], theirs: Sequence[Array]) -> Array | None:
    """Match each row of our outputs to the nearest row of theirs; return its index, or ``None`` if that is not one-to-one."""
    counts = {array.shape[:1] for array in (*ours, *theirs)}
    if len(counts) != 1 or not 1 < min(counts.pop(), default=0) <= _ROWS:
        return None
    if any(a.shape != b.shape or a.dtype.kind in "OU" for a, b in zip(ours, theirs, strict=True)):
        return None
    a, b = (
        np.column_stack([array.reshape(len(array), -1).astype(np.float64) for array in arrays])
        for arrays in (ours, theirs)
    )
    if a.shape[1] > _COLUMNS:
        return None
    place = np.array([np.abs(row - b).max(-1).argmin() for row in a])
    return place if len(set(place)) == len(place) else None


def _tolerance(ours: Array, theirs: Array) -> float:
    return max(_TOLERANCES.get(array.dtype.itemsize, _USUAL) for array in (ours, theirs))


def _is_real(array: Array) -> bool:
    return ElementType.from_dtype(array.dtype).real if array.dtype != object else False


def _difference(ours: Array, theirs: Array) -> float:
    if ours.shape != theirs.shape:
        return np.inf
    if not ours.size:
        return 0.0
    if not (_is_real(ours) and _is_real(theirs)):
        return 0.0 if bool(np.all(ours == theirs)) else np.inf
    a, b = ours.astype(np.float64), theirs.astype(np.float64)
    unusual = ~(np.isfinite(a) & np.isfinite(b))
    if not np.array_equal(a[unusual], b[unusual], equal_nan=True):
        return np.inf
    a, b = a[~unusual], b[~unusual]
    if not a.size:
        return 0.0
    largest = float(np.abs(b).max())
    return float(np.abs(a - b).max()) / (largest or 1.0)
