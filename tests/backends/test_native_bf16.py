"""bf16 products of the native backend against emulations that round the same operands and multiply in f64.

The file is rerun for each vector instruction set; only some processors have bf16 instructions.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from harness.layers import layer
from harness.nets import Net
from harness.oracle import rounded_to_bf16 as rounded
from harness.other_vectors import AGAIN, same_with_other_vectors
from hypothesis import given, settings
from hypothesis import strategies as st

import ir_runtime as ir
from ir_runtime import debug
from ir_runtime.backends import KernelTemplate, Precision
from ir_runtime.backends.core.precision import within
from ir_runtime.backends.core.threads import at_most
from ir_runtime.backends.native import backend
from ir_runtime.backends.native.codegen.bf16 import IS_FASTER
from ir_runtime.backends.native.codegen.vectors import LANES
from ir_runtime.backends.native.kernels import _gemm_kernel
from ir_runtime.backends.native.kernels._gemm_kernel import BF16_PRODUCTS, F32_PRODUCTS, Bf16Rows
from ir_runtime.backends.native.threading import parallel
from ir_runtime.ir.element import ElementType
from ir_runtime.ir.shape import PartialShape
from ir_runtime.ir.tensor import Array, Value
from ir_runtime.ops import Op

quick = settings(max_examples=8 if AGAIN in os.environ else 30, deadline=None)
BF16 = Precision("bf16")


@pytest.fixture(
    params=[2] if AGAIN in os.environ else [1, 2],
    ids=lambda n: f"threads={n}",
    autouse=True,
    scope="module",
)
def shared(request: pytest.FixtureRequest) -> Iterator[None]:
    """Run every test with one thread, and with two threads even for the smallest layers."""
    with pytest.MonkeyPatch.context() as patch, at_most(request.param):
        patch.setattr(_gemm_kernel, "BF16_PRODUCTS", replace(_gemm_kernel.BF16_PRODUCTS, min_work=0))
        patch.setattr(parallel, "MIN_PARALLEL_WORK", 0)
        patch.setattr(_gemm_kernel, "CHUNK", 64)
        yield


def numbers(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(np.float32)


def unknown(x: Array) -> Value:
    return Value.unknown(ElementType.f32, PartialShape(x.shape))


def offered(op: Op, x: Array, w: Array) -> Any:
    with within(BF16):
        kernel = backend.kernel(op, [unknown(x), Value.constant(w)])
    assert kernel is not None
    return kernel


def run(kernel: Any, *arrays: Array) -> Array:
    with backend.around():
        found: Array = kernel(*arrays)
    return found


@pytest.mark.parametrize("depth", [*range(1, 10), 31, 64, 130])
def test_products_of_all_small_sizes(depth: int) -> None:
    """For 1 to 15 rows and 1 to 65 columns: exact products of rounded operands, f32 sums."""
    x, all_columns = numbers(15, depth), numbers(depth, 65, seed=1)
    left, right = (rounded(array).astype(np.float64) for array in (x, all_columns))
    wanted, size = left @ right, np.abs(left) @ np.abs(right)
    bound = (depth + 1) * 2.0**-24 * size
    for columns in range(1, 66, 3 if AGAIN in os.environ else 1):
        kernel = offered(layer("MatMul-1"), x, w := all_columns[:, :columns]).prepare()
        assert kernel.name == "gemm_bf16"
        for rows in range(1, 16):
            found = run(kernel, x[:rows], w)
            assert found.shape == (rows, columns)
            assert (np.abs(found - wanted[:rows, :columns]) <= bound[:rows, :columns]).all(), (rows, columns)


def follow(result: Array, names: Sequence[str], axis: int) -> list[tuple[Op, Array | None, bool]]:
    """Return post-ops by name, each with its other operand and whether that is constant. Scales do not change the rounding."""
    along = [1] * result.ndim
    along[axis] = result.shape[axis]
    powers = np.float32(2) ** np.random.default_rng(2).integers(-2, 3, along).astype(np.float32)
    made: dict[str, tuple[Op, Array | None, bool]] = {
        "bias": (layer("Add-1"), numbers(*along, seed=1), True),
        "scale": (layer("Multiply-1"), powers, True),
        "sum": (layer("Add-1"), numbers(*result.shape, seed=4), False),
        "gate": (layer("Multiply-1"), numbers(*result.shape, seed=5), False),
        "relu": (layer("ReLU-1"), None, True),
        "gelu": (layer("Gelu-7"), None, True),
    }
    return [made[name] for name in names]


def agree(op: Op, x: Array, w: Array, names: Sequence[str] = (), axis: int = -1) -> None:
    """Compare a kernel and its fused layers with the reference on rounded operands."""
    kernel, extras = offered(op, x, w), []
    with np.errstate(all="ignore"):
        wanted = np.asarray(op.evaluate(rounded(x), rounded(w)))
        size = float(np.abs(wanted[np.isfinite(wanted)]).max(initial=0))
        for after, other, constant in follow(wanted, names, axis):
            inputs = [unknown(wanted)]
            if other is not None:
                inputs.append(Value.constant(other) if constant else unknown(other))
                extras.append(other)
            assert isinstance(kernel, KernelTemplate)
            kernel = kernel.fuse(after, inputs, 0)
            reference = after.evaluator([value.element for value in inputs])
            wanted = np.asarray(reference(wanted, *extras[-1:] if other is not None else ()))
            size = max(size, float(np.abs(wanted[np.isfinite(wanted)]).max(initial=0)))
    found = run(kernel.prepare(), x, w, *extras)
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=2e-5 * size)


CHAINS = [
    (), ("bias",), ("scale", "bias", "relu"), ("bias", "sum", "relu"), ("scale", "gelu"), ("bias", "relu", "sum", "gate"),
]  # fmt: skip
chains = st.sampled_from(CHAINS)
EDGES = [1, 2, LANES - 1, LANES, LANES + 1, 4 * LANES, 4 * LANES + 1, 7 * LANES + 3]


@quick
@given(st.data(), chains)
def test_matrix_product(data: st.DataObject, names: Sequence[str]) -> None:
    rows, depth = data.draw(st.integers(1, 100)), data.draw(st.integers(1, 70))
    columns = data.draw(st.sampled_from(EDGES))
    ta, tb = data.draw(st.booleans()), data.draw(st.booleans())
    op = layer("MatMul-1", transpose_a=str(ta).lower(), transpose_b=str(tb).lower())
    batch = data.draw(st.sampled_from([(), (1,), (2, 3)]))
    x = numbers(*batch, depth, rows) if ta else numbers(*batch, rows, depth)
    agree(op, x, numbers(columns, depth) if tb else numbers(depth, columns), names)


def text(given: Sequence[int]) -> str:
    return ",".join(map(str, given))


def windows(spatial: int, data: st.DataObject) -> dict[str, str]:
    def each(low: int, high: int) -> str:
        return text(data.draw(st.lists(st.integers(low, high), min_size=spatial, max_size=spatial)))

    return {
        "strides": each(1, 3),
        "pads_begin": each(0, 2),
        "pads_end": each(0, 2),
        "dilations": each(1, 2),
    }


@quick
@given(st.data(), chains)
def test_convolution(data: st.DataObject, names: Sequence[str]) -> None:
    spatial = data.draw(st.integers(1, 3))
    kernel = data.draw(st.lists(st.integers(1, 3), min_size=spatial, max_size=spatial))
    lengths = data.draw(st.lists(st.integers(6, 9), min_size=spatial, max_size=spatial))
    # Pictures of few channels are multiplied in f32 where bf16 is not faster.
    few = [1, 2] if BF16_PRODUCTS.is_faster else []
    batch, channels = data.draw(st.integers(1, 2)), data.draw(st.sampled_from([*few, 5, 6, 7, 16, 33]))
    outputs = data.draw(st.sampled_from(EDGES[3:]))
    x, w = numbers(batch, channels, *lengths), numbers(outputs, channels, *kernel)
    agree(layer("Convolution-1", **windows(spatial, data)), x, w, names, 1)


@quick
@given(st.data(), chains)
def test_groups_of_several_channels(data: st.DataObject, names: Sequence[str]) -> None:
    kernel = data.draw(st.lists(st.integers(1, 3), min_size=2, max_size=2))
    groups, channels, outputs = (data.draw(st.integers(*pair)) for pair in ((2, 4), (1, 3), (2, 40)))
    x, w = numbers(2, 2 * groups * channels, 7, 8), numbers(groups, outputs, 2 * channels, *kernel)
    agree(layer("GroupConvolution-1", **windows(2, data)), x, w, names, 1)


def test_groups_of_an_odd_number_of_channels_stay_f32() -> None:
    """A bf16 pair would span two groups."""
    w = numbers(2, 4, 3, 3, 3)
    how = {"strides": "1,1", "dilations": "1,1", "pads_begin": "0,0", "pads_end": "0,0"}
    kernel = offered(layer("GroupConvolution-1", **how), numbers(1, 6, 5, 5), w)
    assert kernel.prepare().name == ""


@pytest.mark.parametrize("number", [1, np.inf, np.nan])
@pytest.mark.parametrize("channels", [5, 6])
def test_taps_in_padding(channels: int, number: float) -> None:
    """Taps in the padding are skipped, unless zero times the weight is not zero."""
    x, w = numbers(1, channels, 9, 20), numbers(LANES + 3, channels, 3, 3)
    w[1, 2, 0, 1] = number
    op = layer("Convolution-1", strides="1,1", dilations="7,7", pads_begin="7,7", pads_end="7,7")
    agree(op, x, w, ("bias", "relu"), 1)


def test_numbers_that_are_not_finite_stay_where_they_are() -> None:
    x, w = numbers(20, 31), numbers(31, 50)
    x[3, 4], x[5, 5], x[11, 0] = np.nan, np.inf, -np.inf
    agree(layer("MatMul-1"), x, w, ("bias", "relu"))


@pytest.mark.parametrize("shape", [(0, 9), (2, 0, 9), (1, 9), (3, 0, 2, 9)])
def test_empty_and_single_rows(shape: tuple[int, ...]) -> None:
    agree(layer("MatMul-1"), numbers(*shape), numbers(9, 40), ("bias", "relu"))


@pytest.mark.parametrize("depth", [1, 2, LANES - 1, LANES, LANES + 1, 1000])
def test_rows_are_rounded_to_the_nearest_with_halves_to_even(depth: int) -> None:
    bits = np.random.default_rng(0).integers(0, 1 << 32, 7 * depth, np.uint32)
    bits[::3] = bits[::3] & 0xFFFF0000 | 0x8000  # as near to one as to the next
    x = bits.view(np.float32)
    x[np.abs(x) < np.finfo(np.float32).tiny] = 0  # which some processors flush to zero
    with backend.around():
        found = Bf16Rows(depth)(x).view(np.uint16).reshape(7, -1)
    with np.errstate(invalid="ignore"):  # of NaN
        wanted = x.astype(ml_dtypes.bfloat16).view(np.uint16).reshape(7, depth)
    is_nan = np.isnan(x).reshape(7, depth)
    assert (found[:, :depth][~is_nan] == wanted[~is_nan]).all()
    assert np.isnan(found[:, :depth].view(ml_dtypes.bfloat16)[is_nan].astype(np.float32)).all()
    assert not found[:, depth:].any()


def test_columns_are_rounded_after_they_are_scaled() -> None:
    x, w, scale = numbers(9, 40), numbers(40, 70), numbers(1, 70, seed=3)
    kernel = offered(layer("MatMul-1"), x, w).fuse(
        layer("Multiply-1"), [unknown(x @ w), Value.constant(scale)], 0
    )
    wanted = rounded(x).astype(np.float64) @ rounded(w * scale).astype(np.float64)
    np.testing.assert_allclose(run(kernel, x, w, scale), wanted, rtol=1e-5, atol=1e-5)


def test_without_the_precision_products_are_f32() -> None:
    x, w = numbers(9, 40), numbers(40, 70)
    kernel: Any = backend.kernel(layer("MatMul-1"), [unknown(x), Value.constant(w)])
    assert kernel.prepare().name == ""
    assert np.abs(run(kernel, x, w) - x.astype(np.float64) @ w.astype(np.float64)).max() < 1e-4


def test_small_products_stay_f32(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounding the operands would cost more than it gains; unknown row counts are estimated."""
    monkeypatch.setattr(_gemm_kernel, "BF16_PRODUCTS", BF16_PRODUCTS)
    op, w = layer("MatMul-1"), numbers(64, 64)

    def name(rows: int) -> str:
        x = Value.unknown(ElementType.f32, PartialShape([rows, 64]))
        with within(BF16):
            kernel: Any = backend.kernel(op, [x, Value.constant(w)])
        return kernel.prepare().name

    assert [name(rows) for rows in (1, 63, 64, -1)] == ["", "", "gemm_bf16", ""]
    w = numbers(64, 256)
    assert name(-1) == "gemm_bf16"


def test_winograd_stays_where_it_is_faster() -> None:
    assert F32_PRODUCTS.prefers_winograd((256, 256, 3, 3))
    assert F32_PRODUCTS.prefers_winograd((32, 16, 3, 3))
    assert BF16_PRODUCTS.prefers_winograd((256, 64, 3, 3))
    assert BF16_PRODUCTS.prefers_winograd((128, 32, 3, 3)) is not IS_FASTER
    assert BF16_PRODUCTS.prefers_winograd((512, 512, 3, 3)) is not IS_FASTER
    assert BF16_PRODUCTS.prefers_winograd((512, 64, 3, 3)) is not IS_FASTER


def network() -> ir.Model:
    """A convolution of each kind, and a product."""
    net, how = Net(), {"strides": "1,1", "dilations": "1,1"}
    x = net.parameter("x", "1,6,12,12", out="FP32 1 6 12 12")
    w = net.constant(numbers(24, 6, 3, 3) / 8, "f32")
    sides = {"pads_begin": "1,1", "pads_end": "1,1"}
    y = net.op("Convolution", x, w, out="FP32 1 24 12 12", name="windows", **how, **sides)
    y = net.op("ReLU", y, out="FP32 1 24 12 12")
    w, sides = net.constant(numbers(40, 24, 1, 1) / 5, "f32"), {"pads_begin": "0,0", "pads_end": "0,0"}
    y = net.op("Convolution", y, w, out="FP32 1 40 12 12", name="pixels", **how, **sides)
    w = net.constant(numbers(12, 33) / 4, "f32")
    net.result(net.op("MatMul", y, w, out="FP32 1 40 12 33", name="rows"))
    return ir.read_model(net.xml(), net.weights)


def test_a_model_says_what_it_runs_in() -> None:
    config = {"INFERENCE_PRECISION_HINT": "bf16", "PERF_COUNT": True}
    compiled = ir.compile_model(network(), "CPU", config, backend="native")
    assert compiled.get_property("INFERENCE_PRECISION_HINT") == ir.Type.bf16
    request = compiled.create_infer_request()
    x = numbers(1, 6, 12, 12)
    found = request.infer(x)[0]
    names = {info.node_name: info.exec_type for info in request.get_profiling_info()}
    assert [names[name] for name in ("windows", "pixels", "rows")] == ["gemm_bf16"] * 3
    exact = ir.compile_model(network(), backend="native")(x)[0]
    assert 0 < np.abs(found - exact).max() < 0.03 * np.abs(exact).max()


def test_the_mode_takes_bf16_where_that_is_faster() -> None:
    compiled = ir.compile_model(network(), "CPU", {"EXECUTION_MODE_HINT": "PERFORMANCE"}, backend="native")
    wanted = ir.Type.bf16 if IS_FASTER else ir.Type.f32
    assert compiled.get_property("INFERENCE_PRECISION_HINT") == wanted
    exact = ir.compile_model(network(), "CPU", {"EXECUTION_MODE_HINT": "ACCURACY"}, backend="native")
    assert exact.get_property("INFERENCE_PRECISION_HINT") == ir.Type.f32


def test_rounding_to_bf16_explains_a_model() -> None:
    model, x = network(), numbers(1, 6, 12, 12)
    report = debug.compare(model, [x], "native:bf16")
    assert report.ran == ("bf16",)
    assert report.explained, report
    found = ir.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "bf16"}, backend="native")(x)[0]
    assert not debug.compare(model, [x], {0: found}, precision="f32").explained


test_the_same_with_other_vectors = same_with_other_vectors(__file__)
