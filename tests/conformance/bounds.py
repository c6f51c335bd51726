"""Tolerances, from the errors of sound executions: ``python -m conformance.bounds`` measures them anew.

Each sample runs on the backends of this package and on OpenVINO's reference. The error of an output counts in units in
the last place where these are few; else, where terms cancel, in the largest change of the output that a rounding of the
inputs makes. The worst of an operation and a type is recorded; a tolerance is twice that, and nothing where nothing was
rounded. Errors that are large in both units are faults, and not recorded.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ir_runtime.backends import available
from ir_runtime.conformance.adapters import Unsupported, adapter
from ir_runtime.conformance.case import Case, Tolerance
from ir_runtime.conformance.judge import units_in_last_place
from ir_runtime.conformance.truth import Truth
from ir_runtime.ir.tensor import Array

__all__ = ["Bound", "measure", "tolerances"]

FILE = Path(__file__).with_name("bounds.json")
FEW = 4.0
"""Units in the last place up to which errors count in these."""
_FAULT = 64.0
_MARGIN = 2.0


class Bound(NamedTuple):
    """The worst errors of sound executions: in units in the last place, and in changes of the output by a rounding."""

    ulp: float = 0.0
    changes: float = 0.0

    def joined(self, ulp: float, changes: float) -> Bound:
        """Return the bound with the error of another output, given in both units."""
        if ulp <= FEW:
            return Bound(max(self.ulp, ulp), self.changes)
        if changes <= _FAULT:
            return Bound(self.ulp, max(self.changes, changes))
        return Bound(max(self.ulp, ulp), self.changes) if ulp <= _FAULT else self


def tolerances(operation: str, truth: Truth) -> list[Tolerance]:
    """Return the tolerance of each output of an operation."""
    bound = _bound(operation, truth.precision)
    return [
        Tolerance(ulp=_MARGIN * bound.ulp, absolute=float(f"{_MARGIN * bound.changes * change:.3g}"))
        if element.real and truth.precision
        else Tolerance()
        for element, change in zip(truth.types, truth.changes, strict=True)
    ]


@cache
def _recorded() -> Mapping[str, Mapping[str, Bound]]:
    recorded = json.loads(FILE.read_text(encoding="utf-8"))
    return {
        name: {label: Bound(*bound) for label, bound in types.items()} for name, types in recorded.items()
    }


def _bound(operation: str, precision: str) -> Bound:
    """Return the bound for a type.

    That of f64 is at least that of f32, as no sample tells f64 from the truth, which is f64, too. Those of f16 and bf16
    allow one unit in the last place more than nothing, unless f32 is exact: most runtimes compute these in f32.
    """
    types = _recorded().get(operation, {})
    own, usual = types.get(precision), types.get("f32")
    if own is None or usual is None:
        return own or usual or Bound(FEW, FEW)
    if precision == "f64":
        return Bound(*map(max, own, usual))
    return Bound(max(own.ulp, min(usual.ulp, 1.0)), own.changes)


def errors(outputs: Sequence[Array], truth: Truth) -> Iterator[tuple[float, float]]:
    """Yield the largest error of each real output in both units; nothing for outputs that differ in kind."""
    for actual, expected, element, change in zip(
        outputs, truth.outputs, truth.types, truth.changes, strict=False
    ):
        if not element.real or actual.shape != expected.shape:
            continue
        with np.errstate(all="ignore"):
            distance = np.abs(actual.astype(np.float64) - expected.astype(np.float64))
            ulp = distance / units_in_last_place(expected.astype(np.float64), element)
        finite = np.isfinite(distance)
        worst = float(distance[finite].max(initial=0.0))
        yield (
            float(ulp[finite].max(initial=0.0)),
            worst / change if change else (float("inf") if worst else 0.0),
        )


def measure(cases: Iterable[tuple[Case, Truth]]) -> dict[str, dict[str, Bound]]:
    """Return the worst errors of sound executions by operation and type."""
    bounds: dict[str, dict[str, Bound]] = {}
    runtimes = [*available(), "openvino:reference"]
    pool = _pool()
    for case, truth in cases:
        if not truth.precision:
            continue
        types = bounds.setdefault(case.operation, {})
        types.setdefault(truth.precision, Bound())
        for name in runtimes:
            try:
                outputs = pool.submit(_run, name, case).result()
            except BrokenProcessPool:  # the runtime crashes on the case
                pool = _pool()
                continue
            for error in errors(outputs, truth):
                types[truth.precision] = types[truth.precision].joined(*error)
    pool.shutdown()
    return bounds


def _pool() -> ProcessPoolExecutor:
    return ProcessPoolExecutor(1, get_context("spawn"))


def _run(name: str, case: Case) -> list[Array]:
    try:
        return list(adapter(name)(case))
    except (Unsupported, RuntimeError, ValueError, IndexError):
        return []


def encode(bounds: Mapping[str, Mapping[str, Bound]]) -> str:
    """Return the text of the file of bounds."""
    lines = [
        f' "{name}": {json.dumps({label: [float(f"{x:.2g}") for x in bound] for label, bound in sorted(types.items())})}'
        for name, types in sorted(bounds.items())
    ]
    return "{\n" + ",\n".join(lines) + "\n}\n"


if __name__ == "__main__":
    from conformance.values import judged_cases

    FILE.write_text(encode(measure(judged_cases())), encoding="utf-8")
    sys.exit()
