"""Models computed in f64."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from harness.nets import Net
from models.networks import NETWORKS, save

import ir_runtime as ir
from ir_runtime import debug
from ir_runtime import opset13 as op
from ir_runtime.cli import main
from ir_runtime.debug.decisions import decides
from ir_runtime.debug.reference import Reference


@pytest.mark.parametrize("name", NETWORKS)
def test_f32_is_within_rounding_of_it(name: str, tmp_path: Path) -> None:
    model, inputs = ir.read_model(save(name, tmp_path)), NETWORKS[name][1]()
    truth = debug.oracle(model, inputs)
    found = ir.compile_model(model, backend="reference")(inputs).to_tuple()
    for exact, rounded in zip(truth.outputs, found, strict=True):
        assert exact.dtype == np.float64
        off = np.sqrt(np.mean((exact - rounded) ** 2)) / np.sqrt(np.mean(exact**2))
        assert 0 < off < 1e-6


def _sums() -> ir.Model:
    """X + 1e8 - 1e8, which loses x in f32."""
    net = Net()
    x = net.parameter("x", "2")
    large = net.constant(np.float32([1e8]), "f32")
    y = net.op("Subtract", net.op("Add", x, large), large)
    net.layer("Result", [y])
    return ir.read_model(net.xml(), net.weights)


def test_what_f32_loses_is_there() -> None:
    model = _sums()
    x = np.float32([0.25, 3])
    assert ir.compile_model(model)(x)[0].tolist() == [0, 0]
    assert debug.oracle(model, x).outputs[0].tolist() == [0.25, 3]


def _converted() -> ir.Model:
    net = Net()
    x = net.parameter("x", "2")
    third = net.op("Multiply", x, net.constant(np.float32([1 / 3]), "f32"))
    whole = net.op("Convert", third, destination_type="i32", name="whole")
    net.layer("Result", [net.op("Convert", whole, destination_type="f32")])
    return ir.read_model(net.xml(), net.weights)


def test_decisions_are_those_that_are_given() -> None:
    model = _converted()
    x = np.float32([3, 9])
    free = debug.oracle(model, x, layers="whole")
    assert free["whole"].tolist() == [1, 3]  # 1/3 in f32 is a little more than a third
    pinned = debug.oracle(model, x, pin={"whole": np.int32([0, 3])})
    assert pinned.outputs[0].tolist() == [0, 3]


def test_which_layers_decide() -> None:
    reference = Reference(_converted())
    deciding = [la.type for la in reference.graph if decides(reference.graph, reference.types, la)]
    assert deciding == ["Convert"]


def _declared_f16() -> ir.Model:
    """A third of x, declared as f16."""
    net = Net()
    narrow = net.op("Convert", net.parameter("x", "2"), destination_type="f16", name="narrow")
    third = net.op("Multiply", narrow, net.constant(np.float16([1 / 3]), "f16"), name="third")
    net.result(net.op("Convert", third, destination_type="f32", name="wide"))
    return ir.read_model(net.xml(), net.weights)


def test_declared_types_are_rounded_to_where_that_is_asked_for() -> None:
    model, x = _declared_f16(), np.float32([1.0001, 3])
    real = x.astype(np.float64) * np.float64(np.float16(1 / 3))
    declared = (x.astype(np.float16) * np.float16(1 / 3)).astype(np.float64)
    assert (real != declared).all()
    np.testing.assert_array_equal(debug.oracle(model, x).outputs[0], real)
    np.testing.assert_array_equal(debug.oracle(model, x, types="declared").outputs[0], declared)


def test_a_side_that_rounds_as_declared_is_exact_then() -> None:
    model, x = _declared_f16(), np.float32([1.0001, 3])
    rounded, computed_through = (
        {0: debug.oracle(model, x, types=t).outputs[0]} for t in ("declared", "real")
    )
    assert debug.compare(model, x, rounded, types="declared").outputs[0].relative == 0
    assert debug.compare(model, x, computed_through, types="declared").verdict == "unexplained"
    assert debug.compare(model, x, computed_through).outputs[0].relative == 0


def test_unknown_types_are_refused() -> None:
    with pytest.raises(ir.InputError, match="unknown types 'ideal'"):
        debug.oracle(_declared_f16(), np.float32([1, 2]), types="ideal")


def test_unknown_layers_are_refused() -> None:
    with pytest.raises(ir.InputError, match="unknown layer or tensor 'whoel'"):
        debug.oracle(_converted(), np.float32([1, 2]), layers="whoel")


def test_the_command_saves_what_it_computes(tmp_path: Path) -> None:
    path = save("plain_cnn", tmp_path)
    target = tmp_path / "truth.npz"
    done = CliRunner().invoke(main, ["oracle", str(path), "--random", "-o", str(target)])
    assert done.exit_code == 0, done.output
    with np.load(target) as saved:
        (array,) = saved.values()
    assert array.dtype == np.float64
    assert array.sum() == pytest.approx(2)  # two rows of probabilities


@pytest.mark.parametrize(("against", "code"), [("numpy", 0), ("wrong.npz", 1)])
def test_the_command_ends_with_the_verdict(against: str, code: int, tmp_path: Path) -> None:
    path, inputs = save("plain_cnn", tmp_path), NETWORKS["plain_cnn"][1]()
    np.save(tmp_path / "x.npy", inputs[0])
    np.savez(tmp_path / "wrong.npz", **{"0": np.zeros((2, 10), np.float32)})
    side = ["--results", str(tmp_path / against)] if against.endswith("npz") else ["--against", against]
    done = CliRunner().invoke(main, ["compare", str(path), "-i", str(tmp_path / "x.npy"), *side])
    assert done.exit_code == code, done.output
    assert done.output.startswith("unexplained: ") == bool(code)


def test_what_refuses_f64_and_selects_is_computed_within_limits(tmp_path: Path) -> None:
    """The result types of NonMaxSuppression are inferred again at run time, to bound its memory."""
    boxes, scores = (
        op.parameter([1, -1, 4], np.float32, "boxes"),
        op.parameter([1, 1, -1], np.float32, "scores"),
    )
    bounds = op.constant(np.float32(0.5)), op.constant(np.float32(0))
    found = op.non_max_suppression(boxes, scores, op.constant(100_000), *bounds)
    ir.save_model(ir.Model([found.output(0), found.output(1)], [boxes, scores]), tmp_path / "net.xml")
    model = ir.read_model(tmp_path / "net.xml", limits=ir.Limits(memory=20_000_000))
    corners = np.random.default_rng(0).random((1, 400, 4)).astype(np.float32)
    inputs = [corners, np.linspace(0, 1, 400, dtype=np.float32).reshape(1, 1, -1)]
    wanted = ir.compile_model(model, backend="reference")(inputs)
    truth = debug.oracle(model, inputs)
    np.testing.assert_array_equal(truth.outputs[0], wanted[0])
    np.testing.assert_array_equal(truth.outputs[1], wanted[1].astype(np.float64))
