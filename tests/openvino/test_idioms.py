"""Idioms of programs that rewrite, quantize and deploy models, on both packages."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from harness.dropin import assert_same, run

import ir_runtime as ir
from ir_runtime.openvino import model as model_module
from ir_runtime.ops import registry

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
    "modules that are looked for, and shapes of inputs": """
import importlib.util
for name in ("opset13", "layout_helpers", "no_such_module", "preprocess"):
    note(importlib.util.find_spec(f"{package}.{name}") is not None)
p = network().get_parameters()[0]; note(list(p.get_shape()), p.get_partial_shape(), p.get_element_type())
""",
    "models of the outputs of others": """
def first():
    x = ops.parameter([2], np.float32, name="x")
    y = ops.relu(x, name="y")
    return ov.Model([ops.result(y, name="end")], [x]), ops.exp(y, name="z")
for ends in (lambda m, z: [*m.outputs, z.output(0)], lambda m, z: [m.output(0)], lambda m, z: [*m.get_results(), z]):
    model, last = first()
    other = ov.Model(ends(model, last), model.get_parameters(), "other")
    sources = [result.input(0).get_source_output().get_node() for result in other.get_results()]
    note(len(other.outputs), names(sources), other.output(0).get_any_name(), computed(other, np.float32([1, -1])))
    note(names(read(other).get_ordered_ops())[:3])
""",
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
    "states of a loop": """
def sequence(first):
    xi = ops.parameter([1, 1, 2], np.float32, name="xi"); hi = ops.parameter([1, 2], np.float32, name="hi")
    h = ops.add(ops.squeeze(xi, ops.constant(1)), hi); y = ops.unsqueeze(ops.multiply(h, np.float32(2)), ops.constant(1))
    body = ov.Model([ops.result(h), ops.result(y)], [xi, hi], "body")
    x = ops.parameter([1, 1, 2], np.float32, name="x"); h0 = ops.parameter([1, 2], np.float32, name="h0")
    loop = ops.tensor_iterator() if hasattr(ops, "tensor_iterator") else ov.op.tensor_iterator()
    loop.set_body(body); loop.set_friendly_name("loop")
    if first:
        loop.set_merged_input(hi, h0.output(0), h.output(0))
    loop.set_sliced_input(xi, x.output(0), 0, 1, 1, -1, 1)
    if not first:
        loop.set_merged_input(hi, h0.output(0), h.output(0))
    return ov.Model([ops.result(loop.get_concatenated_slices(y.output(0), 0, 1, 1, -1, 1), name="out")], [x, h0], "seq")
for first, zero in ((False, True), (True, False), (True, True)):
    model = sequence(first)
    if zero:
        offline.apply_low_latency_transformation(model)
    else:
        manager = passes.Manager(); manager.register_pass(passes.LowLatency2(False)); manager.run_passes(model)
    note(len(model.get_sinks()), [v.info.variable_id for v in model.get_variables()], len(model.inputs), model.outputs)
    request = ov.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"}).create_infer_request()
    feeds = [np.ones((1, 1, 2), np.float32), np.full((1, 2), 5, np.float32)]
    note([request.infer(feeds)[0] for _ in range(2)], request.query_state()[0].state.data)
    request.reset_state(); note(request.infer(feeds)[0])
""",
    "passes that ship with OpenVINO": """
model = network(); manager = passes.Manager(); manager.register_pass(passes.ConvertFP32ToFP16()); manager.run_passes(model)
note(model.inputs, model.outputs, {o.get_element_type().get_type_name() for n in model.get_ops() for o in n.outputs()})
note(names(model.get_ordered_ops()))
model = branched(); manager = passes.Manager(); paths = [folder / "a.dot", folder / "b.svg"]
for path in paths:
    manager.register_pass(passes.VisualizeTree(str(path)))
manager.run_passes(model)
for path in (paths[0], folder / "b.svg.dot"):
    text = path.read_text(); note(text.startswith("digraph"), text.count(" -> ") > 5); path.unlink()
relu = passes.MatcherPass(passes.Matcher(passes.WrapType("opset1.Relu"), "relus"), lambda matcher: False)
note(relu.get_name())
for name in ("opset99.Relu", "opset1.Nope"):
    try:
        passes.WrapType(name)
    except RuntimeError:
        note("refused")
""",
    "variables named after tensors": """
s = ops.parameter([2], np.float32, name="s"); x = ops.parameter([2], np.float32, name="x"); y = ops.add(s, x)
y.output(0).set_names({"next"}); model = ov.Model([ops.result(y)], [s, x])
offline.apply_make_stateful_transformation(model, {"s": "next"}); note([v.info.variable_id for v in model.get_variables()])
note([str(n).partition(":")[0] for n in model.get_ops() if n.get_type_name() in ("ReadValue", "Assign")])
""",
    "contents of constants": """
shared = np.float32([1, 2])
for constant in (ops.constant(np.float32([1, 2])), ops.constant(shared, shared_memory=True), ov.op.Constant(ov.Tensor(shared))):
    note(constant.data.flags.writeable, constant.get_data().flags.writeable, constant.get_data(copy=True).flags.writeable)
    try:
        constant.data[:] = 0
    except ValueError:
        note(constant.data)
types = importlib.import_module(package + ".utils.types")
note(types.openvino_to_numpy_types_map, types.openvino_to_numpy_types_str_map)
""",
    "an operation of one's own": """
class Scaled(ov.Op):
    def __init__(self, inputs=None, factor=2.0, axes=(1, 2)):
        super().__init__(self)
        self.factor, self.axes = factor, list(axes)
        if inputs is not None:
            self.set_arguments(inputs)
            self.constructor_validate_and_infer_types()
    def validate_and_infer_types(self):
        self.set_output_type(0, self.get_input_element_type(0), self.get_input_partial_shape(0))
    def clone_with_new_inputs(self, new_inputs):
        return Scaled(new_inputs, self.factor, self.axes)
    def evaluate(self, outputs, inputs):
        outputs[0].shape = inputs[0].shape
        inputs[0].copy_to(outputs[0])
        outputs[0].data[:] *= self.factor
        return True
    def has_evaluate(self):
        return True
    def visit_attributes(self, visitor):
        attributes = {"factor": self.factor, "axes": self.axes}
        visitor.on_attributes(attributes)
        self.factor, self.axes = attributes["factor"], attributes["axes"]
        return True
p = ops.parameter([2], np.float32, name="p"); t = Scaled([p], 3.0); t.set_friendly_name("scaled")
note(t.get_friendly_name(), t.get_output_size(), t.outputs(), t.get_input_size(), t.get_type_name(), t.get_attributes())
note(t.get_type_info().name, t.get_type_info().version_id)
m = ov.Model([ops.result(ops.relu(t, name="relu"), name="r")], [p], "m"); note(m.outputs, names(m.get_ordered_ops()))
x = np.float32([1, -2]); c = m.clone(); note(computed(m, x), names(c.get_ops()), computed(c, x), type(c.get_ordered_ops()[1]).__name__)
m.reshape([3]); note(m.outputs, computed(m, np.float32([1, -2, 3])))
ov.serialize(m, folder / "c.xml", folder / "c.bin"); text = (folder / "c.xml").read_text()
note('type="Scaled" version="extension"' in text, 'factor="3"' in text)
core = ov.Core(); core.add_extension(Scaled); r = core.read_model(folder / "c.xml")
note(names(r.get_ordered_ops()), r.outputs)
""",
    "tensors of requests, by position and by name": """
request = ov.compile_model(network(), "CPU", {"INFERENCE_PRECISION_HINT": "f32"}).create_infer_request()
given, taken = ov.Tensor(IMAGE), ov.Tensor(np.zeros((1, 5), np.float32))
request.set_input_tensor(tensor=given); request.set_output_tensor(tensor=taken); request.infer(); note(taken.data)
request.set_input_tensor(index=0, tensor=ov.Tensor(-IMAGE)); request.set_output_tensor(0, taken); request.infer(); note(taken.data)
request.set_input_tensor(given); request.set_output_tensor(taken); request.infer(); note(taken.data)
for wrong in ((IMAGE,), (0, IMAGE), (given, given), ()):
    try:
        request.set_input_tensor(*wrong)
    except TypeError:
        note("refused")
""",
    "a variable that is given itself": """
vutil = importlib.import_module(package + ".op.util")
info = vutil.VariableInfo(); info.variable_id = "v"; info.data_shape = ov.PartialShape([1, 2]); info.data_type = ov.Type.f32
variable = vutil.Variable(info); x = ops.parameter([1, 2], np.float32, name="x")
for read in (ops.read_value(ops.constant(np.float32([[1, 2]])), variable), ops.read_value(variable)):
    total = ops.add(read, x); model = ov.Model([ops.result(total)], [ops.assign(total, variable)], [x], [variable])
    note(read.get_attributes(), [v.info.variable_id for v in model.get_variables()])
    request = ov.compile_model(model, "CPU").create_infer_request()
    note([request.infer([np.float32([[1, 1]])])[0] for _ in range(2)])
    state = request.query_state()[0]; state.state = ov.Tensor(np.float32([[10, 20]]))
    note(request.infer([np.float32([[1, 1]])])[0], state.name, state.state.data); request.reset_state()
    note(request.infer([np.float32([[0, 0]])])[0])
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


@pytest.fixture
def declared() -> Iterator[None]:
    """Unregister the operations that a program has declared, as other tests list all operations."""
    yield
    for cls in list(registry):
        if not registry.is_own(cls):
            registry.remove(cls)


@pytest.mark.usefixtures("declared")
@pytest.mark.parametrize("title", PROGRAMS)
def test_programs(title: str, tmp_path: Path) -> None:
    program = START + PROGRAMS[title]
    assert_same(run(program, "ir_runtime", folder=tmp_path), run(program, "openvino", folder=tmp_path))


def test_what_reads_the_output_of_a_result_reads_its_operand() -> None:
    """OpenVINO builds such layers, but refuses to compile them; it crashes on a duplicate Result."""
    ops = ir.opset13
    x = ops.parameter([2], np.float32)
    model = ir.Model([ops.relu(x)], [x])
    summed = ops.add(ops.exp(model.output(0)), model.get_results()[0])
    summed.input(1).replace_source_output(model.output(0))
    found = ir.compile_model(ir.Model([model.output(0), summed, model.output(0)], [x]))(np.float32([-1, 1]))
    for array, expected in zip(found.to_tuple(), ([0, 1], [1, np.e + 1], [0, 1]), strict=True):
        np.testing.assert_allclose(array, expected, rtol=1e-6)


def test_edits_infer_nothing_until_it_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A loop over the nodes that inspects the model after each change is linear."""
    ops = ir.opset13
    p = ops.parameter([2], np.float32, name="p")
    model = ir.Model([ops.relu(ops.relu(p, name="one"), name="two")], [p])
    derived = []
    derive = model_module.derive_graph
    monkeypatch.setattr(model_module, "derive_graph", lambda members: derived.append(1) or derive(members))
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
    model.validate_nodes_and_infer_types()
    model.validate_nodes_and_infer_types()
    assert derived == []
    assert len(model.graph) == len(model.graph) == 4
    assert derived == [1]


def test_a_model_is_not_derived_again_for_edits_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    ops = ir.opset13
    models = [ir.Model([ops.relu(p)], [p]) for p in (ops.parameter([2], np.float32) for _ in range(2))]
    for model in models:
        assert len(model.graph) == 3
    monkeypatch.setattr(model_module, "derive_graph", lambda members: pytest.fail("derived again"))
    models[0].get_ops()[0].set_friendly_name("changed")
    assert len(models[1].graph) == 3


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
