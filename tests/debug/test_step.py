"""Runs that pause after each layer, and replaced tensors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from harness.nets import Net
from models.networks import NETWORKS, save

import ir_runtime as ir
from ir_runtime import debug


def doubled_twice() -> ir.Model:
    net = Net()
    two = net.constant(np.float32([2]), "f32")
    first = net.op("Multiply", net.parameter("x", "2"), two, name="first")
    net.result(net.op("Multiply", first, two, name="second"))
    return ir.read_model(net.xml(), net.weights)


@pytest.mark.parametrize("backend", ["reference", "numpy"])
def test_a_patch_changes_what_the_rest_reads(backend: str) -> None:
    compiled = ir.compile_model(doubled_twice(), backend=backend)
    x = np.float32([1, 3])
    assert compiled(x)[0].tolist() == [4, 12]
    assert compiled(x, patch={"first": lambda y: y + 1})[0].tolist() == [6, 14]
    assert compiled(x, patch={"first": lambda y: None})[0].tolist() == [4, 12]
    assert compiled(x)[0].tolist() == [4, 12]


@pytest.mark.parametrize(
    ("patch", "message"),
    [
        ({"frist": lambda y: y}, "did you mean 'first'"),
        ({"first": lambda y: y[:1]}, r"the patch of layer 'first' returned the shape \[1\], expected \[2\]"),
    ],
)
def test_patches_that_do_not_fit_are_refused(patch: dict[str, object], message: str) -> None:
    with pytest.raises(ir.InputError, match=message):
        ir.compile_model(doubled_twice())(np.float32([1, 3]), patch=patch)


def test_what_a_patch_raises_is_the_callers() -> None:
    def fails(y: object) -> object:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        ir.compile_model(doubled_twice())(np.float32([1, 3]), patch={"first": fails})


def test_values_are_seen_and_replaced_layer_by_layer() -> None:
    run = debug.step(ir.compile_model(doubled_twice()), np.float32([1, 3]))
    first = next(run)
    assert (first.name, first.operation) == ("first", "Multiply-1")
    assert [array.tolist() for array in first.inputs] == [[1, 3], [2]]
    assert first.outputs[0].tolist() == [2, 6]
    first.outputs[0] = np.float32([0, 1])
    with pytest.raises(RuntimeError, match="has not ended"):
        assert run.results
    assert run.finish()[0].tolist() == [0, 2]


@pytest.mark.parametrize("name", NETWORKS)
def test_stepping_computes_what_a_run_computes(name: str, tmp_path: Path) -> None:
    model, inputs = ir.read_model(save(name, tmp_path)), NETWORKS[name][1]()
    compiled = ir.compile_model(model, backend="reference")
    results = debug.step(compiled, inputs).finish().to_tuple()
    for found, wanted in zip(results, compiled(inputs).to_tuple(), strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_variables_go_on_from_run_to_run() -> None:
    net = Net()
    initial = net.constant(np.float32([0]), "f32")
    before = net.op(
        "ReadValue", initial, version="opset6", variable_id="v", variable_type="f32", variable_shape="1"
    )
    after = net.op("Add", before, net.parameter("x", "1"), name="sum")
    assigned = net.op("Assign", after, version="opset6", variable_id="v")
    net.result(after)
    del assigned
    compiled = ir.compile_model(ir.read_model(net.xml(), net.weights))
    assert debug.step(compiled, np.float32([2])).finish()[0].tolist() == [2]
    assert compiled(np.float32([3]))[0].tolist() == [5]
