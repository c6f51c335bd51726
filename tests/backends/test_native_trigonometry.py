"""Sine and cosine of f32 are correctly rounded, and layers of masks and angles give the same bits in replays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ir_runtime as ir
from ir_runtime import opset13 as op
from ir_runtime.backends import available
from ir_runtime.ir.tensor import Array

if "native" not in available():
    pytest.skip("native is not installed", allow_module_level=True)

RNG = np.random.default_rng(0)
FUNCTIONS = {"sin": np.sin, "cos": np.cos}
NUMBERS = {
    "small": RNG.uniform(-4, 4, 20000),
    "positions": np.arange(0.0, 1 << 20, 37),
    "large": RNG.uniform(-(2.0**26), 2.0**26, 20000),
    "multiples of half a turn": np.pi / 2 * np.arange(1, 4e7, 1997),
    "tiny": 10.0 ** RNG.uniform(-44, 0, 1000),
}


def compiled(name: str) -> ir.CompiledModel:
    x = op.parameter([-1], np.float32, name="x")
    return ir.compile_model(ir.Model([getattr(op, name)(x)], [x]), backend="native")


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("kind", NUMBERS)
def test_results_are_correctly_rounded(name: str, kind: str) -> None:
    x = NUMBERS[kind].astype(np.float32)
    x = x[np.abs(x) <= 2**26]
    wanted = FUNCTIONS[name](x.astype(np.float64)).astype(np.float32)
    np.testing.assert_array_equal(compiled(name)(x)[0], wanted)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_large_and_special_arguments_match_numpy(name: str) -> None:
    """Large arguments, NaN, infinities and signed zeros are as in NumPy; also in replays, which start with the third run."""
    model = compiled(name)
    for numbers in ([1, 2, 3, 4], [1e9, -3e38, 1, 2], [np.nan, np.inf, -np.inf, -0.0], [1, 2, 3, 4]):
        x = np.float32(numbers)
        for _ in range(4):
            found = model(x)[0]
            with np.errstate(invalid="ignore"):
                wanted = FUNCTIONS[name](x)
            np.testing.assert_allclose(found, wanted, rtol=2e-7, atol=1e-12)
            np.testing.assert_array_equal(np.signbit(found[~np.isnan(x)]), np.signbit(wanted[~np.isnan(x)]))


@pytest.mark.parametrize("number", [1, 1e9])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_scalar_of_dynamic_rank(name: str, number: float) -> None:
    x = op.parameter("...", np.float32, name="x")
    model = ir.compile_model(ir.Model([getattr(op, name)(x)], [x]), backend="native")
    found = model(np.float32(number))[0]
    assert found.shape == ()
    np.testing.assert_allclose(found, FUNCTIONS[name](np.float32(number)), rtol=2e-7)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_large_scalar(name: str) -> None:
    x = op.parameter([], np.float32, name="x")
    model = ir.compile_model(ir.Model([getattr(op, name)(x)], [x]), backend="native")
    number = np.array(1e9, np.float32)
    np.testing.assert_allclose(model(number)[0], np.asarray(FUNCTIONS[name](number)), rtol=2e-7)


def angles_and_masks() -> ir.Model:
    positions = op.parameter([-1, -1], np.int64, name="positions")
    kept = op.parameter([-1, -1], np.int64, name="kept")
    column = op.convert(op.unsqueeze(positions, op.constant([2])), "f32")
    speeds = op.constant(np.float32([[[1, 0.1, 0.01]]]))
    angles = op.concat([op.multiply(column, speeds), op.subtract(speeds, column)], -1)
    is_kept = op.convert(op.unsqueeze(kept, op.constant([1])), "boolean")
    other = op.convert(op.unsqueeze(positions, op.constant([2])), "boolean")
    masks = [
        op.convert(function(is_kept, other), "f32")
        for function in (op.bitwise_and, op.bitwise_or, op.bitwise_xor, op.logical_and, op.logical_or)
    ]
    masks += [
        op.convert(each, "f32")
        for each in (op.logical_xor(other, is_kept), op.logical_not(other), op.bitwise_not(other))
    ]
    mask = op.concat(masks, 2)
    return ir.Model([op.cos(angles), op.sin(angles), mask, angles], [positions, kept])


def comparisons() -> ir.Model:
    positions = op.parameter([-1, -1], np.int64, name="positions")
    others = op.parameter([-1, -1], np.int64, name="others")
    functions = (op.equal, op.not_equal, op.less, op.less_equal, op.greater, op.greater_equal)
    found = []
    for kind in ("i32", "i64", "f32"):
        row, column = (
            op.unsqueeze(x if kind == "i64" else op.convert(x, kind), op.constant([axis]))
            for x, axis in ((positions, 1), (others, 2))
        )
        answers = [function(row, column) for function in functions]
        chosen = op.select(
            answers[3], row, op.constant(np.array(-1, kind.replace("i", "int").replace("f", "float")))
        )
        bias = op.select(answers[5], op.constant(np.float32(0)), op.constant(np.float32(-3e38)))
        found += [*answers, chosen, bias]
    return ir.Model(found, [positions, others])


@pytest.mark.parametrize("built", [angles_and_masks, comparisons])
def test_masks_and_angles_are_one_replay(built: Callable[[], ir.Model]) -> None:
    replayed, plain = (ir.compile_model(built(), backend="native") for _ in range(2))
    object.__setattr__(plain._plan.programs, "replayer", None)
    for seed in range(5):
        found, wanted = (run(inputs(seed)) for run in (replayed, plain))
        for one, other in zip(found.values(), wanted.values(), strict=True):
            np.testing.assert_array_equal(one, other)
    (program,) = replayed._plan.programs.recorded.values()
    assert len(program.instructions) == 1


def inputs(seed: int) -> list[Any]:
    rng = np.random.default_rng(seed)
    arrays: list[Array] = [rng.integers(0, 9, (2, 5)), rng.integers(0, 2, (2, 5))]
    return arrays


def test_masks_that_do_not_broadcast_are_refused_in_every_run() -> None:
    model = ir.compile_model(angles_and_masks(), backend="native")
    for _ in range(3):
        with pytest.raises(ir.errors.IRError, match="broadcast"):
            model([np.ones((2, 5), np.int64), np.ones((3, 5), np.int64)])


COMPARISONS = (np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal)
CONNECTIVES = (np.logical_and, np.logical_or, np.logical_xor, np.logical_not)
SHAPES = [
    ((7, 5001), (7, 5001)), ((7, 5001), (1, 1)), ((), (3, 1700)), ((2, 3, 40, 33), (3, 1, 33)),
    ((2, 1, 41, 33), (2, 3, 41, 33)), ((1, 1), (1,)), ((0, 3), (1, 3)),
]  # fmt: skip


@pytest.mark.parametrize("shapes", SHAPES, ids=str)
@pytest.mark.parametrize("kind", [np.float32, np.int32, np.int64, np.bool_])
def test_comparisons_match_numpy(shapes: tuple[Any, Any], kind: type) -> None:
    """Comparisons equal NumPy's: with NaN, for which only not_equal holds, with either operand broadcast, and in replays."""
    functions = CONNECTIVES if kind is np.bool_ else COMPARISONS
    inputs = [op.parameter(list(shape), kind) for shape in shapes]
    results = [getattr(op, each.__name__)(*inputs[: each.nin]) for each in functions]
    model = ir.compile_model(ir.Model(results, inputs), backend="native")
    for _ in range(4):
        arrays = [RNG.integers(-2, 2, shape).astype(kind) for shape in shapes]
        if kind is np.float32:
            arrays = [np.where(x < -1, np.nan, x).astype(kind) for x in arrays]
        for found, function in zip(model(arrays).to_tuple(), functions, strict=True):
            np.testing.assert_array_equal(found, function(*arrays[: function.nin]), strict=True)
