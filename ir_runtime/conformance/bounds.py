"""Tolerances, derived from the measured errors of sound executions.

``bounds.json`` contains the worst error of each operation and type, as measured by ``python -m conformance.bounds`` in the tests.
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
"""Errors up to this many units in the last place are recorded in these units, and larger ones in changes of the output. Also the
bound, in both units, of operations without a measured error."""
_MARGIN = 2.0
"""The ratio of a tolerance to the worst measured error."""
_EXACT = frozenset({"Parameter", "Constant", "Result"})


def tolerances(truth: Truth, bound: Bound) -> list[Tolerance]:
    """Return the tolerance of each output: twice the bound, whose ``changes`` are multiplied by the change of the output.

    Outputs that are not floating-point, and all outputs of models without floating-point types, have tolerance 0.

    Args:
        truth: the correct outputs.
        bound: the bound of the operation or graph.
    """
    return [
        Tolerance(ulp=_MARGIN * bound.ulp, absolute=float(f"{_MARGIN * bound.changes * change:.3g}"))
        if element.real and truth.precision
        else Tolerance()
        for element, change in zip(truth.types, truth.changes, strict=True)
    ]


def graph_bound(truth: Truth) -> Bound:
    """Return the bound of a graph: the largest ``ulp`` of its operations, and 1 for ``changes``.

    The changes in ``truth`` already include the errors of its layers.
    """
    return Bound(max((bound_of(name, truth.precision).ulp for name in truth.operations), default=0.0), 1.0)


def bound_of(operation: str, precision: str) -> Bound:
    """Return the bound of an operation, such as ``Exp-1``, for an element type.

    The bound of f64 is at least that of f32, as f64 errors cannot be measured against a truth that is f64 itself. The bounds of
    f16 and bf16 are at least one unit in the last place, unless f32 is exact, as most runtimes compute these types in f32.
    """
    if operation.rpartition("-")[0] in _EXACT:
        return Bound()
    types = _read_bounds().get(operation, {})
    own, usual = types.get(precision), types.get("f32")
    if own is None or usual is None:
        return own or usual or Bound(FEW, FEW)
    if precision == "f64":
        return Bound(*map(max, own, usual))
    return Bound(max(own.ulp, min(usual.ulp, 1.0)), own.changes)


@cache
def _read_bounds() -> Mapping[str, Mapping[str, Bound]]:
    recorded = json.loads(FILE.read_text(encoding="utf-8"))
    return {
        name: {label: Bound(*bound) for label, bound in types.items()} for name, types in recorded.items()
    }
