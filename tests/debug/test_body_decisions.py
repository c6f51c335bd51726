"""Decisions inside bodies: those of a side cannot be observed, so the ones that rounding leaves open are tried."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
import pytest
from harness.nets import Net, body_of
from openvino import opset13 as op

import ir_runtime as ir
from ir_runtime import debug
from ir_runtime.ir.tensor import Array


def _squared_then_looped() -> ir.Model:
    """X squared, then doubled three times in a Loop; a layer of its body has the id of an outer one."""
    net = Net()
    squared = net.op("Multiply", x := net.parameter("x", "2"), x, name="squared", out="FP32 2")
    return _looped(net, squared, 3, lambda inner, x: inner.op("Add", x, x, name="twice", out="FP32 2"))


def _looped(net: Net, x: Any, trips: int, step: Callable[[Net, Any], Any], size: int = 2) -> ir.Model:
    inner, port = Net(), f"FP32 {size}"
    inner.result(step(inner, inner.parameter("round", str(size), out=port)), name="given")
    result = len(inner.layers) - 1
    inner.weights = net.weights = b"\x01" + net.weights[1:]
    inner.result(inner.op("Const", element_type="boolean", shape="", offset=0, size=1, out="BOOL"))
    start = net.op("Const", element_type="boolean", shape="", offset=0, size=1, out="BOOL")
    ports = (
        '<port_map><input external_port_id="2" internal_layer_id="0"/>'
        f'<output external_port_id="3" internal_layer_id="{result}"/>'
        f'<output external_port_id="-1" internal_layer_id="{result + 2}" purpose="execution_condition"/></port_map>'
        f'<back_edges><edge from-layer="{result}" to-layer="0"/></back_edges>'
    )
    inside = ports + body_of(inner)
    out = net.layer("Loop", [net.constant(trips), start, x], [port], version="opset5", inside=inside)
    net.result(out[0])
    return ir.read_model(net.xml(), net.weights)


@pytest.mark.parametrize("side", ["reference", "numpy"])
def test_a_layer_of_a_body_is_not_taken_for_one_outside_with_its_id(side: str) -> None:
    report = debug.compare(_squared_then_looped(), np.float32([2, 3]), side)
    assert "squared" in [unit.name for unit in report.units]
    assert report.explained, str(report)


def _floored(size: int = 2) -> ir.Model:
    """Floor of 10 x in a Loop: for x = 0.7 it is 7 in f32 and 6 in f64, as f32 rounds 0.7 down."""

    def step(inner: Net, x: Any) -> Any:
        ten = inner.op("Const", element_type="f32", shape="1", offset=8, size=4, out="FP32 1")
        return inner.op(
            "Floor", inner.op("Multiply", x, ten, out=f"FP32 {size}"), name="floored", out=f"FP32 {size}"
        )

    net = Net()
    net.weights = b"\0" * 8 + np.float32([10]).tobytes()
    return _looped(net, net.parameter("x", str(size), out=f"FP32 {size}"), 1, step, size)


X = np.float32([0.7, 0.75])


@pytest.mark.parametrize("inside", [False, True], ids=["outputs", "with_the_layer"])
@pytest.mark.parametrize(
    ("found", "verdict"),
    [((7, 7), "explained"), ((6, 7), "explained"), ((6, 8), "unexplained"), ((7, 6), "unexplained")],
)
def test_what_rounding_leaves_open_is_explained_either_way(
    found: tuple[int, int], verdict: str, inside: bool
) -> None:
    model = _floored()
    assert debug.oracle(model, X).outputs[0].tolist() == [6, 7]
    assert ir.compile_model(model, backend="reference")(X)[0].tolist() == [7, 7]
    array = np.float32(found)
    report = debug.compare(model, X, {0: array, "loop": array} if inside else [array])
    assert report.verdict == verdict, str(report)
    assert bool(report.units) == inside
    (decision,) = report.decisions
    assert (decision.of, decision.undecided, decision.unexplained) == (2, 1, 0)
    assert decision.layers == ("loop",)
    assert decision.name.endswith("floored")
    assert "rounding leaves 1 open" in str(report)
    assert json.loads(report.to_json())["untried"] == []


@pytest.mark.parametrize(("size", "verdict"), [(2, "unexplained"), (3, "doubtful")])
def test_more_than_can_be_tried_are_doubtful(
    size: int, verdict: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With too many open decisions the verdict is "doubtful"; with fewer, a fault is found."""
    monkeypatch.setattr(import_module("ir_runtime.debug.compare"), "TRIES", 2)
    model, x = _floored(size), np.full(size, 0.7, np.float32)
    report = debug.compare(model, x, [np.full(size, 5, np.float32)])
    assert report.verdict == verdict
    assert report.untried == (("loop",) if size > 2 else ())
    assert ("more of these in 'loop' than were tried" in str(report)) == bool(report.untried)


def _shrinking(folder: Path) -> tuple[ir.Model, Array]:
    """Multiply x by 0.7 while the sum is above a limit, which it meets after three iterations."""
    x, step = op.parameter([4], np.float32, name="x"), op.parameter([4], np.float32)
    smaller = op.multiply(step, op.constant(np.float32(0.7)))
    found = np.full(4, 10, np.float32)
    for _ in range(3):
        found = found * np.float32(0.7)
    sum = op.reduce_sum(smaller, op.constant([0]), False)
    above = op.greater(sum, op.constant(found.sum(dtype=np.float32)))
    loop = op.loop(op.constant(-1), op.constant(True))
    loop.set_function(ov.Model([above, smaller], [step]))
    loop.set_special_body_ports([-1, 0])
    loop.set_merged_input(step.output(0).get_node(), x.output(0), smaller.output(0))
    loop.get_iter_value(smaller.output(0), -1)
    ov.save_model(ov.Model([loop.output(0)], [x]), folder / "net.xml", compress_to_fp16=False)
    return ir.read_model(folder / "net.xml"), np.full(4, 10, np.float32)


@pytest.mark.parametrize(
    ("rounds", "verdict"), [(2, "unexplained"), (3, "explained"), (4, "explained"), (5, "unexplained")]
)
def test_a_loop_may_end_a_round_earlier_or_later(rounds: int, verdict: str, tmp_path: Path) -> None:
    model, x = _shrinking(tmp_path)
    found = x
    for _ in range(rounds):
        found = found * np.float32(0.7)
    report = debug.compare(model, x, [found])
    assert report.verdict == verdict, str(report)
