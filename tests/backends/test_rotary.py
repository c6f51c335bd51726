"""Rotary embeddings are one step with the bits of the reference, in all exporters' spellings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
import pytest
from harness.kernels import numbers
from openvino import opset13 as op

import ir_runtime as ir
from ir_runtime.backends import available
from ir_runtime.backends.core.backend import LastLayer
from ir_runtime.backends.native.kernels.rotary import match_rotary
from ir_runtime.backends.numpy import backend as numpy
from ir_runtime.ir.tensor import Array
from ir_runtime.openvino.compiling import fusions_of
from ir_runtime.ops.arithmetic import Add

BACKENDS = [name for name in available() if name != "reference"]
WIDTH, HALF = 8, 4
LAYERS = 7


def ints(*values: int) -> Any:
    return op.constant(np.array(values, np.int64))


def halves(x: Any, spelling: str) -> list[Any]:
    if spelling == "split":
        return list(op.split(x, op.constant(-1), 2).outputs())
    if spelling == "lengths":
        return list(op.variadic_split(x, op.constant(-1), ints(HALF, -1)).outputs())
    bounds = ((0, HALF), (HALF, 2**62)) if spelling == "slice" else ((-WIDTH, -HALF), (-HALF, WIDTH))
    return [op.slice(x, ints(a), ints(b), ints(1), ints(-1)).output(0) for a, b in bounds]


def embedded(x: Any, cos: Any, sin: Any, parts: list[Any], swapped: bool = False) -> Any:
    first, second = parts
    negated = op.negative(second) if swapped else op.multiply(second, op.constant(np.float32(-1)))
    pairs = [(x, cos), (op.concat([negated, first], -1), sin)]
    products = [op.multiply(*(pair[::-1] if swapped else pair)) for pair in pairs]
    return op.add(*(products[::-1] if swapped else products))


def inputs(*shapes: tuple[int, ...]) -> list[Any]:
    return [op.parameter(list(shape), np.float32) for shape in shapes]


def read(result: Any, parameters: list[Any], folder: Path) -> ir.Model:
    ov.save_model(ov.Model([op.result(result)], parameters), folder / "m.xml", compress_to_fp16=False)
    return ir.read_model(folder / "m.xml")


def check(model: ir.Model, backend: str, *data: Array) -> None:
    wanted = ir.compile_model(model, backend="reference")(list(data))[0]
    np.testing.assert_array_equal(ir.compile_model(model, backend=backend)(list(data))[0], wanted)


def fused_layers(model: ir.Model) -> int:
    found = [each for each in fusions_of(model, "native").fused if "rotary" in each.pattern]
    return sum(len(each.layers) for each in found)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("spelling", ["slice", "negative bounds", "split", "lengths"])
@pytest.mark.parametrize("swapped", [False, True])
def test_rotary_embedding_is_one_step(spelling: str, swapped: bool, backend: str, tmp_path: Path) -> None:
    x, cos, sin = parameters = inputs((-1, 3, -1, WIDTH), (-1, 1, -1, WIDTH), (-1, 1, -1, WIDTH))
    model = read(embedded(x, cos, sin, halves(x, spelling), swapped), parameters, tmp_path)
    assert fused_layers(model) == LAYERS - (spelling in ("split", "lengths"))
    turns = (2, 1, 5, WIDTH)
    check(model, backend, numbers(2, 3, 5, WIDTH), numbers(*turns, seed=1), numbers(*turns, seed=2))
    special = [
        numbers(*shape, seed=seed, special=True)
        for seed, shape in enumerate([(2, 3, 5, WIDTH), turns, turns])
    ]
    check(model, backend, *special)
    check(model, backend, numbers(2, 3, 0, WIDTH), *(numbers(1, 1, 1, WIDTH, seed=seed) for seed in (1, 2)))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("cos", "sin"),
    [((5, WIDTH), (WIDTH,)), ((1, WIDTH), (5, WIDTH)), ((1,), (5, 1)), ((2, 1, 5, 1), (2, 1, 5, 1))],
)
def test_broadcast_cosines_and_sines(
    cos: tuple[int, ...], sin: tuple[int, ...], backend: str, tmp_path: Path
) -> None:
    shapes = (3, 5, WIDTH), cos, sin
    parameters = inputs((-1, -1, WIDTH), *((-1,) * len(shape) for shape in shapes[1:]))
    model = read(embedded(*parameters, halves(parameters[0], "slice")), parameters, tmp_path)
    assert fused_layers(model) == LAYERS
    check(model, backend, *(numbers(*shape, seed=seed) for seed, shape in enumerate(shapes)))


@pytest.mark.parametrize("backend", BACKENDS)
def test_transposed_rows_with_other_consumers(backend: str, tmp_path: Path) -> None:
    x, cos, sin = parameters = inputs((1, 5, 3, WIDTH), (5, WIDTH), (5, WIDTH))
    rows = op.transpose(x, ints(0, 2, 1, 3))
    parts = halves(rows, "slice")
    result = op.concat([embedded(rows, cos, sin, parts), parts[1]], -1)
    model = read(result, parameters, tmp_path)
    assert fused_layers(model) == LAYERS
    check(model, backend, numbers(1, 5, 3, WIDTH), numbers(5, WIDTH, seed=1), numbers(5, WIDTH, seed=2))


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        ("thirds", "rows are not split into halves at constant positions"),
        ("same half", "rows are not split into halves at constant positions"),
        ("unknown", "the length of a row is unknown"),
    ],
)
@pytest.mark.parametrize("backend", BACKENDS)
def test_parts_other_than_halves_are_refused(
    case: str, reason: str, backend: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(numpy.patterns, Add, [LastLayer(match_rotary, frozenset(), match_rotary.__module__)])
    width = -1 if case == "unknown" else WIDTH
    x, cos, sin = parameters = inputs((3, -1, width), (-1, WIDTH), (-1, WIDTH))
    parts = halves(x, "slice")
    if case == "thirds":
        parts = list(op.variadic_split(x, op.constant(-1), ints(WIDTH - 2, 2)).outputs())
    elif case == "same half":
        parts = [parts[1], parts[1]]
    model = read(embedded(x, cos, sin, parts), parameters, tmp_path)
    assert fused_layers(model) == 0
    refusals = [each.reason for each in fusions_of(model, "numpy").unfused]
    assert f"pattern numpy: match_rotary: {reason}" in refusals
    check(model, backend, numbers(3, 5, WIDTH), numbers(5, WIDTH, seed=1), numbers(5, WIDTH, seed=2))


@pytest.mark.parametrize("backend", BACKENDS)
def test_negating_the_other_half_does_not_match(backend: str, tmp_path: Path) -> None:
    x, cos, sin = parameters = inputs((3, 5, WIDTH), (5, WIDTH), (5, WIDTH))
    first, second = halves(x, "slice")
    result = op.add(op.multiply(x, cos), op.multiply(op.concat([second, op.negative(first)], -1), sin))
    model = read(result, parameters, tmp_path)
    assert fused_layers(model) == 0
    check(model, backend, numbers(3, 5, WIDTH), numbers(5, WIDTH, seed=1), numbers(5, WIDTH, seed=2))
