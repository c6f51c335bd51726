"""Attention as exporters write it, on each backend against the reference; and subgraphs that only resemble attention."""

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


@pytest.fixture(params=["numpy", "native"])
def backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def check(path: Path, backend: str, node: ov.Node, inputs: list[ov.Node], *data: Array) -> CompiledModel:
    """Compare a backend with the reference; return its compiled model."""
    ov.save_model(ov.Model([op.result(node)], inputs), path, compress_to_fp16=False)
    wanted = ir_runtime.compile_model(path, backend="reference")(list(data))[0]
    compiled = ir_runtime.compile_model(path, backend=backend)
    found = compiled(list(data))[0]
    largest = np.abs(wanted[np.isfinite(wanted)]).max(initial=0)
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5 * largest)
    return compiled


def steps(compiled: CompiledModel) -> list[int]:
    """Return the number of layers in each step."""
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


@pytest.mark.parametrize(("pictures", "masks"), [(1, 1), (3, 1), (3, 2)])
def test_windows(path: Path, backend: str, pictures: int, masks: int) -> None:
    """Test a mask for each head, and masks for each of four windows of an image (Swin)."""
    batch = 4 * pictures
    q, k, v = (op.parameter([batch, 3, 6, 8], np.float32) for _ in range(3))
    made = op.add(scores(q, k), op.constant(numbers(1, 3, 6, 6)))
    apart = op.reshape(made, op.constant(np.array([pictures, 4, 3, 6, 6])), False)
    for seed in range(masks):
        apart = op.add(apart, op.constant(numbers(1, 4, 1, 6, 6, seed=seed + 5)))
    joined = op.reshape(apart, op.constant(np.array([batch, 3, 6, 6])), False)
    node = op.matmul(op.softmax(joined, -1), v, False, False)
    compiled = check(path, backend, node, [q, k, v], *(heads(batch, 6, seed) for seed in range(3)))
    assert steps(compiled) == [6 + masks]


def test_nothing_to_attend_to(path: Path, backend: str) -> None:
    q, k, v = three()
    node = op.matmul(op.softmax(scores(q, k), -1), v, False, False)
    check(path, backend, node, [q, k, v], heads(2, 0, 1), heads(2, 4, 2), heads(2, 4, 3))
    check(path, backend, node, [q, k, v], heads(0, 5, 1), heads(0, 4, 2), heads(0, 4, 3))


@pytest.mark.parametrize(
    "case",
    ["other axis", "wider mask", "weights turned", "factors of queries", "mask is scaled", "scores are read"],
)
def test_what_only_looks_like_it(path: Path, backend: str, case: str) -> None:
    batch = 1 if case == "wider mask" else 2
    q, k, v = (op.parameter([batch, 3, 8, 8], np.float32) for _ in range(3))
    made = scores(q, k)
    if case == "wider mask":
        made = op.add(made, op.constant(numbers(4, 1, 8, 8)))
    if case == "factors of queries":
        made = op.multiply(made, op.constant(numbers(1, 1, 8, 1)))
    if case == "mask is scaled":
        made = op.multiply(op.add(made, op.constant(numbers(1, 3, 8, 8))), op.constant(np.float32(0.25)))
    soft = op.softmax(made, 2 if case == "other axis" else -1)
    node = op.matmul(soft, v, case == "weights turned", False)
    if case == "scores are read":
        node = op.add(node, op.reduce_sum(made, op.constant(np.array([3])), True))
    compiled = check(path, backend, node, [q, k, v], *(heads(batch, 8, seed) for seed in range(3)))
    assert any(step.pattern for step in compiled._plan.steps) is (case == "scores are read")


EQUATIONS = [
    ("bhlk,bhtk->bhlt", "bhlt,bhtv->bhlv"),
    ("bqhd,bkhd->bhqk", "bhqk,bkhd->bqhd"),
    ("bkhd,bqhd->bhqk", "bkhd,bhqk->bqhd"),
    ("bqd,bkd->bqk", "bqk,bkv->bqv"),
    ("bghid,bghjd->bghij", "bghij,bghjd->bghid"),
    ("hbcid,bchjd->bchij", "bchij,cbhjd->ichbd"),
    ("...id,...jd->...ij", "...ij,...jd->...id"),
]
LENGTHS = dict.fromkeys("bgc", 2) | dict.fromkeys("h", 3) | dict.fromkeys("lqi", 7) | dict.fromkeys("tkj", 9)


def shaped(labels: str, *sums: str) -> list[int]:
    """Return the dims for einsum labels: 8 for each summed label."""
    return [8 if label in sums else LENGTHS.get(label, 8) for label in labels.replace("...", "bh")]


@pytest.mark.parametrize("mask", [False, True])
@pytest.mark.parametrize("equations", EQUATIONS, ids=str)
def test_einsum(path: Path, backend: str, equations: tuple[str, str], mask: bool) -> None:
    """Einsum equations that are batched matrix products, with any order of axes, with and without a mask."""
    first, second = equations[0].partition("->")[0].split(",")
    third = next(
        x for x in equations[1].partition("->")[0].split(",") if x != equations[0].partition("->")[2]
    )
    swapped = equations[0].startswith("bkhd")
    (depth,) = set(first) & set(second) - set(equations[0].partition("->")[2]) - {"."}
    shapes = [shaped(first, depth), shaped(second, depth), shaped(third)]
    inputs = [op.parameter(shape, np.float32) for shape in shapes]
    made = op.einsum([*inputs[:2]], equations[0])
    if mask:
        made = op.add(op.constant(numbers(7, 9)), op.multiply(op.constant(np.float32(0.3)), made))
    soft = op.softmax(made, -1)
    node = op.einsum([inputs[2], soft] if swapped else [soft, inputs[2]], equations[1])
    data = [numbers(*shape, seed=seed) for seed, shape in enumerate(shapes)]
    assert steps(check(path, backend, node, inputs, *data)) == [5 if mask else 3]


@pytest.mark.parametrize("rank", [3, 5])
def test_other_ranks(path: Path, backend: str, rank: int) -> None:
    """One or several batch axes of heads, with a mask for each and one for all."""
    outer = [3] if rank == 3 else [2, 2, 3]
    inputs = [op.parameter([*outer, n, 8], np.float32) for n in (5, 7, 7)]
    given = op.parameter([*outer, 5, 7], np.float32)
    fixed = op.constant(numbers(*[1] * (rank - 3), 3, 5, 7))
    data = [numbers(*outer, n, 8, seed=n) for n in (5, 7, 7)]
    for mask in (fixed, given):
        made = op.add(scores(*inputs[:2]), mask)
        node = op.matmul(op.softmax(made, -1), inputs[2], False, False)
        more = [] if mask is fixed else [given]
        masks = [numbers(*outer, 5, 7)] if more else []
        assert steps(check(path, backend, node, [*inputs, *more], *data, *masks)) == [4]


def test_turned_matrices(path: Path, backend: str) -> None:
    q, k, v = (op.parameter(shape, np.float32) for shape in ([2, 3, 8, 5], [2, 3, 8, 7], [2, 3, 6, 7]))
    node = op.matmul(op.softmax(op.matmul(q, k, True, False), -1), v, False, True)
    data = numbers(2, 3, 8, 5), numbers(2, 3, 8, 7), numbers(2, 3, 6, 7)
    assert steps(check(path, backend, node, [q, k, v], *data)) == [3]


@pytest.mark.parametrize("lengths", [(1, 9), (3, 3), (49, 70), (200, 300)])
def test_factors_of_heads(path: Path, backend: str, lengths: tuple[int, int]) -> None:
    """Each head scales its scores by its own factor (Liu et al. 2022, Swin V2)."""
    inputs = [op.parameter([2, 3, n, 8], np.float32) for n in (lengths[0], lengths[1], lengths[1])]
    made = op.multiply(scores(*inputs[:2]), op.constant(numbers(3, 1, 1)))
    made = op.add(made, op.constant(numbers(1, 3, *lengths)))
    node = op.matmul(op.softmax(made, -1), inputs[2], False, False)
    data = heads(2, lengths[0], 1), heads(2, lengths[1], 2), heads(2, lengths[1], 3)
    assert max(steps(check(path, backend, node, inputs, *data))) >= 4


@pytest.mark.parametrize("windows", [1, 64])
def test_masks_that_leave_hardly_any_weight(path: Path, backend: str, windows: int) -> None:
    """Weights of keys masked by -100, which would be subnormal, are 0; a fully masked row gives the same result as an unmasked one."""
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


@pytest.mark.parametrize("shared", ["keys and values", "queries and keys", "queries and values", "all"])
@pytest.mark.parametrize("factor", [None, 0.25])
def test_one_tensor_for_several(path: Path, backend: str, shared: str, factor: float | None) -> None:
    """Several operands of attention may be the same tensor (Luong et al. 2015: the keys are the values)."""
    x, y = (op.parameter([2, 3, 9, 8], np.float32) for _ in range(2))
    q, k, v = {
        "keys and values": (x, y, y),
        "queries and keys": (x, x, y),
        "queries and values": (x, y, x),
        "all": (x, x, x),
    }[shared]
    made = scores(q, k) if factor is None else op.divide(scores(q, k), np.float32(factor))
    node = op.matmul(op.softmax(made, -1), v, False, False)
    inputs = [x] if shared == "all" else [x, y]
    data = [heads(2, 9, seed) for seed in range(len(inputs))]
    assert max(steps(check(path, backend, node, inputs, *data))) >= 3
