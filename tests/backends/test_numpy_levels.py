"""Quantized subgraphs of the NumPy backend: levels equal the definition, except at ties."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ir_runtime as ov
from ir_runtime import opset8 as op
from ir_runtime.backends.core.threads import at_most
from ir_runtime.backends.numpy import parallel
from ir_runtime.backends.numpy.kernels import quantized_network
from ir_runtime.ir.tensor import Array

RANDOM = np.random.default_rng(0)


@pytest.fixture(params=[1, 2], ids=lambda n: f"threads={n}", autouse=True)
def shared(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run every test with one thread, and with two threads even for the smallest layers."""
    monkeypatch.setattr(parallel, "MIN_PARALLEL_WORK", 1)
    monkeypatch.setitem(globals(), "RANDOM", np.random.default_rng(0))
    with at_most(request.param):
        yield


def quantized(x: Any, low: float, high: float, levels: int = 129) -> Any:
    """Quantize to a power of two of steps: with limits that are powers of two, all arithmetic is exact."""
    limits = np.float32(low), np.float32(high)
    return op.fake_quantize(x, *limits, *limits, levels)


def channels_of(x: Any) -> int:
    return int((x if isinstance(x, ov.Output) else x.output(0)).shape[1])


def filters(*shape: int) -> Array:
    """Return integer filters, for which all sums are exact."""
    return RANDOM.integers(-5, 6, shape).astype(np.float32)


def conv(x: Any, channels: int, kernel: int = 1, stride: int = 1, pad: int = 0, dilation: int = 1) -> Any:
    w = filters(channels, channels_of(x), kernel, kernel)
    return op.convolution(x, w, [stride] * 2, [pad] * 2, [pad] * 2, [dilation] * 2)


def grouped(x: Any, groups: int, stride: int = 1, kernel: int = 3) -> Any:
    channels, pad = channels_of(x) // groups, [kernel // 2] * 2
    w = filters(groups, channels, channels, kernel, kernel)
    return op.group_convolution(x, w, [stride] * 2, pad, pad, [1, 1])


def bias(y: Any) -> Any:
    return op.add(y, RANDOM.integers(-8, 9, (1, channels_of(y), 1, 1)).astype(np.float32))


def built(net: Callable[[Any], Any], *shape: int) -> tuple[ov.Model, Array]:
    x = op.parameter(shape, np.float32, name="x")
    data = RANDOM.integers(-200, 200, shape).astype(np.float32) / 16
    return ov.Model([net(x)], [x]), data


def compiled(model: ov.Model) -> tuple[Any, list[Any]]:
    """Return the model on this backend, and its kernels for quantized subgraphs."""
    kernels: list[Any] = []

    class Listed(quantized_network.QuantizedNetwork):
        def prepare(self) -> Any:
            kernels.append(self)
            return super().prepare()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(quantized_network, "QuantizedNetwork", Listed)
        return ov.compile_model(model, backend="numpy"), kernels


def inverted_residual(x: Any) -> Any:
    x = quantized(x, -8, 8)
    wide = quantized(op.clamp(bias(conv(x, 64)), 0, 100), 0, 128)
    deep = quantized(op.relu(bias(grouped(wide, 64))), 0, 1024)
    return quantized(op.add(quantized(bias(conv(deep, 16)), -8192, 8192), x), -8192, 8192)


def residual_with_bounds(x: Any) -> Any:
    x = quantized(x, -4, 12)
    first = quantized(op.relu(conv(x, 16, 3, 1, 1)), 0, 512)
    second = quantized(bias(conv(first, 16, 3, 1, 1)), -4096, 4096)
    return quantized(op.relu(op.add(x, second)), 0, 2048)


def pooled(x: Any) -> Any:
    y = quantized(bias(conv(quantized(x, -8, 8), 24, 3, 2, 1)), -256, 768)
    y = op.max_pool(y, [2, 2], [1, 1], [1, 1], [1, 1], [3, 3]).output(0)
    return quantized(conv(y, 8), -1024, 1024)


def affine(x: Any) -> Any:
    row = np.float32([0.5, 2, 1, -1, 4, -0.25, 1, 2]).reshape(1, 8, 1, 1)
    y = op.subtract(op.multiply(row, conv(quantized(x, -8, 8), 8, 3, 1, 2, dilation=2)), np.float32(3))
    return quantized(grouped(quantized(y, -512, 512), 2), -4096, 4096)


def zero_is_odd(x: Any) -> Any:
    """Zero has an odd level: ties round to even levels, not to levels at an even distance from that of zero."""
    first = quantized(conv(quantized(x, -8, 8), 16, 3, 1, 1), -37 * 4, 91 * 4)
    return quantized(op.add(quantized(conv(first, 16), -4096, 4096), first), -37 * 64, 91 * 64)


def read_twice(x: Any) -> Any:
    """Levels with a second, dequantized consumer."""
    middle = quantized(op.relu(conv(quantized(x, -8, 8), 16, 3, 1, 1)), 0, 256)
    return op.add(op.reduce_mean(middle, np.int64([1]), True), quantized(conv(middle, 16), -2048, 2048))


NETS: dict[Callable[[Any], Any], tuple[int, ...]] = {
    inverted_residual: (2, 16, 13, 11),
    residual_with_bounds: (1, 16, 9, 12),
    pooled: (1, 3, 17, 21),
    affine: (3, 8, 10, 7),
    zero_is_odd: (1, 3, 12, 10),
    read_twice: (2, 5, 8, 8),
}


@pytest.mark.parametrize("net", NETS, ids=lambda net: net.__name__)
def test_levels_are_those_of_the_reference(net: Callable[[Any], Any]) -> None:
    """All arithmetic is exact here, so ties agree as well."""
    model, data = built(net, *NETS[net])
    found, kernels = compiled(model)
    assert {layer.type for kernel in kernels for layer in kernel.graph.layers} >= {
        "Convolution",
        "FakeQuantize",
    }
    wanted = ov.compile_model(model, backend="reference")(data)[0]
    assert len(np.unique(wanted)) > 40
    np.testing.assert_array_equal(found(data)[0], wanted)
    np.testing.assert_array_equal(found(data)[0], wanted)  # in scratch memory that was used


@pytest.mark.parametrize(("channels", "kernel"), [(48, 1), (32, 3), (3, 3)])
def test_other_levels_are_next_to_a_tie(channels: int, kernel: int) -> None:
    """With arbitrary limits; Winograd, which rounds more, is included."""
    limits = (-0.731, 0.731 * 127 / 128), (-1.1 * 128, 1.1 * 127)
    filters = RANDOM.standard_normal((40, channels, kernel, kernel)).astype(np.float32) * 12
    shift = RANDOM.standard_normal((1, 40, 1, 1)).astype(np.float32)

    def net(x: Any, last: bool = True) -> Any:
        y = op.convolution(quantized(x, *limits[0], 256), filters, [1, 1], [1, 1], [1, 1], [1, 1])
        y = op.add(y, shift)
        return quantized(y, *limits[1], 256) if last else y

    x = op.parameter([1, channels, 24, 24], np.float32, name="x")
    data = RANDOM.standard_normal((1, channels, 24, 24)).astype(np.float32) / 3
    found = compiled(ov.Model([net(x)], [x]))[0](data)[0]
    sums = ov.compile_model(ov.Model([net(x, last=False)], [x]), backend="reference")(data)[0]
    place = (sums.astype(np.float64) - limits[1][0]) / (limits[1][1] - limits[1][0]) * 255
    level = (found.astype(np.float64) - limits[1][0]) / (limits[1][1] - limits[1][0]) * 255
    clear = abs(place - np.floor(place) - 0.5) > 2e-3
    assert clear.mean() > 0.99
    np.testing.assert_allclose(level[clear], np.rint(place).clip(0, 255)[clear], atol=1e-3)


def test_nan_is_left_to_the_operations() -> None:
    model, data = built(residual_with_bounds, *NETS[residual_with_bounds])
    found = compiled(model)[0]
    clean = found(data)[0]
    broken = data.copy()
    broken[0, 3, 2, 1] = np.nan
    np.testing.assert_array_equal(found(broken)[0], ov.compile_model(model, backend="reference")(broken)[0])
    np.testing.assert_array_equal(found(data)[0], clean)


@pytest.mark.parametrize("low", [-0.3, 0.2])
def test_a_zero_that_is_no_level_is_left_to_other_kernels(low: float) -> None:
    model, data = built(lambda x: quantized(conv(quantized(x, low, low + 3), 4), -8, 8), 1, 4, 5, 5)
    found, kernels = compiled(model)
    assert not kernels
    wanted = ov.compile_model(model, backend="reference")(data)[0]
    np.testing.assert_allclose(found(data)[0], wanted, atol=1e-5)
