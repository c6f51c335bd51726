"""The right outputs of a model, and how far a sound implementation may be from them.

Numbers are computed in f64 and rounded once to the type that the model declares. A sound implementation computes what
f64 would give for inputs that are off by a rounding or so (backward stability): so the model is run on inputs that are
moved by their rounding, and the largest change of an output bounds what rounding explains.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ir_runtime.conformance.case import Tolerance
from ir_runtime.debug.reference import Reference
from ir_runtime.ir.element import ElementType
from ir_runtime.ir.tensor import Array
from ir_runtime.openvino.model import Model

__all__ = ["Truth", "Unstable", "truth_of"]

# The unit roundoff of each type; products of f16 and bf16 may be summed in the type itself.
_UNIT = {"f64": 2.0**-53, "f32": 2.0**-24, "f16": 2.0**-11, "bf16": 2.0**-8}
_RUNS = 6
# How many times the measured effect of rounding is allowed, and how many units in the last place beside it.
_FACTOR = 8.0
_ULP = 4.0


class Unstable(Exception):  # noqa: N818 - an answer
    """Rounding decides an output: the case has no single right answer."""


@dataclass(frozen=True)
class Truth:
    """The right outputs of a model.

    Args:
        outputs: in the declared types.
        types: the declared types.
        tolerances: one for each output.
        source: ``f64`` or ``exact``.
    """

    outputs: list[Array]
    types: list[ElementType]
    tolerances: list[Tolerance]
    source: str


def truth_of(model: Model, feeds: Sequence[Array], seed: int = 0) -> Truth:
    """Compute the right outputs of a model.

    Args:
        model: the model.
        feeds: an array for each input.
        seed: for the directions in which inputs are moved.

    Raises:
        Unstable: if moving the inputs by a rounding changes an output that is not a real number, or its shape.
    """
    with np.errstate(all="ignore"):
        declared = Reference(model).run(feeds)
        types = [
            _declared(port.element_type, array)
            for port, array in zip(Reference(model).outputs, declared, strict=True)
        ]
        unit = _unit(feeds, types)
        if not unit:
            return Truth(list(declared), types, [Tolerance()] * len(types), "exact")
        wide = Reference(model, wide=True)
        exact = [np.array(array) for array in wide.run(feeds)]
        rng = np.random.default_rng(seed)
        moved = [wide.run([_move(feed, unit, rng) for feed in feeds]) for _ in range(_RUNS)]
        outputs, tolerances = [], []
        for index, element in enumerate(types):
            others = [run[index] for run in moved]
            outputs.append(_rounded(exact[index], declared[index], element, others))
            tolerances.append(_tolerance(exact[index], [*others, declared[index]], element))
    return Truth(outputs, types, tolerances, "f64")


def _declared(element: ElementType, array: Array) -> ElementType:
    return ElementType.from_dtype(array.dtype) if element is ElementType.dynamic else element


def _unit(feeds: Sequence[Array], types: Sequence[ElementType]) -> float:
    """Return the coarsest rounding among the real numbers of a model; 0 if it has none."""
    labels = [element.label for element in types]
    labels += [ElementType.from_dtype(feed.dtype).label for feed in feeds if feed.dtype != object]
    return max((_UNIT[label] for label in labels if label in _UNIT), default=0.0)


def _move(feed: Array, unit: float, rng: np.random.Generator) -> Array:
    if feed.dtype == object or ElementType.from_dtype(feed.dtype).label not in _UNIT:
        return feed
    wide = feed.astype(np.float64)
    return np.asarray(wide * (1 + unit * rng.uniform(-1, 1, wide.shape)))


def _rounded(exact: Array, declared: Array, element: ElementType, others: Sequence[Array]) -> Array:
    """Return an output in its declared type; decisions must not depend on rounding."""
    if not element.real:
        if any(not np.array_equal(other, exact) for other in others) or not np.array_equal(exact, declared):
            raise Unstable("rounding decides")
        return np.asarray(declared)
    if any(other.shape != exact.shape for other in (*others, declared)):
        raise Unstable("rounding decides the shape")
    if any(not np.array_equal(np.isfinite(other), np.isfinite(exact)) for other in others):
        raise Unstable("rounding decides which numbers are finite")
    return np.asarray(exact.astype(element.dtype))


def _tolerance(exact: Array, others: Sequence[Array], element: ElementType) -> Tolerance:
    if not element.real:
        return Tolerance()
    finite = np.isfinite(exact)
    changes = [np.abs(other.astype(np.float64) - exact)[finite] for other in others]
    largest = max((float(change[np.isfinite(change)].max(initial=0.0)) for change in changes), default=0.0)
    return Tolerance(ulp=_ULP, absolute=float(f"{_FACTOR * largest:.3g}"))
