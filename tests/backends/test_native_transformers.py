"""Transformer kernels of the native backend against the reference: odd sizes, masks, NaN."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import openvino as ov
import pytest
from harness.nets import Net
from harness.other_vectors import OTHERS, run_again
from openvino import opset13 as op

import ir_runtime
from ir_runtime.backends import available
from ir_runtime.ir.tensor import Array
from ir_runtime.openvino.compiled import CompiledModel

pytestmark = pytest.mark.skipif("native" not in available(), reason="the extra 'fast' is not installed")

SHAPES = [(1, 1), (2, 3, 7), (1, 63), (3, 64), (5, 65), (17, 130), (0, 5), (2, 768)]


def numbers(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(np.float32)


def check(model: ov.Model, *data: Array, rtol: float = 1e-4) -> CompiledModel:
    """Run on all backends, and compare the results."""
    read = ir_runtime.read_model(*_saved(model))
    for array in data:
        array.setflags(write=False)
    wanted = ir_runtime.compile_model(read, backend="reference")(list(data))
    for backend in ("numpy", "native"):
        compiled = ir_runtime.compile_model(read, backend=backend)
        found = compiled(list(data))
        for index in range(len(wanted)):
            a, b = found[index], wanted[index]
            largest = np.abs(b[np.isfinite(b)]).max(initial=0)
            np.testing.assert_allclose(a, b, rtol=rtol, atol=1e-5 * largest, err_msg=backend)
    return compiled


def _saved(model: ov.Model) -> tuple[Path]:
    path = Path(os.environ["IR_RUNTIME_TEST_FOLDER"]) / "m.xml"
    ov.save_model(model, path, compress_to_fp16=False)
    return (path,)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IR_RUNTIME_TEST_FOLDER", str(tmp_path))


@pytest.mark.parametrize("odd", [None, np.nan, np.inf, -np.inf], ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_softmax_and_norms(shape: tuple[int, ...], odd: float | None) -> None:
    data = 3 * numbers(*shape)
    if odd is not None and data.size:
        data.reshape(-1)[data.size // 2] = odd
    x = op.parameter([*[-1] * (len(shape) - 1), shape[-1]], np.float32)
    norm = op.mvn(x, op.constant([-1]), True, 1e-5, "INSIDE_SQRT")
    scaled = op.multiply(norm, op.constant(numbers(shape[-1], seed=1)))
    layer_norm = op.gelu(op.add(op.add(scaled, op.constant(numbers(shape[-1], seed=2))), x), "erf")
    along = [op.softmax(x, -1), op.log_softmax(x, -1), op.softmax(x, 0)]
    check(ov.Model([op.result(y) for y in (*along, layer_norm, rms(x))], [x]), data)


@pytest.mark.parametrize("variance", [False, True])
def test_norm_with_epsilon_outside(variance: bool) -> None:
    x = op.parameter([-1, 33], np.float32)
    check(
        ov.Model([op.result(op.mvn(x, op.constant([-1]), variance, 1e-3, "OUTSIDE_SQRT"))], [x]),
        numbers(5, 33),
    )


@pytest.mark.parametrize("layer", ["softmax", "convolution"])
@pytest.mark.parametrize("axis", [1, 2, -2])
def test_norms_along_other_axes(axis: int, layer: str) -> None:
    """Channels-first and channels-last data, with scale, shift and fused layers."""
    shape = (2, 33, 6, 7)
    x = op.parameter(list(shape), np.float32)
    pixels = op.constant(numbers(shape[1], shape[1], 1, 1, seed=1))
    y = op.softmax(x, 3) if layer == "softmax" else op.convolution(x, pixels, [1, 1], [0, 0], [0, 0], [1, 1])
    norm = op.mvn(y, op.constant([axis]), True, 1e-5, "INSIDE_SQRT")
    along = [shape[at] if at == axis % 4 else 1 for at in range(4)]
    scaled = op.add(op.multiply(norm, op.constant(numbers(*along))), op.constant(numbers(*along, seed=2)))
    compiled = check(ov.Model([op.result(op.add(op.gelu(scaled, "erf"), y))], [x]), numbers(*shape))
    steps = [step.layer.type for step in compiled._plan.steps]
    assert steps.count("Multiply") == steps.count("Gelu") == 0  # they are the epilogue


def number(value: float) -> ov.Node:
    return op.constant(np.float32(value))


def rms(x: ov.Node, spelling: str = "divide") -> ov.Node:
    """RMSNorm as different exporters write it."""
    square = op.multiply(x, x) if spelling == "product" else op.power(x, number(2))
    mean = op.add(op.reduce_mean(square, op.constant([-1]), True), number(1e-5))
    if spelling == "power":
        return op.multiply(op.power(mean, number(-0.5)), x)
    if spelling == "quotient":
        return op.divide(x, op.sqrt(mean))
    return op.multiply(x, op.divide(number(1), op.sqrt(mean)))


@pytest.mark.parametrize("spelling", ["divide", "product", "power", "quotient"])
def test_root_mean_square_is_one_step(spelling: str) -> None:
    """A sum before it stays a tensor of its own if it has other consumers."""
    x, y = (op.parameter([-1, 65], np.float32) for _ in range(2))
    sum = op.add(x, y)
    gained = op.multiply(op.constant(numbers(1, 65, seed=3)), rms(sum, spelling))
    compiled = check(
        ov.Model([op.result(op.add(sum, gained))], [x, y]), numbers(7, 65), numbers(7, 65, seed=1)
    )
    types = [[layer.type for layer in step.layers] for step in compiled._plan.steps]
    assert any("ReduceMean" in step and step.count("Multiply") >= 1 for step in types)
    assert len(types) <= 4


@pytest.mark.parametrize("read", ["mean", "root"])
def test_a_match_leaves_what_others_read(read: str) -> None:
    x = op.parameter([-1, 16], np.float32)
    mean = op.reduce_mean(op.power(x, number(2)), op.constant([-1]), True)
    root = op.sqrt(op.add(mean, number(1e-3)))
    results = [op.result(op.divide(x, root)), op.result(mean if read == "mean" else root)]
    check(ov.Model(results, [x]), numbers(3, 16))


# Batch, heads, shared heads, queries, keys, widths of keys and values.
ATTENTION = [
    (1, 2, 2, 5, 7, 3, 3), (2, 4, 2, 1, 33, 16, 16), (1, 4, 1, 3, 65, 64, 64), (2, 3, 3, 64, 64, 64, 64),
    (1, 2, 1, 17, 130, 80, 48), (2, 2, 2, 9, 1, 8, 1), (1, 1, 1, 1, 1, 1, 1), (1, 1, 1, 300, 520, 24, 72),
]  # fmt: skip
MASKS = ("none", "causal", "f32", "boolean", "scalar width", "hidden")


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("sizes", ATTENTION, ids=str)
def test_attention(sizes: tuple[int, ...], mask: str) -> None:
    batch, heads, shared, rows, keys, width, values = sizes
    data = [
        numbers(batch, heads, rows, width),
        numbers(batch, shared, keys, width),
        numbers(batch, shared, keys, values),
    ]
    inputs = [op.parameter([-1, a.shape[1], -1, a.shape[3]], np.float32) for a in data]
    k, v = (repeated(x, heads, a.shape[3]) for x, a in zip(inputs[1:], data[1:], strict=True))
    rng = np.random.default_rng(0)
    masks = {
        "f32": numbers(batch, 1, rows, keys, seed=5), "boolean": rng.random((batch, heads, rows, keys)) < 0.8,
        "scalar width": numbers(heads, 1, 1), "hidden": np.zeros((1, 1, rows, keys), bool),
    }  # fmt: skip
    extra = [op.constant(masks[mask])] if mask in masks else []
    y = op.scaled_dot_product_attention(inputs[0], k, v, *extra, causal=mask == "causal")
    compiled = check(ov.Model([op.result(y)], inputs), *data)
    if shared < heads:
        assert [step.layers[-1].type for step in compiled._plan.steps].count("Broadcast") == 0


def repeated(x: ov.Node, heads: int, width: int) -> ov.Node:
    """Key heads repeated for grouped queries, as exporters write it."""
    shared = x.get_output_partial_shape(0)[1].get_length()
    if shared == heads:
        return x
    times = op.constant(np.array([1, 1, heads // shared, 1, 1]))
    wide = op.broadcast(op.unsqueeze(x, op.constant(2)), times, broadcast_spec="BIDIRECTIONAL")
    return op.reshape(wide, op.constant([0, heads, -1, width]), True)


def test_heads_that_look_repeated_but_are_not() -> None:
    """The final shape mixes batch and length."""
    q, k = op.parameter([-1, 4, -1, 8], np.float32), op.parameter([-1, 2, -1, 8], np.float32)
    wide = op.broadcast(
        op.unsqueeze(k, op.constant(2)), op.constant([1, 1, 2, 1, 1]), broadcast_spec="BIDIRECTIONAL"
    )
    mixed = op.reshape(wide, op.constant([1, 4, -1, 8]), True)
    model = ov.Model([op.result(op.scaled_dot_product_attention(q, mixed, mixed))], [q, k])
    check(model, numbers(1, 4, 3, 8), numbers(2, 2, 5, 8))
    check(model, numbers(2, 4, 3, 8), numbers(2, 2, 5, 8))


def packed(element: ov.Type, outputs: int, inputs: int, group: int, zero: bool, transposed: bool) -> ov.Node:
    """Compressed weights as tools write them, in f32 throughout so that the reference does not round in between."""
    rng = np.random.default_rng([outputs, inputs, group])
    groups = inputs // group
    shape = (outputs, groups, group) if transposed else (groups, group, outputs)
    low, high = {"u4": (0, 16), "i4": (-8, 8), "u8": (0, 256), "i8": (-128, 128)}[element.get_type_name()]
    codes = op.constant(rng.integers(low, high, shape), element)
    one = (outputs, groups, 1) if transposed else (groups, 1, outputs)
    found = op.convert(codes, "f32")
    if zero:
        found = op.subtract(found, op.convert(op.constant(rng.integers(low, high, one), element), "f32"))
    found = op.multiply(found, op.constant(rng.uniform(0.5, 1, one).astype(np.float32)))
    return op.reshape(found, op.constant([outputs, inputs] if transposed else [inputs, outputs]), False)


@pytest.mark.parametrize("rows", [0, 1, 2, 9])
@pytest.mark.parametrize("zero", [False, True])
@pytest.mark.parametrize("element", [ov.Type.u4, ov.Type.i4, ov.Type.u8, ov.Type.i8], ids=str)
def test_products_with_packed_weights(element: ov.Type, zero: bool, rows: int) -> None:
    """Full and partial panels, weights as left or right operand, and fused layers."""
    for outputs, inputs, group, transposed in ((64, 64, 64, True), (130, 35, 7, True), (192, 320, 32, False)):
        x = op.parameter([-1, inputs], np.float32)
        y = op.matmul(x, packed(element, outputs, inputs, group, zero, transposed), False, transposed)
        y = op.multiply(y, op.constant(numbers(outputs, seed=1)))
        y = op.swish(
            op.add(
                op.add(y, op.constant(numbers(outputs, seed=2))),
                op.matmul(x, op.constant(numbers(inputs, outputs)), False, False),
            )
        )
        compiled = check(ov.Model([op.result(y)], [x]), numbers(rows, inputs))
        held = [
            a.shape
            for a in compiled._plan.slots
            if a is not None and a.size == outputs * inputs and any(a.strides)
        ]
        assert len(held) <= 1  # the plain matrix, not the packed one


def test_rows_of_a_packed_table() -> None:
    table = packed(ov.Type.u4, 70, 64, 32, True, True)
    places = op.parameter([-1, -1], np.int64)
    model = ov.Model([op.result(op.gather(table, places, op.constant(0)))], [places])
    check(model, np.array([[0, 69, -1], [-70, 3, 3]]))
    check(model, np.array([[0, 70, -71]]))
    check(model, np.zeros((0, 3), np.int64))


@pytest.mark.oracle
@pytest.mark.long
@pytest.mark.parametrize("target", OTHERS)
def test_every_kind_of_vectors(target: str) -> None:
    """Run some of the tests above for other vector registers."""
    chosen = "(softmax and 130) or (attention and 130) or (packed_weights and True) or (root_mean and divide)"
    run_again(__file__, target, "-k", f"({chosen}) and not every")


def test_numbers_that_lie_apart() -> None:
    """Every other element of a row is 1-D, but not contiguous."""
    net = Net()
    net.result(net.op("SoftMax", net.parameter("x", "6,2,3"), version="opset8", axis=-1))
    apart = np.random.default_rng(0).standard_normal((6, 2, 6)).astype(np.float32)[:, :, ::2]
    model = ir_runtime.read_model(net.xml(), net.weights)
    found, wanted = (
        ir_runtime.compile_model(model, backend=name)([apart])[0] for name in ("native", "reference")
    )
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


@pytest.mark.parametrize("odd", [None, 0, 1e-20, np.nan, np.inf], ids=str)
@pytest.mark.parametrize("shape", [(1, 1), (2, 3, 7), (5, 65), (0, 5)], ids=str)
def test_rows_of_length_one(shape: tuple[int, ...], odd: float | None) -> None:
    data = numbers(*shape)
    if odd is not None and data.size:
        data[0] = odd
    x = op.parameter([-1] * len(shape), np.float32)
    norm = op.reduce_l2(x, op.constant(np.array([-1])), True)
    made = op.divide(x, op.maximum(norm, op.constant(np.float32(1e-12))))
    compiled = check(ov.Model([op.result(made)], [x]), data)
    assert [len(step.layers) for step in compiled._plan.steps] == [3]
