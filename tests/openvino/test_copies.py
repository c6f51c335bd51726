"""Pickles and copies of models, compiled models and results, as sent between processes."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ir_runtime as ov
from ir_runtime import opset13 as ops

COPIES: dict[str, Callable[[Any], Any]] = {
    "pickle": lambda thing: pickle.loads(pickle.dumps(thing)),
    "deepcopy": copy.deepcopy,
}


def model() -> ov.Model:
    """Two outputs of a dynamic input, with names, a layout and runtime information."""
    x = ops.parameter([2, -1], "f32", name="x")
    x.output(0).set_names({"in"})
    first, second = ops.relu(x, name="first"), ops.exp(x, name="second")
    first.output(0).set_names({"positive"})
    built = ov.Model([first, second], [x], "both")
    ov.layout_helpers.set_layout(built.input(0), ov.Layout("NC"))
    built.set_rt_info("mine", "owner")
    return built


@pytest.fixture(params=COPIES)
def copied(request: pytest.FixtureRequest) -> Callable[[Any], Any]:
    return COPIES[request.param]


X = np.float32([[1, -1, 0], [0, 2, -3]])


def test_models(copied: Callable[[Any], Any]) -> None:
    other = copied(model())
    assert (other.friendly_name, str(other.inputs), other.input("in").names) == (
        "both",
        str(model().inputs),
        {"in"},
    )
    assert ov.layout_helpers.get_layout(other.input(0)) == ov.Layout("NC")
    assert other.get_rt_info("owner").value == "mine"
    assert np.array_equal(ov.compile_model(other)(X)["positive"], np.maximum(X, 0))


def test_a_copied_model_is_independent(copied: Callable[[Any], Any]) -> None:
    original = model()
    copied(original).reshape([2, 3])
    assert original.input().partial_shape == ov.PartialShape([2, -1])


def test_compiled_models(copied: Callable[[Any], Any]) -> None:
    config = {"INFERENCE_PRECISION_HINT": "f32", "NUM_STREAMS": 1, "PERF_COUNT": True}
    compiled = ov.compile_model(model(), config=config, backend="numpy", strict=True, outputs="second")
    other = copied(compiled)
    assert (other.backend, other.strict, other.config) == ("numpy", True, compiled.config)
    assert str(other) == str(compiled)
    assert all(np.array_equal(a, b) for a, b in zip(other(X).to_tuple(), compiled(X).to_tuple(), strict=True))


def test_copies_of_compiled_models_start_with_initial_variables(copied: Callable[[Any], Any]) -> None:
    info = ov.op.util.VariableInfo()
    info.data_shape, info.data_type, info.variable_id = ov.PartialShape([1]), ov.Type.f32, "sum"
    variable, x = ov.op.util.Variable(info), ops.parameter([1], "f32", "x")
    total = ops.add(ov.op.read_value(ops.constant(np.zeros(1, np.float32)), variable), x)
    compiled = ov.compile_model(ov.Model([total], [ov.op.assign(total, variable)], [x], [variable], "sum"))
    one = np.ones(1, np.float32)
    compiled(one)
    assert copied(compiled)(one)[0].tolist() == [1]
    assert compiled(one)[0].tolist() == [2]


def test_results(copied: Callable[[Any], Any]) -> None:
    results = ov.compile_model(model())(X)
    other = copied(results)
    assert isinstance(other, ov.utils.data_helpers.OVDict)
    assert repr(other) == repr(results)
    for key in (0, 1, "positive", "second"):
        assert np.array_equal(other[key], results[key])
    assert list(other) != list(results)
    assert np.array_equal(other[list(other)[1]], results[1])


def test_results_of_strings(copied: Callable[[Any], Any]) -> None:
    x = ops.parameter([2], ov.Type.string, name="x")
    results = ov.compile_model(ov.Model([x], [x]))([np.array(["a", "ü"])])
    assert copied(results)[0].tolist() == ["a", "ü"]
