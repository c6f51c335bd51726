"""Products with matrices selected by indices on the NumPy backend: matrices are read in place, and following layers fused."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

import ir_runtime as ir
from ir_runtime import opset1, opset4, opset8
from ir_runtime.backends.patterns.gathered_matmul import MAX_ROWS
from ir_runtime.ir.tensor import Array

RANDOM = np.random.default_rng(0)


def numbers(*shape: int) -> Array:
    return RANDOM.standard_normal(shape).astype(np.float32)


def chosen(rows: Sequence[int], indices: Sequence[int], by_rows: bool, columns: int = 256) -> ir.Model:
    """A product of rows with matrices selected by indices, followed by a bias, an activation and a product."""
    depth = rows[-1]
    x = opset1.parameter(list(rows), np.float32, name="x")
    places = opset1.parameter(list(indices), np.int64, name="places")
    tables = [numbers(6, *((columns, depth) if by_rows else (depth, columns))) for _ in range(2)]
    first, second = (
        opset1.matmul(x, opset8.gather(opset1.constant(table), places, opset1.constant(0)), False, by_rows)
        for table in tables
    )
    shifted = opset1.add(first, numbers(1, columns))
    return ir.Model([opset1.multiply(opset4.swish(shifted), second)], [x, places])


def patterns(model: ir.CompiledModel) -> list[str]:
    return [step.pattern for step in model._plan.steps if "gathered_matmul" in step.pattern]


SHAPES = [
    ((1, 20), (2,)),
    ((2, 1, 3, 37), (2, 4)),
    ((4, 1, 16), (3, 1)),
    ((2, 30), (0,)),
    ((1, 1, 16), (70,)),
]


@pytest.mark.parametrize("by_rows", [True, False])
@pytest.mark.parametrize(("rows", "indices"), SHAPES)
def test_products_with_chosen_matrices(rows: Sequence[int], indices: Sequence[int], by_rows: bool) -> None:
    """Negative indices count from the end; out-of-range indices select zeros; many matrices are copied."""
    model, x = chosen(rows, indices, by_rows), numbers(*rows)
    fast, slow = (ir.compile_model(model, backend=name) for name in ("numpy", "reference"))
    assert len(patterns(fast)) == 2
    for low, high in ((-6, 6), (0, 6), (-9, 9), (6, 7)):
        places = RANDOM.integers(low, high, indices)
        np.testing.assert_allclose(fast([x, places])[0], slow([x, places])[0], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("rows", "columns"), [((MAX_ROWS + 1, 20), 256), ((-1, 20), 256), ((1, 20), 2)])
def test_many_rows_and_small_matrices_are_left_to_copies(rows: Sequence[int], columns: int) -> None:
    assert not patterns(ir.compile_model(chosen(rows, (2,), True, columns), backend="numpy"))


def test_chosen_matrices_of_open_lengths() -> None:
    model = chosen((-1, 1, 20), (-1,), True)
    fast, slow = (ir.compile_model(model, backend=name) for name in ("numpy", "reference"))
    assert patterns(fast)
    for batch, count in ((1, 1), (3, 3), (3, 1), (1, 4), (0, 1)):
        given = [numbers(batch, 1, 20), RANDOM.integers(0, 6, count)]
        np.testing.assert_allclose(fast(given)[0], slow(given)[0], rtol=1e-4, atol=1e-4)
    for each in (fast, slow):
        with pytest.raises(ir.IRError):
            each([numbers(2, 1, 20), np.arange(3)])
