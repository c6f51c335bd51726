"""Arguments of unexpected types, model names, strings and packed types, on both packages."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness.dropin import assert_same, run

START = """
import importlib
package = ov.__name__
ops = importlib.import_module(package + ".opset15")
helpers = importlib.import_module(package + ".helpers")
types = importlib.import_module(package + ".utils.types")
core = ov.Core()

def refused(kind, *calls):
    for number, call in enumerate(calls):
        try:
            note(number, call())
        except kind:
            note(number, "refused")

def network():
    p = ops.parameter([4], np.float32, name="p"); r = ops.result(p, name="r")
    return p, r, ov.Model([r], [p], "net")

def echo():
    s = ops.parameter([-1], ov.Type.string, name="s"); s.output(0).set_names({"s"})
    return ov.compile_model(ov.Model([ops.result(s)], [s]), "CPU")
"""

PROGRAMS = {
    "how ports are asked for": """
p, r, model = network()
p.output(0).set_names({"in"})
compiled = ov.compile_model(model, "CPU")
for each in (model, compiled):
    note(each.input(tensor_name="in"), each.input(index=0), each.output(index=0), each.input(0))
    refused((RuntimeError, IndexError), lambda: each.input(tensor_name="nothing"), lambda: each.output(index=9))
""",
    "outputs and shapes that are none": """
p, r, model = network()
refused(TypeError, *(lambda x=x: model.add_outputs(x) for x in (0, [0], None, [None], object(), 1.5)))
refused(TypeError, lambda: model.reshape({"p": [4]}, {0: [1]}), lambda: model.reshape({0: [4]}, {0: 1}))
refused(TypeError, lambda: ov.PartialShape([("?", "?")]), lambda: ov.PartialShape([("1", 2)]), lambda: ov.PartialShape([["a", "b"]]))
""",
    "names of models": """
p, r, model = network()
model.name = "x"
note(model.name, model.friendly_name, model.get_friendly_name())
model.set_friendly_name("other")
note(model.name, model.friendly_name, model.clone().friendly_name)
ov.save_model(model, folder / f"{package}.xml")
note(core.read_model(folder / f"{package}.xml").friendly_name)
""",
    "members of other types": """
p, r, model = network()
other = ops.relu(p)
refused(TypeError, *(lambda x=x: model.get_result_index(x) for x in (p, other, 5, None)))
refused(TypeError, *(lambda x=x: model.get_parameter_index(x) for x in (r, p.output(0), 5)))
refused(TypeError, lambda: model.get_sink_index(5), lambda: model.get_variable_by_id(5), lambda: model.remove_variable(5))
refused(TypeError, *(lambda x=x: model.remove_result(x) for x in (5, p)))
refused(TypeError, *(lambda x=x: model.remove_parameter(x) for x in (5, r)), lambda: model.remove_sink(5))
refused(TypeError, *(lambda x=x: model.add_parameters(x) for x in ([r], [5], p)), lambda: model.add_results([5]))
refused(RuntimeError, lambda: model.add_sinks([p]), lambda: model.add_sinks([5]))
refused(TypeError, lambda: model.add_variables([5]), lambda: model.replace_parameter(0, r))
note(len(model.inputs), len(model.outputs), len(model.sinks), len(model.get_variables()))
note(model.get_result_index(r), model.get_result_index(r.output(0)), model.get_result_index(p.output(0)))
note(model.get_result_index(ops.result(p)), model.get_result_index(other.output(0)), model.get_parameter_index(p))
""",
    "arguments of Core": """
model = network()[2]
refused(TypeError, *(lambda x=x: core.import_model(x, "CPU") for x in (5, "text", [1], None)))
refused(TypeError, *(lambda x=x: core.add_extension(x) for x in (5, None, [5], {}, 1.5)))
note(core.add_extension([]))
refused(RuntimeError, lambda: core.add_extension("nofile.so"), *(lambda x=x: core.compile_model(x) for x in (5, None)))
refused(TypeError, *(lambda x=x: core.read_model(x) for x in (5, None, [1])))
refused(TypeError, lambda: core.compile_model(model, 5), lambda: core.query_model(model, 5), lambda: core.get_versions(5))
refused(TypeError, lambda: core.compile_model(model, {"PERF_COUNT": True}), lambda: core.set_property(5, {}))
refused(TypeError, lambda: core.unload_plugin(5), lambda: core.get_property(5, "PERF_COUNT"))
""",
    "a CPU with a number": """
note(core.get_property("CPU.0", "NUM_STREAMS"), core.get_property("CPU.1", "FULL_DEVICE_NAME") != "")
note(core.get_property("CPU.0", "SUPPORTED_PROPERTIES") == core.get_property("CPU", "SUPPORTED_PROPERTIES"))
note(list(core.get_versions("CPU.0")))
model = network()[2]
refused(RuntimeError, *(lambda d=d: core.compile_model(model, d) for d in ("CPU.0", "CPU.", "AUTO:CPU.0")))
refused(RuntimeError, lambda: core.set_property("CPU.0", {"NUM_STREAMS": 2}))
""",
    "order of properties": """
model = network()[2]
note(core.get_property("AUTO", "SUPPORTED_PROPERTIES"))
for device in ("AUTO", "MULTI:CPU", "HETERO:CPU", "BATCH:CPU"):
    note(list(core.compile_model(model, device).get_property("SUPPORTED_PROPERTIES")))
""",
    "types and shapes of data": """
for data in (5, 5.5, [1, 2, 3], [], np.zeros((2, 3)), np.float32(4), True):
    note(types.get_shape(data))
for kind in (None, complex, "nope"):
    refused(TypeError, lambda: types.get_element_type(kind), lambda: types.get_element_type_str(kind))
for kind in (5, "f32", None, np.float32, ov.Type.dynamic):
    refused(TypeError, lambda: types.get_dtype(kind))
""",
    "strings that a model returns": """
compiled = echo()
for texts in (np.array(["a", "bcé"]), np.array([b"a", b"bc"]), np.array([b"\\xff\\xfe"]), ["", "a "]):
    for decode in (True, False):
        note(compiled([ov.Tensor(np.array(texts))], decode_strings=decode)[0])
        request = compiled.create_infer_request()
        note(request.infer([ov.Tensor(np.array(texts))], decode_strings=decode).to_tuple(), request.results[0])
        note(request.get_output_tensor().bytes_data, request.get_output_tensor().str_data)
    note(compiled.infer_new_request([ov.Tensor(np.array(texts))])[0])
request.start_async([np.array(["a", "bc"])])
request.wait()
note(request.results[0])
""",
    "numbers of less than a byte": """
for name in ("u1", "u2", "u3", "u4", "u6", "i4", "nf4"):
    kind = getattr(ov.Type, name)
    for count in (2, 5, 8, 13):
        low, high = (-8, 8) if name == "i4" else (0, 1 << kind.bitwidth)
        numbers = np.random.default_rng(count).integers(low, high, count).astype(np.int8 if low else np.uint8)
        packed = helpers.pack_data(numbers, kind)
        tensor = ov.Tensor(packed, ov.Shape([count]), kind)
        constant = ov.op.Constant(tensor)
        note(packed.size, packed.dtype, helpers.unpack_data(packed, kind, [count]))
        note(helpers.unpack_data(tensor.data, tensor.element_type, tensor.shape))
        note(helpers.unpack_data(constant.data, kind, constant.shape))
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name: str, tmp_path: Path) -> None:
    pytest.importorskip("openvino")
    ours, theirs = (
        run(START + PROGRAMS[name], package, folder=tmp_path) for package in ("ir_runtime", "openvino")
    )
    assert_same(ours, theirs)
