"""Mistakes are identified: what was done wrong in which layer, and how well that explains the results."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from bench.kinds import findings
from models.ported import KINDS

import ir_runtime as ir
from ir_runtime import debug
from ir_runtime import opset13 as op

random = np.random.default_rng(0)


def normal(*shape: int) -> ir.Node:
    return op.constant(random.standard_normal(shape).astype(np.float32))


def network() -> tuple[ir.Model, list[np.ndarray]]:
    """A small network with a place for every kind of mistake."""
    x = op.parameter([1, 4, 6, 6], np.float32, name="x")
    y = op.convolution(x, normal(4, 4, 3, 3), [1, 1], [1, 1], [1, 1], [1, 1], name="conv")
    y = op.add(y, normal(1, 4, 1, 1), name="bias")
    y = op.gelu(y, "erf", name="gelu")
    axes, sizes = op.constant(np.array([2, 3], np.int32)), op.constant(np.array([9, 9], np.int32))
    y = op.interpolate(y, sizes, "linear_onnx", "sizes", [0, 0, 0, 0], [0, 0, 0, 0], axes=axes, name="resize")
    y = op.mvn(y, op.constant([1, 2, 3]), True, 1e-5, "inside_sqrt", name="norm")
    steps = op.reshape(y, op.constant([1, 9, 36]), False, name="steps")
    state = op.constant(np.zeros((1, 1, 5), np.float32))
    parts = normal(1, 20, 36), normal(1, 20, 5), normal(1, 20)
    lengths = op.constant(np.array([9]))
    sequence = op.lstm_sequence(steps, state, state, lengths, *parts, 5, "forward", name="lstm")
    y = op.matmul(sequence.output(0), normal(5, 5), False, False, name="head")
    return ir.Model([y], [x]), [random.standard_normal((1, 4, 6, 6)).astype(np.float32)]


def test_mistakes_of_every_kind_are_located_and_named() -> None:
    found = list(findings("network", *network()))
    assert {each.mistake.kind for each in found} == {*KINDS}
    assert [str(each) for each in found if not (each.located and each.named)] == []


def test_mistakes_are_named_where_few_tensors_are_seen() -> None:
    found = list(findings("network", *network(), every=3))
    assert [str(each) for each in found if not each.located] == []
    assert sum(each.named for each in found) >= 0.8 * len(found), "\n".join(map(str, found))


def exponential(*shape: int) -> tuple[ir.Model, np.ndarray, np.ndarray]:
    """A model of one layer, its input, and its result."""
    x = op.parameter(list(shape), np.float32, name="x")
    data = random.standard_normal(shape).astype(np.float32)
    return ir.Model([op.exp(x, name="y")], [x]), data, np.exp(data)


@pytest.mark.parametrize(
    ("change", "kind", "what"),
    [
        (lambda y: y.transpose(0, 1, 3, 2), "permuted", "axes 2 and 3 swapped"),
        (
            lambda y: y.transpose(0, 2, 3, 1).reshape(y.shape),
            "permuted",
            "laid out in memory with axes in the order [0, 2, 3, 1] (NHWC)",
        ),
        (lambda y: y * np.float32(1 / 255), "factor", "times 1/255"),
        (lambda y: y + np.float32(0.5), "constant", "plus 0.5"),
        (lambda y: np.zeros_like(y), "all zero", "all zero"),
        (lambda y: np.minimum(y, 2), "clipped", "clipped above 2"),
        (lambda y: np.roll(y, 1, 2), "shift", "one late along axis 2"),
        (lambda y: np.flip(y, 1), "reversed", "reversed along axis 1"),
        (lambda y: np.tanh(np.log(y)), "activation", None),
        (
            lambda y: y + np.arange(3, dtype=np.float32).reshape(1, 3, 1, 1),
            "bias",
            "a constant added for each index of axis 1 (0 to 2)",
        ),
    ],
)
def test_the_outputs_alone_suffice(
    change: Callable[[np.ndarray], np.ndarray], kind: str, what: str | None
) -> None:
    model, data, result = exponential(2, 3, 4, 4)
    report = debug.compare(model, [data], [change(result)])
    likeness = report.likeness
    assert likeness is not None
    assert (likeness.kind, likeness.layer, likeness.operation) == (kind, "y", "Exp-1")
    assert what in (None, likeness.what)
    assert likeness.excess <= 8
    assert f"looks like: {likeness.what}, in 'y' (Exp-1) (R " in str(report)
    assert json.loads(report.to_json())["likeness"] == likeness.record()


def test_nothing_is_said_where_no_mistake_explains_or_nothing_is_wrong() -> None:
    model, data, result = exponential(2, 3, 4, 4)
    wrong = result.copy()
    wrong.flat[random.permutation(wrong.size)[:40]] += random.standard_normal(40).astype(np.float32)
    report = debug.compare(model, [data], [wrong])
    assert (report.verdict, report.likeness) == ("unexplained", None)
    assert "looks like" not in str(report)
    assert json.loads(report.to_json())["likeness"] is None
    assert debug.compare(model, [data], [result]).likeness is None


def test_numbers_are_solved_for_through_later_layers() -> None:
    """The epsilon of a normalization is found from the results of the following activation."""
    x = op.parameter([2, 3, 4, 4], np.float32, name="x")

    def model(epsilon: float) -> ir.Model:
        norm = op.mvn(x, op.constant([1, 2, 3]), True, epsilon, "inside_sqrt", name="norm")
        return ir.Model([op.relu(norm, name="y")], [x])

    data = random.standard_normal((2, 3, 4, 4)).astype(np.float32)
    theirs = ir.compile_model(model(0.03125))([data])[0]
    likeness = debug.compare(model(1e-5), [data], [theirs]).likeness
    assert likeness is not None
    assert (likeness.kind, likeness.layer) == ("epsilon", "norm")
    assert likeness.what == "eps 0.03125 instead of 1e-05"


class Device:
    """A device that doubles the output of the layer `wrong`."""

    def observe(self, model: Any, reference: Any, feeds: Any, ports: Any) -> debug.Observation:
        wrong = any(layer.name == "wrong" for layer in reference.graph)
        patch = {"wrong": lambda output: output * 2} if wrong else {}
        return debug.Observation("device", [ir.compile_model(model)(list(feeds), patch=patch)[0]])


def test_bisect_and_reduce_name_the_mistake_too() -> None:
    x = op.parameter([3, 4], np.float32, name="x")
    model = ir.Model([op.sin(op.tanh(op.exp(x, name="a"), name="wrong"), name="b")], [x])
    data = [random.standard_normal((3, 4)).astype(np.float32)]
    for found in (debug.bisect(model, data, Device()), debug.reduce(model, data, Device())):
        assert found.report.likeness is not None
        assert found.report.likeness.what == "times 2"


def pictures() -> tuple[ir.Model, np.ndarray]:
    """An image network with more layers than are tried after the outputs."""
    x = y = op.parameter([1, 3, 8, 8], np.float32, name="image")
    y = op.convolution(y, normal(4, 3, 3, 3), [1, 1], [0, 0], [0, 0], [1, 1], name="conv")
    for _ in range(6):
        y = op.matmul(op.sigmoid(y), normal(6, 6), False, False)
    return ir.Model([y], [x]), random.standard_normal((1, 3, 8, 8)).astype(np.float32)


@pytest.mark.parametrize(
    ("kind", "what", "change"),
    [
        ("channels", "channels in reverse order along axis 1 (BGR for RGB)", lambda x: x[:, ::-1]),
        ("permuted", "axes 2 and 3 swapped", lambda x: x.transpose(0, 1, 3, 2)),
        ("factor", "times 1/255", lambda x: x / np.float32(255)),
    ],
)
def test_a_model_that_is_fed_wrongly_is_named_from_its_outputs(
    kind: str, what: str, change: Callable[[np.ndarray], np.ndarray]
) -> None:
    model, picture = pictures()
    results = ir.compile_model(model)(np.ascontiguousarray(change(picture)))
    found = debug.compare(model, picture, [results[0]]).likeness
    assert found is not None
    assert (found.kind, found.layer, found.what) == (kind, "image", what)


def test_exchanged_channels_are_named_in_the_layer_that_reads_them() -> None:
    model, picture = pictures()
    compiled = ir.compile_model(model, outputs=["conv"])
    seen = {"conv": compiled(np.ascontiguousarray(picture[:, ::-1])).to_tuple()[-1]}
    found = debug.compare(model, picture, seen).likeness
    assert found is not None
    assert (found.kind, found.layer) == ("channels", "conv")


def repeated(kind: str, function: Callable[[ir.Node], ir.Node]) -> ir.Model:
    """A loop body or an If branch with a function in it."""
    x = op.parameter([2, 5], np.float32, name="x")
    inner = op.parameter([2, 5], np.float32, name="inner")
    y = op.add(function(inner), op.constant(np.float32(0.25)), name="moved")
    if kind == "if":
        other = op.parameter([2, 5], np.float32, name="other")
        node = op.if_op(op.greater(op.reduce_sum(x, op.constant([0, 1]), False), np.float32(-100)))
        node.set_then_body(ir.Model([then := op.result(y)], [inner], "then"))
        node.set_else_body(ir.Model([otherwise := op.result(op.exp(other))], [other], "else"))
        node.set_input(x.output(0), inner, other)
        return ir.Model([op.result(node.set_output(then, otherwise))], [x])
    true = op.constant(np.array(True))
    node = op.loop(op.constant(np.array(3)), true)
    node.set_function(ir.Model([op.result(y), op.result(true)], [inner], "body"))
    node.set_special_body_ports([-1, 1])
    node.set_merged_input(inner, x.output(0), y.output(0))
    return ir.Model([op.result(node.get_iter_value(y.output(0), -1))], [x])


@pytest.mark.parametrize("kind", ["loop", "if"])
def test_mistakes_inside_bodies_are_named(kind: str) -> None:
    data = random.standard_normal((2, 5)).astype(np.float32)
    right = repeated(kind, lambda y: op.tanh(y, name="squash"))
    wrong = ir.compile_model(repeated(kind, lambda y: op.sigmoid(y, name="squash")))(data)
    report = debug.compare(right, data, [wrong[0]])
    assert report.verdict == "unexplained"
    assert report.likeness is not None, str(report)
    assert report.likeness.layer.endswith("/squash")
    assert (report.likeness.kind, report.likeness.what) == (
        "activation",
        "Sigmoid instead of Tanh in the body",
    )
    assert debug.compare(right, data, "native").explained
