"""Drop-in use: the same program on OpenVINO and here, with only the import changed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from harness.dropin import assert_same, evaluate, run
from harness.nets import Net

EXAMPLES = Path(__file__).parents[2] / "examples/digits"
IMAGES = np.load(EXAMPLES / "images.npy")[:4]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Small models: a sum, two inputs with two outputs, and one with dynamic dims."""
    path = tmp_path_factory.mktemp("models")
    total = Net(name="total")
    x = total.parameter("x", "2,3", out="FP32 2 3")
    total.result(total.op("ReduceSum", x, total.constant([1]), out="FP32 2", name="sum", names="total"))
    pair = Net(name="pair")
    a, b = pair.parameter("a", "?,3", out="FP32 -1 3"), pair.parameter("b", "3", "i64", out="I64 3")
    wide = pair.op("Convert", b, out="FP32 3", name="wide", destination_type="f32")
    added = pair.op("Add", a, wide, out="FP32 -1 3", name="added", names="added_tensor")
    pair.result(pair.op("ReLU", added, out="FP32 -1 3", name="positive", names="positive_tensor"), "first")
    pair.result(
        pair.op("ReduceMax", added, pair.constant([1]), out="FP32 -1", name="top", names="top_tensor"),
        "second",
    )
    for net in (total, pair):
        (path / f"{net.name}.xml").write_bytes(net.xml())
        (path / f"{net.name}.bin").write_bytes(net.weights)
    for suffix in ("xml", "bin"):
        (path / f"digits.{suffix}").write_bytes((EXAMPLES / f"digits.{suffix}").read_bytes())
    return path


PROGRAMS = {
    "digits": """
core = ov.Core()
model = core.read_model(folder / "digits.xml")
compiled = core.compile_model(model, "CPU", config)
scores = compiled({"image": images})["scores"]
note(scores, scores.argmax(axis=1), model.inputs, model.outputs, compiled.inputs, compiled.outputs)
note(model, compiled, compiled.create_infer_request(), core)
""",
    "compile by path": """
note(ov.compile_model(str(folder / "total.xml"), "CPU", config)([x])[0])
note(ov.Core().compile_model(folder / "total.xml", "CPU", config)(x)[0])
xml, weights = (folder / "total.xml").read_bytes(), (folder / "total.bin").read_bytes()
note(ov.Core().compile_model(ov.Core().read_model(xml, weights), "CPU")(x)[0])
import io
note(ov.Core().read_model(io.BytesIO(xml), io.BytesIO(weights)).inputs)
note(ov.Core().read_model(folder / "total.xml", folder / "total.bin").outputs)
""",
    "ways to give one input": """
compiled = ov.Core().compile_model(folder / "total.xml", "CPU", config)
port = compiled.input(0)
for inputs in (x, [x], (x,), {0: x}, {"x": x}, {port: x}, {compiled.input("x"): x}, {port: ov.Tensor(x)},
               ov.Tensor(x), [ov.Tensor(x)], {"x": x[:, ::-1]}, {"x": np.asfortranarray(x)}):
    note(compiled(inputs)[0])
note(compiled.infer_new_request({0: x})[0], compiled.infer_new_request([x])["total"])
""",
    "ways to give two inputs": """
compiled = ov.Core().compile_model(folder / "pair.xml", "CPU", config)
a, b = x, np.array([-5, 1, 2])
for inputs in ([a, b], (a, b), {0: a, 1: b}, {"a": a, "b": b}, {"b": b, 0: a},
               {compiled.input("b"): b, compiled.inputs[0]: a}, [ov.Tensor(a), b]):
    results = compiled(inputs)
    note(results[0], results[1])
note(compiled([x[:1], b]).to_tuple(), compiled([x[:0], b])[0])
""",
    "results": """
compiled = ov.Core().compile_model(folder / "pair.xml", "CPU", config)
results = compiled([x, np.array([-5, 1, 2])])
note(results[0], results["positive_tensor"], results[compiled.output(0)], results[compiled.output("top_tensor")])
note(results.names(), results.to_dict(), results.to_tuple(), len(results), list(results), results)
note("top_tensor" in results, compiled.output(1) in results, "nope" in results, results.get("nope"), results.get(0))
note(list(results.keys()), list(results.values()), [k for k, _ in results.items()])
first, second = results.values()
note(first, second)
for key in ("nope", 7):
    try:
        results[key]
    except KeyError:
        note("KeyError")
try:
    results[0] = 1
except TypeError:
    note("TypeError")
results[0][:] = 0
note(compiled([x, np.array([-5, 1, 2])])[0])
""",
    "requests": """
compiled = ov.Core().compile_model(folder / "pair.xml", "CPU", config)
request = compiled.create_infer_request()
b = np.array([-5, 1, 2])
note(request.infer([x, b])[0], request.results[1], request.latency > 0)
note(request.get_input_tensor(0).data, request.get_output_tensor(1).data, request.get_tensor("a").data)
note(request.get_tensor(compiled.output(0)).data, request.get_tensor("top_tensor"))
note(request.infer({"a": -x})[0], request.infer()[0])
note(request.input_tensors, request.output_tensors, request.model_inputs, request.model_outputs)
request.set_tensor("a", ov.Tensor(x + 1)); request.set_tensor(compiled.input(1), ov.Tensor(b * 2))
note(request.infer().to_tuple())
request.set_input_tensor(0, ov.Tensor(x)); request.set_input_tensors({0: ov.Tensor(x), 1: ov.Tensor(b + 1)})
note(request.infer()[0]); request.set_output_tensors({}); request.set_input_tensors({1: ov.Tensor(b)})
request.set_tensors({"b": ov.Tensor(b)}); note(request.infer()[0])
mine = ov.Tensor(ov.Type.f32, ov.Shape([2, 3])); request.set_output_tensor(0, mine); request.infer()
note(mine.data, request.get_output_tensor(0).data)
other = ov.Tensor(ov.Type.f32, ov.Shape([2])); request.set_tensor("top_tensor", other); request.infer(); note(other.data)
live = request.get_output_tensor(1); request.infer([x * 3, b]); note(live.data)
request.get_input_tensor(1).data[:] = 7; note(request.infer()[0])
note(request.get_compiled_model().inputs, request.query_state(), request.reset_state(), request.cancel())
""",
    "single input request": """
request = ov.Core().compile_model(folder / "total.xml", "CPU", config).create_infer_request()
out = request.get_output_tensor()
note(out.shape, out.element_type)
request.set_input_tensor(ov.Tensor(x)); request.infer(); note(out.data, request.get_input_tensor().data)
request.get_input_tensor().data[:] = x * 2; request.infer(); note(out.data)
given = x.copy(); request.infer([given]); given[:] = 0; note(request.infer()[0])
request.infer([x], share_inputs=True); note(request.infer(share_outputs=True)[0])
""",
    "open dims of a request": """
request = ov.Core().compile_model(folder / "pair.xml", "CPU", config).create_infer_request()
note(request.get_input_tensor(0).shape, request.get_output_tensor(0).shape)
tensor = request.get_input_tensor(0)
tensor.set_shape([2, 3]); tensor.data[:] = x; request.get_input_tensor(1).data[:] = [1, 2, 3]
note(request.infer()[0])
""",
    "asynchronous": """
compiled = ov.Core().compile_model(folder / "total.xml", "CPU", config)
request = compiled.create_infer_request(); calls = []
request.set_callback(calls.append, "mine")
request.start_async([x]); request.wait(); note(request.results[0], calls)
request.start_async({"x": -x}, "other"); note(request.wait_for(10_000), request.get_output_tensor().data, calls)
request.start_async(); request.wait(); note(request.results[0], request.userdata)
request.infer([x]); note(calls)
""",
    "queue": """
compiled = ov.Core().compile_model(folder / "total.xml", "CPU", config)
queue = ov.AsyncInferQueue(compiled, 2); done = {}
queue.set_callback(lambda request, number: done.update({number: request.get_output_tensor().data.copy()}))
for number in range(6):
    queue.start_async({0: x * number}, number)
queue.wait_all()
note({n: done[n] for n in range(6)}, len(queue), queue.is_ready(), queue, queue[0], [type(r).__name__ for r in queue])
note(queue.get_idle_request_id() in (0, 1), len(queue.userdata))
plain = ov.AsyncInferQueue(compiled, 1); plain.start_async([x]); plain.wait_all(); note(plain[0].results[0])
""",
    "reshape": """
core = ov.Core()
model = core.read_model(folder / "digits.xml")
for shapes in ([3, 1, 8, 8], (2, 1, 8, 8), "1..4,1,8,8", {"image": [-1, 1, 8, 8]}, {0: "4,1,8,8"}, {"image": "?,1,8,8"},
               {model.input(0): ov.PartialShape([2, 1, 8, 8])}, ov.PartialShape("5,1,8,8"),
               {"image": [(1, 5), 1, ov.Dimension(8), "8"]}):
    model.reshape(shapes)
    note(model.inputs, model.outputs, model.is_dynamic(), [str(o) for o in model.get_ops()] == 0)
model.reshape([4, 1, 8, 8]); compiled = core.compile_model(model, "CPU", config)
note(compiled(images)[0], compiled.input().shape, compiled.output().get_shape(), model.get_output_shape(0))
for wrong in ([1, 2, 8, 8], [1, 1, 8], {"nope": [1]}, [1, 1, "x", 8]):
    try:
        model.reshape(wrong)
    except RuntimeError:
        note("RuntimeError", model.input().shape)
""",
    "nodes": """
model = ov.Core().read_model(folder / "digits.xml")
note(sorted(repr(node) for node in model.get_ops()), len(model.get_ordered_ops()))
note(sorted(node.get_friendly_name() for node in model.get_ops()), {n.get_type_name() for n in model.get_ops()})
seen = set()
for node in model.get_ordered_ops():
    assert all(source.get_node().get_friendly_name() in seen for source in node.input_values())
    seen.add(node.get_friendly_name())
by_name = {node.friendly_name: node for node in model.get_ops()}
for name in ("image", "Multiply_2994", "Multiply_3017", "Result_332"):
    node = by_name[name]
    note(node, node.get_type_name(), node.inputs(), node.outputs(), node.get_input_size(), node.get_output_size())
    note(node.input_values(), node.get_output_partial_shape(0), node.get_output_element_type(0))
conv, weights = by_name["Multiply_2994"], by_name["Multiply_3017"]
note(weights.data, weights.get_data(), weights.shape, weights.get_output_shape(0))
for node in (conv, weights, *model.parameters):
    note(dict(sorted(node.get_attributes().items())))
note(conv.input_value(1).get_node().friendly_name, conv.get_input_shape(1))
note(conv.input(0).get_source_output().any_name, conv.input(0).get_index(), conv.input(1).get_shape())
note(conv.output(0).get_target_inputs(), next(iter(conv.output(0).target_inputs)).get_node())
note(model.parameters, model.results, model.get_parameters(), model.get_results(), model.result)
note(model.input().node, model.output().node, model.output().get_node().friendly_name, model.parameters[0].partial_shape)
note(model.get_parameter_index(model.parameters[0]), model.get_result_index(model.output(0)))
note(conv == by_name["Multiply_2994"], conv == weights, len({conv, weights, by_name["Multiply_2994"]}))
""",
    "ports": """
model = ov.Core().read_model(folder / "pair.xml")
compiled = ov.Core().compile_model(model, "CPU", config)
for owner in (model, compiled):
    for port in (*owner.inputs, *owner.outputs, owner.input("a"), owner.output("top_tensor"), owner.input(1)):
        note(port, str(port), port.names, port.get_names(), port.any_name, port.get_any_name(), port.index)
        note(port.partial_shape, port.get_partial_shape(), port.element_type, port.get_element_type(), port.get_index())
    note(owner.input("b").shape, owner.input("b").get_shape(), owner.input("b").shape == [3], list(owner.input("b").shape))
    note(owner.input(0) == owner.input("a"), hash(owner.input(0)) == hash(owner.input("a")), owner.input(0) == owner.input(1))
    for wrong in (lambda: owner.input("nope"), lambda: owner.output("nope"), lambda: owner.input(0).shape):
        try:
            wrong()
        except RuntimeError:
            note("RuntimeError")
note(model.get_output_size(), model.get_output_element_type(0), model.get_output_partial_shape(1))
""",
    "model": """
model = ov.Core().read_model(folder / "digits.xml")
note(model.friendly_name, model.get_friendly_name(), model.is_dynamic(), model.get_variables())
note(model.has_rt_info("Runtime_version"), model.has_rt_info(["conversion_parameters", "framework"]), model.has_rt_info("no"))
model.set_friendly_name("mine"); note(model.friendly_name, model)
note(model.clone(), model.validate_nodes_and_infer_types())
other = model.clone(); other.reshape([2, 1, 8, 8]); note(model.inputs, other.inputs)
""",
    "intermediate outputs": """
model = ov.Core().read_model(folder / "pair.xml")
added = model.add_outputs("added_tensor")
note(len(added), len(model.outputs), model.outputs[2].names, added[0].partial_shape)
note(len(model.add_outputs(["added_tensor"])), len(model.add_outputs("top_tensor")), len(model.outputs))
model.add_outputs(("wide", 0)); note(len(model.outputs))
node = [n for n in model.get_ops() if n.friendly_name == "added"][0]
model.add_outputs([node.output(0)]); note(len(model.outputs))
results = ov.Core().compile_model(model, "CPU", config)([x, np.array([-5, 1, 2])])
note(results["added_tensor"], results.to_tuple())
""",
    "tensors": """
for tensor in (ov.Tensor(x), ov.Tensor(ov.Type.f32, ov.Shape([2, 3])), ov.Tensor(ov.Type.i64, [4]), ov.Tensor([1, 2, 3]),
               ov.Tensor([1.5, 2]), ov.Tensor(x, [3, 2], ov.Type.f32), ov.Tensor(x > 2), ov.Tensor(x.astype(np.float16)),
               ov.Tensor(x, True), ov.Tensor(x, shared_memory=True)):
    note(tensor, tensor.shape, tensor.get_shape(), tensor.element_type, tensor.get_element_type(), tensor.size)
    note(tensor.get_size(), tensor.byte_size, tensor.get_byte_size(), tensor.data.dtype, tensor.is_continuous())
copy, shared, turned = ov.Tensor(x), ov.Tensor(x, True), ov.Tensor(x.T)
note(copy.data, turned.data, list(copy.strides), list(turned.get_strides()))
note(np.shares_memory(copy.data, x), np.shares_memory(shared.data, x))
copy.data[0, 0] = 9; note(x[0, 0], copy.data[0, 0])
target = ov.Tensor(ov.Type.f32, ov.Shape([3, 2])); copy.copy_to(target); note(target.shape, target.data)
target.copy_from(shared); note(target.data)
target.set_shape([6]); note(target.data); target.set_shape(ov.Shape([2, 6])); note(target.shape)
text = ov.Tensor(np.array(["a", "bcd"])); note(text, text.str_data, text.bytes_data)
for wrong in (lambda: ov.Tensor(x.astype(complex)), lambda: target.copy_from(ov.Tensor(x.astype(np.float64))), lambda: copy.str_data):
    try:
        wrong()
    except RuntimeError:
        note("RuntimeError")
""",
    "core": """
core = ov.Core()
note(core.available_devices, core.get_available_devices(), type(core.get_property("CPU", "FULL_DEVICE_NAME")))
note("PERF_COUNT" in core.get_property("CPU", "SUPPORTED_PROPERTIES"), sorted(core.get_versions("CPU")))
model = core.read_model(folder / "total.xml")
note({n: d for n, d in core.query_model(model, "CPU").items() if n == "x"})
compiled = core.compile_model(model, "CPU", {"PERF_COUNT": True, **config})
note(compiled.get_property("NETWORK_NAME"), compiled.get_property("EXECUTION_DEVICES"))
note(compiled.get_property("OPTIMAL_NUMBER_OF_INFER_REQUESTS"), "NUM_STREAMS" in compiled.get_property("SUPPORTED_PROPERTIES"))
request = compiled.create_infer_request(); request.infer([x])
info = request.get_profiling_info()
note(len(info) > 0, {type(i.real_time).__name__ for i in info}, info[-1].Status.EXECUTED, len(request.profiling_info) > 0)
for wrong in (lambda: core.compile_model(model, "NOPE"), lambda: core.read_model(folder / "nothing.xml"),
              lambda: core.compile_model(model, "CPU", {"NOPE": 1}), lambda: core.get_property("CPU", "NOPE"),
              lambda: core.read_model(b"nothing"), lambda: core.set_property({"NOPE": 1})):
    try:
        wrong()
    except RuntimeError:
        note("RuntimeError")
""",
    "properties": """
if ov.__name__ == "openvino":
    import openvino.properties as props, openvino.properties.hint as hints
else:
    import ir_runtime.properties as props, ir_runtime.properties.hint as hints
note(str(hints.performance_mode), hints.performance_mode == "PERFORMANCE_HINT", hints.performance_mode())
note(hints.num_requests(3)[0], props.enable_profiling(True)[0], props.device.full_name(), props.streams.num(2)[0])
for name in ("available_devices", "cache_dir", "compilation_num_threads", "enable_mmap", "enable_profiling",
             "execution_devices", "inference_num_threads", "model_name", "num_streams", "supported_properties",
             "optimal_number_of_infer_requests"):
    note(getattr(props, name)())
for name in ("allow_auto_batching", "enable_cpu_pinning", "enable_hyper_threading", "execution_mode", "inference_precision",
             "kv_cache_precision", "model_priority", "num_requests", "performance_mode", "scheduling_core_type"):
    note(getattr(hints, name)())
note(list(hints.PerformanceMode.__members__), list(hints.ExecutionMode.__members__), hints.PerformanceMode.LATENCY)
settings = {hints.performance_mode: hints.PerformanceMode.LATENCY, hints.inference_precision: ov.Type.f32}
note(ov.compile_model(folder / "total.xml", "CPU", settings)(x)[0])
""",
}


@pytest.mark.filterwarnings(
    "ignore:.*has no effect in ir_runtime", "ignore:Data of string type will be copied"
)
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name: str, folder: Path) -> None:
    given = {
        "folder": folder,
        "images": IMAGES,
        "x": np.arange(6, dtype=np.float32).reshape(2, 3),
        "config": {"INFERENCE_PRECISION_HINT": "f32"},
    }
    theirs = run(PROGRAMS[name], "openvino", **given)
    ours = run(PROGRAMS[name], "ir_runtime", **given)
    assert len(ours) == len(theirs)
    assert theirs
    for mine, its in zip(ours, theirs, strict=True):
        assert_same(mine, its)


DIMENSIONS = """
Dimension() | Dimension(-1) | Dimension(3) | Dimension(1, 8) | Dimension(0, 5) | Dimension(2, -1) | Dimension("?")
Dimension("1..8") | Dimension("..8") | Dimension("2..") | Dimension(3).get_length() | Dimension(1, 8).get_length()
Dimension().get_max_length() | Dimension().get_min_length() | Dimension(2, -1).max_length | Dimension(3).min_length
Dimension(1, 8).is_static | Dimension(1, 8).is_dynamic | Dimension(1, 8) == Dimension(1, 8) | Dimension(3) == 3
Dimension(3) == 4 | Dimension(1, 8) == 3 | Dimension(1, 8).same_scheme(Dimension(1, 9)) | Dimension.dynamic()
Dimension(1, 8).same_scheme(Dimension(3)) | Dimension(3).same_scheme(Dimension(3)) | Dimension(3).same_scheme(Dimension(4))
Dimension(1, 8).compatible(Dimension(3)) | Dimension(1, 8).compatible(Dimension(9)) | Dimension(1, 8).relaxes(Dimension(3))
Dimension(1, 8).refines(Dimension(3)) | Dimension(3).refines(Dimension(1, 8)) | Dimension(3).to_string()
str(Dimension(1, 8)) | Dimension(1, 8).get_symbol() | Dimension(3).has_symbol() | Dimension(0) | Dimension(4) != Dimension(4)
"""
SHAPES = """
PartialShape([1, -1]) | PartialShape("?,3,1..4,..8") | PartialShape("[?,3]") | PartialShape("...") | PartialShape("")
PartialShape("[]") | PartialShape([]) | PartialShape([1, (2, 5), "3..4", "?", ov.Dimension(7)]) | PartialShape((1, 2))
PartialShape([[1, 2]]) | PartialShape(ov.Shape([1, 2])) | PartialShape.dynamic() | PartialShape.dynamic(3)
PartialShape.dynamic(ov.Dimension(2)) | PartialShape([1, -1]).rank.get_length() | PartialShape([1, -1]).rank.is_static
PartialShape([1, 2]).to_shape() | PartialShape([1, -1]).to_shape() | PartialShape([1, -1]).get_min_shape()
PartialShape([1, (2, 5), -1]).get_max_shape() | PartialShape([1, 2]).get_shape() | PartialShape([1, -1]).is_static
PartialShape([1, -1]).is_dynamic | PartialShape([1, 2]) == [1, 2] | PartialShape([1, 2]) == (1, 2)
PartialShape([1, 2]) == ov.Shape([1, 2]) | PartialShape([1, 2]) == PartialShape([1, 2])
PartialShape([1, -1]) == PartialShape([1, -1]) | PartialShape([1, -1]) == "1,?"
PartialShape([1, -1]).same_scheme(ov.PartialShape([1, (2, 3)])) | PartialShape([1, -1]).same_scheme(ov.PartialShape([1]))
PartialShape([1, -1]).compatible(ov.PartialShape([1, 3])) | PartialShape([2, -1]).compatible(ov.PartialShape([1, 3]))
PartialShape([1, -1]).refines(ov.PartialShape([1, 3])) | PartialShape([1, -1]).relaxes(ov.PartialShape([1, 3]))
len(ov.PartialShape([1, 2])) | PartialShape([1, 2])[0] | PartialShape([1, 2])[-1] | list(ov.PartialShape([1, -1]))
str(ov.PartialShape([1, -1])) | PartialShape([1, -1]).to_string() | PartialShape([1, -1]).get_dimension(1)
Shape([1, 2]) | Shape((1, 2)) | Shape("1,2") | Shape("[1,2]") | Shape() | str(ov.Shape([1, 2])) | Shape([1, 2]).to_string()
Shape([1, 2]) == [1, 2] | Shape([1, 2]) == (1, 2) | (1, 2) == ov.Shape([1, 2]) | Shape([1, 2]) != [1, 3] | Shape([1, 2])[-1]
list(ov.Shape([1, 2])) | len(ov.Shape([1, 2])) | tuple(ov.Shape([1, 2])) | np.zeros(ov.Shape([1, 2])).shape
np.ones((2, 3)).reshape(ov.Shape([3, 2])).shape
"""
ELEMENTS = "boolean bf16 f16 f32 f64 f8e4m3 f8e5m2 f8e8m0 f4e2m1 nf4 i4 i8 i16 i32 i64 u1 u2 u3 u4 u6 u8 u16 u32 u64 string dynamic"
TYPES = """
Type.{e} | str(ov.Type.{e}) | f"{{ov.Type.{e}}}" | Type.{e}.to_string() | Type.{e}.get_type_name() | Type.{e}.is_static() | Type.{e}.is_dynamic()
Type.{e} == ov.Type.{e} | Type.{e} == ov.Type.f32 | Type.{e}.merge(ov.Type.{e}) | Type.{e}.merge(ov.Type.dynamic)
Type.{e}.merge(ov.Type.i8) | Type.{e}.compatible(ov.Type.f32) | Type.{e} == "{e}" | hash(ov.Type.{e}) == hash(ov.Type.{e})
"""
MORE_TYPES = """
Type(np.float32) | Type(np.dtype("int64")) | Type(bool) | Type(float) | Type(int) | Type.f32.to_dtype() | Type.i64.to_dtype()
Type.boolean.to_dtype() | Type.f32.size | Type.f16.get_size() | Type.u4.bitwidth | Type.f64.get_bitwidth() | Type.f32.real
Type.i32.real | Type.i32.integral | Type.f32.integral | Type.merge(ov.Type.f32, ov.Type.f32) | Type.merge(ov.Type.f32, ov.Type.f16)
"""


def expressions(table: str) -> list[str]:
    names = ("Dimension", "PartialShape", "Shape", "Type")
    parts = [part.strip() for line in table.strip().splitlines() for part in line.split(" | ")]
    return [f"ov.{p}" if p.startswith(names) else p.replace(" Dimension", " ov.Dimension") for p in parts]


def qualified(expression: str) -> str:
    """Replace the package's name inside an expression, too."""
    import re

    return re.sub(r"(?<![\w.])(Dimension|PartialShape|Shape|Type)\b", r"ov.\1", expression)


@pytest.mark.parametrize(
    "expression", [*expressions(DIMENSIONS), *expressions(SHAPES), *expressions(MORE_TYPES)]
)
def test_dimensions_shapes_and_types(expression: str) -> None:
    text = qualified(expression)
    assert_same(evaluate(text, "ir_runtime"), evaluate(text, "openvino"))


@pytest.mark.parametrize("element", ELEMENTS.split())
def test_element_types(element: str) -> None:
    for expression in expressions(TYPES.format(e=element)):
        text = qualified(expression)
        assert_same(evaluate(text, "ir_runtime"), evaluate(text, "openvino"))
