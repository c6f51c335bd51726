"""Which constants stay compressed, and which are folded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ir_runtime as ir
from ir_runtime import opset13
from ir_runtime.compiler.program import StoredWeights
from ir_runtime.compiler.quantized_weights import find_quantized_weights
from ir_runtime.ir.tensor import Array


def stored(kind: Any, rows: int) -> bool:
    """Return whether a table of 64 columns, read by Gather, stays compressed."""
    indices = opset13.parameter([-1], np.int64, name="indices")
    table = opset13.convert(opset13.constant(np.zeros((rows, 64), kind)), "f32")
    model = ir.Model([opset13.gather(table, indices, 0)], [indices])
    graph, types = model._graph, model._values
    return bool(find_quantized_weights(graph, graph.layers.values(), types, (), {"Gather"}))


@pytest.mark.parametrize(("kind", "rows"), [(np.int8, 16), (np.float16, 1024)], ids=["i8", "f16"])
def test_small_weights_are_folded(kind: Any, rows: int) -> None:
    """Keeping 16-bit weights is worth it only above 128 KiB; narrower types save more memory, and time."""
    assert stored(kind, rows)
    assert not stored(kind, rows - 1)


RNG = np.random.default_rng(0)
CODES = RNG.integers(-100, 100, (32, 64)).astype(np.int8)
SCALE, ZERO, SPLIT_SCALE = (
    (RNG.integers(1, 9, shape) / 8).astype(np.float32) for shape in ((32, 1), (32, 1), (32, 4, 1))
)
ROUNDED = SCALE + np.float32(1e-4)
Make = Callable[[], Any]


def constant(array: Array) -> Any:
    return opset13.constant(array)


def to(node: Any, element: str = "f32") -> Any:
    return opset13.convert(node, element)


def codes(element: str = "f32") -> Any:
    return to(constant(CODES), element)


def scaled(node: Any, scale: Any = SCALE) -> Any:
    return opset13.multiply(node, constant(scale) if isinstance(scale, np.ndarray) else scale)


def shifted(node: Any, zero: Any = ZERO) -> Any:
    return opset13.subtract(node, constant(zero) if isinstance(zero, np.ndarray) else zero)


def reshaped(node: Any, *shape: int) -> Any:
    return opset13.reshape(node, constant(np.array(shape)), False)


def found(table: Any, **how: Any) -> list[StoredWeights]:
    """Return the tables that are found, of a model that gathers rows of one."""
    indices = opset13.parameter([-1], np.int64, name="indices")
    model = ir.Model([opset13.gather(table, indices, 0), *how.get("more", ())], [indices])
    graph, types = model._graph, model._values
    layers = [layer for layer in graph.layers.values() if layer.type not in how.get("unneeded", ())]
    outputs = {graph.sources(layer)[0] for layer in graph.layers.values() if layer.type == "Result"}
    return [*find_quantized_weights(graph, layers, types, outputs, {"Gather"}).values()]


GROUPED = CODES.reshape(32, 4, 16)
F16 = np.float16
KEPT: dict[str, Make] = {
    "codes": codes,
    "scale": lambda: scaled(codes()),
    "zero point": lambda: shifted(codes()),
    "both": lambda: scaled(shifted(codes())),
    "groups": lambda: reshaped(scaled(to(constant(GROUPED)), SPLIT_SCALE), 32, 64),
    "in f16": lambda: to(scaled(shifted(codes("f16"), ZERO.astype(F16)), SCALE.astype(F16))),
    "scale of f16": lambda: scaled(codes(), to(constant(SCALE.astype(F16)))),
    "zero point of u8": lambda: scaled(shifted(codes(), to(constant((8 * ZERO).astype(np.uint8))))),
    "scale reshaped": lambda: scaled(codes(), reshaped(constant(SCALE.ravel()), 32, 1)),
    "rounded scale": lambda: scaled(codes(), to(to(constant(ROUNDED), "f16"))),
}
EXPECTED: dict[str, Array] = {
    "codes": CODES.astype("f4"),
    "zero point": CODES - ZERO,
    "both": (CODES - ZERO) * SCALE,
    "groups": (GROUPED * SPLIT_SCALE).reshape(32, 64),
    "in f16": (CODES - ZERO) * SCALE,
    "zero point of u8": (CODES - 8 * ZERO) * SCALE,
    "rounded scale": CODES * ROUNDED.astype(F16).astype("f4"),
}


@pytest.mark.parametrize("name", KEPT)
def test_codes_with_what_they_are_dequantized_by(name: str) -> None:
    (stored_weights,) = found(KEPT[name]())
    weights = stored_weights.weights
    assert weights.element.label == "i8"
    assert weights.arithmetic.label == ("f16" if name == "in f16" else "f32")
    assert weights.shape == (32, 64)
    assert {layer.type for layer in stored_weights.layers} <= {"Convert", "Multiply", "Subtract", "Reshape"}
    assert isinstance(weights.codes, np.ndarray)
    numbers = weights.codes - np.float32(0 if weights.zero is None else weights.zero)
    if weights.scale is not None:
        assert weights.scale.dtype == (F16 if name == "in f16" else np.float32)
        numbers = numbers * weights.scale
    expected = EXPECTED.get(name, CODES * SCALE)
    np.testing.assert_array_equal(numbers.reshape(32, 64), expected.astype(numbers.dtype))


HALVES = RNG.standard_normal((512, 128)).astype(F16)
FOLDED: dict[str, Make] = {
    "no codes": lambda: scaled(constant(CODES.astype("f4"))),
    "scaled twice": lambda: scaled(scaled(codes())),
    "shifted twice": lambda: shifted(shifted(codes())),
    "scaled before it is shifted": lambda: shifted(scaled(codes())),
    "scaled after it is reshaped": lambda: scaled(reshaped(to(constant(GROUPED)), 32, 64)),
    "reshaped twice": lambda: reshaped(reshaped(codes(), 64, 32), 32, 64),
    "three axes": lambda: scaled(to(constant(GROUPED)), SPLIT_SCALE),
    "in f16 to the end": lambda: scaled(codes("f16"), SCALE.astype(F16)),
    "rounded at the end": lambda: to(to(scaled(codes()), "f16")),
    "two types of arithmetic": lambda: scaled(to(shifted(codes("f16"), ZERO.astype(F16)))),
    "integers on the way": lambda: to(codes("i32")),
    "halves with a zero point": lambda: shifted(to(constant(HALVES)), np.float32([[1]])),
    "halves in other halves": lambda: to(to(constant(HALVES), "bf16")),
}


@pytest.mark.parametrize("name", FOLDED)
def test_what_no_kernel_could_read_is_folded(name: str) -> None:
    assert found(FOLDED[name]()) == []


def test_scales_that_depend_on_inputs_are_multiplied() -> None:
    scale = opset13.parameter([32, 1], np.float32, name="scale")
    indices = opset13.parameter([-1], np.int64, name="indices")
    table = scaled(codes(), opset13.relu(scale))
    model = ir.Model([opset13.gather(table, indices, 0)], [indices, scale])
    graph = model._graph
    assert find_quantized_weights(graph, graph.layers.values(), model._values, (), {"Gather"}) == {}


def test_what_others_read_is_folded() -> None:
    table = scaled(codes())
    assert len(found(table)) == 1
    assert found(table, more=[table]) == [], "an output of the model"
    assert found(table, more=[opset13.relu(table)]) == [], "a layer that takes no codes"
    assert len(found(table, more=[opset13.relu(table)], unneeded=["ReLU"])) == 1, "one that is not run"
    inner = codes()
    assert found(scaled(inner), more=[opset13.relu(inner)]) == [], "a layer that reads what is on the way"
    assert found(scaled(inner), more=[inner]) == []
    shared = constant(CODES)
    more = [opset13.relu(to(shared))]
    assert len(found(scaled(to(shared)), more=more)) == 1, "of the codes, there may be several readers"
