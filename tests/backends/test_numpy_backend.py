"""Planned NumPy against the reference: odd shapes, odd numbers, any layout, any number of threads."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from harness.layers import layer
from harness.nets import End, Net
from harness.ours import Ours
from hypothesis import given, settings
from hypothesis import strategies as st

from ir_runtime.backends import load
from ir_runtime.backends.common import activations
from ir_runtime.backends.numpy import backend
from ir_runtime.backends.numpy.kernels import _chain
from ir_runtime.backends.numpy.kernels._winograd import suits_winograd
from ir_runtime.backends.numpy.math import gemm
from ir_runtime.backends.numpy.math import panels as _panels
from ir_runtime.backends.numpy.math.panels import Panels, tiled_product
from ir_runtime.backends.numpy.threading import parallel
from ir_runtime.executor.compile import compile_plan
from ir_runtime.executor.plan import ExecutionPlan
from ir_runtime.ir.element import ElementType
from ir_runtime.ir.shape import PartialShape
from ir_runtime.ir.tensor import Array, Value
from ir_runtime.ops import Op
from ir_runtime.ops.activation.smooth import Sigmoid, Swish

SPECIAL = np.array(
    [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-30, 3e38, -3e38, 88.8, -104.0, 4.0, -1.0], np.float32
)
quick = settings(max_examples=60, deadline=None)


@pytest.fixture(params=[1, 3], ids=["1 thread", "3 threads"], autouse=True, scope="module")
def crew(request: pytest.FixtureRequest) -> Iterator[None]:
    """Every test alone and with helpers for the smallest layer."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parallel, "max_threads", request.param)
        patch.setattr(parallel, "WORTH", 0)
        yield


def numbers(*shape: int, seed: int = 0, special: bool = False) -> Array:
    rng = np.random.default_rng([seed, *shape])
    x = rng.standard_normal(shape).astype(np.float32)
    if special and x.size:
        x.reshape(-1)[rng.integers(0, x.size, 1 + x.size // 7)] = rng.choice(SPECIAL)
    return x


def unknown(x: Array, dynamic: bool = False) -> Value:
    shape = PartialShape.dynamic(x.ndim) if dynamic else PartialShape(x.shape)
    return Value.unknown(ElementType.from_dtype(x.dtype), shape)


def layouts(x: Array) -> list[Array]:
    """The same numbers, stored in different ways."""
    found = [x]
    if x.ndim > 2:
        found.append(np.moveaxis(np.ascontiguousarray(np.moveaxis(x, 1, -1)), -1, 1))
    if x.ndim:
        found.append(np.repeat(x, 2, axis=-1)[..., ::2])
    return found


def same(found: Any, wanted: Any, rtol: float = 2e-5) -> None:
    assert isinstance(found, np.ndarray)
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    finite = np.abs(wanted[np.isfinite(wanted)])
    np.testing.assert_allclose(found, wanted, rtol=rtol, atol=rtol * finite.max(initial=0.0))


def agree(op: Op, x: Array, *constants: Array, dynamic: bool = False, unread: tuple[int, ...] = ()) -> None:
    """The kernel for constants on the right gives what the reference gives, however ``x`` is stored."""
    kernel = backend.kernel(op, [unknown(x, dynamic), *map(Value.constant, constants)], unread)
    assert kernel is not None
    for stored in layouts(x):
        stored.setflags(write=False)
        with np.errstate(all="ignore"), backend.around():
            wanted = op.evaluate(stored, *constants)
            found, again = kernel(stored, *constants), kernel(stored, *constants)
        if isinstance(wanted, tuple):
            (found, *_), (again, *_), (wanted, *_) = found, again, wanted
        same(found, wanted)
        np.testing.assert_array_equal(found, again)


def text(numbers: Any) -> str:
    return ",".join(map(str, numbers))


def window(spatial: int, draw: Any) -> dict[str, str]:
    each = st.lists(st.integers(1, 3), min_size=spatial, max_size=spatial)
    pad = st.lists(st.integers(0, 2), min_size=spatial, max_size=spatial)
    return {
        "strides": text(draw(each)),
        "pads_begin": text(draw(pad)),
        "pads_end": text(draw(pad)),
        "auto_pad": draw(st.sampled_from(["explicit", "explicit", "same_upper", "same_lower", "valid"])),
    }


@quick
@given(st.data(), st.booleans())
def test_convolution(data: st.DataObject, dynamic: bool) -> None:
    spatial = data.draw(st.integers(1, 3))
    kernel = data.draw(st.lists(st.integers(1, 3), min_size=spatial, max_size=spatial))
    lengths = data.draw(st.lists(st.integers(7, 9), min_size=spatial, max_size=spatial))
    batch, channels, outputs = (data.draw(st.integers(1, n)) for n in (2, 6, 70))
    dilations = text(data.draw(st.lists(st.integers(1, 2), min_size=spatial, max_size=spatial)))
    op = layer("Convolution-1", **window(spatial, data.draw), dilations=dilations)
    x, w = numbers(batch, channels, *lengths), numbers(outputs, channels, *kernel)
    agree(op, x, w, dynamic=dynamic)


@quick
@given(st.data(), st.booleans())
def test_group_convolution(data: st.DataObject, dynamic: bool) -> None:
    spatial = data.draw(st.integers(1, 3))
    kernel = data.draw(st.lists(st.integers(1, 3), min_size=spatial, max_size=spatial))
    lengths = data.draw(st.lists(st.integers(7, 9), min_size=spatial, max_size=spatial))
    batch, groups, channels, outputs = (data.draw(st.integers(1, n)) for n in (2, 5, 3, 3))
    dilations = text(data.draw(st.lists(st.integers(1, 2), min_size=spatial, max_size=spatial)))
    op = layer("GroupConvolution-1", **window(spatial, data.draw), dilations=dilations)
    x, w = numbers(batch, groups * channels, *lengths), numbers(groups, outputs, channels, *kernel)
    agree(op, x, w, dynamic=dynamic)


@quick
@given(st.data(), st.booleans())
def test_transposed_convolution(data: st.DataObject, dynamic: bool) -> None:
    spatial = data.draw(st.integers(1, 3))
    kernel = data.draw(st.lists(st.integers(1, 3), min_size=spatial, max_size=spatial))
    lengths = data.draw(st.lists(st.integers(5, 7), min_size=spatial, max_size=spatial))
    batch, channels, outputs = (data.draw(st.integers(lo, hi)) for lo, hi in ((0, 2), (1, 6), (1, 40)))
    dilations = text(data.draw(st.lists(st.integers(1, 2), min_size=spatial, max_size=spatial)))
    wanted = data.draw(st.lists(st.integers(4, 20), min_size=spatial, max_size=spatial))
    sized = [np.array(wanted, np.int64)] if data.draw(st.booleans()) else []
    op = layer("ConvolutionBackpropData-1", **window(spatial, data.draw), dilations=dilations)
    agree(
        op, numbers(batch, channels, *lengths), numbers(channels, outputs, *kernel), *sized, dynamic=dynamic
    )


@pytest.mark.parametrize("slope", [0.25, 1.0, 3.0])
@pytest.mark.parametrize("shape", [(1, 5, 7, 3), (0, 4), (70000,)])
def test_prelu(slope: float, shape: tuple[int, ...]) -> None:
    agree(layer("PReLU-1"), numbers(*shape, special=True), np.array([slope], np.float32))


@pytest.mark.parametrize("name", ["Add-1", "Subtract-1", "Multiply-1", "Maximum-1"])
@pytest.mark.parametrize("shape", [(1, 40, 9, 11), (2, 33, 70), (1, 7, 400), (3, 0, 5, 9)])
@pytest.mark.parametrize("axis", [1, -1])
def test_a_constant_for_each_channel(name: str, shape: tuple[int, ...], axis: int) -> None:
    lengths = [1] * len(shape)
    lengths[axis] = shape[axis]
    agree(layer(name), numbers(*shape, special=True), numbers(*lengths, seed=1))


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize(
    ("batch", "time", "inputs", "hidden"), [(1, 5, 3, 4), (2, 7, 9, 16), (5, 1, 2, 24), (0, 3, 2, 8)]
)
@pytest.mark.parametrize("shorter", [0, 1])
def test_lstm(direction: str, batch: int, time: int, inputs: int, hidden: int, shorter: int) -> None:
    passes = 2 if direction == "bidirectional" else 1
    op = layer("LSTMSequence-5", hidden_size=str(hidden), direction=direction)
    states = [numbers(batch, passes, hidden, seed=seed) for seed in (1, 2)]
    lengths = np.full(batch, time, np.int64)
    lengths[:1] -= shorter
    weights = [numbers(passes, 4 * hidden, n, seed=n) for n in (inputs, hidden)]
    biases = numbers(passes, 4 * hidden)
    arrays = [numbers(batch, time, inputs), *states, lengths, *weights, biases]
    values = [*map(unknown, arrays[:4]), *map(Value.constant, arrays[4:])]
    kernel = backend.kernel(op, values)
    assert kernel is not None
    for array in arrays:
        array.setflags(write=False)
    for found, wanted in zip(kernel(*arrays), op.evaluate(*arrays), strict=True):
        same(found, wanted)


@quick
@given(st.data())
def test_depthwise_convolution(data: st.DataObject) -> None:
    batch, channels, height, width = (data.draw(st.integers(1, n)) for n in (3, 40, 30, 30))
    size = data.draw(st.sampled_from([1, 3, 5]))
    how = window(2, data.draw) | {"auto_pad": "same_upper"}
    op = layer("GroupConvolution-1", **how, dilations=text(data.draw(st.tuples(*[st.integers(1, 2)] * 2))))
    agree(op, numbers(batch, channels, height, width), numbers(channels, 1, 1, size, size))


PLAIN = {"strides": "1,1", "pads_begin": "1,1", "pads_end": "1,1", "dilations": "1,1"}


@pytest.mark.parametrize(
    ("op", "x", "w"),
    [
        ("Convolution-1", (0, 3, 6, 6), (4, 3, 3, 3)),
        ("Convolution-1", (0, 3, 6, 6), (4, 3, 1, 1)),
        ("GroupConvolution-1", (0, 3, 6, 6), (3, 1, 1, 3, 3)),
        ("GroupConvolution-1", (0, 4, 6, 6), (2, 2, 2, 3, 3)),
        ("Convolution-1", (2, 130, 40, 3), (9, 130, 3, 3)),
        ("Convolution-1", (1, 40, 5, 5), (300, 40, 3, 3)),
    ],
)
def test_convolutions_of_nothing_and_of_much(op: str, x: tuple[int, ...], w: tuple[int, ...]) -> None:
    agree(layer(op, **PLAIN), numbers(*x), numbers(*w))


def test_nan_and_infinity_reach_the_windows_they_are_in() -> None:
    x = numbers(1, 3, 9, 9)
    x[0, 1, 4, 4], x[0, 2, 0, 0] = np.nan, np.inf
    agree(layer("Convolution-1", **PLAIN), x, numbers(8, 3, 3, 3))
    agree(layer("GroupConvolution-1", **PLAIN), x, numbers(3, 1, 1, 3, 3))


@pytest.mark.parametrize("pads", ["1,1", "0,2"])
@pytest.mark.parametrize(
    ("x", "outputs", "dynamic"),
    [
        ((1, 16, 10, 10), 16, False),
        ((2, 17, 13, 15), 33, False),
        ((1, 40, 31, 10), 65, True),
        ((2, 16, 3, 4), 16, True),
        ((0, 16, 12, 12), 16, False),
    ],
)
def test_winograd(x: tuple[int, ...], outputs: int, dynamic: bool, pads: str) -> None:
    op = layer("Convolution-1", **PLAIN | {"pads_begin": pads})
    data, filters = numbers(*x), numbers(outputs, x[1], 3, 3)
    assert suits_winograd(op, filters, (None, None) if dynamic else x[2:])
    agree(op, data, filters, dynamic=dynamic)


@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf, 3e38])
def test_what_is_not_finite_stays_in_its_windows(special: float) -> None:
    """Winograd's tiles are larger than windows."""
    x, filters = numbers(1, 16, 14, 14), numbers(16, 16, 3, 3)
    x[0, 3, 7, 7] = special
    agree(layer("Convolution-1", **PLAIN), x, filters)
    filters[5, 2, 1, 1] = special
    agree(layer("Convolution-1", **PLAIN), x, filters)


@pytest.mark.parametrize("tiled", [True, False])
@pytest.mark.parametrize("stack", [(), (3,)])
@pytest.mark.parametrize(
    ("rows", "depth", "columns"),
    [
        (1, 5, 3),
        (0, 4, 40),
        (7, 64, 31),
        (100, 700, 64),
        (130, 333, 97),
        (3, 9000, 33),
        (2, 1, 1),
        (17, 400, 1),
    ],
)
def test_products_in_tiles(rows: int, depth: int, columns: int, stack: tuple[int, ...], tiled: bool) -> None:
    x, w = numbers(*stack, rows, depth), numbers(*stack, depth, columns, seed=1)
    panels = Panels.of(w.swapaxes(-1, -2).copy().swapaxes(-1, -2), w, tiled)
    wanted = (x.astype(np.float64) @ w).astype(np.float32)
    out = np.empty_like(wanted)
    panels.multiply(x, out)
    same(out, wanted)
    out[...] = np.nan
    for panel in range(panels.count):
        panels.multiply(x, out, slice(panel, panel + 1))
    same(out, wanted)


@pytest.mark.parametrize("tiled", [True, False])
@pytest.mark.parametrize("count", [0, 5, 2000])
def test_a_small_matrix_by_many_columns(count: int, tiled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_panels, "TILED", tiled)
    matrix, columns = numbers(16, 36), numbers(36, count)
    same(tiled_product(matrix, columns), (matrix.astype(np.float64) @ columns).astype(np.float32))


@quick
@given(st.data())
def test_pooling(data: st.DataObject) -> None:
    spatial = data.draw(st.integers(1, 3))
    kernel = data.draw(st.lists(st.integers(2, 3), min_size=spatial, max_size=spatial))
    how = window(spatial, data.draw)
    how["pads_begin"] = how["pads_end"] = text([1] * spatial)
    how |= {"kernel": text(kernel), "rounding_type": data.draw(st.sampled_from(["floor", "ceil"]))}
    batch = data.draw(st.integers(0, 2))
    x = numbers(
        batch, 3, *data.draw(st.lists(st.integers(5, 8), min_size=spatial, max_size=spatial)), special=True
    )
    agree(layer("MaxPool-1", **how), x)
    agree(layer("MaxPool-8", **how), x, unread=(1,))
    agree(
        layer("AvgPool-1", **how, **{"exclude-pad": data.draw(st.sampled_from(["true", "false"]))}),
        np.abs(numbers(*x.shape)),
    )


def test_pooling_of_nan_alone() -> None:
    agree(
        layer("MaxPool-1", kernel="2,2", strides="2,2", pads_begin="0,0", pads_end="0,0"),
        np.full((1, 2, 4, 4), np.nan, np.float32),
    )


def test_pooling_with_indices_is_left_to_the_reference() -> None:
    op = layer("MaxPool-8", kernel="2,2", strides="2,2", pads_begin="0,0", pads_end="0,0")
    assert backend.kernel(op, [unknown(numbers(1, 2, 4, 4))]) is None


CURVES: dict[str, dict[str, str]] = {
    "ReLU-1": {},
    "Clamp-1": {"min": "-0.5", "max": "1.25"},
    "Sigmoid-1": {},
    "Swish-4": {},
    "HSwish-4": {},
    "HSigmoid-5": {},
    "Gelu-2": {},
    "Gelu-7": {"approximation_mode": "tanh"},
}


@pytest.mark.parametrize("name", CURVES)
@pytest.mark.parametrize("shape", [(), (0,), (12,), (3, 5, 7), (2, 3, 4, 5), (70001,)], ids=str)
def test_activation(name: str, shape: tuple[int, ...]) -> None:
    op = layer(name, **CURVES[name])
    agree(op, 3 * numbers(*shape))
    agree(op, numbers(*shape, special=True))
    agree(op, np.resize(SPECIAL, shape))


def test_gelu_is_as_near_as_f32_allows() -> None:
    x = np.linspace(-9, 9, 100001, dtype=np.float32)
    kernel = backend.kernel(layer("Gelu-7"), [unknown(x)])
    assert kernel is not None
    exact = layer("Gelu-7").evaluate(x.astype(np.float64))
    assert np.abs(kernel(x) - exact).max() < 1e-6


@pytest.mark.parametrize("name", ["Add-1", "Subtract-1", "Multiply-1"])
@pytest.mark.parametrize(
    "shape",
    [(), (1,), (5,), (1, 3, 1, 1), (3, 1, 1), (2, 3, 4, 5), (4, 1), (1, 1, 1, 1, 5), (2, 1, 1, 1)],
    ids=str,
)
def test_arithmetic(name: str, shape: tuple[int, ...]) -> None:
    op, x, c = layer(name), numbers(2, 3, 4, 5, special=True), numbers(*shape, seed=1)
    agree(op, x, c)
    left = backend.kernel(op, [Value.constant(c), unknown(x)])
    assert left is not None
    for stored in layouts(x):
        with np.errstate(all="ignore"):
            same(left(c, stored), op.evaluate(c, stored))


@pytest.mark.parametrize("transpose", ["true", "false"])
@pytest.mark.parametrize("shape", [(0, 8), (1, 8), (37, 8), (2, 3, 8), (2, 3, 4, 8)], ids=str)
@pytest.mark.parametrize("columns", [1, 5, 300])
def test_product_with_weights(shape: tuple[int, ...], columns: int, transpose: str) -> None:
    w = numbers(columns, 8) if transpose == "true" else numbers(8, columns)
    agree(layer("MatMul-1", transpose_b=transpose), numbers(*shape), w)


def test_product_with_weights_that_a_file_did_not_align() -> None:
    w = np.frombuffer(b"." + numbers(8, 5).tobytes(), np.uint8)[1:].view(np.float32).reshape(8, 5)
    agree(layer("MatMul-1"), numbers(4, 8), w)


@pytest.mark.parametrize("shape", [(3, 7), (2, 3, 33), (0, 4), (1, 2, 3, 4)], ids=str)
@pytest.mark.parametrize("mode", ["inside_sqrt", "outside_sqrt"])
@pytest.mark.parametrize("variance", ["true", "false"])
def test_layer_norm(shape: tuple[int, ...], mode: str, variance: str) -> None:
    op = layer("MVN-6", eps="1e-5", eps_mode=mode, normalize_variance=variance)
    agree(op, 3 + numbers(*shape), np.array([-1]))


@pytest.mark.parametrize("shape", [(7,), (3, 7), (2, 3, 4, 33), (0, 4), (2, 0)], ids=str)
def test_softmax(shape: tuple[int, ...]) -> None:
    agree(layer("SoftMax-8", axis="-1"), 9 * numbers(*shape))
    agree(layer("SoftMax-8", axis="-1"), numbers(*shape, special=True))


@pytest.mark.parametrize("keep", ["true", "false"])
@pytest.mark.parametrize("shape", [(2, 3, 5, 7), (1, 4, 2, 3, 2), (0, 3, 2, 2), (1, 3, 0, 2)], ids=str)
def test_spatial_mean(shape: tuple[int, ...], keep: str) -> None:
    agree(layer("ReduceMean-1", keep_dims=keep), numbers(*shape), np.arange(2, len(shape)))


MASKS = [None, (), (5, 7), (1, 1, 1, 7), (2, 1, 5, 7), (2, 3, 5, 1), (1, 3, 1, 7)]


@pytest.mark.parametrize("causal", ["true", "false"])
@pytest.mark.parametrize("mask", MASKS, ids=str)
@pytest.mark.parametrize("truth", [True, False])
def test_attention(mask: tuple[int, ...] | None, truth: bool, causal: str) -> None:
    op = layer("ScaledDotProductAttention-13", causal=causal)
    q, k, v = numbers(2, 3, 5, 8), numbers(2, 1, 7, 8), numbers(1, 3, 7, 4)
    others = [] if mask is None else [numbers(*mask) > -1 if truth else numbers(*mask)]
    agree(op, q, k, v, *others)
    if others:
        agree(op, q, k, v, *others, np.array(0.3, np.float32))


def test_attention_of_many_queries_to_few_keys_and_to_none() -> None:
    op = layer("ScaledDotProductAttention-13", causal="false")
    agree(op, numbers(1, 2, 70001, 4), numbers(1, 2, 3, 4), numbers(1, 2, 3, 4))
    agree(op, numbers(1, 2, 4, 4), numbers(1, 2, 0, 4), numbers(1, 2, 0, 4))
    hidden = np.array([[True, True, True], [False, False, False]])
    agree(op, numbers(1, 1, 2, 4), numbers(1, 1, 3, 4), numbers(1, 1, 3, 4), hidden)


def test_other_types_are_left_to_the_reference() -> None:
    half = np.zeros((1, 3, 8, 8), np.float16)
    w = np.zeros((4, 3, 3, 3), np.float16)
    assert backend.kernel(layer("Convolution-1", **PLAIN), [unknown(half), Value.constant(w)]) is None
    assert backend.kernel(layer("Add-1"), [unknown(half), unknown(half)]) is None
    assert backend.kernel(layer("ReLU-1"), [unknown(half)]) is None


# What runs together


def both(net: Net, *feeds: Array) -> list[tuple[str, ...]]:
    """Run on either backend, compare, and return the types of the layers of each step."""
    ours = Ours(net.xml(), net.weights)
    assert list(ours.report) == []
    for feed in feeds:
        feed.setflags(write=False)
    for found, wanted in zip(ours.run(feeds, "numpy"), ours.run(feeds), strict=True):
        same(found, wanted)
    return [tuple(la.type for la in step.layers) for step in plan_of(ours).steps]


def plan_of(ours: Ours, backend: str = "numpy", fold: bool = True) -> ExecutionPlan:
    return compile_plan(ours.graph, ours.values, ours.outputs, load(backend)[1], fold)


def conv(net: Net, x: End, channels: int, outputs: int, size: int = 3, seed: int = 0) -> End:
    w = net.constant(numbers(outputs, channels, size, size, seed=seed), "f32")
    pad = size // 2
    return net.op(
        "Convolution",
        x,
        w,
        strides="1,1",
        pads_begin=f"{pad},{pad}",
        pads_end=f"{pad},{pad}",
        dilations="1,1",
    )


def bias(net: Net, x: End, channels: int) -> End:
    return net.op("Add", x, net.constant(numbers(1, channels, 1, 1, seed=5), "f32"))


@pytest.mark.parametrize(
    ("shape", "batch"), [("1,4,9,7", 1), ("?,4,9,7", 1), ("?,4,9,7", 2), ("?,4,?,?", 1), ("?,4,?,?", 2)]
)
@pytest.mark.parametrize("size", [1, 3])
def test_bias_and_activation(shape: str, size: int, batch: int) -> None:
    net = Net()
    x = net.parameter("x", shape)
    net.result(net.op("ReLU", bias(net, conv(net, x, 4, 80, size), 80)))
    assert both(net, numbers(batch, 4, 9, 7)) == [("Convolution", "Add", "ReLU")]


@pytest.mark.parametrize("order", [0, 1])
@pytest.mark.parametrize("shape", ["2,8,6,6", "?,8,6,6"])
def test_residual(order: int, shape: str) -> None:
    net = Net()
    x = net.parameter("x", shape)
    inside = bias(net, conv(net, x, 8, 8), 8)
    pair = (inside, x) if order else (x, inside)
    net.result(net.op("Clamp", net.op("Add", *pair), min=0, max=6))
    assert both(net, numbers(2, 8, 6, 6)) == [("Convolution", "Add", "Add", "Clamp")]


def test_residual_of_two_convolutions() -> None:
    net = Net()
    x = net.parameter("x", "1,8,6,6")
    net.result(net.op("ReLU", net.op("Add", conv(net, x, 8, 8), conv(net, x, 8, 8, 1, seed=3))))
    steps = both(net, numbers(1, 8, 6, 6))
    assert sorted(steps) == [("Convolution",), ("Convolution", "Add", "ReLU")]


def test_what_several_read_is_kept() -> None:
    net = Net()
    x = net.parameter("x", "1,4,6,6")
    inside = conv(net, x, 4, 4)
    net.result(net.op("Add", net.op("ReLU", inside), net.op("Sigmoid", inside)))
    assert ("Convolution",) in both(net, numbers(1, 4, 6, 6))


def test_what_is_asked_for_is_kept() -> None:
    net = Net()
    x = net.parameter("x", "1,4,6,6")
    inside = conv(net, x, 4, 4)
    net.result(inside)
    net.result(net.op("ReLU", inside), "second")
    assert both(net, numbers(1, 4, 6, 6)) == [("Convolution",), ("ReLU",)]


def test_what_is_read_twice_by_one_layer_is_kept() -> None:
    net = Net()
    inside = conv(net, net.parameter("x", "1,4,6,6"), 4, 4)
    net.result(net.op("Multiply", inside, inside))
    assert both(net, numbers(1, 4, 6, 6)) == [("Convolution",), ("Multiply",)]


@pytest.mark.parametrize("shape", ["2,4,6,6", "1,4,6,1", "6", "?,4,6,6"])
def test_an_operand_that_may_change_the_shape_is_not_taken_in(shape: str) -> None:
    net = Net()
    inside = conv(net, net.parameter("x", "1,4,6,6"), 4, 4)
    net.result(net.op("Add", inside, net.parameter("y", shape)))
    other = numbers(*(2 if n == "?" else int(n) for n in shape.split(",")))
    assert both(net, numbers(1, 4, 6, 6), other) == [("Convolution",), ("Add",)]


def test_a_constant_less_a_product_is_not_the_product_less_a_constant() -> None:
    net = Net()
    inside = conv(net, net.parameter("x", "1,4,6,6"), 4, 4)
    net.result(net.op("Subtract", net.constant(numbers(1, 4, 1, 1), "f32"), inside))
    both(net, numbers(1, 4, 6, 6))


def test_layers_of_a_transformer() -> None:
    net = Net()
    x = net.parameter("x", "?,5,8")
    row = net.constant(numbers(8), "f32")
    normal = net.op(
        "MVN",
        x,
        net.constant([-1]),
        version="opset6",
        eps=1e-5,
        eps_mode="inside_sqrt",
        normalize_variance=True,
    )
    scaled = net.op("Add", net.op("Multiply", normal, row), row)
    wide = net.op("MatMul", scaled, net.constant(numbers(32, 8), "f32"), transpose_a=False, transpose_b=True)
    bent = net.op(
        "Gelu",
        net.op("Add", wide, net.constant(numbers(1, 1, 32), "f32")),
        version="opset7",
        approximation_mode="erf",
    )
    back = net.op("MatMul", bent, net.constant(numbers(8, 32), "f32"), transpose_a=False, transpose_b=True)
    net.result(net.op("Add", x, back))
    assert both(net, numbers(3, 5, 8)) == [
        ("MVN", "Multiply", "Add"),
        ("MatMul", "Add", "Gelu"),
        ("MatMul", "Add"),
    ]


@pytest.mark.parametrize("stored", [0, 1, 2], ids=["rows", "channels last", "apart"])
def test_chain(stored: int) -> None:
    net = Net()
    x, c = net.parameter("x", "2,3,4,5"), net.constant(numbers(1, 3, 1, 1), "f32")
    chain = net.op("Add", net.op("Multiply", x, c), net.constant(numbers(5), "f32"))
    net.result(net.op("Sigmoid", net.op("Multiply", chain, x)))
    assert both(net, layouts(numbers(2, 3, 4, 5))[stored]) == [("Multiply", "Add", "Multiply", "Sigmoid")]


def test_a_plan_whose_every_layer_is_watched_fuses_nothing() -> None:
    net = Net()
    net.result(net.op("ReLU", bias(net, conv(net, net.parameter("x", "1,4,6,6"), 4, 4), 4)))
    plan = plan_of(Ours(net.xml(), net.weights), fold=False)
    assert [step.layers for step in plan.steps] == [(step.layer,) for step in plan.steps]


def test_runs_at_once_do_not_meet() -> None:
    net = Net()
    x = net.parameter("x", "?,8,20,20")
    for _ in range(3):
        x = net.op("ReLU", bias(net, conv(net, x, 8, 8), 8))
    net.result(x)
    ours = Ours(net.xml(), net.weights)
    plan = plan_of(ours)
    feeds = [numbers(1 + n % 2, 8, 20, 20, seed=n) for n in range(8)]
    wanted = [plan.run([feed])[0] for feed in feeds]
    found: dict[int, Array] = {}

    def work(n: int) -> None:
        for _ in range(5):
            found[n] = plan.run([feeds[n]])[0]

    workers = [threading.Thread(target=work, args=(n,)) for n in range(len(feeds))]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    for n, array in enumerate(wanted):
        np.testing.assert_array_equal(found[n], array)


def test_plans_ask_for_one_thread_of_blas() -> None:
    net = Net()
    net.result(net.op("ReLU", net.parameter("x", "1")))
    assert plan_of(Ours(net.xml())).around == (backend.around,)


def test_blas_has_its_threads_back_after_a_run() -> None:
    before = parallel._blas._get() if parallel._blas._get else None
    with backend.around(), backend.around():
        assert before is None or parallel._blas._get() == 1
    assert before is None or parallel._blas._get() == before


def test_a_failure_on_another_thread_is_told() -> None:
    def work(piece: int) -> None:
        if piece == 3:
            raise ValueError("piece 3")

    with backend.around(), pytest.raises(ValueError, match="piece 3"):
        parallel.parallel_for(work, range(9), 0)


def test_slices_cover_everything_once() -> None:
    for count in range(40):
        for most in (1, 2, 7):
            for grain in (1, 4):
                found = [i for part in gemm.split_range(count, most, grain) for i in range(count)[part]]
                assert found == list(range(count))
                assert len(gemm.split_range(count, most, grain)) <= most


def test_memory_in_any_order_is_one_line() -> None:
    for x in (numbers(2, 3, 4), numbers(2, 3, 4).transpose(2, 0, 1), numbers(), numbers(0, 3)):
        line = _chain.flat_view(x)
        assert line is not None
        assert sorted(line.tolist()) == sorted(x.ravel().tolist())
    assert _chain.flat_view(numbers(4, 4)[:, ::2]) is None


@pytest.mark.parametrize("how", [(np.exp2, np.float32(-1 / np.log(2))), (np.exp, np.float32(-1))])
def test_sigmoids_by_either_power(how: tuple[np.ufunc, np.float32], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(activations, "_EXP", how[0])
    monkeypatch.setattr(activations, "_EXP_SCALE", how[1])
    x = np.linspace(-80, 80, 2001, dtype=np.float32)
    exact = 1 / (1 + np.exp(-x.astype(np.float64)))
    for op, wanted in ((Sigmoid(), exact), (Swish(), x * exact)):
        curve = activations.activation_of(op, [Value.constant(x)])
        assert curve is not None
        found = np.empty_like(x)
        curve(x, found)
        np.testing.assert_allclose(found, wanted, rtol=5e-6)
