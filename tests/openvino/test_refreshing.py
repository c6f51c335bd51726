"""Changes of nodes re-infer only their dependents, with the results of inferring the whole graph."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import ir_runtime as ir
from ir_runtime.analysis import validate as validity
from ir_runtime.analysis.infer import infer
from ir_runtime.diagnostics import Diagnostics
from ir_runtime.ir.graph import Port
from ir_runtime.openvino.build import derive
from ir_runtime.openvino.build.derive import derive_graph

ops = ir.opset13
DIGITS = Path(__file__).parents[2] / "examples/digits/digits.xml"


def chain(length: int = 12) -> ir.Model:
    """A chain of convolutions and ReLUs on images of any size, ending in a shape computed from the input's."""
    x = ops.parameter([-1, 4, -1, 8], np.float32, name="x")
    y: ir.Node = x
    for index in range(length):
        weights = ops.constant(np.ones((4, 4, 1, 1), np.float32))
        y = ops.convolution(y, weights, [1, 1], [0, 0], [0, 0], [1, 1], name=f"conv{index}")
        y = ops.relu(y, name=f"relu{index}")
    batch = ops.gather(ops.shape_of(x), ops.constant(np.int64([0])), ops.constant(np.int64(0)))
    flat = ops.reshape(y, ops.concat([batch, ops.constant(np.int64([-1]))], 0), False, name="flat")
    return ir.Model([flat], [x])


def check(model: ir.Model) -> None:
    """Compare the types of nodes, and the derived graph, with inference of the whole graph."""
    graph, nodes = derive_graph(model._editable_members())
    anew = infer(graph, Diagnostics(), compare=False)
    for id, node in nodes.items():
        for index, output in enumerate(node.outputs()):
            expected = anew[Port(id, index)]
            assert str(output._type) == str(expected.type), node
            found = node._value(index)
            assert (found.data is None) == (expected.data is None), node
            if expected.data is not None and expected.data.dtype != object:
                np.testing.assert_array_equal(found.data, expected.data)
    assert {port: str(value.type) for port, value in model._values.items()} == {
        port: str(value.type) for port, value in anew.items()
    }


def named(model: ir.Model, name: str) -> ir.Node:
    return next(node for node in model.get_ordered_ops() if node.friendly_name == name)


def swap(model: ir.Model, draw: random.Random) -> None:
    """Replace a ReLU by another operation."""
    relu = draw.choice([node for node in model.get_ordered_ops() if node.type == "ReLU"])
    other = draw.choice([ops.exp, lambda x: ops.clamp(x, 0.0, 6.0), lambda x: ops.add(x, np.float32(1))])
    ir.utils.replace_node(relu, other(relu.input_value(0)))


def widen(model: ir.Model, draw: random.Random) -> None:
    """Give the last convolution more output channels."""
    conv = [node for node in model.get_ordered_ops() if node.type == "Convolution"][-1]
    conv.set_argument(1, ops.constant(np.ones((draw.randint(2, 9), 4, 1, 1), np.float32)).output(0))


def resize(model: ir.Model, draw: random.Random) -> None:
    model.get_parameters()[0].set_partial_shape([draw.randint(1, 3), 4, draw.choice([-1, 6]), 8])


def rename(model: ir.Model, draw: random.Random) -> None:
    draw.choice(model.get_ordered_ops()).set_friendly_name(f"named{draw.random()}")


def stretch(model: ir.Model, draw: random.Random) -> None:
    """Change an attribute on which shapes depend."""
    conv = draw.choice([node for node in model.get_ordered_ops() if node.type == "Convolution"])
    conv.set_attribute("pads_begin", [draw.randint(0, 2), 0])


EDITS: list[Callable[[ir.Model, random.Random], None]] = [swap, widen, resize, rename, stretch]


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("is_read", [False, True])
def test_types_after_edits(seed: int, is_read: bool, tmp_path: Path) -> None:
    draw, model = random.Random(seed), chain()
    if is_read:
        ir.save_model(model, tmp_path / "chain.xml")
        model = ir.read_model(tmp_path / "chain.xml")
    for _ in range(6):
        for edit in draw.sample(EDITS, draw.randint(1, 3)):
            edit(model, draw)
        model.validate_nodes_and_infer_types()
        check(model)


def as_read(model: ir.Model, folder: Path) -> ir.Model:
    ir.save_model(model, folder / "chain.xml")
    return ir.read_model(folder / "chain.xml")


@pytest.mark.parametrize("seed", range(8))
def test_types_after_edits_between_which_no_graph_is_derived(seed: int, tmp_path: Path) -> None:
    draw, model = random.Random(seed), as_read(chain(), tmp_path)
    for _ in range(8):
        draw.choice(EDITS)(model, draw)
        model.validate_nodes_and_infer_types()
    check(model)


@pytest.mark.parametrize("length", [12, 24])
def test_nodes_that_are_as_read_are_not_visited(length: int, tmp_path: Path) -> None:
    """Only the ends, the new node, and its present and former consumers are visited, however large the model."""
    model = as_read(chain(length), tmp_path)
    for index in (3, 5):
        relu = named(model, f"relu{index}")
        ir.utils.replace_node(relu, ops.exp(relu.input_value(0)))
    model.validate_nodes_and_infer_types()
    assert model._refreshed is not None
    assert sorted(node.type for node in model._refreshed.nodes) == [
        *("Convolution", "Convolution", "Exp", "Exp", "Parameter", "Result")
    ]
    check(model)


def test_contents_that_stay_equal_are_not_followed(tmp_path: Path) -> None:
    model = as_read(chain(), tmp_path)
    node = next(node for node in model.get_ordered_ops() if node.type == "Reshape").input_value(1).node
    rest = next(read for read in node.input_values() if read.node.type == "Constant")
    rest.replace(ops.constant(np.int64([-1])).output(0))
    model.validate_nodes_and_infer_types()
    check(model)


@pytest.mark.parametrize("reader", ["conv2", "relu2"])
def test_a_cycle_through_nodes_that_are_as_read(reader: str, tmp_path: Path) -> None:
    model = as_read(chain(), tmp_path)
    named(model, reader).set_argument(0, ops.exp(named(model, "conv9")).output(0))
    with pytest.raises(ir.ValidationError, match="cycle"):
        model.validate_nodes_and_infer_types()


def counting(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record the types of layers inferred alone, and ``graph`` for each inferred graph."""
    found: list[str] = []
    infer_layer, whole = derive.infer_layer, validity.infer
    monkeypatch.setattr(
        derive, "infer_layer", lambda layer, read: (found.append(layer.name), infer_layer(layer, read))[1]
    )
    monkeypatch.setattr(validity, "infer", lambda *a, **k: (found.append("graph"), whole(*a, **k))[1])
    return found


def test_only_what_follows_from_a_change_is_inferred(monkeypatch: pytest.MonkeyPatch) -> None:
    model = chain()
    named(model, "conv10").set_argument(1, ops.constant(np.ones((6, 4, 1, 1), np.float32)).output(0))
    named(model, "conv11").set_argument(1, ops.constant(np.ones((4, 6, 1, 1), np.float32)).output(0))
    found = counting(monkeypatch)
    model.validate_nodes_and_infer_types()
    assert found == ["conv10", "relu10", "conv11"]
    named(model, "relu3").set_friendly_name("other")
    model.validate_nodes_and_infer_types()
    assert len(found) == 3
    assert len(model.graph) == 12 * 3 + 9
    assert "graph" not in found
    check(model)


def test_a_pass_infers_only_the_nodes_that_it_makes(monkeypatch: pytest.MonkeyPatch) -> None:
    def clamp(matcher: ir.passes.Matcher) -> bool:
        root = matcher.get_match_root()
        ir.utils.replace_node(root, ops.clamp(root.input_value(0), 0.0, 6.0))
        return True

    model, manager = ir.read_model(DIGITS), ir.passes.Manager()
    relu = ir.passes.Matcher(ir.passes.WrapType("opset1.Relu"), "clamps")
    manager.register_pass(ir.passes.MatcherPass(relu, clamp))
    found = counting(monkeypatch)
    manager.run_passes(model)
    assert found == []
    check(model)


def test_what_is_wrong_is_refused_as_before() -> None:
    model = chain(3)
    named(model, "conv1").set_argument(1, ops.constant(np.ones((4, 5, 1, 1), np.float32)).output(0))
    before = [str(output) for output in named(model, "relu1").outputs()]
    with pytest.raises(ir.ValidationError, match="'conv1'") as caught:
        model.validate_nodes_and_infer_types()
    assert caught.value.where is not None
    assert [str(output) for output in named(model, "relu1").outputs()] == before
    named(model, "conv1").set_argument(1, ops.constant(np.ones((4, 4, 1, 1), np.float32)).output(0))
    model.validate_nodes_and_infer_types()
    check(model)


@pytest.mark.parametrize("wrong", ["cycle", "parameter", "open"])
def test_graphs_that_do_not_hold_together_are_refused(wrong: str) -> None:
    model = chain(3)
    port, message = named(model, "relu1").input(0), "conv1"
    if wrong == "cycle":
        port.replace_source_output(named(model, "relu2").output(0))
        message = "cycle"
    elif wrong == "parameter":
        port.replace_source_output(ops.parameter([1, 4, 6, 8], np.float32, name="more").output(0))
        message = "'more' is not among the parameters"
    else:
        port.get_source_output().remove_target_input(port)
        message = "no edge"
    with pytest.raises(ir.ValidationError, match=message):
        model.validate_nodes_and_infer_types()


def test_types_that_were_set_are_inferred_again() -> None:
    model = chain(2)
    named(model, "relu0").set_output_type(0, ir.Type.f16, [1])
    model.validate_nodes_and_infer_types()
    assert named(model, "relu0").get_output_element_type(0) == ir.Type.f32
    check(model)


def test_models_that_share_nodes_follow_changes_by_either() -> None:
    model = chain(2)
    part = ir.Model([named(model, "conv1").output(0)], model.get_parameters())
    named(model, "conv0").set_attribute("pads_begin", [2, 0])
    for each in (part, model):
        each.validate_nodes_and_infer_types()
        check(each)
