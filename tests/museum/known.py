"""The differences of the guide on divergences as conformance cases; their expected outputs are computed by hand in the guide."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from bench.divergences import CASES
from harness.conformance_cases import files_of

from ir_runtime.conformance.case import SEVERAL, Case, Tolerance
from ir_runtime.conformance.truth import Unstable, truth_of
from ir_runtime.ir.element import ElementType

__all__ = ["known_cases"]

_TOLERANCE = Tolerance(ulp=64, absolute=1e-5)
"""Far less than any of these differences, and far more than rounding makes of these models."""
_DYNAMIC = {"lstm-lengths", "loop-that-grows"}


def known_cases() -> Iterator[Case]:
    """Yield a case for each row of the guide, for the first operation that it names."""
    for name, make in CASES.items():
        model, inputs = make()
        arrays = [np.asarray(array) for array in inputs]
        try:
            truth = truth_of(model, arrays)
            outputs, types = truth.outputs, truth.types
        except Unstable as unstable:  # steps, whose inputs are meant exactly
            outputs, types = list(unstable.outputs), list(unstable.types)
        tolerances = [_TOLERANCE if element.real else Tolerance() for element in types]
        xml, weights = files_of(model)
        yield Case(
            f"known/{name}", SEVERAL, "dynamic" if name in _DYNAMIC else "value", xml, weights, arrays, outputs,
            [ElementType.from_dtype(array.dtype) for array in arrays], types, tolerances, "f64", (make.__doc__ or "").strip(),
        )  # fmt: skip
