"""Small layers of the native backend: reductions, softmax along any axis, copies; as steps and in replays."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

import ir_runtime as ir
from ir_runtime import opset8 as op
from ir_runtime.backends import available
from ir_runtime.ir.tensor import Array

pytestmark = pytest.mark.skipif("native" not in available(), reason="native is not installed")

Build = Callable[[ir.Node], ir.Node]


def runs(build: Build, x: Array, backend: str, times: int = 4) -> list[Array]:
    data = op.parameter(x.shape, np.float32)
    compiled = ir.compile_model(ir.Model([build(data)], [data]), backend=backend)
    return [compiled(x)[0] for _ in range(times)]


def numbers(shape: Sequence[int]) -> Array:
    return np.random.default_rng(0).standard_normal(shape, np.float32)


@pytest.mark.parametrize(
    "name", ["reduce_sum", "reduce_mean", "reduce_max", "reduce_min", "reduce_l1", "reduce_l2"]
)
@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize(
    ("shape", "axes"),
    [
        ((4, 8, 256), [1]), ((320, 4), [-1]), ((3, 5, 7, 9), [1, 3]), ((21, 4), [0, 1]), ((2, 3, 40, 5), [2]),
        ((2, 3, 99), [1]), ((2, 8, 5, 31), [1, 2]), ((7, 1000), [1]),
    ],
)  # fmt: skip
def test_reductions_are_bit_identical_to_the_reference(
    name: str, keep: bool, shape: tuple[int, ...], axes: list[int]
) -> None:
    def build(x: ir.Node) -> ir.Node:
        order = list(reversed(range(len(shape))))
        both = [getattr(op, name)(each, axes, keep) for each in (x, op.transpose(x, order))]
        return op.concat([op.reshape(each, [-1], False) for each in both], 0)

    x = numbers(shape)
    x[..., 1] = np.nan
    (wanted,) = runs(build, x, "reference", 1)
    for found in runs(build, x, "native"):
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize(("shape", "axes"), [((4, 8, 250), [1]), ((7, 300), [-1]), ((3, 5, 7, 9), [1, 3])])
def test_reduced_products_are_rounded_once(shape: tuple[int, ...], axes: list[int]) -> None:
    def product(x: ir.Node) -> ir.Node:
        return op.reduce_prod(x, axes, False)

    x = 1 + numbers(shape) / 10
    wanted = x.prod(tuple(axes), np.float64).astype(np.float32)
    for found in runs(product, x, "native"):
        np.testing.assert_array_equal(found, wanted)
    x[0, 1, ...], x[1, 2, ...] = np.nan, np.inf
    (wanted,) = runs(product, x, "reference", 1)
    for found in runs(product, x, "native"):
        np.testing.assert_allclose(found, wanted, 1e-5)


@pytest.mark.parametrize(
    ("shape", "axis"), [((4, 8, 256), 1), ((2, 80, 5), 2), ((2, 40, 3, 17), 1), ((70, 4, 4), 0), ((9, 91), 0)]
)
def test_softmax_of_columns_and_short_rows(shape: tuple[int, ...], axis: int) -> None:
    x = numbers(shape)
    x[0, 0], x[1, 1, ...], x[-1, -1] = -np.inf, np.nan, np.inf
    (wanted,) = runs(lambda x: op.softmax(x, axis), x, "reference", 1)
    for found in runs(lambda x: op.softmax(x, axis), x, "native"):
        np.testing.assert_allclose(found, wanted, 1e-6, 1e-7)


@pytest.mark.parametrize("length", [5, 16, 17])
def test_softmax_of_contiguous_columns(length: int) -> None:
    x = numbers((40, 3, length))

    def layers(x: ir.Node) -> ir.Node:
        return op.softmax(op.transpose(x, [1, 2, 0]), 1)

    (wanted,) = runs(layers, x, "reference", 1)
    for found in runs(layers, x, "native"):
        np.testing.assert_allclose(found, wanted, 1e-6, 1e-7)


def boxes(x: ir.Node) -> ir.Node:
    """A box decoder as in detection networks: small layers on views."""
    columns = op.transpose(op.reshape(x, [4, 30], False), [1, 0])
    low = op.slice(columns, [0], [2], [1], [1])
    high = op.slice(columns, [2], [4], [1], [1])
    centre = op.multiply(op.add(low, high), np.float32([[0.5]]))
    joined = op.concat([centre, op.subtract(high, low)], 1)
    flat = op.reshape(op.transpose(joined, [1, 0]), [-1], False)
    return op.concat([flat, op.reduce_max(joined, [1], False)], 0)


def test_box_decoding_is_one_replay() -> None:
    x = numbers((1, 4, 5, 6))
    (wanted,) = runs(boxes, x, "reference", 1)
    data = op.parameter(x.shape, np.float32)
    compiled = ir.compile_model(ir.Model([boxes(data)], [data]), backend="native")
    for _ in range(4):
        np.testing.assert_array_equal(compiled(x)[0], wanted)
    assert [len(program.instructions) for program in compiled._plan.programs.recorded.values()] == [1]


@pytest.mark.parametrize("layers", [1, 2])
def test_a_single_layer_as_fast_in_numpy_is_not_replayed(layers: int) -> None:
    data = op.parameter([3, 4], np.float32)
    end: ir.Node = data
    for number in range(layers):
        end = op.add(op.transpose(end, [1, 0]), np.float32([number]))
    compiled = ir.compile_model(ir.Model([end], [data]), backend="native")
    for _ in range(3):
        compiled(numbers((3, 4)))
    programs = compiled._plan.programs
    assert (programs.replayer is None) == (layers == 1)


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("element", ["i64", "f32", "boolean"])
def test_small_concatenations_in_a_replay(axis: int, element: str) -> None:
    def build(x: ir.Node) -> ir.Node:
        parts = [
            op.convert(op.transpose(x, [0, 2, 1]), element),
            op.convert(op.transpose(x, [0, 2, 1]), element),
        ]
        return op.convert(op.concat([*parts, parts[0]], axis), "f32")

    x = np.floor(numbers((3, 4, 5)) * 9)
    (wanted,) = runs(build, x, "reference", 1)
    for found in runs(build, x, "native"):
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("shape", [(1, 5, 24), (2, 3, 4, 8)])
def test_concatenation_of_channels_first_maps(shape: tuple[int, ...]) -> None:
    def build(x: ir.Node) -> ir.Node:
        doubled = op.multiply(x, np.float32(2))
        return op.relu(op.concat([doubled, op.relu(x), doubled], 1))

    x = numbers(shape)
    (wanted,) = runs(build, x, "reference", 1)
    for found in runs(build, x, "native"):
        np.testing.assert_array_equal(found, wanted)
