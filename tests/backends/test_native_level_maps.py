"""Maps of quantization levels: their borders, quantization and dequantization, bit for bit as the operation."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from harness.layers import layer
from harness.other_vectors import same_with_other_vectors

from ir_runtime.backends.core.threads import at_most
from ir_runtime.backends.native import backend
from ir_runtime.backends.native.codegen.levels import GROUP, LEVEL_DTYPE
from ir_runtime.backends.native.codegen.vectors import LANES
from ir_runtime.backends.native.kernels import quantized_network
from ir_runtime.backends.native.kernels._int8_maps import IntegerWeights, LevelMap
from ir_runtime.backends.native.kernels.quantized_network import Dequantizing, Quantizing
from ir_runtime.backends.native.threading import parallel
from ir_runtime.backends.native.threading.parallel import parallel_for, threads
from ir_runtime.backends.native.threading.task import UNUSED
from ir_runtime.backends.patterns.quantized_graph import Pooled, Product, Quantizer, Source
from ir_runtime.ir.graph import Port
from ir_runtime.ir.tensor import Array

SHAPES = [(1, 1, 1, 1), (2, 3, 5, 33), (1, 3, 2, 7), (1, 4, 3, LANES), (2, 5, 4, 6), (1, 2 * LANES + 1, 3, 2)]
LIMITS = [(-1.1, 0.7), (0.0, 6.0), (-300.0, -200.0)]


@pytest.fixture(params=[1, 2], ids=lambda n: f"threads={n}", autouse=True)
def run_of_a_model(request: pytest.FixtureRequest) -> Iterator[None]:
    """Run inside a model run, with one thread, and with two threads even for the smallest maps."""
    with pytest.MonkeyPatch.context() as patch, at_most(request.param), backend.around():
        patch.setattr(parallel, "MIN_PARALLEL_WORK", 0)
        yield


def quantizer(low: float, high: float) -> Quantizer:
    bottom, top = np.float32(low), np.float32(high)
    width, steps = top - bottom, np.float32(255)
    parameters = np.array([bottom, top, bottom, width, steps, width, bottom, top], np.float32)
    return Quantizer(parameters, float(width) / 255, 0)


def level_map(shape: tuple[int, ...], border: tuple[int, int, int, int] = (0, 0, 0, 0)) -> LevelMap:
    images, channels, height, width = shape
    unit = GROUP if channels <= 4 else LANES
    stored = -(-channels // unit) * unit
    return LevelMap(images, height, width, channels, stored, 117, border)


def inside(levels: Array, of: LevelMap) -> Array:
    """Return the interior of a map as ``[images, channels, height, width]``."""
    top, _, left, _ = of.border
    found = levels[:, top : top + of.height, left : left + of.width, : of.channels]
    return found.transpose(0, 3, 1, 2)


def arrangements(x: Array) -> Iterator[Array]:
    """Return equal arrays in several memory orders."""
    yield x
    yield np.ascontiguousarray(x.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)
    yield np.ascontiguousarray(x[..., ::-1])[..., ::-1]
    yield np.ascontiguousarray(x.transpose(3, 2, 1, 0)).transpose(3, 2, 1, 0)
    yield np.concatenate([x, x], axis=3)[..., : x.shape[3]]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("limits", LIMITS, ids=str)
def test_quantized_levels_match_the_operation(shape: tuple[int, ...], limits: tuple[float, float]) -> None:
    rule, of = quantizer(*limits), level_map(shape, (1, 2, 2, 1))
    low, high = limits
    x = np.random.default_rng(0).uniform(low - 1, high + 1, shape).astype(np.float32)
    x.flat[0], x.flat[-1] = np.inf, -np.inf
    for given in arrangements(x):
        found = Quantizing(of, rule)(given)
        assert found is not None
        assert found.dtype == LEVEL_DTYPE
        np.testing.assert_array_equal(inside(found, of), rule.levels(x))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_nan_is_detected_in_any_position(shape: tuple[int, ...]) -> None:
    quantize = Quantizing(level_map(shape), quantizer(-1, 1))
    for place in range(0, int(np.prod(shape)), 7):
        x = np.zeros(shape, np.float32)
        x.flat[place] = np.nan
        assert quantize(x) is None
    assert quantize(np.zeros(shape, np.float32)) is not None


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("limits", LIMITS, ids=str)
def test_dequantized_values_match_the_operation(shape: tuple[int, ...], limits: tuple[float, float]) -> None:
    rule, of = quantizer(*limits), level_map(shape, (1, 0, 2, 3))
    _, _, _, _, steps, span, first, _ = rule.parameters
    values = np.arange(256, dtype=np.float32) / steps * span + first
    levels = of.empty()
    inside(levels, of)[...] = np.random.default_rng(1).integers(0, 256, shape)
    found = Dequantizing(of, rule)(levels)
    np.testing.assert_array_equal(found, values[inside(levels, of)])


@pytest.mark.parametrize("border", [(1, 1, 1, 1), (0, 0, 1, 0), (2, 0, 0, 0), (0, 1, 0, 3)], ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_border_holds_the_level_of_zero(
    shape: tuple[int, ...], border: tuple[int, int, int, int]
) -> None:
    of = level_map(shape, border)
    levels = Quantizing(of, quantizer(-1, 1))(np.zeros(shape, np.float32))
    assert levels is not None
    top, _, left, _ = border
    levels[:, top : top + of.height, left : left + of.width] = of.zero
    assert (levels == of.zero).all()


@pytest.mark.parametrize("border", [(1, 1, 1, 1), (0, 0, 1, 0), (2, 0, 0, 0), (0, 1, 0, 3)], ids=str)
@pytest.mark.parametrize(("lines", "count"), [(2, 1), (2, 3), (9, 2), (40, 2)])
def test_every_layer_writes_the_border(
    lines: int, count: int, border: tuple[int, int, int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Products and windows write it, whether threads share lines or channels."""
    monkeypatch.setattr(quantized_network, "threads", lambda: count)
    shape = (2, 70, lines, 6)
    data, of = level_map(shape), level_map(shape, border)
    source, rule = Source(Port(0, 0), shape, quantizer(-1, 1)), quantizer(-1, 1)
    one, kernel = {"strides": "1,1"}, {"kernel": "1,1"}
    pads = {"dilations": "1,1", "pads_begin": "0,0", "pads_end": "0,0"}
    weights = IntegerWeights(np.ones((70, 70, 1, 1), np.int8), np.ones(70))
    nodes = (
        Product(layer("Convolution-1", **one, **pads), source, weights, np.ones(70), np.zeros(70), LIMITS[0], rule, shape),
        Pooled(layer("MaxPool-1", **one, **kernel, pads_begin="0,0", pads_end="0,0"), source, shape),
    )  # fmt: skip
    levels = Quantizing(data, rule)(np.zeros(shape, np.float32))
    assert levels is not None
    for node in nodes:
        task, out = quantized_network.bind(node, data, of, of), of.empty()
        out[...] = 1
        parallel_for(task.address, task.job, out, levels, UNUSED, UNUSED, threads())
        top, _, left, _ = border
        out[:, top : top + of.height, left : left + of.width] = of.zero
        assert (out == of.zero).all()


test_the_same_with_other_vectors = same_with_other_vectors(__file__)
