"""The postconditions of passes, for models of many kinds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from harness.nets import Net

import ir_runtime as ir
from ir_runtime import opset13 as ops
from ir_runtime.backends import Kernel, load
from ir_runtime.compiler.choose_kernel import MixedInputs
from ir_runtime.compiler.compile import PASSES, compile_plan
from ir_runtime.compiler.program import Program

NAMES = [each.name for each in PASSES]


def is_after(name: str, earlier: str) -> bool:
    return NAMES.index(name) >= NAMES.index(earlier)


def verify(name: str, program: Program) -> None:
    """Check the postcondition of a pass."""
    graph = program.graph
    assert all(graph[layer.id] is layer for layer in program.layers)
    assert all(port in program.values for layer in program.layers for port in layer.output_ports)
    assert all(port.layer in graph.layers for port in program.outputs)
    assert all(port.layer in graph.layers for port in program.packed)
    ids = [layer.id for layer in program.layers]
    assert len(ids) == len(set(ids))
    if not program.fold:
        assert [program.packed, program.kernels, program.shape_only, program.refused] == [{}, {}, {}, []]
        assert not any(program.fusions.values())
    if is_after(name, "mixed-inputs") and not program.fold:
        assert all(not isinstance(layer.op, MixedInputs) for layer in program.layers)
    if is_after(name, "match"):
        assert all(layer.type != "Parameter" for layer in program.layers)
    if is_after(name, "select"):
        verify_groups(program)
    if is_after(name, "pack"):
        assert all(isinstance(group.kernel, Kernel) for group in program.groups)


def verify_groups(program: Program) -> None:
    """Check that groups cover the executed layers, each after its producers."""
    lasts = [group.layers[-1].id for group in program.groups]
    assert len(lasts) == len(set(lasts))
    covered = {layer.id for group in program.groups for layer in group.layers}
    assert covered >= {layer.id for layer in program.layers}
    written = {layer.output_ports[0] for layer in program.graph.of_type("Parameter")}

    def is_known(port: object) -> bool:
        return port in written or port in program.packed or program.is_fixed(port)  # type: ignore[arg-type]

    for group in program.groups:
        assert all(map(is_known, group.reads))
        written |= set(group.writes)
    assert all(map(is_known, program.outputs))


def convolutions(element: str = "f32", rows: int = 1) -> ir.Model:
    x = ops.parameter([rows, 3, 8, 8], element, name="x")
    w = ops.constant(np.ones((16, 3, 3, 3)), element)
    y = ops.relu(
        ops.add(ops.convolution(x, w, [1, 1], [0, 0], [0, 0], [1, 1]), ops.constant([[[[1.0]]]], element))
    )
    return ir.Model([ops.sigmoid(y), ops.reduce_mean(y, ops.constant([2, 3]), False)], [x])


def lengths() -> ir.Model:
    x = ops.parameter([-1, 4], np.float32, name="x")
    shape = ops.multiply(ops.shape_of(x), ops.constant([2, 1]))
    return ir.Model([ops.broadcast(ops.constant(np.float32([1, 2, 3, 4])), shape), ops.exp(x)], [x])


def mixed() -> ir.Model:
    x = ops.parameter([2, 3], ir.Type.bf16, name="x")
    return ir.Model([ops.prelu(x, ops.constant(np.float32([0.5]))), ops.relu(x)], [x])


def stored() -> ir.Model:
    x = ops.parameter([-1, 64], np.float32, name="x")
    codes = ops.convert(ops.constant(np.ones((64, 32), np.int8)), np.float32)
    y = ops.matmul(x, ops.multiply(codes, ops.constant(np.full((1, 32), 0.1, np.float32))), False, False)
    return ir.Model([ops.relu(y)], [x])


def cache() -> ir.Model:
    net = Net()
    new = net.parameter("new", "?,4", out="FP32 -1 4")
    read = net.op(
        "ReadValue", net.constant(np.zeros((0, 4)), "f32"), version="opset3", variable_id="v", out="FP32 -1 4"
    )
    joined = net.op("Concat", read, new, axis=0, out="FP32 -1 4")
    net.layer("Assign", [joined], ["FP32 -1 4"], version="opset3", variable_id="v")
    net.result(net.op("Exp", joined, out="FP32 -1 4"))
    return ir.read_model(net.xml(), net.weights)


def choice() -> ir.Model:
    x, y = ops.parameter([2], np.float32, name="x"), ops.parameter([2], np.float32, name="y")
    branch = ops.if_op(ops.parameter([], bool, name="which").output(0))
    condition = branch.input_value(0).get_node()
    branch.set_then_body(ir.Model([ops.result(ops.exp(x))], [x]))
    branch.set_else_body(ir.Model([ops.result(ops.negative(y))], [y]))
    outer = ops.parameter([2], np.float32, name="outer")
    branch.set_input(outer.output(0), x, y)
    out = branch.set_output(branch.get_function(0).get_results()[0], branch.get_function(1).get_results()[0])
    return ir.Model([out], [condition, outer])


MODELS: dict[str, Callable[[], ir.Model]] = {
    "f32": convolutions,
    "f16": lambda: convolutions("f16"),
    "shape arithmetic": lengths,
    "mixed inputs": mixed,
    "weights as stored": stored,
    "cache": cache,
    "bodies": choice,
}


@pytest.mark.parametrize("backend", ["reference", "numpy"])
@pytest.mark.parametrize("name", MODELS)
def test_every_pass_leaves_what_the_next_one_expects(name: str, backend: str) -> None:
    model, passed = MODELS[name](), list[str]()

    def after(each: str, program: Program) -> None:
        passed.append(each)
        verify(each, program)

    _, chain = load(backend)
    ports = [output._port for output in model._const_outputs()]
    compile_plan(model._graph, model._values, ports, chain, backend != "reference", after=after)
    assert passed == NAMES


def test_passes_say_what_holds_before_and_after() -> None:
    for each in PASSES:
        text = each.run.__doc__ or ""
        assert "Before: " in text, each.name
        assert "After: " in text, each.name


def test_a_pass_is_a_function_of_the_program_and_the_options() -> None:
    assert {Path(each.run.__code__.co_filename).parent.name for each in PASSES} == {"compiler"}
    assert all(each.run.__code__.co_varnames[:2] == ("program", "options") for each in PASSES)
