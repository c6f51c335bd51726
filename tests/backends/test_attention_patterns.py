"""Attention that models spell out, on each backend against the reference: also what only looks like it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as op

import ir_runtime
from ir_runtime import CompiledModel
from ir_runtime.ir.tensor import Array


def numbers(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(np.float32)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "m.xml"


@pytest.fixture(params=["numpy", "numba"])
def backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def check(path: Path, backend: str, node: ov.Node, inputs: list[ov.Node], *data: Array) -> CompiledModel:
    """The backend gives what the reference does; the model as it compiled it."""
    ov.save_model(ov.Model([op.result(node)], inputs), path, compress_to_fp16=False)
    wanted = ir_runtime.compile_model(path, backend="reference")(list(data))[0]
    compiled = ir_runtime.compile_model(path, backend=backend)
    found = compiled(list(data))[0]
    largest = np.abs(wanted[np.isfinite(wanted)]).max(initial=0)
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5 * largest)
    return compiled


def steps(compiled: CompiledModel) -> list[int]:
    """How many layers each step computes."""
    return [len(step.layers) for step in compiled._plan.steps]


def scores(q: ov.Node, k: ov.Node) -> ov.Node:
    return op.matmul(q, k, False, True)


def heads(batch: int, length: int, seed: int, heads: int = 3, width: int = 8) -> Array:
    return numbers(batch, heads, length, width, seed=seed)


def three(length: int | list[int] = -1) -> list[ov.Node]:
    return [op.parameter([-1, 3, -1, 8], np.float32) for _ in range(3)]


@pytest.mark.parametrize("lengths", [(1, 1), (1, 9), (17, 17), (49, 70)])
@pytest.mark.parametrize("spelling", ["queries", "multiply", "divide", "none"])
def test_factors(path: Path, backend: str, lengths: tuple[int, int], spelling: str) -> None:
    q, k, v = three()
    root = op.constant(np.float32(8**0.5))
    made = scores(
        op.multiply(q, op.divide(op.constant(np.float32(1)), root)) if spelling == "queries" else q, k
    )
    if spelling == "multiply":
        made = op.multiply(made, op.constant(np.float32(0.25)))
    if spelling == "divide":
        made = op.divide(made, root)
    node = op.matmul(op.softmax(made, -1), v, False, False)
    data = heads(2, lengths[0], 1), heads(2, lengths[1], 2), heads(2, lengths[1], 3)
    assert max(steps(check(path, backend, node, [q, k, v], *data))) >= 3


@pytest.mark.parametrize("shape", [(1, 3, 5, 7), (1, 1, 5, 7), (2, 1, 1, 7), (1, 1, 1, 7)])
@pytest.mark.parametrize("value", [0.5, -np.inf])
def test_a_mask_that_is_constant(path: Path, backend: str, shape: tuple[int, ...], value: float) -> None:
    q, k, v = (op.parameter([2, 3, n, 8], np.float32) for n in (5, 7, 7))
    mask = numbers(*shape)
    mask[..., 2] = value
    node = op.matmul(op.softmax(op.add(scores(q, k), op.constant(mask)), -1), v, False, False)
    compiled = check(path, backend, node, [q, k, v], heads(2, 5, 1), heads(2, 7, 2), heads(2, 7, 3))
    assert steps(compiled) == [4]


def test_a_mask_that_is_an_input(path: Path, backend: str) -> None:
    q, k, v = (op.parameter([2, 3, n, 8], np.float32) for n in (5, 7, 7))
    mask = op.parameter([2, 1, 1, 7], np.float32)
    node = op.matmul(op.softmax(op.add(scores(q, k), mask), -1), v, False, False)
    data = heads(2, 5, 1), heads(2, 7, 2), heads(2, 7, 3), numbers(2, 1, 1, 7)
    assert steps(check(path, backend, node, [q, k, v, mask], *data)) == [4]


@pytest.mark.parametrize("pictures", [1, 3])
def test_windows(path: Path, backend: str, pictures: int) -> None:
    """A mask for each head, and one for each of four windows of a picture."""
    batch = 4 * pictures
    q, k, v = (op.parameter([batch, 3, 6, 8], np.float32) for _ in range(3))
    made = op.add(scores(q, k), op.constant(numbers(1, 3, 6, 6)))
    apart = op.reshape(made, op.constant(np.array([pictures, 4, 3, 6, 6])), False)
    masked = op.add(apart, op.constant(numbers(1, 4, 1, 6, 6, seed=5)))
    joined = op.reshape(masked, op.constant(np.array([batch, 3, 6, 6])), False)
    node = op.matmul(op.softmax(joined, -1), v, False, False)
    compiled = check(path, backend, node, [q, k, v], *(heads(batch, 6, seed) for seed in range(3)))
    assert steps(compiled) == [7]


def test_nothing_to_attend_to(path: Path, backend: str) -> None:
    q, k, v = three()
    node = op.matmul(op.softmax(scores(q, k), -1), v, False, False)
    check(path, backend, node, [q, k, v], heads(2, 0, 1), heads(2, 4, 2), heads(2, 4, 3))
    check(path, backend, node, [q, k, v], heads(0, 5, 1), heads(0, 4, 2), heads(0, 4, 3))


@pytest.mark.parametrize(
    "case", ["other axis", "wider mask", "values turned", "mask of several", "scores are read"]
)
def test_what_only_looks_like_it(path: Path, backend: str, case: str) -> None:
    batch = 1 if case == "wider mask" else 2
    q, k, v = (op.parameter([batch, 3, 8, 8], np.float32) for _ in range(3))
    made = scores(q, k)
    if case == "wider mask":
        made = op.add(made, op.constant(numbers(4, 1, 8, 8)))
    if case == "mask of several":
        made = op.multiply(made, op.constant(numbers(1, 3, 1, 1)))
    soft = op.softmax(made, 2 if case == "other axis" else -1)
    node = op.matmul(soft, v, False, case == "values turned")
    if case == "scores are read":
        node = op.add(node, op.reduce_sum(made, op.constant(np.array([3])), True))
    compiled = check(path, backend, node, [q, k, v], *(heads(batch, 8, seed) for seed in range(3)))
    assert (max(steps(compiled)) >= 3) is (case == "scores are read")


@pytest.mark.parametrize("windows", [1, 64])
def test_masks_that_leave_hardly_any_weight(path: Path, backend: str, windows: int) -> None:
    """Weights of keys at -100, which would be subnormal, are 0; a row of nothing else is as without a mask."""
    q, k, v = (op.parameter([windows, 3, 49, 8], np.float32) for _ in range(3))
    mask = np.zeros((windows, 1, 49, 49), np.float32)
    mask[..., ::2, 3:] = -100
    mask[..., 5, :] = -100
    mask[..., 7, 4:] = -np.inf
    node = op.matmul(op.softmax(op.add(scores(q, k), op.constant(mask)), -1), v, False, False)
    values = heads(windows, 49, 3)
    values[..., 3:, :] *= 1e30
    data = heads(windows, 49, 1), heads(windows, 49, 2), values
    ov.save_model(ov.Model([op.result(node)], [q, k, v]), path, compress_to_fp16=False)
    wanted = ir_runtime.compile_model(path, backend="reference")(list(data))[0]
    found = ir_runtime.compile_model(path, backend=backend)(list(data))[0]
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e25)
    np.testing.assert_allclose(found[..., [0, 7], :], wanted[..., [0, 7], :], rtol=1e-4, atol=1e-5)
