"""Tensors that native kernels load and store in bf16, without separate rounding passes.

Each kernel must give the bits that it gives for equal values in f32, rounded if it stores bf16. The file is rerun for each
vector instruction set.
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
from harness.oracle import Ours
from harness.other_vectors import AGAIN, same_with_other_vectors
from hypothesis import given, settings
from hypothesis import strategies as st

import ir_runtime as ir
from ir_runtime import debug
from ir_runtime.backends import KernelTemplate, Precision, load
from ir_runtime.backends.core.precision import within
from ir_runtime.backends.core.threads import at_most
from ir_runtime.backends.native import backend
from ir_runtime.backends.native.codegen.vectors import LANES
from ir_runtime.backends.native.kernels import _gemm_kernel
from ir_runtime.backends.native.threading import parallel
from ir_runtime.compiler.compile import compile_plan
from ir_runtime.ir.element import ElementType
from ir_runtime.ir.shape import PartialShape
from ir_runtime.ir.tensor import Array, Value
from ir_runtime.ops import Op

quick = settings(max_examples=8 if AGAIN in os.environ else 30, deadline=None)
BF16 = ml_dtypes.bfloat16
SAME = {"strides": "1,1", "dilations": "1,1", "pads_begin": "1,1", "pads_end": "1,1"}
NO_PADS = SAME | {"pads_begin": "0,0", "pads_end": "0,0"}


@pytest.fixture(
    params=[2] if AGAIN in os.environ else [1, 2],
    ids=lambda n: f"threads={n}",
    autouse=True,
    scope="module",
)
def shared(request: pytest.FixtureRequest) -> Iterator[None]:
    """Run every test with one thread, and with two threads even for the smallest layers, as if bf16 were always faster."""
    with pytest.MonkeyPatch.context() as patch, at_most(request.param):
        patch.setattr(
            _gemm_kernel, "BF16_PRODUCTS", replace(_gemm_kernel.BF16_PRODUCTS, is_faster=True, min_work=0)
        )
        patch.setattr(parallel, "MIN_PARALLEL_WORK", 0)
        yield


def numbers(*shape: int, seed: int = 0) -> Array:
    """Return bf16 values as f32, in channels-last memory."""
    found = np.random.default_rng([seed, *shape]).standard_normal(shape).astype(BF16).astype(np.float32)
    return np.moveaxis(np.ascontiguousarray(np.moveaxis(found, 1, -1)), -1, 1) if found.ndim > 3 else found


def unknown(x: Array) -> Value:
    return Value.unknown(ElementType.f32, PartialShape(x.shape))


def offered(op: Op, *inputs: Value) -> KernelTemplate:
    with within(Precision("bf16")):
        kernel = backend.kernel(op, inputs)
    assert isinstance(kernel, KernelTemplate)
    return kernel


def run(kernel: Any, *arrays: Array) -> Array:
    with backend.around():
        found: Array = kernel(*arrays)
    return found


def same(found: Array, wanted: Array) -> None:
    """Require equal bits, rounded if the first array is bf16."""
    rounded = wanted.astype(found.dtype)
    assert found.shape == wanted.shape
    np.testing.assert_array_equal(found.astype(np.float32), rounded.astype(np.float32))


def fused(kernel: KernelTemplate, out: Array, names: Sequence[str]) -> tuple[KernelTemplate, list[Array]]:
    """Return a kernel with fused layers, and their other operands."""
    row = (1, -1) + (1,) * (out.ndim - 2) if out.ndim > 2 else (1, -1)
    made: dict[str, tuple[Op, Array | None, bool]] = {
        "bias": (layer("Add-1"), numbers(out.shape[1], seed=1).reshape(row), True),
        "scale": (layer("Multiply-1"), numbers(out.shape[1], seed=2).reshape(row), True),
        "sum": (layer("Add-1"), numbers(*out.shape, seed=4), False),
        "relu": (layer("ReLU-1"), None, True),
        "swish": (layer("Swish-4"), None, True),
    }
    extras = []
    for op, other, constant in (made[name] for name in names):
        inputs = [unknown(out)]
        if other is not None:
            inputs.append(Value.constant(other) if constant else unknown(other))
            extras.append(other)
        following = kernel.fuse(op, inputs, 0)
        assert isinstance(following, KernelTemplate)
        kernel = following
    return kernel, extras


def agree(op: Op, x: Array, w: Array, names: Sequence[str], residual: bool = True) -> None:
    """Require the same result for bf16 and f32 data and residuals, and rounded stores."""
    kernel = offered(op, unknown(x), Value.constant(w))
    out = run(kernel.prepare(), x, w)
    kernel = offered(op, unknown(x), Value.constant(w))
    kernel, extras = fused(kernel, out, names)
    wanted = run(kernel.prepare(), x, w, *extras)
    narrow = [
        extra.astype(BF16) if name == "sum" else extra
        for name, extra in zip(_read(names), extras, strict=True)
    ]
    assert kernel.reads_bf16(0)
    assert not kernel.reads_bf16(1)
    same(run(kernel.prepare(), x.astype(BF16), w, *extras), wanted)
    storing: Any = kernel.storing_bf16()
    if names[:1] == ("swish",) and "sum" in names:
        assert storing is None  # the sum is not the first layer
        return
    if "sum" in names and residual:
        assert kernel.reads_bf16(2 + _read(names).index("sum"))
        same(run(kernel.prepare(), x.astype(BF16), w, *narrow), wanted)
        same(run(storing.prepare(), x.astype(BF16), w, *narrow), wanted)
    found = run(storing.prepare(), x, w, *extras)
    assert found.dtype == BF16
    same(found, wanted)


def _read(names: Sequence[str]) -> list[str]:
    return [name for name in names if name in ("bias", "scale", "sum")]


CHAINS: list[tuple[str, ...]] = [
    (), ("bias",), ("scale", "bias", "relu"), ("bias", "sum", "relu"), ("bias", "swish"), ("sum", "swish"), ("swish", "sum"),
    ("relu", "scale", "swish"),
]  # fmt: skip
chains = st.sampled_from(CHAINS)
COLUMNS = [1, 2, LANES - 1, LANES, LANES + 1, 4 * LANES, 4 * LANES + 1, 7 * LANES + 3]


@quick
@given(st.data(), chains)
def test_pixels(data: st.DataObject, names: Sequence[str]) -> None:
    """1x1 convolutions, with as many pixels as a tile has rows, and more."""
    tall, wide, channels = (
        data.draw(st.integers(1, 9)),
        data.draw(st.integers(1, 13)),
        data.draw(st.integers(1, 20)),
    )
    outputs = data.draw(st.sampled_from(COLUMNS))
    agree(
        layer("Convolution-1", **NO_PADS),
        numbers(1, 2 * channels, tall, wide),
        numbers(outputs, 2 * channels, 1, 1),
        names,
    )


@quick
@given(st.data(), chains)
def test_windows(data: st.DataObject, names: Sequence[str]) -> None:
    channels, outputs = 2 * data.draw(st.integers(3, 9)), data.draw(st.sampled_from(COLUMNS[3:]))
    how = data.draw(
        st.sampled_from([SAME, NO_PADS, SAME | {"strides": "2,2"}, NO_PADS | {"dilations": "2,2"}])
    )
    agree(layer("Convolution-1", **how), numbers(2, channels, 7, 8), numbers(outputs, channels, 3, 3), names)


@quick
@given(st.data(), chains)
def test_pictures(data: st.DataObject, names: Sequence[str]) -> None:
    """Images of three or four channels in either layout, narrower and wider than a vector, with and without padding."""
    kernel, stride = data.draw(st.integers(1, 7)), data.draw(st.integers(1, 3))
    how = SAME | {"strides": f"{stride},{stride}", "pads_begin": "1,2", "dilations": f"{stride},1"}
    height, width = data.draw(st.integers(19, 24)), data.draw(st.integers(7, 3 * LANES + 8))
    x = numbers(data.draw(st.integers(1, 2)), data.draw(st.integers(3, 4)), height, width)
    w = numbers(data.draw(st.sampled_from(COLUMNS[3:])), x.shape[1], kernel, kernel)
    op = layer("Convolution-1", **how)
    wanted = np.asarray(op.evaluate(x, w))
    kernel_of, extras = fused(offered(op, unknown(x), Value.constant(w)), wanted, names)
    assert not kernel_of.reads_bf16(0)
    bound = 2e-5 * float(np.abs(wanted).max())
    for data_of in (x, np.ascontiguousarray(x)):
        bare = run(offered(op, unknown(x), Value.constant(w)).prepare(), data_of, w)
        np.testing.assert_allclose(bare, wanted, rtol=2e-5, atol=bound)
    exact = run(kernel_of.prepare(), x, w, *extras)
    if (storing := kernel_of.storing_bf16()) is not None:
        same(run(storing.prepare(), x, w, *extras), exact)


@quick
@given(chains, st.integers(1, 3))
def test_groups(names: Sequence[str], pairs: int) -> None:
    w = numbers(2, LANES + 3, 2 * pairs, 3, 3)
    agree(layer("GroupConvolution-1", **SAME), numbers(1, 4 * pairs, 7, 8), w, names)


@quick
@given(st.data(), chains)
def test_matrix_product(data: st.DataObject, names: Sequence[str]) -> None:
    rows, depth = data.draw(st.integers(1, 100)), 2 * data.draw(st.integers(1, 35))
    agree(layer("MatMul-1"), numbers(rows, depth), numbers(depth, data.draw(st.sampled_from(COLUMNS))), names)


def test_more_rows_than_a_block_with_post_ops_has() -> None:
    w = numbers(5 * LANES + 3, 8, 1, 1)
    agree(layer("Convolution-1", **NO_PADS), numbers(1, 8, 40, 31), w, ("bias", "sum", "swish"))


@quick
@given(st.data(), chains)
def test_depthwise(data: st.DataObject, names: Sequence[str]) -> None:
    """Kernels of fixed and of variable width; rows of several blocks, and of few columns."""
    channels = data.draw(st.sampled_from([LANES, LANES + 2, 3 * LANES, 9 * LANES + 4]))
    wide, stride = data.draw(st.sampled_from([3, 5, 7, 4])), data.draw(st.integers(1, 2))
    height, width = data.draw(st.integers(7, 20)), data.draw(st.sampled_from([7, 9, 12, 30]))
    dilation = data.draw(st.integers(1, min((min(height, width) + 1) // (wide - 1), 3)))
    how = SAME | {"strides": f"{stride},{stride}", "dilations": f"{dilation},{dilation}"}
    x, w = numbers(2, channels, height, width), numbers(channels, 1, 1, wide, wide)
    op = layer("GroupConvolution-1", **how)
    if "sum" in names:
        out = np.empty(np.asarray(op.evaluate(x, w)).shape, np.float32)
        kernel, _ = fused(offered(op, unknown(x), Value.constant(w)), out, names)
        assert kernel.storing_bf16() is None
        assert not any(map(kernel.reads_bf16, range(1, 5)))
    else:
        agree(op, x, w, names)


def test_element_wise_layers() -> None:
    """The data may be bf16 if the result is; the other operand is f32."""
    for shape, gate in [
        ((1, 40, 12, 13), (1, 40, 1, 1)),
        ((2, 3, 50, 70), (2, 3, 50, 70)),
        ((2, 33, 11, 9), (1, 1, 1, 9)),
    ]:
        x, other = numbers(*shape), numbers(*gate, seed=1)
        kernel, _ = fused(offered(layer("Multiply-1"), unknown(x), unknown(other)), x, ("swish",))
        wanted = run(kernel, x, other)
        assert not kernel.reads_bf16(0)
        storing: Any = kernel.storing_bf16()
        assert (storing.reads_bf16(0), storing.reads_bf16(1)) == (True, False)
        for data in (x, x.astype(BF16), np.ascontiguousarray(x.astype(BF16))):
            found = run(storing, data, other)
            assert found.dtype == BF16
            same(found, wanted)


@pytest.mark.parametrize(
    "names",
    [("scale", "bias"), ("scale", "bias", "relu"), ("scale", "bias", "relu", "swish"), ("bias", "scale")],
)
@pytest.mark.parametrize("channels", [3, LANES, 5 * LANES + 2])
def test_scale_and_bias_of_channels(names: Sequence[str], channels: int) -> None:
    """Three such layers are computed in one pass."""
    x = numbers(2, channels, 33, 40)
    first = {"scale": "Multiply-1", "bias": "Add-1"}[names[0]]
    row = numbers(1, channels, 1, 1, seed=9)
    kernel, extras = fused(offered(layer(first), unknown(x), Value.constant(row)), x, names[1:])
    storing: Any = kernel.storing_bf16()
    same(run(storing, x.astype(BF16), row, *extras), run(kernel, x, row, *extras))


def test_an_element_wise_layer_whose_operand_is_larger() -> None:
    """The shape of the operand is known only at run time."""
    x, other = numbers(1, 40, 1, 64), numbers(1, 40, 12, 64)
    maps = Value.unknown(ElementType.f32, PartialShape([-1, 40, -1, 64]))
    storing: Any = offered(layer("Add-1"), maps, maps).storing_bf16()
    assert (storing.reads_bf16(0), storing.reads_bf16(1)) == (True, False)
    same(run(storing, x.astype(BF16), other), x + other)


@pytest.mark.parametrize("keep", ["true", "false"])
@pytest.mark.parametrize("channels", [3, LANES, 2 * LANES + 1, 4 * LANES + 2])
def test_means(channels: int, keep: str) -> None:
    x, axes = numbers(2, channels, 7, 9), np.array([2, 3])
    kernel = offered(layer("ReduceMean-1", keep_dims=keep), unknown(x), Value.constant(axes))
    wanted = run(kernel.prepare(), x, axes)
    assert (kernel.reads_bf16(0), kernel.storing_bf16()) == (True, None)
    same(run(kernel.prepare(), x.astype(BF16), axes), wanted)


def test_concatenated_channels() -> None:
    parts = [numbers(2, channels, 9, 11, seed=channels) for channels in (LANES, 5, 33)]
    kernel = offered(layer("Concat-1", axis="1"), *map(unknown, parts))
    wanted = run(kernel.prepare(), *parts)
    assert not kernel.reads_bf16(0)
    storing: Any = kernel.storing_bf16()
    assert storing.reads_bf16(2)
    given = [parts[0].astype(BF16), parts[1], parts[2].astype(BF16)]
    for arrays in (given, [np.ascontiguousarray(array) for array in given]):
        found = run(storing.prepare(), *arrays)
        assert found.dtype == BF16
        same(found, wanted)


POOLS = {
    "MaxPool-1": {"kernel": "3,3", "strides": "2,2", "pads_begin": "1,1", "pads_end": "1,1"},
    "MaxPool-8": {
        "kernel": "2,3",
        "strides": "1,1",
        "pads_begin": "0,0",
        "pads_end": "1,1",
        "dilations": "1,1",
    },
    "AvgPool-1": {
        "kernel": "2,2",
        "strides": "2,2",
        "pads_begin": "0,0",
        "pads_end": "0,0",
        "exclude-pad": "true",
    },
}


@pytest.mark.parametrize("name", POOLS)
@pytest.mark.parametrize("channels", [5, LANES, 2 * LANES + 1])
@pytest.mark.parametrize("lengths", [(9, 17), (6, 4)])
def test_pooling(name: str, channels: int, lengths: tuple[int, int]) -> None:
    x = numbers(2, channels, *lengths)
    with within(Precision("bf16")):
        unread = {"unread": [1]} if name == "MaxPool-8" else {}
        kernel: Any = backend.kernel(layer(name, **POOLS[name]), [unknown(x)], **unread)
    wanted, storing = run(kernel.prepare(), x), kernel.storing_bf16()
    assert (kernel.reads_bf16(0), storing.reads_bf16(0)) == (False, True)
    for data in (x, x.astype(BF16)):
        found = run(storing.prepare(), data)
        found, exact = (array[0] if isinstance(array, tuple) else array for array in (found, wanted))
        assert found.dtype == BF16
        same(found, exact)


def test_averages_of_windows_that_reach_into_padding_stay_f32() -> None:
    how = POOLS["AvgPool-1"] | {"pads_begin": "1,1"}
    assert offered(layer("AvgPool-1", **how), unknown(numbers(2, 5, 8, 8))).storing_bf16() is None


def residual_network() -> Net:
    """A residual block: pointwise, depthwise and pointwise convolutions, the sum, and its mean."""
    net, deep = Net(), 2 * LANES

    def convolve(x: Any, w: Array, out: str, name: str, type: str = "Convolution", **how: str) -> Any:
        return net.op(type, x, net.constant(w / 4, "f32"), out=out, name=name, **how)

    x = net.parameter("x", "1,8,12,12", out="FP32 1 8 12 12")
    first = net.op(
        "ReLU",
        convolve(x, numbers(16, 8, 1, 1), "FP32 1 16 12 12", "first", **NO_PADS),
        out="FP32 1 16 12 12",
    )
    wide = net.op(
        "ReLU",
        convolve(first, numbers(deep, 16, 1, 1), f"FP32 1 {deep} 12 12", "wide", **NO_PADS),
        out=f"FP32 1 {deep} 12 12",
    )
    each = convolve(
        wide, numbers(deep, 1, 1, 3, 3), f"FP32 1 {deep} 12 12", "each", "GroupConvolution", **SAME
    )
    each = net.op("Sigmoid", each, out=f"FP32 1 {deep} 12 12")
    back = convolve(each, numbers(16, deep, 1, 1), "FP32 1 16 12 12", "back", **NO_PADS)
    total = net.op("Add", back, first, out="FP32 1 16 12 12")
    total = net.op("ReLU", total, out="FP32 1 16 12 12", name="total")
    end = convolve(total, numbers(40, 16, 1, 1), "FP32 1 40 12 12", "end", **NO_PADS)
    net.result(
        net.op("ReduceMean", end, net.constant(np.array([2, 3]), "i64"), out="FP32 1 40", keep_dims="false")
    )
    return net


class Types:
    """An observer that records the result type of each step."""

    def __init__(self) -> None:
        self.found: dict[str, str] = {}

    def before(self, step: Any, inputs: Sequence[Array]) -> None:
        pass

    def after(self, step: Any, outputs: Sequence[Array], seconds: float) -> None:
        self.found[step.layers[0].name] = outputs[0].dtype.name


def types_of(net: Net, x: Array, precision: str) -> tuple[list[Array], dict[str, str]]:
    """Return the results of a model, and the result type of each step by the name of its first layer."""
    ours = Ours(net.xml(), net.weights)
    chain = load("native")[1]
    plan = compile_plan(ours.graph, ours.values, ours.outputs, chain, precision=Precision(precision))
    found = plan.run([x], observers=[types := Types()])
    return found, types.found


def test_tensors_between_products_are_bf16() -> None:
    net, x = residual_network(), numbers(1, 8, 12, 12)
    names = ["first", "wide", "each", "back", "end"]
    (found,), types = types_of(net, x, "bf16")
    assert [types[name] for name in names] == ["bfloat16"] * 5
    assert found.dtype == np.float32
    (exact,), types = types_of(net, x, "f32")
    assert [types[name] for name in names] == ["float32"] * 5
    assert 0 < np.abs(found - exact).max() < 0.03 * np.abs(exact).max()
    assert debug.compare(ir.read_model(net.xml(), net.weights), [x], "native:bf16").explained


def test_what_a_model_gives_stays_f32() -> None:
    net = Net()
    x = net.parameter("x", "1,8,12,12", out="FP32 1 8 12 12")
    y = net.op(
        "Convolution",
        x,
        net.constant(numbers(16, 8, 1, 1), "f32"),
        out="FP32 1 16 12 12",
        name="first",
        **NO_PADS,
    )
    z = net.op(
        "Convolution",
        y,
        net.constant(numbers(16, 16, 1, 1), "f32"),
        out="FP32 1 16 12 12",
        name="last",
        **NO_PADS,
    )
    net.result(y)
    net.result(z)
    found, types = types_of(net, numbers(1, 8, 12, 12), "bf16")
    assert set(types.values()) == {"float32"}
    assert [array.dtype for array in found] == [np.float32] * 2


test_the_same_with_other_vectors = same_with_other_vectors(__file__)
