"""The overhead of a trivial layer is small, and its result is right."""

from __future__ import annotations

import numpy as np
import pytest
from harness.layers import calls
from harness.nets import End, Net

import ir_runtime as ir
from ir_runtime.backends import available
from ir_runtime.ir.tensor import Array

X: Array = np.array([[-2.5, np.nan, 0, 3]], np.float32)
BINARY = {"Add": 1, "Subtract": 3, "Multiply": -2, "Divide": 4, "Maximum": 0.5, "Minimum": 2}
UNARY = ("ReLU", "Abs", "Negative", "Floor", "Tanh", "Sign", "Exp")


def chain(types: list[str], shape: str = "1,4", first: bool = True) -> ir.Model:
    """Return a chain of layers; the constant is the first or the second input."""
    net = Net()
    dims = "FP32 " + shape.replace(",", " ").replace("?", "-1")
    end: End = net.parameter("x", shape.replace("?", "-1"), out=dims)
    constants = {name: net.constant([number], "f32") for name, number in BINARY.items() if name in types}
    for number, type in enumerate(types):
        others = [constants[type]] if type in BINARY else []
        ends = [*others, end] if first else [end, *others]
        end = net.op(type, *ends, out=dims, name=f"layer_{number}")
    net.result(end)
    return ir.read_model(net.xml(), net.weights)


def run(model: ir.Model, backend: str, x: Array) -> Array:
    return ir.compile_model(model, backend=backend)(x)[0]  # type: ignore[no-any-return]


@pytest.mark.parametrize("backend", available())
@pytest.mark.parametrize("shape", ["1,4", "?,4", "?,?"])
@pytest.mark.parametrize("first", [True, False])
def test_chains_agree_with_the_reference(backend: str, shape: str, first: bool) -> None:
    for types in ([a, b] for a in (*BINARY, *UNARY) for b in ("Add", "Divide", "Maximum", "ReLU", "Abs")):
        model = chain(types, shape, first)
        np.testing.assert_allclose(
            run(model, backend, X), run(model, "reference", X), 1e-5, 1e-6, err_msg=str(types)
        )


def test_a_chain_does_not_change_its_input() -> None:
    x = X.copy()
    run(chain(["Abs", "Add", "ReLU"]), "numpy", x)
    np.testing.assert_array_equal(x, X)


@pytest.mark.parametrize("types", [["ReLU"], ["Add"], ["Abs", "Multiply"]])
def test_a_trivial_layer_costs_two_calls(types: list[str]) -> None:
    """Two calls take about 1.5 µs (tests/bench/chain.py)."""
    layers = 2000
    compiled = ir.compile_model(chain(types * (layers // len(types))), backend="numpy")
    compiled(X)
    assert calls(lambda: compiled(X)) < 2 * layers + 300


def perceptron(rows: str, layers: int) -> ir.Model:
    """Dense layers on rows of four elements."""
    net = Net()
    dims = f"FP32 {rows.replace('?', '-1')} 4"
    weights, bias = net.constant(np.eye(4, dtype=np.float32) / 2, "f32"), net.constant([[1, 2, 3, 4]], "f32")
    end: End = net.parameter("x", f"{rows.replace('?', '-1')},4", out=dims)
    for _ in range(layers):
        end = net.op("MatMul", end, weights, transpose_b="true", out=dims)
        end = net.op("ReLU", net.op("Add", end, bias, out=dims), out=dims)
    net.result(end)
    return ir.read_model(net.xml(), net.weights)


@pytest.mark.parametrize("backend", available())
@pytest.mark.parametrize("rows", ["3", "?"])
def test_dense_layers_of_few_numbers_agree_with_the_reference(rows: str, backend: str) -> None:
    x = np.array([[-2.5, np.nan, 0, 3], [1, np.inf, 2, 3], [1, 2, -3, 4]], np.float32)
    model = perceptron(rows, 3)
    np.testing.assert_allclose(run(model, backend, x), run(model, "reference", x), 1e-6)


@pytest.mark.parametrize(("rows", "most"), [("3", 11), ("?", 15)])
def test_a_dense_layer_of_few_numbers_costs_few_calls(rows: str, most: int) -> None:
    layers = 200
    compiled = ir.compile_model(perceptron(rows, layers), backend="numpy")
    x = np.zeros((3, 4), np.float32)
    compiled(x)
    assert calls(lambda: compiled(x)) < most * layers + 300


@pytest.mark.parametrize("backend", available())
def test_a_call_of_a_small_model_makes_few_calls(backend: str) -> None:
    """Everything around the only layer (inputs, limits, threads, results) takes 17 to 22 µs."""
    of_threads = 6 if backend == "native" else 0
    compiled = ir.compile_model(chain(["ReLU"]), backend=backend)
    request = compiled.create_infer_request()
    request.set_input_tensor(ir.Tensor(X))
    for run, most in (
        (lambda: compiled(X), 72),
        (lambda: compiled([X]), 72),
        (lambda: compiled.infer_new_request({"x": X}), 75),
        (lambda: request.infer(), 75),
        (lambda: request.infer({0: X}), 86),
    ):
        for _ in range(2):  # the second run is recorded
            run()
        assert calls(run) < most + of_threads


@pytest.mark.skipif("native" not in available(), reason="native is not installed")
def test_a_small_model_wakes_no_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    from ir_runtime.backends.native.threading import parallel

    monkeypatch.setattr(parallel, "acquire", lambda workers: pytest.fail("no kernel needs them"))
    found = run(chain(["Abs", "Multiply"]), "native", X)
    np.testing.assert_array_equal(found, run(chain(["Abs", "Multiply"]), "reference", X))


@pytest.mark.parametrize("number", [0, 1, 7, 8, 9, 20])
def test_the_layer_that_fails_is_named(number: int) -> None:
    net = Net()
    end, zero = net.parameter("x", "2", "i32", out="I32 2"), net.parameter("zero", "2", "i32", out="I32 2")
    for index in range(21):
        kind = "Divide" if index == number else "Add"
        end = net.op(kind, end, zero, out="I32 2", name=f"layer_{index}")
    net.result(end)
    compiled = ir.compile_model(ir.read_model(net.xml(), net.weights))
    with pytest.raises(ir.ExecutionError, match=rf"layer 'layer_{number}' \(Divide-1\)"):
        compiled({"x": np.zeros(2, np.int32), "zero": np.zeros(2, np.int32)})
