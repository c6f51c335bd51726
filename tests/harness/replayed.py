"""Compiled models whose runs are recorded and replayed, against the reference."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import ir_runtime as ov
from ir_runtime.ir.tensor import Array

__all__ = ["begun", "numbers", "program_of", "same_as_the_reference"]

RUNS = 4

Draw = Callable[[np.random.Generator], Array]


def same_as_the_reference(model: ov.Model, *draws: Draw, exact: bool = True) -> ov.CompiledModel:
    """Whether both backends give the same, also when a run is recorded and replayed; return the compiled model."""
    reference, compiled = (ov.compile_model(model, backend=name) for name in ("reference", "native"))
    rng = np.random.default_rng(0)
    for _ in range(RUNS):
        feed = [draw(rng) for draw in draws]
        found, expected = compiled(feed)[0], reference(feed)[0]
        if exact:
            np.testing.assert_array_equal(found, expected)
        else:
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5 * np.abs(expected).max())
    return compiled


def program_of(compiled: ov.CompiledModel) -> Any:
    """The program of the only recorded run."""
    (program,) = compiled._plan.programs.recorded.values()
    return program


def begun(compiled: ov.CompiledModel) -> list[str]:
    """The types of the layers that instructions of the recorded run begin with."""
    return [compiled._plan.steps[start].layer.type for start in program_of(compiled).starts]


def numbers(shape: tuple[int, ...], dtype: Any = np.float32, scale: float = 50) -> Draw:
    """Draw normal numbers of a scale."""
    return lambda rng: (scale * rng.standard_normal(shape)).astype(dtype)
