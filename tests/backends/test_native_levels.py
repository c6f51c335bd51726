"""Integer kernels of the native backend: levels equal an emulation, and the definition except at ties.

The file is rerun for each vector instruction set, among them those with dot products of four bytes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from harness.layers import layer
from harness.oracle import multiply_add
from harness.other_vectors import AGAIN, same_with_other_vectors

from ir_runtime.backends.core.threads import at_most
from ir_runtime.backends.native import backend
from ir_runtime.backends.native.codegen.levels import LEVEL_SIZE
from ir_runtime.backends.native.codegen.vectors import LANES
from ir_runtime.backends.native.kernels import quantized_network
from ir_runtime.backends.native.kernels._int8_gemm import AheadRecord, LevelBounds, pack_levels
from ir_runtime.backends.native.kernels._int8_maps import IntegerWeights, LevelMap, share_starts
from ir_runtime.backends.native.kernels._panels import Panel
from ir_runtime.backends.native.kernels.quantized_network import requantization
from ir_runtime.backends.native.threading import parallel
from ir_runtime.backends.patterns.quantized_graph import Node, Pooled, Product, Quantizer, Source, Subgraph
from ir_runtime.ir.graph import Port
from ir_runtime.ir.tensor import Array

RANDOM = np.random.default_rng(0)
DATA, OTHER = Port(0, 0), Port(1, 0)


@pytest.fixture(params=[1, 2], ids=lambda n: f"threads={n}", autouse=True, scope="module")
def shared(request: pytest.FixtureRequest) -> Iterator[None]:
    """Run every test with one thread, and with two threads even for the smallest layers."""
    with pytest.MonkeyPatch.context() as patch, at_most(request.param):
        patch.setattr(parallel, "MIN_PARALLEL_WORK", 0)
        yield


@pytest.fixture(autouse=True)
def same_data(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seed the random numbers of each test: with one seed in 400, a bound of the values is nearly a tie."""
    monkeypatch.setitem(globals(), "RANDOM", np.random.default_rng(0))


def quantizer(scale: float, zero: int) -> Quantizer:
    low, high = (np.float32(scale * (level - zero)) for level in (0, 255))
    width, steps = high - low, np.float32(255)
    return Quantizer(np.array([low, high, low, width, steps, width, low, high], np.float32), scale, zero)


def source(shape: Sequence[int], zero: int, port: Port = DATA, scale: float = 0.02) -> Source:
    return Source(port, tuple(shape), quantizer(scale, zero))


def values_of(quantizer: Quantizer) -> Array:
    """Return the value of each level, as the operation computes it."""
    _, _, _, _, steps, span, first, *_ = quantizer.parameters
    values: Array = np.arange(quantizer.steps + 1, dtype=np.float32) / steps * span + first
    return values


def levels_of(node: Source) -> Array:
    """Return random levels in which every level occurs."""
    found: Array = RANDOM.integers(0, 256, node.shape)
    return found


def spread(sums: Array) -> float:
    return max(float(np.abs(sums).max()), 1.0)


def windows(
    op: Any, x: Array, kernel: Sequence[int], fill: int, out: Sequence[int]
) -> Iterator[tuple[int, int, Array]]:
    """Return the data that each kernel element meets, as ``[N, C, out...]``."""
    pads = op.pads(x.shape[2:], kernel)
    rest = [(0, 0), (0, 0), *((before, before + 99) for before, _ in pads)]
    padded = np.pad(x, rest, constant_values=fill)
    (sy, sx), (dy, dx) = op.strides, op.spread()
    for a in range(kernel[0]):
        for b in range(kernel[1]):
            yield a, b, padded[:, :, a * dy :, b * dx :][:, :, ::sy, ::sx][:, :, : out[0], : out[1]]


def sums_of(node: Product, x: Array) -> Array:
    """Return exact sums of products of levels and weights; padding has the level of zero."""
    w = node.weights.numbers.astype(np.int64)
    total = np.zeros(node.shape, np.int64)
    for a, b, part in windows(node.op, x, w.shape[-2:], node.data.quantizer.zero, node.shape[2:]):
        if w.ndim == 5:
            total += part * w[:, 0, 0, a, b][:, None, None]
        else:
            total += np.einsum("nchw,oc->nohw", part, w[:, :, a, b])
    return total


def emulated(node: Product, x: Array, other: Array | None) -> Array:
    """Return the levels of a product as its kernel computes them: the sum as f32, FMA, rounding to nearest even."""
    channels = node.shape[1]
    scale, bias, limits = requantization(node, channels)
    bounds = dict(zip(LevelBounds.dtype.names or (), limits[0].item(), strict=True))
    column = (channels, 1, 1)
    value = multiply_add(sums_of(node, x).astype(np.float32), scale.reshape(column), bias.reshape(column))
    found = np.rint(value).clip(bounds["low"], bounds["high"])
    if other is not None:
        inner = multiply_add(other.astype(np.float32), bounds["other_factor"], bounds["shift"])
        value = multiply_add(found, bounds["factor"], inner)
        found = np.rint(value).clip(bounds["sum_low"], bounds["sum_high"])
    return found.astype(np.int64)


def defined(node: Product, x: Array, other: Array | None) -> tuple[Array, Array]:
    """Return the levels by definition in f64, and a mask of those that are not ties."""
    column = (-1, 1, 1)
    weights = node.weights.numbers.astype(np.float64).reshape(len(node.weights.scale), -1)
    zero = node.data.quantizer.zero * weights.sum(axis=1).reshape(column)
    real = (sums_of(node, x) - zero) * node.data.quantizer.scale * node.weights.scale.reshape(column)
    real = (real * node.factor.reshape(column) + node.shift.reshape(column)).clip(*node.bounds)
    found, clear = nearest(node.first, real)
    if other is not None and node.other is not None and node.last is not None:
        first, second = node.first, node.other.quantizer
        real = first.scale * (found - first.zero) + second.scale * (other - second.zero)
        found, later = nearest(node.last, real.clip(*node.sum_bounds))
        clear &= later
    return found.astype(np.int64), clear


def nearest(quantizer: Quantizer, real: Array) -> tuple[Array, Array]:
    level = (real - quantizer.low) / quantizer.step
    return np.rint(level).clip(0, 255), np.abs(level - np.floor(level) - 0.5) > 2e-3


def product(
    op: Any,
    shape: Sequence[int],
    w: Array,
    zero: int,
    residual: bool = False,
    bounds: Any = (-np.inf, np.inf),
) -> tuple[Product, Array, Array | None]:
    """Return a product whose levels cover the whole range, and its data."""
    data = source(shape, zero)
    x, outputs = levels_of(data), len(w)
    scale = RANDOM.uniform(0.5, 1.5, outputs) * 0.01
    out = (shape[0], outputs, *op.windows(shape[2:], w.shape[-2:]))
    node = Product(
        op, data, IntegerWeights(w, scale), RANDOM.uniform(0.5, 2, outputs), np.zeros(outputs), bounds,
        quantizer(1.0, 128), out,
    )  # fmt: skip
    size = (
        2
        * spread(sums_of(node, x) - zero * w.reshape(outputs, -1).sum(axis=1).reshape(-1, 1, 1))
        * 0.02
        * 0.01
    )
    node.shift = RANDOM.standard_normal(outputs) * size / 8
    node.first = quantizer(size / 200, 117)
    if not residual:
        return node, x, None
    node.other = source(out, 3, OTHER, size / 167.31)
    node.last, node.sum_bounds = quantizer(size / 141.73, 60), (-size / 3, np.inf)
    return node, x, levels_of(node.other)


def run(node: Node, *data: tuple[Source, Array]) -> Array:
    """Return the levels computed by the kernel of a node."""

    def refuse(*arrays: Array) -> Array:
        raise AssertionError

    nodes = (*(source for source, _ in data), node)
    kernel: Any = quantized_network.QuantizedNetwork(
        Subgraph(node, nodes, ()), refuse, tuple(range(len(data)))
    )
    arrays = [values_of(source.quantizer)[levels] for source, levels in data]
    with backend.around():
        found = kernel(*arrays)
    values = values_of(node.quantizer)
    levels = (
        np.abs(found[..., None] - values).argmin(axis=-1)
        if found.size < 4096
        else np.searchsorted(values, found)
    )
    np.testing.assert_array_equal(values[levels], found)
    return np.asarray(levels)


def check(node: Product, x: Array, other: Array | None) -> None:
    assert isinstance(node.data, Source)
    given = [(node.data, x)]
    if other is not None:
        assert isinstance(node.other, Source)
        given.append((node.other, other))
    found = run(node, *given)
    np.testing.assert_array_equal(found, emulated(node, x, other))
    wanted, clear = defined(node, x, other)
    np.testing.assert_array_equal(found[clear], wanted[clear])
    assert (~clear).sum() <= max(clear.size // 10, 2)
    assert len(np.unique(found)) > min(found.size // 8, 8)


def random_weights(*shape: int) -> Array:
    return RANDOM.integers(-127, 128, shape).astype(np.int8)


def convolution(name: str = "Convolution-1", **more: str) -> Any:
    return layer(
        name, **{"strides": "1,1", "dilations": "1,1", "pads_begin": "0,0", "pads_end": "0,0"} | more
    )


@pytest.mark.parametrize("zero", [0, 1, 128, 255])
def test_products_of_all_sizes(zero: int) -> None:
    for columns in range(1, 66, 1 if AGAIN not in os.environ else 4):
        depth, rows = 1 + columns % 9, 1 + (columns * 7 + zero) % 15
        check(
            *product(
                convolution(),
                (1, depth, 1, rows),
                random_weights(columns, depth, 1, 1),
                zero,
                bool(columns % 2),
            )
        )


@pytest.mark.parametrize("residual", [False, True])
def test_sums_beyond_the_exact_integers_of_f32(residual: bool) -> None:
    node, x, other = product(convolution(), (2, 3001, 2, 4), random_weights(33, 3001, 1, 1), 0, residual)
    node.weights.numbers[...] = np.abs(node.weights.numbers)
    node.first = quantizer(float(sums_of(node, x).max()) * 0.02 * 0.02 / 100, 9)
    assert sums_of(node, x).max() > 1 << 24
    assert (
        run(node, (node.data, x), *([(node.other, other)] if residual else [])) == emulated(node, x, other)
    ).all()  # type: ignore[arg-type]


def test_the_largest_products_do_not_saturate() -> None:
    node, x, _ = product(convolution(), (1, 8, 1, 16), np.full((17, 8, 1, 1), -128, np.int8), 0)
    x[...] = 255
    node.first = quantizer(255 * 128 * 8 * 0.02 * 0.02 / 100, 255)
    np.testing.assert_array_equal(run(node, (node.data, x)), emulated(node, x, None))  # type: ignore[arg-type]


@pytest.mark.parametrize("zero", [0, 128])
@pytest.mark.parametrize(
    ("shape", "filters", "how"),
    [
        ((2, 3, 13, 17), (21, 3, 7, 7), {"strides": "2,2", "pads_begin": "3,3", "pads_end": "3,3"}),
        ((1, 20, 9, 8), (41, 20, 3, 3), {"pads_begin": "1,1", "pads_end": "1,1"}),
        ((1, 5, 9, 11), (16, 5, 3, 3), {"strides": "2,3", "dilations": "2,2", "pads_begin": "2,0", "pads_end": "1,4"}),
        ((2, 9, 9, 11), (33, 9, 1, 1), {"strides": "2,2"}),
        ((1, 4, 6, 6), (8, 4, 1, 3), {"auto_pad": "same_upper"}),
    ],
)  # fmt: skip
def test_convolutions(shape: Sequence[int], filters: Sequence[int], how: dict[str, str], zero: int) -> None:
    check(
        *product(
            convolution(**how), shape, random_weights(*filters), zero, residual=zero == 0, bounds=(-1.0, 9.0)
        )
    )


@pytest.fixture
def winograd(monkeypatch: pytest.MonkeyPatch) -> list[Node]:
    """Yield the products computed by Winograd."""
    found: list[Node] = []
    original = quantized_network._winograd

    def noted(node: Product, *maps: LevelMap) -> Any:
        found.append(node)
        return original(node, *maps)

    monkeypatch.setattr(quantized_network, "_winograd", noted)
    return found


SAME = {"pads_begin": "1,1", "pads_end": "1,1"}


@pytest.mark.parametrize("residual", [False, True])
@pytest.mark.parametrize("zero", [0, 128])
@pytest.mark.parametrize("filters", [(64, 64), (128, 95), (125, 64)], ids=str)
def test_winograd(filters: tuple[int, int], zero: int, residual: bool, winograd: list[Node]) -> None:
    """Two images, with partially used result panels and data pairs."""
    node, x, other = product(
        convolution(**SAME), (2, filters[1], 12, 24), random_weights(*filters, 3, 3), zero, residual
    )
    check(node, x, other)
    assert winograd == [node]


@pytest.mark.parametrize("count", [1, 3, 30])
@pytest.mark.parametrize("pads", ["0,0", "1,2"])
def test_winograd_with_any_number_of_threads(
    pads: str, count: int, winograd: list[Node], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shares of unequal length, of several blocks each, or without tiles."""
    monkeypatch.setattr(quantized_network, "threads", lambda: count)
    monkeypatch.setattr(quantized_network, "MIN_TILES", 0)
    monkeypatch.setattr(quantized_network, "BLOCK_BYTES", 1 << 17)
    op = convolution(pads_begin=pads, pads_end="1,0" if pads == "1,2" else "0,0")
    shape = (1, 64, 20, 20) if pads == "1,2" else (1, 64, 22, 18)
    check(*product(op, shape, random_weights(64, 64, 3, 3), 128))
    assert winograd


@pytest.mark.parametrize("weight", [-128, 127])
def test_the_largest_sums_of_winograd(weight: int, winograd: list[Node]) -> None:
    """Levels with the largest transforms at each position of a tile; sums over twice as many channels would overflow."""
    for channels in (64, 128):
        w = np.full((64, channels, 3, 3), weight, np.int8)
        w[1::2, :, ::2, 1] = w[2::4, :, 1] = 127 if weight < 0 else -128
        node, x, _ = product(convolution(**SAME), (1, channels, 28, 28), w, 0)
        x[...] = 255
        x[..., 1::3, :] = x[..., 5:, ::4] = 0
        x[..., 12:, 12:] = 255
        np.testing.assert_array_equal(run(node, (node.data, x)), emulated(node, x, None))  # type: ignore[arg-type]
    assert [node.data.shape[1] for node in winograd if isinstance(node, Product)] == [64]


@pytest.mark.parametrize("how", [{"strides": "2,2"}, {"dilations": "2,2"}, {}], ids=str)
def test_convolutions_that_winograd_does_not_support(how: dict[str, str], winograd: list[Node]) -> None:
    """Strides, dilations, and sizes that are not multiples of 4 use other kernels."""
    shape = (1, 64, 24 if how else 23, 24)
    check(*product(convolution(**SAME, **how), shape, random_weights(64, 64, 3, 3), 3))
    assert not winograd


@pytest.mark.parametrize("zero", [0, 128])
@pytest.mark.parametrize("width", [1, 3, 4, 9])
@pytest.mark.parametrize(("kernel", "stride"), [((3, 3), 1), ((3, 3), 2), ((5, 5), 1), ((2, 5), 2)])
def test_depthwise_convolutions(kernel: Sequence[int], stride: int, width: int, zero: int) -> None:
    how = {"strides": f"2,{stride}", "pads_begin": "1,2", "pads_end": "1,2"}
    channels = 19 + width
    w = random_weights(channels, 1, 1, *kernel)
    check(*product(convolution("GroupConvolution-1", **how), (2, channels, 7, stride * width), w, zero))


@pytest.mark.parametrize("zero", [0, 128])
@pytest.mark.parametrize("strides", ["1,1", "2,2", "1,2", "2,1"])
@pytest.mark.parametrize("size", [(1, 1), (2, 1), (5, 2), (12, 7)], ids=str)
@pytest.mark.parametrize("channels", [64, 75, 150])
def test_depthwise_convolutions_of_many_channels(
    channels: int, size: Sequence[int], strides: str, zero: int
) -> None:
    """The last block of channels overlaps the previous one; rows and columns are odd."""
    how = {"strides": strides, "pads_begin": "1,1", "pads_end": "1,1"}
    w = random_weights(channels, 1, 1, 3, 3)
    w.flat[:9] = -128
    node, x, _ = product(convolution("GroupConvolution-1", **how), (2, channels, *size), w, zero)
    x.flat[:64] = 255
    np.testing.assert_array_equal(run(node, (node.data, x)), emulated(node, x, None))  # type: ignore[arg-type]


@pytest.mark.parametrize("rounding", ["floor", "ceil"])
def test_max_pooling(rounding: str) -> None:
    how = {
        "kernel": "3,2",
        "strides": "2,3",
        "pads_begin": "1,1",
        "pads_end": "1,0",
        "rounding_type": rounding,
    }
    op, data = layer("MaxPool-1", **how), source((2, 21, 9, 13), 0)
    x = levels_of(data)
    out = op.windows(data.shape[2:], op.kernel)
    parts = [part for *_, part in windows(op, x, op.kernel, 0, out)]
    found = run(Pooled(op, data, (2, 21, *out)), (data, x))
    np.testing.assert_array_equal(found, np.max(parts, axis=0))


@pytest.mark.parametrize("count", [2, 3, 30])
@pytest.mark.parametrize("lines", [1, 7, 20])
def test_shares(count: int, lines: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every unit is computed, also with fewer threads than shares, or more threads than units."""
    monkeypatch.setattr(quantized_network, "threads", lambda: count)
    same, shape = {"pads_begin": "1,1", "pads_end": "1,1"}, (2, 67, lines, 3)
    for filters in ((65, 67, 3, 3), (9, 67, 1, 1)):  # shared by panel, and by row where there are enough
        how = same if filters[2] == 3 else {}
        check(*product(convolution(**how), shape, random_weights(*filters), 128, residual=True))
    w = random_weights(67, 1, 1, 3, 3)
    check(*product(convolution("GroupConvolution-1", **same), shape, w, 3))


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_panels_of_a_share(count: int) -> None:
    """No panel spans two shares, and shares differ by at most one vector."""
    vectors = share_starts(13, count)
    assert set(np.diff(vectors)) <= {13 // count, 13 // count + 1}
    panels = pack_levels(random_weights(200, 8), (LANES * vectors).tolist())
    starts = {row[Panel.column] for row in panels.table.tolist()}
    assert starts >= {LANES * n for n in vectors[:-1].tolist()}
    assert panels.table[:, Panel.vectors].sum() == 13


@pytest.mark.parametrize("residual", [False, True])
def test_any_number_of_rows(residual: bool) -> None:
    """Tiles of all heights; the widest panel has four vectors."""
    weights = random_weights(4 * LANES, 5, 1, 1)
    for rows in range(1, 56, 1 if AGAIN not in os.environ else 7):
        check(*product(convolution(), (1, 5, 1, rows), weights, 9, residual))


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("lines", [2, 40])
def test_weights_of_the_next_product_are_prefetched(
    lines: int, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each share names the panel that it reads first: its own if threads share panels, the first one if they share rows."""
    monkeypatch.setattr(quantized_network, "threads", lambda: count)
    nodes = [product(convolution(), (1, 200, lines, 8), random_weights(200, 200, 1, 1), 0)[0] for _ in "ab"]
    levels = LevelMap(1, lines, 8, 200, -(-200 // LANES) * LANES, 0)
    first, second = (quantized_network.bind(node, levels, levels, levels) for node in nodes)
    quantized_network.prefetch_weights([first, second])
    assert first.job["ahead"] == second.weights.ctypes.data
    assert second.weights.shape == (count, AheadRecord.words)
    begin = second.weights[:, AheadRecord.start] - second.job["weights"]
    assert second.job["by_panel"] == (lines == 2)
    assert len(set(begin.tolist())) == (count if lines == 2 else 1)
    assert begin[0] == 0
    size = second.weights[:, AheadRecord.end] - second.weights[:, AheadRecord.start]
    assert (size % (LANES * levels.stored * LEVEL_SIZE) == 0).all()


def test_nan_is_computed_layer_by_layer() -> None:
    node, x, _ = product(convolution(), (1, 4, 1, 6), random_weights(5, 4, 1, 1), 128)
    assert isinstance(node.data, Source)
    asked: list[int] = []

    def definition(*arrays: Array) -> Array:
        asked.append(len(arrays))
        return np.zeros(1)

    kernel = quantized_network.QuantizedNetwork(Subgraph(node, (node.data, node), ()), definition, (0,))
    data = values_of(node.data.quantizer)[x]
    data[0, 0, 0, 3] = np.nan
    assert kernel(data).shape == (1,)
    assert asked == [1]


test_the_same_with_other_vectors = same_with_other_vectors(__file__)
