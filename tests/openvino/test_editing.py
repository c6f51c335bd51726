"""Programs that build and change models behave the same with OpenVINO and with this package."""

from __future__ import annotations

import importlib
from pathlib import Path

import numpy as np
import pytest
from harness.dropin import assert_same, run
from harness.layers import calls

import ir_runtime as ir
from ir_runtime import passes
from ir_runtime.ops import Op

START = """
import importlib
package = ov.__name__
ops = importlib.import_module(package + ".opset13")
util = importlib.import_module(package + ".utils")
passes = importlib.import_module(package + ".passes")
vutil = importlib.import_module(package + ".op.util")

def build(shape=(2, 3)):
    p = ops.parameter(list(shape), np.float32, name="p")
    a = ops.add(ops.relu(p, name="relu"), np.float32(1), name="a")
    r = ops.result(a, name="r")
    return ov.Model([r], [p], "m"), {"p": p, "a": a, "r": r, "relu": a.input_value(0).get_node()}

def shown(model):
    return [(n.get_type_name(), [v.get_node().get_type_name() for v in n.input_values()],
             [str(o.get_partial_shape()) for o in n.outputs()]) for n in model.get_ordered_ops()]

def computed(model, *inputs):
    config = {"INFERENCE_PRECISION_HINT": "f32"}
    return [np.array(x) for x in ov.compile_model(model, "CPU", config)(list(inputs)).to_tuple()]

X = np.arange(-3, 3, dtype=np.float32).reshape(2, 3)
"""

PROGRAMS = {
    "a model of nodes": """
m, n = build()
note(m.friendly_name, shown(m), m.inputs, m.outputs, computed(m, X))
note(m.get_parameters()[0] == n["p"], m.get_results()[0] == n["r"], m.get_parameter_index(n["p"]))
note(m.get_result_index(n["r"].output(0)), m.get_result_index(n["a"].output(0)), m.get_output_op(0) == n["r"])
note(n["a"].friendly_name, n["a"].get_type_name(), n["a"].get_attributes(), n["a"].inputs(), n["a"].outputs())
note(n["a"], n["p"], n["r"], n["a"] == n["p"], n["a"] == n["a"], n["a"].output(0) == n["a"].output(0))
""",
    "models by every way to make one": """
p = ops.parameter([2], np.float32, name="p"); a = ops.relu(p); r = ops.result(a, name="r")
for args in ([a, [p]], [a, [p], "x"], [[a], [p], "x"], [[a.output(0)], [p], "x"], [[r], [p], "x"], [[r], [], [p], "x"]):
    m = ov.Model(*args)
    note(len(m.inputs), len(m.outputs), m.get_sinks(), m.get_variables(), shown(m))
    if len(args) > 2:
        note(m.get_friendly_name())
m = ov.Model(results=[r], parameters=[p], name="named")
note(m.friendly_name, m.clone().friendly_name, m.clone().get_parameters()[0] == p)
""",
    "operators": """
p = ops.parameter([2], np.float32, name="p"); q = ops.parameter([2], np.float32, name="q")
y = (p + q) * p - q / p
z = 1 - ops.parameter([2], np.int64, name="i")
note([(k.get_type_name(), k.outputs()) for k in (y, z, z.input_value(0).get_node())], z.input_value(1).get_node().friendly_name)
m = ov.Model([y, np.float32([5, 6]) * p, p - np.array(1, np.float32)], [p, q])
note([type(x).__name__ == "Node" for x in (y, z)], computed(m, np.float32([1, 2]), np.float32([3, 4])))
""",
    "names of tensors": """
p = ops.parameter([2], np.float32, name="p"); q = ops.parameter([2], np.float32, name="q")
a = ops.add(p, q, name="a"); r = ops.result(a, name="r")
note(p.output(0).names, a.output(0).names, r.output(0).names)
m = ov.Model([r, ops.result(ops.relu(a), name="r2")], [p, q])
note([o.names for o in m.inputs + m.outputs], a.output(0).names)
r.output(0).set_names({"out"}); note(a.output(0).names, m.output(0).names, m.output("out").get_index())
a.output(0).set_names({"aa", "bb"}); note(sorted(a.output(0).names - {"out"}), m.output(0).names)
m.output(0).get_tensor().add_names({"zz"}); note(m.output(0).names)
m.output(0).add_names({"u"}); note(m.output(0).names, a.output(0).get_tensor().get_names() >= {"u"})
m.input(0).get_tensor().set_names({"first"}); note(m.input("first").get_any_name(), p.output(0).tensor.any_name)
note(p.output(0).tensor, p.output(0).tensor.size, a.input(0).get_tensor().names, a.get_output_size())
a.set_friendly_name("sum"); a.friendly_name = "total"; note(a.friendly_name, a.get_friendly_name())
c = ov.compile_model(m, "CPU"); note([o.names for o in c.inputs], c.output("u").names)
""",
    "inputs that read another tensor": """
m, n = build()
e = ops.exp(n["p"], name="e")
n["a"].input(0).replace_source_output(e.output(0))
note(shown(m), n["p"].output(0).get_target_inputs(), n["relu"].output(0).get_target_inputs(), computed(m, X))
n["a"].set_argument(1, ops.constant(np.float32([1, 2, 3])).output(0)); note(computed(m, X))
n["a"].set_arguments([e, e]); note(computed(m, X))
n["a"].set_arguments([e.output(0), n["relu"].output(0)]); note(computed(m, X), shown(m))
""",
    "outputs that are replaced": """
m, n = build()
n["relu"].output(0).set_names({"t"})
k = ops.sigmoid(n["p"], name="k")
n["relu"].output(0).replace(k.output(0))
note(shown(m), k.output(0).names, computed(m, X))
t = ops.tanh(n["p"], name="t"); util.replace_node(k, t); note(shown(m), computed(m, X))
s = ops.split(n["p"], 1, 3); q = ops.split(ops.exp(n["p"]), 1, 3)
note([str(o.get_partial_shape()) for o in s.outputs()])
c = ops.concat(s.outputs(), 1); c2 = ov.Model([c], [n["p"]])
util.replace_node(s, q, [2, 1, 0]); note(computed(c2, X))
util.replace_node(q, [o for o in ops.split(n["p"], 1, 3).outputs()]); note(computed(c2, X))
""",
    "inputs and outputs of models": """
m, n = build()
more = ops.parameter([5], np.float32, name="more"); m.add_parameters([more]); note(m.inputs)
m.remove_parameter(more); note(m.inputs)
extra = ops.result(n["relu"], name="extra"); m.add_results([extra]); note(len(m.outputs), computed(m, X))
m.remove_result(extra); note(m.outputs)
note(extra.output(0).names)
added = m.add_outputs([n["a"].output(0), n["p"].output(0)]); note(len(added), len(m.results), computed(m, X))
wide = ops.parameter([4, 3], np.float32, name="wide"); m.replace_parameter(0, wide)
note(m.inputs, shown(m)[0]); m.validate_nodes_and_infer_types(); note(m.outputs)
m.reshape([1, 3]); note(m.inputs, m.outputs, wide.get_output_shape(0), n["a"].get_output_shape(0))
m.reshape({"p": [-1, 3]}); note(m.inputs, m.is_dynamic())
wide.set_partial_shape(ov.PartialShape([7, 3])); m.validate_nodes_and_infer_types(); note(m.outputs)
wide.set_element_type(ov.Type.f64); note(wide.get_element_type())
""",
    "variables": """
i = vutil.VariableInfo(); i.variable_id = "v"; i.data_shape = ov.PartialShape([2]); i.data_type = ov.Type.f32
v = vutil.Variable(i); note(v.info.variable_id, v.get_info().data_type, str(v.info.data_shape))
x = ops.parameter([2], np.float32, name="x")
read = ov.op.read_value(ops.constant(np.float32([1, 2])), v); total = ops.add(read, x)
assign = ov.op.assign(total, v); r = ops.result(total, name="r")
m = ov.Model([r], [assign], [x], [v], "counts")
note(read.get_attributes(), assign.get_attributes(), read.get_variable_id(), m.friendly_name)
note([k.info.variable_id for k in m.get_variables()], len(m.get_sinks()), m.get_sink_index(assign))
note(m.get_variable_by_id("v").info.variable_id, m.get_variable_by_id("nothing"))
request = ov.compile_model(m, "CPU").create_infer_request()
for _ in range(3):
    request.infer([np.float32([1, 1])])
note(request.get_output_tensor(0).data, [s.name for s in request.query_state()], request.query_state()[0].state.data)
request.reset_state(); request.infer([np.float32([1, 1])]); note(request.get_output_tensor(0).data)
again = ops.read_value(ops.constant(np.float32([1, 2])), "w", np.float32, [2]); note(again.get_attributes())
note(ops.read_value("w", np.float32, [2]).get_attributes(), ov.Model([ops.result(again)], []).get_variables()[0].info.variable_id)
m.remove_sink(assign); note(m.get_sinks()); m.add_sinks([assign]); note(len(m.sinks))
""",
    "making a model stateful": """
def make():
    s = ops.parameter([2, 3], np.float32, name="state"); x = ops.parameter([2, 3], np.float32, name="x")
    a = ops.add(s, x, name="a")
    return ov.Model([ops.result(a, name="next"), ops.result(ops.relu(a), name="y")], [s, x], "m")
for way in range(3):
    m = make()
    if way < 2:
        pairs = {"state": "next"} if way else [(m.get_parameters()[0], m.get_results()[0])]
        manager = passes.Manager(); manager.register_pass(passes.MakeStateful(pairs)); manager.run_passes(m)
    else:
        module = importlib.import_module(package + "._offline_transformations")
        module.apply_make_stateful_transformation(m, {"state": "next"})
    note(m.inputs, m.outputs, [v.info.variable_id for v in m.get_variables()], len(m.get_sinks()), shown(m))
    request = ov.compile_model(m, "CPU").create_infer_request()
    for _ in range(3):
        request.infer([np.ones((2, 3), np.float32)])
    note(request.get_output_tensor(0).data, request.query_state()[0].name)
""",
    "passes over models": """
class Swap(passes.ModelPass):
    def run_on_model(self, model):
        for node in model.get_ops():
            if node.get_type_name() == "Relu":
                util.replace_node(node, ops.exp(node.input(0).get_source_output()))
                return True
        return False
m, n = build(); manager = passes.Manager(); manager.register_pass(Swap()); note(manager.run_passes(m), shown(m))
note(computed(m, X))
class Double(passes.MatcherPass):
    def __init__(self):
        passes.MatcherPass.__init__(self)
        self.count = 0
        relu = passes.WrapType("opset13.Relu")
        def callback(matcher):
            self.count += 1
            if self.count > 1:
                return False
            root = matcher.get_match_root()
            new = self.register_new_node(ops.relu(root.input(0).get_source_output()))
            root.output(0).replace(ops.multiply(new, np.float32(2)).output(0))
            return True
        self.register_matcher(passes.Matcher(relu, "doubles"), callback)
m, n = build(); manager = passes.Manager(); p = manager.register_pass(Double()); manager.run_passes(m)
note(p.count, shown(m), computed(m, X))
m, n = build(); note(Double().apply(n["relu"]), Double().apply(n["a"]))
g = passes.GraphRewrite(); g.add_matcher(Double()); m, n = build(); manager = passes.Manager(); manager.register_pass(g)
manager.run_passes(m); note(computed(m, X))
""",
    "patterns": """
m, n = build(); s = ops.sigmoid(n["a"]); w = ov.Model([s], [n["p"]]); nodes = {k.get_type_name(): k for k in w.get_ops()}
def matching(pattern):
    return [k for k in ("Parameter", "Relu", "Add", "Sigmoid") if passes.Matcher(pattern, "x").match(nodes[k])]
any_input = passes.AnyInput(); constant = passes.WrapType("opset1.Constant")
for pattern in (
    passes.WrapType(["opset1.Relu", "opset1.Sigmoid"]), passes.WrapType("opset1.Relu", lambda o: False),
    passes.Or([passes.WrapType("opset1.Add").output(0), passes.WrapType("opset1.Relu").output(0)]),
    passes.Optional(["opset1.Sigmoid"], passes.WrapType("opset1.Add").output(0)), any_input,
    passes.AnyInput(lambda o: o.get_partial_shape().rank.get_length() == 2),
    passes.WrapType("opset1.Relu", passes.consumers_count(1)), passes.WrapType("opset1.Relu", passes.consumers_count(2)),
    passes.WrapType("opset1.Relu", passes.has_static_shape()), passes.WrapType("opset1.Relu", passes.has_static_dim(1)),
    passes.WrapType("opset1.Relu", passes.type_matches(ov.Type.f16)),
    passes.WrapType("opset1.Relu", passes.type_matches_any([ov.Type.f16, ov.Type.f32])),
    passes.WrapType("opset1.Relu", passes.rank_equals(ov.Dimension(2))),
    passes.WrapType("opset1.Add", [any_input.output(0), constant.output(0)]),
    passes.WrapType("opset1.Add", [constant.output(0), any_input.output(0)]),
    passes.WrapType("opset1.Add", [constant.output(0), constant.output(0)]),
    passes.WrapType("opset1.Add", [any_input.output(0), any_input.output(0)]),
    passes.WrapType("opset1.Relu", passes.shape_matches("[2,3]")), passes.WrapType("opset1.Relu", passes.shape_matches("[?,4]")),
    ops.sigmoid(passes.WrapType("opset1.Add")),
    passes.WrapType("opset1.Sigmoid", passes.WrapType("opset1.Add", [passes.WrapType("opset1.Relu"), constant])),
):
    note(matching(pattern))
inner = passes.WrapType("opset1.Relu"); matcher = passes.Matcher(passes.WrapType("opset1.Add", [inner.output(0), passes.AnyInput().output(0)]), "x")
note(matcher.match(nodes["Add"].output(0)), matcher.get_match_root().friendly_name, matcher.get_name())
note([v.get_node().get_type_name() for v in matcher.get_match_values()], len(matcher.get_match_nodes()))
note(matcher.get_pattern_value_map()[inner].get_node().friendly_name, matcher.get_match_value().get_index())
""",
    "saving and folding as passes": """
m, n = build(); manager = passes.Manager()
manager.register_pass(passes.Serialize(str(folder / "s.xml"), str(folder / "s.bin"))); manager.run_passes(m)
again = ov.Core().read_model(folder / "s.xml"); note(again.inputs, shown(again), computed(again, X))
p = ops.parameter([2], np.float32, name="p")
m = ov.Model([ops.add(p, ops.exp(ops.constant(np.float32([0, 1]), name="c"), name="e"))], [p])
manager = passes.Manager(); manager.register_pass(passes.ConstantFolding()); manager.run_passes(m)
note(shown(m), sorted(k.friendly_name for k in m.get_ops() if k.get_type_name() == "Constant"), computed(m, np.float32([1, 2])))
""",
    "what nodes and models compute and tell": """
import copy
p = ops.parameter([-1, 3], np.float32, name="p"); a = ops.relu(p, name="a"); m = ov.Model([a], [p], "m")
o = ov.Tensor(ov.Type.f32, ov.Shape([0]))
note(m.evaluate([o], [ov.Tensor(np.float32([[-1, 2, 3]]))]), o.data, o.shape)
note(a.get_output_tensor(0).get_partial_shape(), a.get_input_tensor(0).names, a.get_instance_id() == a.get_instance_id())
try:
    copy.copy(m)
except TypeError:
    note("no shallow copy")
note(copy.deepcopy(m).friendly_name, copy.deepcopy(m).get_parameters()[0] == p)
with m as same:
    note(same is m)
kind = a.get_type_info(); note(kind.name, kind.version_id, kind == ops.relu(p).type_info, kind == ops.exp(p).type_info)
k = ops.constant(np.float32([[1, 2], [3, 4]]), name="k")
note(k.get_vector(), k.get_byte_size(), k.get_value_strings()[:0], k.data, k.get_tensor_view().data, k.friendly_name)
note(ops.constant(3.7, ov.Type.i32).data, ops.constant([1, 2], np.float16).data, ops.constant(5).get_attributes())
note(ov.op.Constant(ov.Type.f32, ov.Shape([2]), [1]).data, ov.op.Constant(np.int8([1])).get_vector())
""",
    "constants without elements": """
p = ops.parameter([2, 3], np.float32, name="p")
m = ov.Model([ops.reduce_sum(p, ops.constant(np.zeros(0, np.int64)), True)], [p])
ov.save_model(m, folder / "e.xml"); again = importlib.import_module("openvino").Core().read_model(folder / "e.xml")
config = {"INFERENCE_PRECISION_HINT": "f32"}
note(np.array(importlib.import_module("openvino").compile_model(again, "CPU", config)(X)[0]))
""",
    "models that were read": """
m, n = build(); ov.save_model(m, folder / "r.xml", compress_to_fp16=False)
m = ov.Core().read_model(folder / "r.xml"); other = ov.Core().read_model(folder / "r.xml")
nodes = {k.get_friendly_name(): k for k in m.get_ops()}
e = ops.exp(nodes["relu"]); nodes["a"].input(0).replace_source_output(e.output(0))
note(shown(m), computed(m, X), computed(other, X), m.input(0).names, m.output(0).names)
nodes["a"].set_friendly_name("sum"); m.output(0).get_tensor().set_names({"named"})
ov.save_model(m, folder / "t.xml", compress_to_fp16=False); m2 = ov.Core().read_model(folder / "t.xml")
note(m2.output("named").get_node().input_value(0).get_node().friendly_name, computed(m2, X))
both = ov.Model([ops.add(other.output(0).get_node().input_value(0), nodes["relu"].output(0))], [*m.get_parameters(), *other.get_parameters()], "both")
note(len(both.inputs), computed(both, X, X + 1))
c = m.clone(); c.get_results()[0].input_value(0).get_node().set_friendly_name("only here"); note(nodes["a"].friendly_name)
m.reshape([1, 3]); note(m.outputs, nodes["relu"].get_output_shape(0), computed(m, X[:1]))
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name: str, tmp_path: Path) -> None:
    noted = []
    for package in ("openvino", "ir_runtime"):
        folder = tmp_path / package
        folder.mkdir()
        noted.append(run(START + PROGRAMS[name], package, folder=folder))
    theirs, ours = noted
    assert len(ours) == len(theirs)
    for mine, right in zip(ours, theirs, strict=True):
        assert_same(mine, right)


REFUSED = {
    "types that do not fit": "ops.add(p, np.int64(1))",
    "shapes that do not fit": "ops.add(p, np.ones(5, np.float32))",
    "an axis that is not there": "ops.concat([p, p], 7)",
    "an attribute of another kind": "ops.softmax(p, axis='x')",
    "inputs that are missing": "ops.softmax(p)",
    "no numbers": "ops.relu('x')",
    "complex numbers": "ops.add(p, np.complex64(1))",
    "too many outputs": "ops.add(ops.split(p, 0, 2), np.float32(1))",
    "a parameter that is not declared": "ov.Model([ops.relu(p)], [])",
    "an input that is not there": "ops.relu(p).input(3)",
    "a result of something else": "ov.Model([5], [p])",
    "a pattern of no operation": "passes.WrapType('opset1.Nope')",
    "an input that is not a variable": "passes.MakeStateful({'x': 'y'}).run_on_model(ov.Model([ops.relu(p)], [p]))",
}


@pytest.mark.parametrize("what", REFUSED)
def test_refusals(what: str) -> None:
    """Errors are of the same kind as OpenVINO's."""
    program = f"""
p = ops.parameter([2, 3], np.float32, name="p")
kinds = (RuntimeError, TypeError)
try:
    {REFUSED[what]}
except Exception as reason:
    note([kind.__name__ for kind in kinds if isinstance(reason, kind)][-1:])
"""
    theirs, ours = (run(START + program, package) for package in ("openvino", "ir_runtime"))
    assert ours == theirs != []


def test_messages_name_the_node() -> None:
    ops = ir.opset13
    p = ops.parameter([2, 3], np.float32, name="p")
    with pytest.raises(ir.ValidationError, match=r"layer 'Add_\d+' \(Add-1\).*input 'b' is i64 where f32"):
        ops.add(p, np.int64(1))
    with pytest.raises(ir.ValidationError, match="attribute 'axis' must be an integer, not 'x'"):
        ops.softmax(p, axis="x")
    with pytest.raises(ir.ValidationError, match="'p' is not among the parameters of the model"):
        ir.Model([ops.relu(p)], [])
    with pytest.raises(ir.UnsupportedError, match="opset1 has no operation 'Nope'"):
        ir.Node.create("Nope", 1, [p])
    with pytest.raises(ir.ValidationError, match="SoftMax-8 has no attribute 'axes'") as caught:
        ir.Node.create("SoftMax", 8, [p], {"axes": 1})
    assert "did you mean 'axis'?" in caught.value.hint
    with pytest.raises(TypeError, match="expected Model"):
        ir.Model([p])


def test_reading_and_compiling_create_no_nodes(tmp_path: Path) -> None:
    """Nodes of a model that was read are created on demand."""
    ops = ir.opset13
    p = ops.parameter([2], np.float32, name="p")
    ir.save_model(ir.Model([ops.relu(ops.exp(p, name="e"))], [p]), tmp_path / "m.xml")
    model = ir.read_model(tmp_path / "m.xml")
    ir.compile_model(model)(np.float32([1, 2]))
    made = {node.layer.type for node in model._table.created.values()}
    assert "Exp" not in made
    assert not model._table.is_edited
    model.get_ops()[1].set_friendly_name("new")
    assert model._table.is_edited


def test_nodes_are_handles_on_the_graph_until_they_are_changed(tmp_path: Path) -> None:
    ops = ir.opset13
    p = ops.parameter([2], np.float32, name="p")
    y: ir.Node = p
    for index in range(9):
        y = ops.relu(y, name=f"relu{index}")
    ir.save_model(ir.Model([y], [p]), tmp_path / "m.xml")
    model = ir.read_model(tmp_path / "m.xml")
    nodes = {node.friendly_name: node for node in model.get_ops()}
    replacement = ops.exp(nodes["relu3"].output(0))
    nodes["relu4"].output(0).replace(replacement.output(0))
    model.validate_nodes_and_infer_types()
    detached = {name for name, node in nodes.items() if node.type == "ReLU" and not node._is_attached}
    assert detached == {"relu5"}
    assert [port.get_node() for port in nodes["relu5"].output(0).target_inputs] == [nodes["relu6"]]
    assert {port.get_node() for port in nodes["relu3"].output(0).target_inputs} == {
        replacement,
        nodes["relu4"],
    }
    del nodes["relu4"]
    model.get_ops()
    assert {port.get_node() for port in nodes["relu3"].output(0).target_inputs} == {replacement}
    assert [node.type for node in model.get_ordered_ops()].count("ReLU") == 8


def test_a_model_that_is_compiled_does_not_follow_changes() -> None:
    ops = ir.opset13
    p = ops.parameter([2], np.float32, name="p")
    model = ir.Model([ops.relu(p, name="relu")], [p])
    compiled, x = ir.compile_model(model), np.float32([-1, 1])
    (reader,) = p.output(0).target_inputs
    reader.get_node().output(0).replace(ops.negative(p).output(0))
    assert compiled(x)[0].tolist() == [0, 1]
    assert compiled.output(0) == model.output(0)
    assert ir.compile_model(model)(x)[0].tolist() == [1, -1]


def test_nodes_that_nobody_keeps_are_forgotten() -> None:
    ops = ir.opset13
    p = ops.parameter([2], np.float32)
    kept = ops.relu(p)
    ops.exp(p)
    assert {target.get_node() for target in p.output(0).target_inputs} == {kept}


def test_changes_infer_only_what_they_change(monkeypatch: pytest.MonkeyPatch) -> None:
    ops = ir.opset13
    x = ops.parameter([2, 6], np.float32, name="x")
    length = ops.constant(np.int64([3, 4]))
    first = ops.relu(x)
    shaped = ops.reshape(ops.exp(first), length, False)
    model = ir.Model([ops.sigmoid(shaped)], [x])
    inferred: list[str] = []
    infer_values = Op.infer_values
    monkeypatch.setattr(
        Op,
        "infer_values",
        lambda op, *given, **how: inferred.append(op.name) or infer_values(op, *given, **how),
    )
    ir.utils.replace_node(first, ops.tanh(x))
    model.validate_nodes_and_infer_types()
    assert inferred == ["Tanh"]  # when it was created
    inferred.clear()
    ir.utils.replace_node(length, ops.constant(np.int64([6, 2])))
    model.validate_nodes_and_infer_types()
    assert model.output().shape == [6, 2]
    assert inferred == ["Reshape", "Sigmoid"]


@pytest.mark.parametrize("copied", [False, True])
@pytest.mark.parametrize("package", ["openvino", "ir_runtime"])
def test_nodes_that_were_cut_out_consume_nothing(package: str, copied: bool) -> None:
    """After a FakeQuantize is cut out, its operand has only the consumers that are in the model."""
    ov, ops = importlib.import_module(package), importlib.import_module(f"{package}.opset13")
    x, weights = ops.parameter([1, 2], np.float32, name="x"), ops.constant(np.eye(2, dtype=np.float32))
    limits = (np.float32(limit) for limit in (-1, 1, -1, 1))
    quantized = ops.fake_quantize(weights, *limits, 256, name="fq")
    model = ov.Model([ops.result(ops.matmul(x, quantized, False, True, name="product"))], [x], "m")
    del quantized, weights
    model = model.clone() if copied else model
    (node,) = [node for node in model.get_ops() if node.get_friendly_name() == "fq"]
    for target in node.output(0).get_target_inputs():
        target.replace_source_output(node.input_value(0))
    weights = node.input_value(0)
    del node, target
    assert "fq" not in [node.get_friendly_name() for node in model.get_ops()]
    assert [target.get_node().get_friendly_name() for target in weights.get_target_inputs()] == ["product"]


class _Swap(passes.MatcherPass):
    """Replace each Add by a new one with the same operands."""

    def __init__(self) -> None:
        super().__init__()
        self.register_matcher(passes.Matcher(passes.WrapType("opset13.Add"), "Swap"), self.swap)

    def swap(self, matcher: passes.Matcher) -> bool:
        root = matcher.get_match_root()
        replacement = ir.opset13.add(*root.input_values(), name=f"{root.friendly_name}/new")
        ir.utils.replace_node(root, replacement)
        return True


def _read_chain(length: int, folder: Path) -> ir.Model:
    """Read a model of Adds with tensor names, and as many layers between them."""
    ops = ir.opset13
    x = ops.parameter([2, 8192], np.float32, name="x")
    y: ir.Node = x
    for index in range(length):
        y = ops.relu(ops.add(y, x, name=f"add{index}"), name=f"relu{index}")
        y.input_value(0).set_names({f"t{index}"})
    ir.save_model(ir.Model([y], [x]), folder / f"{length}.xml", compress_to_fp16=False)
    return ir.read_model(folder / f"{length}.xml")


def test_a_change_of_a_graph_takes_few_calls(tmp_path: Path) -> None:
    """Matching, creating, inferring, connecting and validating a node take a constant number of calls each."""
    counts = {}
    for length in (5, 20, 40, 80):  # the first imports what the others need
        model, manager = _read_chain(length, tmp_path), passes.Manager()
        manager.register_pass(_Swap())
        counts[length] = calls(
            lambda model=model, manager=manager: manager.run_passes(model), kinds=("call",)
        )  # type: ignore[misc]
        assert sum(node.friendly_name.endswith("/new") for node in model.get_ops()) == length
    assert (counts[80] - counts[40]) / 40 < 300
    assert counts[80] - counts[40] <= 2.1 * (counts[40] - counts[20])


def test_a_pass_creates_the_nodes_at_which_it_may_match(tmp_path: Path) -> None:
    ops = ir.opset13
    x = ops.parameter([2], np.float32, name="x")
    ir.save_model(ir.Model([ops.exp(ops.abs(ops.relu(x)))], [x]), tmp_path / "m.xml")
    model, types = ir.read_model(tmp_path / "m.xml"), []
    for pattern in ("opset13.Relu", "opset13.Exp"):
        matcher = passes.Matcher(passes.WrapType(pattern), pattern)
        passes.MatcherPass(matcher, lambda at: types.append(at.get_match_root().type))._run(model)
    assert types == ["ReLU", "Exp"]
    assert {node.type for node in model._table.created.values()} == {"ReLU", "Exp"}
    passes.MatcherPass(passes.Matcher(passes.AnyInput(), "any"), lambda at: False)._run(model)
    assert len(model._table.created) == 5


def test_equal_layers_share_their_operation() -> None:
    ops = ir.opset13
    x = ops.parameter([2, 3], np.float32, name="x")
    one, other = ops.reduce_sum(x, np.int64([0])), ops.reduce_sum(x, np.int64([1]))
    kept = ops.reduce_sum(x, np.int64([1]), keep_dims=True)
    assert one.layer.op is other.layer.op
    assert kept.layer.op is not one.layer.op
    one.set_attribute("keep_dims", True)
    assert [node.get_attributes()["keep_dims"] for node in (one, other, kept)] == [True, False, True]


@pytest.mark.parametrize("seed", range(4))
def test_outputs_know_their_readers_whatever_is_connected(tmp_path: Path, seed: int) -> None:
    """This covers nodes as read, changed nodes, new nodes, and nodes that have left the model."""
    draw, model = np.random.default_rng(seed), _read_chain(8, tmp_path)
    nodes: list[ir.Node] = model.get_ops()
    for turn in range(40):
        producers = [node for node in nodes if node.type in ("Parameter", "ReLU", "Add")]
        source = producers[draw.integers(len(producers))].output(0)
        readers = [node for node in nodes if node.get_input_size()]
        reader = readers[draw.integers(len(readers))]
        if turn % 4 == 3:
            nodes.append(ir.opset13.add(source, producers[draw.integers(len(producers))].output(0)))
        else:
            reader.input(int(draw.integers(reader.get_input_size()))).replace_source_output(source)
        if turn % 10 == 9:
            model.get_ops()
        for node in producers:
            expected = {
                port
                for other in nodes
                for port in other.inputs()
                if port.get_source_output() == node.output(0)
            }
            assert node.output(0).target_inputs == expected
            assert len(list(node._targets(0))) == len(expected)
