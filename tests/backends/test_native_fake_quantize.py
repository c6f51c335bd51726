"""FakeQuantize of the fast backends, alone, in chains and after products, has the bits of the reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from harness.kernels import FAST, loaded
from harness.layers import layer
from harness.other_vectors import same_with_other_vectors

from ir_runtime.backends import KernelTemplate
from ir_runtime.ir.element import ElementType
from ir_runtime.ir.shape import PartialShape
from ir_runtime.ir.tensor import Array, Value

SHAPE = (2, 19, 9, 11)
backends = pytest.mark.parametrize("name", FAST)
LIMITS = {
    "signed": (-2.5, 2.5 * 127 / 128, -2.5, 2.5 * 127 / 128),
    "unsigned": (0, 6, 0, 6),
    "zero is no level": (-0.1, 1.3, -0.1, 1.3),
    "other outputs": (-1, 1, 3, -7),
    "last level is rounded": (-0.3, 0.7, 0.1, 0.7000001),
}
limits = pytest.mark.parametrize("limits", LIMITS.values(), ids=LIMITS)


def unknown(x: Array) -> Value:
    return Value.unknown(ElementType.f32, PartialShape(x.shape))


def numbers(*shape: int) -> Array:
    """Return values at and between all levels, and special values."""
    rng = np.random.default_rng(0)
    x: Array = (2 * rng.standard_normal(shape)).astype(np.float32)
    x.reshape(-1)[:9] = [np.nan, np.inf, -np.inf, -0.0, 0, 1e-40, 6, -0.1, 3e38]
    return x


def per_channel(values: tuple[float, ...], channels: int, rank: int = 4) -> list[Array]:
    factors = np.linspace(0.5, 1.5, channels, dtype=np.float32)
    shape = [channels if axis == 1 else 1 for axis in range(rank)]
    return [(np.float32(value) * factors).reshape(shape) for value in values]


def same_bits(found: Any, wanted: Array) -> None:
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    np.testing.assert_array_equal(found, wanted)
    numbers = ~np.isnan(wanted)
    assert (np.signbit(found) == np.signbit(wanted))[numbers].all()


def evaluate(op: Any, *arrays: Array) -> Array:
    with np.errstate(all="ignore"):
        return np.asarray(op.evaluate(*arrays))


def run(name: str, kernel: Any, *arrays: Array) -> Any:
    with loaded(name).around(), np.errstate(all="ignore"):
        return kernel(*arrays)


@backends
@limits
@pytest.mark.parametrize("channels", [1, SHAPE[1]], ids=["per tensor", "per channel"])
@pytest.mark.parametrize("levels", [2, 16, 255, 256, 65536])
@pytest.mark.parametrize("last", [1, -1], ids=["channels first", "channels last"])
def test_alone(name: str, limits: tuple[float, ...], channels: int, levels: int, last: int) -> None:
    op, ends = layer("FakeQuantize-1", levels=str(levels)), per_channel(limits, channels)
    x = np.moveaxis(np.ascontiguousarray(np.moveaxis(numbers(*SHAPE), 1, last)), last, 1)
    kernel = loaded(name).kernel(op, [unknown(x), *map(Value.constant, ends)])
    assert kernel is not None
    same_bits(run(name, kernel, x, *ends), evaluate(op, x, *ends))


@pytest.mark.parametrize("limits", [(0, 0, -1, 1), (1, -1, 2, 3)], ids=["two levels", "limits in reverse"])
def test_unusual_limits(limits: tuple[float, ...]) -> None:
    op, ends = layer("FakeQuantize-1", levels="256"), per_channel(limits, 1)
    x = numbers(*SHAPE)
    for name in FAST:
        kernel = loaded(name).kernel(op, [unknown(x), *map(Value.constant, ends)])
        assert (kernel is None) == (name == "numpy")
        if kernel is not None:
            same_bits(run(name, kernel, x, *ends), evaluate(op, x, *ends))


@backends
@pytest.mark.parametrize("value", [np.nan, np.inf, 1e30])
def test_limits_that_are_left_to_the_reference(name: str, value: float) -> None:
    op, ends = layer("FakeQuantize-1", levels="256"), per_channel((0, value, 0, 1), 1)
    assert loaded(name).kernel(op, [unknown(numbers(*SHAPE)), *map(Value.constant, ends)]) is None


@backends
@limits
@pytest.mark.parametrize("per_tensor", [True, False])
def test_within_a_chain(name: str, limits: tuple[float, ...], per_tensor: bool) -> None:
    x, y = numbers(*SHAPE), numbers(*SHAPE)[::-1].copy()
    ends = per_channel(limits, 1 if per_tensor else SHAPE[1])
    add, quantize = layer("Add-1"), layer("FakeQuantize-1", levels="256")
    kernel = loaded(name).kernel(add, [unknown(x), unknown(y)])
    assert isinstance(kernel, KernelTemplate)
    kernel = kernel.fuse(quantize, [unknown(x), *map(Value.constant, ends)], 0)
    assert kernel is not None
    same_bits(run(name, kernel, x, y, *ends), evaluate(quantize, x + y, *ends))


def products() -> dict[str, tuple[Any, Array, Array]]:
    rng = np.random.default_rng(1)

    def normal(*shape: int) -> Array:
        return rng.standard_normal(shape).astype(np.float32)

    window = {"strides": "1,1", "dilations": "1,1", "pads_begin": "1,1", "pads_end": "1,1"}
    point = window | {"pads_begin": "0,0", "pads_end": "0,0"}
    return {
        "1x1": (layer("Convolution-1", **point), normal(2, 17, 7, 9), normal(19, 17, 1, 1)),
        "3x3": (layer("Convolution-1", **window), normal(1, 17, 7, 9), normal(37, 17, 3, 3)),
        "Winograd": (layer("Convolution-1", **window), normal(1, 32, 16, 16), normal(32, 32, 3, 3)),
        "planar": (layer("Convolution-1", **window), normal(1, 3, 14, 9), normal(19, 3, 3, 3)),
        "depthwise": (layer("GroupConvolution-1", **window), normal(1, 19, 9, 11), normal(19, 1, 1, 3, 3)),
        "few channels": (layer("GroupConvolution-1", **window), normal(1, 3, 9, 11), normal(3, 1, 1, 3, 3)),
        "groups": (layer("GroupConvolution-1", **window), normal(1, 8, 9, 7), normal(2, 5, 4, 3, 3)),
        "matrix": (layer("MatMul-1", transpose_a="false", transpose_b="false"), normal(9, 17), normal(17, 37)),
    }  # fmt: skip


@backends
@pytest.mark.parametrize("product", products())
@pytest.mark.parametrize("per_tensor", [True, False], ids=["per tensor", "per channel"])
def test_behind_a_product(name: str, product: str, per_tensor: bool) -> None:
    """Quantize a product, add a residual and quantize again."""
    op, x, w = products()[product]
    start = loaded(name).kernel(op, [unknown(x), Value.constant(w)])
    assert start is not None
    result = run(name, start, x, w)
    columns, axis = result.shape[-1 if result.ndim == 2 else 1], -1 if result.ndim == 2 else 1
    spread = float(np.abs(result).max())
    ends = per_channel(
        (-spread / 3, spread / 2, -spread / 3, spread / 2), 1 if per_tensor else columns, result.ndim
    )
    if axis == -1:
        ends = [end.reshape(1, -1) for end in ends]
    quantize, add = layer("FakeQuantize-1", levels="256"), layer("Add-1")
    other = np.random.default_rng(2).standard_normal(result.shape).astype(np.float32)
    kernel: Any = loaded(name).kernel(op, [unknown(x), Value.constant(w)])
    following = [(quantize, ends, True), (add, [other], False), (quantize, ends, True)]
    wanted = result
    for after, extras, constant in following:
        more = [Value.constant(extra) if constant else unknown(extra) for extra in extras]
        kernel = kernel.fuse(after, [unknown(result), *more], 0)
        assert kernel is not None
        wanted = evaluate(after, wanted, *extras)
    same_bits(run(name, kernel, x, w, *ends, other, *ends), wanted)


test_the_same_with_other_vectors = same_with_other_vectors(__file__)
