"""Models fed booleans of any byte: every byte but 0 is true, in every run and on every backend."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random

import numpy as np
from harness.subjects import difference

import ir_runtime as ir
from ir_runtime.ir.tensor import Array

from .corpus import Case
from .lengths import LIMITS, REFERENCE, DisagreementError, is_limited, operations

__all__ = ["RUNS", "compare", "overwritten"]

RUNS = 4
"""Runs of each backend: among the later ones are a recording and its replay."""
_BYTES = (0, 1, 2, 3, 127, 128, 254, 255)


def overwritten(base: Case, steps: Sequence[int]) -> Case:
    """A model whose boolean inputs have other bytes; each step redraws them."""
    assert base.inputs is not None
    rng = Random(steps[-1])
    return replace(base, inputs=tuple(_drawn(x, rng) for x in base.inputs), kind="booleans")


def _drawn(x: Array, rng: Random) -> Array:
    if x.dtype != np.bool_:
        return x
    return np.array(rng.choices(_BYTES, k=x.size), np.uint8).reshape(x.shape).view(np.bool_)


def compare(case: Case, backends: Sequence[str]) -> str:
    """Run several times on all backends, and compare with the reference for the bytes 0 and 1.

    Returns:
        ``"result"``, or the code of the reference's error.

    Raises:
        DisagreementError: if a run gives something else.
        Exception: any exception that is not an error of the package.
    """
    inputs = list(case.inputs or ())
    try:
        model = ir.read_model(case.xml, case.weights, limits=LIMITS)
        plain = [np.asarray(x.view(np.uint8) != 0) if x.dtype == np.bool_ else x for x in inputs]
        wanted = ir.compile_model(model, backend=REFERENCE, limits=LIMITS)(plain).to_tuple()
    except ir.IRError as refusal:
        return str(refusal.code)
    for backend in (REFERENCE, *(name for name in backends if name != REFERENCE)):
        try:
            compiled = ir.compile_model(model, backend=backend, limits=LIMITS)
            results = [compiled(inputs).to_tuple() for _ in range(RUNS)]
        except ir.IRError as refusal:
            if is_limited(refusal):
                continue
            raise DisagreementError(f"refused on {backend}: {operations(model)}", str(refusal)) from refusal
        for number, result in enumerate(results):
            if problem := difference(list(result), list(wanted), backend, 1e-6):
                raise DisagreementError(f"run {number} on {backend}: {operations(model)}", problem)
    return "result"
