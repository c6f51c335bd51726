"""Tolerances from the errors of correct executions: ``python -m conformance.bounds`` measures them anew.

Each sample runs on the backends of this package and on OpenVINO's reference. The error of an output is measured in ulps; if
terms cancel, in the largest change that a rounding of the inputs causes. The worst error per operation and type is recorded.
A tolerance is twice that, or zero if nothing was rounded. Errors that are large in both units are faults, and not recorded.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context

import numpy as np

from ir_runtime.backends import available
from ir_runtime.conformance.adapters import Unsupported, adapter
from ir_runtime.conformance.bounds import FEW, FILE
from ir_runtime.conformance.case import Case
from ir_runtime.conformance.judge import units_in_last_place
from ir_runtime.conformance.truth import Bound, Truth
from ir_runtime.ir.tensor import Array

__all__ = ["joined", "measure"]

_FAULT = 64.0


def joined(bound: Bound, ulp: float, changes: float) -> Bound:
    """Return a bound that includes the error of another output, given in both units."""
    if ulp <= FEW:
        return Bound(max(bound.ulp, ulp), bound.changes)
    if changes <= _FAULT:
        return Bound(bound.ulp, max(bound.changes, changes))
    return Bound(max(bound.ulp, ulp), bound.changes) if ulp <= _FAULT else bound


def errors(outputs: Sequence[Array], truth: Truth) -> Iterator[tuple[float, float]]:
    """Yield the largest error of each floating-point output in both units; nothing for outputs with mismatched NaN or infinities."""
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
    """Return the worst errors of correct executions by operation and type."""
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
                types[truth.precision] = joined(types[truth.precision], *error)
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
    """Return the contents of the file of bounds."""
    lines = [
        f' "{name}": {json.dumps({label: [float(f"{x:.2g}") for x in bound] for label, bound in sorted(types.items())})}'
        for name, types in sorted(bounds.items())
    ]
    return "{\n" + ",\n".join(lines) + "\n}\n"


if __name__ == "__main__":
    from conformance.values import judged_cases

    FILE.write_text(encode(measure(judged_cases())), encoding="utf-8")
    sys.exit()
