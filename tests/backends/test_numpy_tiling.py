"""Chains of convolutions that the NumPy backend computes tile by tile, against the reference."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from harness.nets import End, Net
from harness.ours import Ours
from hypothesis import given, settings
from hypothesis import strategies as st

from ir_runtime.backends import load
from ir_runtime.backends.numpy.kernels.depthwise import depthwise as depthwise_layer
from ir_runtime.backends.numpy.math import gemm, panels
from ir_runtime.backends.numpy.threading import parallel
from ir_runtime.backends.numpy.tiling import tile_plan
from ir_runtime.backends.numpy.tiling.tiled_layer import TiledLayer
from ir_runtime.compiler.compile import compile_plan
from ir_runtime.errors import ExecutionError
from ir_runtime.ir.tensor import Array
from ir_runtime.ops.convolution.forward import Convolution, GroupConvolution

quick = settings(max_examples=30, deadline=None)


@pytest.fixture(
    params=["one tile", "many tiles", "on threads", "on threads, unpacked", "untiled"],
    autouse=True,
    scope="module",
)
def tiles(request: pytest.FixtureRequest) -> Iterator[None]:
    """Run every test with tiles of all rows, of few, and with none."""
    with pytest.MonkeyPatch.context() as patch:
        how: str = request.param
        patch.setattr(parallel, "max_threads", 3 if how.startswith("on threads") else 1)
        patch.setattr(panels, "TILED", panels.TILED and not how.endswith("unpacked"))
        patch.setattr(parallel, "MIN_PARALLEL_WORK", 0)
        patch.setattr(gemm, "EPILOGUE_BLOCK", 40 if how == "many tiles" else 1 << 30)
        patch.setattr(tile_plan, "MAX_RECOMPUTE", -1 if how == "untiled" else 100)
        yield


def numbers(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(np.float32)


def both(net: Net, *feeds: Array) -> list[tuple[str, ...]]:
    """Run on either backend, compare, and return the types of the layers of each step."""
    ours = Ours(net.xml(), net.weights)
    assert list(ours.report) == []
    for found, wanted in zip(ours.run(feeds, "numpy"), ours.run(feeds), strict=True):
        assert found.shape == wanted.shape
        limit = 2e-5 * np.abs(wanted[np.isfinite(wanted)]).max(initial=0)
        np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=limit)
    plan = compile_plan(ours.graph, ours.values, ours.outputs, load("numpy")[1])
    return [tuple(layer.type for layer in step.layers) for step in plan.steps]


def product(net: Net, x: End, channels: int, outputs: int) -> End:
    w = net.constant(numbers(outputs, channels, 1, 1), "f32")
    how = dict.fromkeys(("pads_begin", "pads_end"), "0,0")
    return net.op("Convolution", x, w, strides="1,1", dilations="1,1", **how)


def depthwise(net: Net, x: End, channels: int, kernel: int = 3, stride: int = 1, **how: str) -> End:
    w = net.constant(numbers(channels, 1, 1, kernel, kernel), "f32")
    around = dict.fromkeys(("pads_begin", "pads_end"), f"{kernel // 2},{kernel // 2}")
    return net.op(
        "GroupConvolution", x, w, **{"strides": f"{stride},{stride}", "dilations": "1,1", **around, **how}
    )


def bias(net: Net, x: End, channels: int) -> End:
    return net.op("Add", x, net.constant(numbers(1, channels, 1, 1, seed=5), "f32"))


@quick
@given(st.data())
def test_a_depthwise_convolution_between_products(data: st.DataObject) -> None:
    batch, inputs, inner, outputs = (data.draw(st.integers(1, n)) for n in (2, 7, 40, 9))
    height, width = (data.draw(st.integers(5, 17)) for _ in range(2))
    pads = {name: f"{data.draw(st.integers(0, 3))},{data.draw(st.integers(0, 3))}" for name in PADS}
    dilation, stride = data.draw(st.integers(1, 2)), data.draw(st.integers(1, 3))
    net = Net()
    x = net.parameter(
        "x", data.draw(st.sampled_from([f"?,{inputs},?,?", f"{batch},{inputs},{height},{width}"]))
    )
    x = net.op("Clamp", bias(net, product(net, x, inputs, inner), inner), min=0, max=6)
    kernel = data.draw(st.sampled_from([1, 2, 3]))
    x = depthwise(net, x, inner, kernel, stride, dilations=f"{dilation},{dilation}", **pads)
    x = net.op("ReLU", bias(net, x, inner))
    net.result(bias(net, product(net, x, inner, outputs), outputs))
    steps = both(net, numbers(batch, inputs, height, width))
    assert [len(step) for step in steps] == [8]


PADS = ("pads_begin", "pads_end")


@pytest.mark.parametrize("shape", ["2,8,13,9", "?,8,?,?"])
def test_a_residual(shape: str) -> None:
    net = Net()
    x = net.parameter("x", shape)
    inside = bias(net, depthwise(net, product(net, x, 8, 24), 24), 24)
    net.result(net.op("Add", x, product(net, inside, 24, 8)))
    assert [len(step) for step in both(net, numbers(2, 8, 13, 9))] == [5]


def test_a_chain_has_at_most_one_depthwise_layer() -> None:
    net = Net()
    x = net.parameter("x", "1,8,9,9")
    for _ in range(2):
        x = product(net, depthwise(net, product(net, x, 8, 8), 8), 8, 8)
    net.result(product(net, x, 8, 8))
    assert [len(step) for step in both(net, numbers(1, 8, 9, 9))] == [3, 3, 1]


def test_pointwise_convolutions_alone_are_not_chained() -> None:
    net = Net()
    net.result(product(net, product(net, net.parameter("x", "1,8,9,9"), 8, 8), 8, 8))
    assert [len(step) for step in both(net, numbers(1, 8, 9, 9))] == [1, 1]


def test_what_is_not_finite_stays_in_its_windows() -> None:
    net = Net()
    x = net.parameter("x", "1,4,12,5")
    net.result(product(net, depthwise(net, product(net, x, 4, 16), 16, stride=2), 16, 4))
    feed = numbers(1, 4, 12, 5)
    feed[0, 1, 6, 2], feed[0, 2, 0, 0] = np.nan, np.inf
    assert [len(step) for step in both(net, feed)] == [3]


def test_no_image_at_all() -> None:
    net = Net()
    x = net.parameter("x", "?,4,?,5")
    net.result(product(net, depthwise(net, x, 4), 4, 4))
    both(net, numbers(0, 4, 12, 5))


def test_windows_that_do_not_fit_are_named() -> None:
    net = Net()
    x = net.parameter("x", "?,4,?,5")
    net.result(product(net, depthwise(net, x, 4, pads_begin="0,0", pads_end="0,0"), 4, 4))
    ours = Ours(net.xml(), net.weights)
    with pytest.raises(ExecutionError, match="groupconvolution"):
        ours.run([numbers(1, 4, 2, 5)], "numpy")


@pytest.mark.parametrize("kernel", [2, 3])
@pytest.mark.parametrize("width", [7, 8])
def test_many_channels_with_a_stride(width: int, kernel: int) -> None:
    """Windows are taken one by one; there is a column that no window needs."""
    net = Net()
    x = net.parameter("x", f"1,2100,4,{width}")
    net.result(depthwise(net, x, 2100, kernel, stride=2, pads_begin="0,0", pads_end="0,0"))
    both(net, numbers(1, 2100, 4, width))


def test_tiles_are_channels_where_rows_would_be_recomputed() -> None:
    net = Net()
    x = net.op("ReLU", bias(net, product(net, net.parameter("x", "2,8,6,6"), 8, 100), 100))
    x = depthwise(net, x, 100, 5, stride=2)
    net.result(net.op("ReLU", bias(net, x, 100)))
    net.result(depthwise(net, net.parameter("z", "1,70,5,5"), 70, 5))
    assert [len(step) for step in both(net, numbers(2, 8, 6, 6), numbers(1, 70, 5, 5))] == [6, 1]


@pytest.mark.parametrize("size", [(3, 3), (6, 6), (400, 4)])
def test_tiles_compute_every_channel_of_every_row_once(size: tuple[int, int]) -> None:
    net = Net()
    net.result(depthwise(net, product(net, net.parameter("x", "1,8,?,?"), 8, 100), 100, 5))
    ours = Ours(net.xml(), net.weights)
    ops = {layer.type: layer.op for layer in ours.graph}
    mixing, apart = ops["Convolution"], ops["GroupConvolution"]
    assert isinstance(mixing, Convolution)
    assert isinstance(apart, GroupConvolution)
    first = TiledLayer(mixing, (1, 1), 100, 50_000, lambda *_: [])
    plan = tile_plan.plan_tiles([first, depthwise_layer(apart, numbers(100, 1, 1, 5, 5))], *size, 3)
    computed = np.zeros((size[0], 100), int)
    for tile in plan.tiles:
        computed[tile.rows[-1], tile.channels or slice(None)] += 1
    assert (computed == (1 if plan.tiles else 0)).all()
    assert plan.tiles or tile_plan.MAX_RECOMPUTE < 0
    if parallel.max_threads == 3:
        assert len(plan.tiles) > 1
        assert all((tile.channels is not None) == (size != (400, 4)) for tile in plan.tiles)
