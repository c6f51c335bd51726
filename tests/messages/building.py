"""Messages for models built or edited from Python in invalid ways."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from harness.nets import Net
from harness.refusals import Call

import ir_runtime as ir
from ir_runtime import op, opset1, opset8, opset13, passes, utils
from ir_runtime.utils import node_factory

FOLDER = "messages"
WRONG: Any = 5


def parameter(name: str = "x", shape: tuple[int, ...] = (2,)) -> ir.Node:
    return opset13.parameter(list(shape), np.float32, name=name)


def model() -> ir.Model:
    """x, and its absolute value."""
    x = parameter()
    return ir.Model([opset13.abs(x, name="abs")], [x], "net")


def unknown_operation() -> None:
    net = Net()
    net.result(net.op("Nothing", net.parameter("x", "2"), name="odd"))
    ir.read_model(net.xml(), strict=False).get_ordered_ops()[1].set_attribute("a", 1)


def loop() -> Any:
    x, body_x = parameter(), parameter("body_x")
    body = ir.Model([opset13.abs(body_x)], [body_x], "body")
    found = op.loop(opset13.constant(3), opset13.constant(True))
    found.set_function(body)
    found.set_invariant_input(body_x, x.output(0))
    return found, body


def two_outputs() -> ir.Node:
    return opset13.split(parameter(), opset13.constant(0), 2)


class NoKind(passes.PassBase):
    """Neither a model pass nor a matcher pass."""


def named(node: Any, name: str) -> Any:
    node.set_friendly_name(name)
    return node


class NoRun(passes.ModelPass):
    """A model pass without `run_on_model`."""


class NoMatcher(passes.MatcherPass):
    """A matcher pass without a matcher."""


REFUSALS = [
    Call("model of numbers", lambda: ir.Model([WRONG], [parameter()], "net"), (TypeError, ir.IRError)),
    Call("model without arguments", lambda: ir.Model(WRONG), (TypeError, ir.IRError)),
    Call("parameter that is not an input of the model", lambda: ir.Model([opset13.abs(parameter())], [], "net")),
    Call("branch that is not set", lambda: named(op.if_op(opset13.constant(True)), "branch").get_then_body()),
    Call("iteration that is not the last", lambda: loop()[0].get_iter_value(loop()[1].results[0].output(0), 0)),
    Call("parameter of another body", lambda: loop()[0].set_invariant_input(parameter("y"), parameter("z").output(0))),
    Call("result of another body", lambda: loop()[0].get_iter_value(parameter("y").output(0), -1)),
    Call("unknown element type", lambda: opset13.parameter([1], "f33")),
    Call("too few values", lambda: op.Constant(ir.Type.f32, ir.Shape([3]), [1, 2])),
    Call("constant without elements", lambda: opset1.constant([]), (ValueError,)),
    Call("missing input between others", lambda: opset13.split(None, opset13.constant(0), 2)),
    Call("unknown attribute of an unknown layer", unknown_operation),
    Call("replacing by too few outputs", lambda: utils.replace_node(named(two_outputs(), "halves"), [parameter().output(0)])),
    Call("replacing an input that is not there", lambda: model().replace_parameter(1, parameter())),
    Call("copying a model in part", lambda: copy.copy(model()), (TypeError,)),
    Call("copying an output", lambda: copy.deepcopy(parameter().output(0)), (TypeError,)),
    Call("several outputs where one is meant", lambda: op.read_value(named(two_outputs(), "halves"), WRONG)),
    Call("variable that is not given", lambda: op.read_value(parameter())),
    Call("unknown operation by name", lambda: ir.Node.create("Relo", 8, [parameter()])),
    Call("pass of no kind", lambda: NoKind()._run(model())),
    Call("outputs of another model", lambda: ir.compile_model(model(), outputs=[parameter("y").output(0)])),
    Call("matcher that has not matched", lambda: passes.Matcher(passes.AnyInput(), "any").get_match_value()),
    Call("pass that defines nothing", lambda: NoRun().run_on_model(model()), (NotImplementedError, TypeError)),
    Call("pass without a matcher", lambda: NoMatcher().apply(parameter())),
    Call("manager of numbers", lambda: passes.Manager().register_pass(WRONG), (TypeError,)),
    Call("pattern without a type", lambda: passes.WrapType(), (TypeError,)),
    Call("pattern of an unknown opset", lambda: passes.WrapType("Relu")),
    Call("pattern of an unknown type", lambda: passes.WrapType("opset13.Relo")),
    Call("factory of an unknown operation", lambda: node_factory.NodeFactory("opset8").create("Relo", [parameter()])),
    Call("factory of nothing known", lambda: node_factory.NodeFactory("opset8").create("Xyzzyx", [parameter()])),
    Call("regions without a scale", lambda: opset8.roi_pooling(parameter("x", (1, 1, 4, 4)), parameter("r", (1, 5)), [1, 1]), (AttributeError,)),
]  # fmt: skip
