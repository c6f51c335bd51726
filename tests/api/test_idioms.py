"""What programs do that rewrite, quantize and deploy models, on both packages; each notes the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from harness.dropin import assert_same, run

import ir_runtime as ir
from ir_runtime.api import editing

START = """
import importlib
package = ov.__name__
ops = importlib.import_module(package + ".opset13")
util = importlib.import_module(package + ".utils")
passes = importlib.import_module(package + ".passes")
offline = importlib.import_module(package + "._offline_transformations")

def network():
    draw = np.random.default_rng(0)
    p = ops.parameter([1, 3, 8, 8], np.float32, name="image")
    w = ops.constant(draw.normal(size=(4, 3, 3, 3)).astype(np.float32), name="w")
    c = ops.convolution(p, w, [1, 1], [1, 1], [1, 1], [1, 1], name="conv")
    b = ops.add(c, ops.constant(draw.normal(size=(1, 4, 1, 1)).astype(np.float32), name="b"), name="bias")
    pool = ops.reduce_mean(ops.relu(b, name="relu"), ops.constant(np.array([2, 3])), keep_dims=False, name="pool")
    fc = ops.matmul(pool, ops.constant(np.ones((4, 5), np.float32), name="fcw"), False, False, name="fc")
    p.output(0).set_names({"image"}); fc.output(0).set_names({"logits"})
    return ov.Model([ops.result(fc, name="out")], [p], "net")

def branched():
    p = ops.parameter([2], np.float32, name="p"); q = ops.parameter([2], np.float32, name="q")
    a = ops.add(p, q, name="a"); b = ops.multiply(a, q, name="b")
    s = ops.split(ops.concat([a, b], 0, name="cat"), 0, 2, name="s")
    ends = [ops.result(s.output(1), name="r1"), ops.result(a, name="r2"), ops.result(s.output(0), name="r3")]
    return ov.Model(ends, [q, p], "branched")

def names(nodes):
    return [n.get_friendly_name() for n in nodes if n.get_type_name() != "Constant"]

def computed(model, *inputs):
    config = {"INFERENCE_PRECISION_HINT": "f32"}
    return [np.array(x) for x in ov.compile_model(model, "CPU", config)(list(inputs)).to_tuple()]

def read(model):
    ov.save_model(model, folder / f"{package}.xml", compress_to_fp16=False)
    return ov.Core().read_model(folder / f"{package}.xml")

IMAGE = np.random.default_rng(1).normal(size=(1, 3, 8, 8)).astype(np.float32)
"""

PROGRAMS = {
    "the order of nodes": """
for model in (branched(), network(), read(branched()), read(network()), read(branched()).clone()):
    note(names(model.get_ops()), names(model.get_ordered_ops()))
model = read(branched())
model.add_results([ops.result(model.get_ordered_ops()[-1].input_value(0), name="again")])
note(names(model.get_ops()), names(model.get_ordered_ops()))
""",
    "outputs that are added to a model that was read": """
model = read(network()); note(model.add_outputs("logits"), len(model.outputs), len(model.results))
nodes = {n.get_friendly_name(): n for n in model.get_ops()}
for asked in ([("relu", 0)], nodes["conv"].output(0), [nodes["bias"].output(0), "logits"]):
    added = model.add_outputs(asked)
    note(len(added), len(model.outputs), len(model.get_results()), added[0].get_node().get_type_name())
    note([o.get_node().input_value(0).get_node().get_friendly_name() for o in added], len(added[0].names))
    note(added[0].get_node() in model.get_results(), model.get_result_index(added[0]))
note(computed(model, IMAGE)); model.remove_result(model.get_results()[1]); note(len(model.outputs))
""",
    "fake quantization around a convolution": """
model = network(); nodes = {n.get_friendly_name(): n for n in model.get_ops()}
for index in (0, 1):
    source = nodes["conv"].input_value(index); targets = source.get_target_inputs()
    low, high = np.float32(-4), np.float32(4)
    fq = ops.fake_quantize(source, low, high, low, high, levels=65536, name=f"fq_{index}")
    for target in targets:
        target.replace_source_output(fq.output(0))
note(names(model.get_ordered_ops()), fq.get_attributes(), computed(model, IMAGE))
part = ops.parameter(nodes["bias"].get_output_partial_shape(0), nodes["bias"].get_output_element_type(0), name="in")
nodes["relu"].input(0).replace_source_output(part.output(0))
end = ov.Model([ops.result(nodes["pool"])], [part], "end"); note(names(end.get_ordered_ops())[:-1], end.inputs)
note(computed(end, np.ones((1, 4, 8, 8), np.float32)))
""",
    "nodes that are evaluated": """
p = ops.parameter([2], np.float32, name="p"); a = ops.add(p, np.float32([1, 2]), name="a")
out = [ov.Tensor("float32", [2])]
note(a.evaluate(out, [ov.Tensor(np.float32([3, 4])), ov.Tensor(np.float32([1, 1]))]), out[0].data)
s = ops.split(ops.parameter([4], np.float32), 0, 2); out = [ov.Tensor(ov.Type.f32, [2]), ov.Tensor(np.float32, [2])]
note(s.evaluate(out, [ov.Tensor(np.float32([3, 4, 5, 6])), ov.Tensor(np.array(0))]), out[0].data, out[1].data)
out = [ov.Tensor(ov.Type.f32, [1])]; note(ops.constant(np.float32([5])).evaluate(out, []), out[0].data)
""",
}


@pytest.mark.parametrize("title", PROGRAMS)
def test_programs(title: str, tmp_path: Path) -> None:
    program = START + PROGRAMS[title]
    assert_same(run(program, "ir_runtime", folder=tmp_path), run(program, "openvino", folder=tmp_path))


def test_edits_infer_nothing_until_it_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A loop over the nodes of a model that looks at it after each change is linear."""
    ops = ir.opset13
    p = ops.parameter([2], np.float32, name="p")
    model = ir.Model([ops.relu(ops.relu(p, name="one"), name="two")], [p])
    derived = []
    infer = editing.infer
    monkeypatch.setattr(editing, "infer", lambda *given, **named: derived.append(1) or infer(*given, **named))
    for node in model.get_ordered_ops():
        if node.type == "ReLU":
            ir.utils.replace_node(node, ops.exp(node.input_value(0)))
            assert [model.inputs, model.outputs, model.is_dynamic()] == [
                [p.output(0)],
                [model.results[0].output(0)],
                False,
            ]
            assert len(model.get_ops()) == 4
            assert model.add_outputs(node.input_value(0)) == [model.outputs[-1]]
            model.remove_result(model.results[-1])
    assert derived == []
    model.validate_nodes_and_infer_types()
    model.validate_nodes_and_infer_types()
    assert derived == [1]


def test_a_model_is_not_derived_again_for_edits_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    ops = ir.opset13
    models = [ir.Model([ops.relu(p)], [p]) for p in (ops.parameter([2], np.float32) for _ in range(2))]
    for model in models:
        model.validate_nodes_and_infer_types()
    monkeypatch.setattr(editing, "infer", lambda *given, **named: pytest.fail("derived again"))
    models[0].get_ops()[0].set_friendly_name("changed")
    models[1].validate_nodes_and_infer_types()


def test_edits_of_a_body_are_edits_of_the_model() -> None:
    ops = ir.opset13
    inner, outer = ops.parameter([2], np.float32, name="i"), ops.parameter([2], np.float32, name="o")
    body = ir.Model([ops.constant(True), ops.relu(inner)], [inner])
    loop = ops.loop(ops.constant(2), ops.constant(True))
    loop.set_function(body)
    loop.set_special_body_ports([-1, 0])
    loop.set_merged_input(inner, outer.output(0), body.results[1].output(0))
    model = ir.Model([loop.get_iter_value(body.results[1].output(0))], [outer])
    x = np.float32([-1, 2])
    assert ir.compile_model(model)(x)[0].tolist() == [0, 2]
    (relu,) = (node for node in body.get_ops() if node.type == "ReLU")
    ir.utils.replace_node(relu, ops.negative(relu.input_value(0)))
    assert ir.compile_model(model)(x)[0].tolist() == [-1, 2]
