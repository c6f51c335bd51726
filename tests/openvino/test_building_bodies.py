"""Branches and loops built by the same program with OpenVINO and with this package."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import openvino
import pytest

import ir_runtime
from ir_runtime.ir.tensor import Array

X = np.arange(6, dtype=np.float32).reshape(3, 2)
EXACT = {"INFERENCE_PRECISION_HINT": "f32"}


def controlled(ov: Any) -> Any:
    """A model that sums rows in a loop, accumulates five iterations, and takes one of two branches."""
    ops = import_module(f"{ov.__name__}.opset13")
    x = ops.parameter([3, 2], np.float32, name="x")
    row, total = ops.parameter([1, 2], np.float32), ops.parameter([1, 2], np.float32)
    summed = ops.result(ops.add(row, total))
    rows = ops.tensor_iterator()
    rows.set_body(ov.Model([summed], [row, total]))
    rows.set_sliced_input(row, x.output(0), 0, 1, 1, -1, 0)
    zeros = ops.constant(np.zeros((1, 2), np.float32))
    rows.set_merged_input(total, zeros.output(0), summed.output(0))
    last = rows.get_iter_value(summed.output(0), -1)
    every = rows.get_concatenated_slices(summed.output(0), 0, 1, 1, -1, 0)

    loop = ops.loop(ops.constant(np.int32(5)), ops.constant(True))
    number, held = ops.parameter([], np.int64), ops.parameter([1, 2], np.float32)
    scale = ops.parameter([1], np.float32)
    grown = ops.multiply(ops.add(held, ops.convert(number, "f32")), scale)
    loop.set_function(ov.Model([ops.result(ops.constant(True)), ops.result(grown)], [number, held, scale]))
    loop.set_special_body_ports([0, 0])
    loop.set_merged_input(held, last, grown.output(0))
    loop.set_invariant_input(scale, ops.constant(np.float32([2])).output(0))
    final = loop.get_iter_value(grown.output(0), -1)

    condition = ops.parameter([], bool, name="condition")
    a, b = ops.parameter([1, 2], np.float32), ops.parameter([1, 2], np.float32)
    kept, turned = ops.result(ops.relu(a)), ops.result(ops.negative(b))
    branch = ops.if_op(condition.output(0))
    branch.set_then_body(ov.Model([kept], [a]))
    branch.set_else_body(ov.Model([turned], [b]))
    branch.set_input(final, a, b)
    chosen = branch.set_output(kept, turned)
    return ov.Model([last, every, final, chosen], [x, condition], "controlled")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The model as built and saved by OpenVINO, and by this package."""
    folder = tmp_path_factory.mktemp("bodies")
    openvino.save_model(controlled(openvino), folder / "theirs.xml", compress_to_fp16=False)
    ir_runtime.save_model(controlled(ir_runtime), folder / "ours.xml")
    return folder / "theirs.xml", folder / "ours.xml"


def results(ov: Any, model: Any, condition: bool) -> tuple[Array, ...]:
    inputs = [X, np.array(condition)]
    return ov.compile_model(model, "CPU", EXACT)(inputs).to_tuple()  # type: ignore[no-any-return]


@pytest.mark.parametrize("condition", [True, False])
def test_results_are_equal(files: tuple[Path, Path], condition: bool) -> None:
    wanted = results(openvino, controlled(openvino), condition)
    found = [results(ir_runtime, controlled(ir_runtime), condition)]
    found += [results(ov, file, condition) for file in files for ov in (openvino, ir_runtime)]
    for each in found:
        for ours, theirs in zip(each, wanted, strict=True):
            np.testing.assert_array_equal(ours, theirs)


def described(model: Any) -> list[object]:
    """Return what the API shows of the loop: its shapes, ports and body."""
    (loop,) = (node for node in model.get_ops() if node.get_type_name() == "Loop")
    body = loop.get_function()
    fields = ("input_index", "body_parameter_index", "body_value_index")
    return [
        [str(port.get_partial_shape()) for port in loop.outputs()],
        loop.get_special_body_ports(),
        loop.get_num_iterations(),
        [[getattr(d, f) for f in fields if hasattr(d, f)] for d in loop.get_input_descriptions()],
        [(d.body_value_index, d.output_index) for d in loop.get_output_descriptions()],
        [str(p.get_partial_shape()) for p in body.get_parameters()],
        sorted(node.get_type_name() for node in body.get_ops()),
    ]


def test_nodes_of_files_have_their_bodies(files: tuple[Path, Path]) -> None:
    """Bodies are there even if the program imports no module of operations."""
    program = f"""
import ir_runtime
nodes = ir_runtime.read_model({str(files[0])!r}).get_ordered_ops()
print(*(f"{{node.type}} {{type(node.get_function(0)).__name__}}" for node in nodes if hasattr(node, "get_function")))
"""
    run = [sys.executable, "-c", program]
    said = subprocess.run(run, check=True, capture_output=True, text=True).stdout
    assert said.split() == ["TensorIterator", "Model", "Loop", "Model", "If", "Model"]


def test_what_is_seen_of_a_loop(files: tuple[Path, Path]) -> None:
    wanted = described(openvino.Core().read_model(files[0]))
    assert described(ir_runtime.read_model(files[0])) == wanted
    assert described(ir_runtime.read_model(files[1])) == wanted
    assert described(controlled(ir_runtime)) == wanted


def test_bodies_that_were_read_can_be_changed(files: tuple[Path, Path], tmp_path: Path) -> None:
    """Each iteration then doubles twice, in memory and in the saved file."""
    found = []
    for ov in (openvino, ir_runtime):
        ops = import_module(f"{ov.__name__}.opset13")
        model: Any = ov.Core().read_model(files[0])
        (loop,) = (node for node in model.get_ops() if node.get_type_name() == "Loop")
        loop.set_friendly_name("another")
        (product,) = (n for n in loop.get_function().get_ops() if n.get_type_name() == "Multiply")
        readers = product.output(0).get_target_inputs()
        doubled = ops.multiply(product, np.float32(2))
        for reader in readers:
            reader.replace_source_output(doubled.output(0))
        found.append(results(ov, model, True)[2])
    np.testing.assert_array_equal(*found)
    ir_runtime.save_model(model, tmp_path / "changed.xml")
    np.testing.assert_array_equal(results(openvino, tmp_path / "changed.xml", True)[2], found[0])


def test_wrong_bodies_are_refused() -> None:
    ops = ir_runtime.opset13
    a, other = ops.parameter([1], np.float32), ops.parameter([1], np.float32)
    branch = ir_runtime.op.if_op(ops.constant(True))
    with pytest.raises(ir_runtime.InputError, match="has no then_body yet"):
        branch.get_then_body()
    branch.set_then_body(ir_runtime.Model([ops.relu(a)], [a]))
    with pytest.raises(ir_runtime.InputError, match="is not a Parameter of the body"):
        branch.set_input(other.output(0), other, None)
    with pytest.raises(ir_runtime.InputError, match="is not given by a Result of the body"):
        branch.set_output(ops.result(other), ops.result(other))


@pytest.mark.parametrize("first", ["int64", "float32"])
def test_iter_values_have_the_element_type_that_comes_round(first: str) -> None:
    """The Parameter keeps the type of the initial value; the back edge may have another one."""

    def described(ov: Any) -> tuple[str, ...]:
        ops = import_module(f"{ov.__name__}.opset13")
        x, held = (ops.parameter([1], np.dtype(first).type) for _ in range(2))
        given = ops.convert(ops.exp(ops.convert(held, "f32")), "f16")
        loop = ops.loop(ops.constant(np.int32(5)), ops.constant(True))
        loop.set_function(ov.Model([ops.result(ops.constant(True)), ops.result(given)], [held]))
        loop.set_special_body_ports([-1, 0])
        loop.set_merged_input(held, x.output(0), given.output(0))
        values = (
            loop.get_iter_value(given.output(0), -1),
            loop.get_concatenated_slices(given.output(0), 0, 1, 1, -1, 0),
        )
        return *(
            value.get_element_type().to_string() for value in values
        ), held.get_element_type().to_string()

    assert described(ir_runtime) == described(openvino)
