"""Tolerances, from the measured errors of sound executions.

``bounds.json`` has the worst error of each operation and type, which ``python -m conformance.bounds`` of the tests measures.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from .case import Tolerance
from .truth import Bound, Truth

__all__ = ["FEW", "FILE", "bound_of", "graph_bound", "tolerances"]

FILE = Path(__file__).with_name("bounds.json")
FEW = 4.0
"""Units in the last place up to which errors count in these."""
_MARGIN = 2.0
"""A tolerance is so many times the worst error."""
_EXACT = frozenset({"Parameter", "Constant", "Result"})


def tolerances(truth: Truth, bound: Bound) -> list[Tolerance]:
    """Return the tolerance of each output of an operation with a bound; exact outputs have none."""
    return [
        Tolerance(ulp=_MARGIN * bound.ulp, absolute=float(f"{_MARGIN * bound.changes * change:.3g}"))
        if element.real and truth.precision
        else Tolerance()
        for element, change in zip(truth.types, truth.changes, strict=True)
    ]


def graph_bound(truth: Truth) -> Bound:
    """Return the bound of a graph whose changes are those by the errors of its layers."""
    return Bound(max((bound_of(name, truth.precision).ulp for name in truth.operations), default=0.0), 1.0)


def bound_of(operation: str, precision: str) -> Bound:
    """Return the bound of an operation with its version for a type.

    That of f64 is at least that of f32, as no sample tells f64 from the truth, which is f64, too. Those of f16 and bf16
    allow one unit in the last place more than nothing, unless f32 is exact: most runtimes compute these in f32.
    """
    if operation.rpartition("-")[0] in _EXACT:
        return Bound()
    types = _recorded().get(operation, {})
    own, usual = types.get(precision), types.get("f32")
    if own is None or usual is None:
        return own or usual or Bound(FEW, FEW)
    if precision == "f64":
        return Bound(*map(max, own, usual))
    return Bound(max(own.ulp, min(usual.ulp, 1.0)), own.changes)


@cache
def _recorded() -> Mapping[str, Mapping[str, Bound]]:
    recorded = json.loads(FILE.read_text(encoding="utf-8"))
    return {
        name: {label: Bound(*bound) for label, bound in types.items()} for name, types in recorded.items()
    }
