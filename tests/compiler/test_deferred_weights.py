"""Convolution weights stored as integers are dequantized only if a kernel asks for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from harness.nets import Net

import ir_runtime as ir
from ir_runtime.analysis.infer import infer
from ir_runtime.backends import available
from ir_runtime.backends.native.codegen.levels import IS_FAST
from ir_runtime.compiler import fold
from ir_runtime.compiler.fold import defer_weights
from ir_runtime.diagnostics import Diagnostics
from ir_runtime.ir.graph import Graph, Layer, Port
from ir_runtime.ir.tensor import Array, Value

RANDOM = np.random.default_rng(0)
NUMBERS = RANDOM.integers(50, 200, (256, 8, 3, 3)).astype(np.uint8)
ZERO = RANDOM.integers(100, 150, (256, 1, 1, 1)).astype(np.uint8)
SCALE = RANDOM.uniform(0.01, 0.02, (256, 1, 1, 1)).astype(np.float32)


def levels(net: Net, x: Any, out: str, low: float, high: float) -> Any:
    limits = [net.constant([limit], "f32") for limit in (low, high)]
    return net.op("FakeQuantize", x, *limits, *limits, out=out, levels="256", auto_broadcast="numpy")


def convolution(
    quantized: bool = False, zero: bool = True, also: str = "", numbers: Array = NUMBERS
) -> ir.Model:
    """A convolution with dequantized weights; ``also`` names further model outputs."""
    net, kind = Net(), f"FP32 {len(numbers)} 8 3 3"
    x = net.parameter("x", "1,8,8,8", out="FP32 1 8 8 8")
    named = {
        "codes": net.op(
            "Convert", net.constant(numbers, "u8"), out=kind, destination_type="f32", name="codes"
        )
    }
    w = named["codes"]
    if zero:
        moved = net.op(
            "Convert",
            net.constant(ZERO[: len(numbers)], "u8"),
            out=f"FP32 {len(numbers)} 1 1 1",
            destination_type="f32",
            name="zero",
        )
        w = net.op("Subtract", w, moved, out=kind, name="moved")
        named["zero"] = moved
    w = named["weights"] = net.op(
        "Multiply", w, net.constant(SCALE[: len(numbers)], "f32"), out=kind, name="weights"
    )
    data = levels(net, x, "FP32 1 8 8 8", -1.28, 1.27) if quantized else x
    out = f"FP32 1 {len(numbers)} 6 6"
    y = net.op(
        "Convolution", data, w, out=out, strides="1,1", dilations="1,1", pads_begin="0,0", pads_end="0,0"
    )
    net.result(levels(net, y, out, -38.4, 38.1) if quantized else y)
    if also:
        net.result(named[also])
    return ir.read_model(net.xml(), net.weights)


@pytest.fixture
def evaluated(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record the types of layers that are evaluated when their weights are requested."""
    found: list[str] = []
    original = fold.evaluate_constant

    def noted(graph: Graph, layer: Layer, values: Mapping[Port, Value], left: int) -> Sequence[Array]:
        found.append(layer.type)
        return original(graph, layer, values, left)

    monkeypatch.setattr(fold, "evaluate_constant", noted)
    return found


PICTURE = RANDOM.standard_normal((1, 8, 8, 8)).astype(np.float32)


@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize("zero", [False, True])
def test_a_kernel_for_f32_gets_them(zero: bool, backend: str, evaluated: list[str]) -> None:
    model = convolution(zero=zero)
    found = ir.compile_model(model, backend=backend)(PICTURE)[0]
    assert evaluated == (["Convert", "Subtract", "Multiply"] if zero else ["Convert", "Multiply"])
    wanted = ir.compile_model(model, backend="reference")(PICTURE)[0]
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-3)


@pytest.mark.skipif(not IS_FAST, reason="this processor has no kernel for integers")
def test_a_kernel_for_integers_does_not_compute_them(evaluated: list[str]) -> None:
    """Nor does a run, unless its data is not finite."""
    model = convolution(quantized=True)
    compiled = ir.compile_model(model, backend="native")
    found = [compiled(PICTURE)[0] for _ in range(3)]
    assert not evaluated
    broken = PICTURE.copy()
    broken[0, 3, 4, 5] = np.nan
    reference = ir.compile_model(model, backend="reference")
    np.testing.assert_array_equal(compiled(broken)[0], reference(broken)[0])
    assert np.abs(found - reference(PICTURE)[0]).max() < 1.001 * 0.3


def deferred(model: ir.Model, outputs: Sequence[Port] = ()) -> list[str]:
    graph = model._graph
    values = dict(infer(graph, Diagnostics()))
    return [layer.name for layer in defer_weights(graph, graph.layers.values(), values, outputs)]


def test_what_is_deferred() -> None:
    assert deferred(convolution()) == ["codes", "moved", "weights"]
    assert deferred(convolution(zero=False)) == ["codes", "weights"]


@pytest.mark.parametrize("also", ["codes", "zero", "weights"])
def test_what_others_read(also: str) -> None:
    """Intermediate results of the dequantization must have no other consumers; model outputs are computed."""
    model = convolution(also=also)
    assert bool(deferred(model)) == (also != "codes")
    (layer,) = (layer for layer in model._graph.layers.values() if layer.name == also)
    assert not deferred(model, [Port(layer.id, 0)]) or also == "zero"
    for backend in available():
        results = ir.compile_model(model, backend=backend)(PICTURE)
        weights = {"codes": NUMBERS, "zero": ZERO, "weights": (NUMBERS.astype(np.float32) - ZERO) * SCALE}
        np.testing.assert_array_equal(results[1], weights[also])


def test_small_weights_are_folded(evaluated: list[str]) -> None:
    model = convolution(numbers=NUMBERS[:8])
    assert not deferred(model)
    ir.compile_model(model, backend="numpy")
    assert not evaluated
