"""Scripts that save and inspect models, results and properties, on both packages."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness.dropin import START, assert_same, run

PROGRAMS = {
    "models that are saved in half precision": """
m = classifier(); path = folder / f"{package}_half.xml"; ov.save_model(m, path, compress_to_fp16=True); half = core.read_model(path); note(types(half), half.inputs, half.outputs)
note([(n.get_type_name(), n.get_friendly_name(), len(n.get_rt_info())) for n in half.get_ordered_ops() if n.get_type_name() == "Convert"], [n.get_element_type() for n in half.get_ordered_ops() if n.get_type_name() == "Constant"])
note(computed(half, IMAGE), types(m), path.with_suffix(".bin").stat().st_size); ov.save_model(m, str(path), compress_to_fp16=True); ov.save_model(model=half, output_model=folder / f"{package}_again.xml", compress_to_fp16=False)
again = core.read_model(folder / f"{package}_again.xml"); note(types(again), computed(again, IMAGE)); ov.serialize(m, path, path.with_suffix(".bin")); note(types(core.read_model(path)))
ov.serialize(m, str(folder / f"{package}_only.xml")); note((folder / f"{package}_only.bin").exists(), core.read_model(folder / f"{package}_only.xml").outputs); ov.serialize(m, folder / "v.xml", folder / "v.bin", "IR_V11"); ov.serialize(m, folder / "v.xml", version="UNSPECIFIED")
tried(lambda: ov.serialize(m, folder / "v.xml", folder / "v.bin", "IR_V9"), lambda: ov.serialize(m, folder / "v.xml", folder / "v.bin", "nope"), lambda: ov.save_model(m, folder / "no" / "such" / "m.txt"), lambda: ov.save_model(m, ""), lambda: ov.save_model(m, folder), lambda: ov.serialize(5, "x.xml"), lambda: ov.save_model(None, folder / "x.xml"))
x = parameter([2], "x"); c = ops.constant(np.float32([1e6, 1e-9]), name="c"); big = ov.Model([ops.add(x, c)], [x]); ov.save_model(big, path, True); note(types(core.read_model(path)), computed(core.read_model(path), np.float32([0, 0])))
i = parameter([2], "i", np.int64); whole = ov.Model([ops.add(i, ops.constant(np.int64([1, 2])))], [i]); ov.save_model(whole, path, True); note(types(core.read_model(path)))
d = parameter([2], "d", np.float64); double = ov.Model([ops.add(d, ops.constant(np.float64([1, 2])))], [d]); ov.save_model(double, path, True); note(types(core.read_model(path)), [n.get_element_type() for n in core.read_model(path).get_ordered_ops()[:-1] if n.get_output_size()])
""",
    "properties by their objects": """
props, hints = of("properties"), of("properties.hint"); m = classifier()
core.set_property("CPU", {hints.performance_mode: hints.PerformanceMode.THROUGHPUT, hints.inference_precision: ov.Type.f32, props.inference_num_threads: 2, hints.num_requests: "3"})
note(core.get_property("CPU", hints.performance_mode), core.get_property("CPU", hints.performance_mode()), core.get_property("CPU", props.inference_num_threads), core.get_property("CPU", "PERFORMANCE_HINT_NUM_REQUESTS"), core.get_property("CPU", hints.inference_precision))
c = core.compile_model(m, "CPU", {hints.performance_mode: "LATENCY", props.num_streams: props.streams.Num(1), hints.execution_mode: hints.ExecutionMode.ACCURACY}); note(c.get_property(props.inference_num_threads), c.get_property(props.num_streams()), c.get_property(hints.performance_mode), c.get_property("PERFORMANCE_HINT"), c.get_property(props.optimal_number_of_infer_requests), c.get_property(props.model_name), c.get_property(props.execution_devices))
note(*(name for name, _ in (hints.performance_mode(hints.PerformanceMode.LATENCY), props.cache_dir("x"), hints.num_requests(4), props.enable_profiling(True), props.inference_num_threads(3), hints.allow_auto_batching(False), props.log.level(props.log.Level.ERR), props.num_streams(props.streams.Num(2)), hints.model_priority(hints.Priority.HIGH), props.device.priorities("CPU,GPU"), props.enable_mmap(False))))
tried(lambda: core.set_property("CPU", {"PERFORMANCE_HINT": "FAST"}), lambda: core.set_property("CPU", {"NUM_STREAMS": "-5"}), lambda: core.set_property("CPU", {hints.performance_mode: 5}), lambda: core.set_property("CPU", "PERFORMANCE_HINT", "LATENCY"), lambda: core.set_property({5: 5}), lambda: core.get_property("CPU", "nope"), lambda: core.get_property("CPU"), lambda: core.get_property("CPU", 5), lambda: c.get_property("nope"), lambda: c.get_property(5), lambda: core.get_property("CACHE_DIR"), lambda: core.get_property("CPU", "RANGE_FOR_STREAMS")[0])
M = hints.PerformanceMode; note(M.LATENCY == M.LATENCY, M.LATENCY == "LATENCY", str(M.LATENCY), M.LATENCY.name, int(M.THROUGHPUT.value), M(1).name, hash(M.LATENCY) == hash(M.LATENCY), sorted(m.name for m in M.__members__.values()), repr(M.LATENCY), M.LATENCY in (M.LATENCY, M.THROUGHPUT))
for device in ("CPU", "AUTO", "AUTO:CPU", "HETERO:CPU", "BATCH:CPU", "MULTI:CPU"):
    made = core.compile_model(m, device); note(device, made.get_property("SUPPORTED_PROPERTIES"), made.get_property("EXECUTION_DEVICES"), made.get_property("OPTIMAL_NUMBER_OF_INFER_REQUESTS") >= 1, made(IMAGE)[0].shape)
note({d: core.get_property(d, "SUPPORTED_PROPERTIES") for d in ("AUTO", "HETERO", "MULTI", "BATCH")}); note(core.get_property("CPU", "AVAILABLE_DEVICES"), "FP32" in core.get_property("CPU", "OPTIMIZATION_CAPABILITIES"))
note(len(ov.AsyncInferQueue(core.compile_model(m, "CPU", {"NUM_STREAMS": 2}))))
""",
    "names of models and of what they are made of": """
import re
x = parameter([2], "x"); r = ops.relu(x); e = ops.result(r)
plain, given = ov.Model([e], [x]), ov.Model([e], [x], "given")
form = lambda name: re.sub("[0-9]+", "N", name)
note(form(plain.get_name()), form(plain.name), form(plain.friendly_name), given.get_friendly_name())
note(plain.get_name() != ov.Model([e], [x]).get_name(), plain.name == plain.get_name(), plain.friendly_name == plain.name, form(plain.clone().name), form(plain.clone().friendly_name), given.clone().friendly_name)
again = core.read_model(saved(plain)); note(form(again.name), form(again.friendly_name)); again = core.read_model(saved(given)); note(again.friendly_name)
note(form(str(plain).split("inputs")[0]), repr(given).split("inputs")[0], form(core.compile_model(plain, "CPU").get_property("NETWORK_NAME")), core.compile_model(given, "CPU").get_property("NETWORK_NAME"))
plain.set_friendly_name("other"); note(form(plain.name), plain.friendly_name)
note(form(r.name), form(r.friendly_name), r.name == r.friendly_name, form(e.name), form(ops.constant(3).name), form(ops.add(x, x).name)); r.set_friendly_name("mine"); note(form(r.name), r.friendly_name, r.get_friendly_name(), form(r.get_name()))
body = ov.Model([ops.result(x)], [x]); note(form(body.get_name()))
""",
    "results and parameters of other models": """
m, other = classifier(), classifier(); stranger = ops.result(named(m)["pool"], name="stranger")
tried(lambda: m.remove_result(stranger), lambda: m.remove_result(other.get_results()[0]), lambda: m.remove_parameter(other.get_parameters()[0]), lambda: m.remove_sink(named(m)["fc"]), lambda: m.remove_parameter(parameter([1], "q")))
note(len(m.outputs), len(m.inputs), len(other.outputs), m.get_result_index(stranger), m.get_parameter_index(other.get_parameters()[0]), m.get_sink_index(named(m)["fc"]))
m.add_results([stranger]); note(m.outputs, m.get_result_index(stranger)); m.add_results([stranger]); note(len(m.outputs), len(m.get_results())); tried(lambda: m.validate_nodes_and_infer_types()); m.remove_result(stranger); note(len(m.outputs))
m, x = classifier(), parameter([1, 3, 8, 8], "more"); m.add_parameters([x]); note(m.inputs); m.validate_nodes_and_infer_types(); note(computed(m, IMAGE, IMAGE)); m.remove_parameter(x); note(m.inputs)
m.remove_result(m.get_results()[0]); note(m.outputs, types(m)); m.add_results([ops.result(ops.softmax(named(other)["fc"], 1), name="p")]); tried(lambda: m.validate_nodes_and_infer_types(), lambda: m.outputs)
v = of("op.util").VariableInfo(); v.variable_id, v.data_shape, v.data_type = "v", ov.PartialShape([2]), ov.Type.f32; var = of("op.util").Variable(v); note(v.variable_id, v.data_shape, v.data_type, var.info.variable_id)
p = parameter([2], "p"); read = ops.read_value(ops.constant(np.float32([0, 0])), var); a = ops.assign(ops.add(read, p), var); s = ov.Model([ops.result(read)], [a], [p], [var], "s")
note(s.get_sink_index(a), s.get_sinks()[0].get_type_name(), s.get_variable_by_id("v") == var, [x.info.variable_id for x in s.get_variables()], a.get_variable_id(), read.get_variable_id()); tried(lambda: s.remove_sink(a), lambda: len(s.get_sinks()), lambda: s.remove_variable(var), lambda: s.remove_sink(a))
""",
    "element types that arrays lack": """
T = ov.Type
for name in ("bf16", "f8e4m3", "f8e5m2", "i4", "u4", "u1", "u2", "u3", "u6", "f4e2m1", "f8e8m0"):
    kind = getattr(T, name)
    tried(lambda: kind.to_dtype() is not None, lambda: ov.Tensor(kind, ov.Shape([4])).byte_size, lambda: ov.Tensor(kind, [4]).shape, lambda: ov.Tensor(kind, [4]).element_type == kind, lambda: parameter([4], "x", kind).get_element_type() == kind, lambda: ops.convert(parameter([4], "x"), kind).get_element_type() == kind, lambda: kind.is_real(), lambda: kind.is_integral_number(), lambda: kind.is_signed(), lambda: kind.is_quantized(), lambda: kind.c_type_string() if hasattr(kind, "c_type_string") else None, lambda: kind.is_static())
h = of("helpers")
for name, counts in (("u3", (1, 2, 3, 5, 8, 11)), ("u6", (1, 2, 3, 4, 6, 9, 12)), ("u1", (1, 3, 8, 9)), ("nf4", (1, 2, 3)), ("i4", (2, 4)), ("u4", (2, 4)), ("u2", (4, 8))):
    kind = getattr(T, name)
    for count in counts:
        numbers = (np.arange(count) % (1 << kind.bitwidth)).astype(np.uint8) if name != "i4" else (np.arange(count) % 16 - 8).astype(np.int8)
        tried(lambda: (name, count, h.pack_data(numbers, kind).size), lambda: h.unpack_data(h.pack_data(numbers, kind), kind, [count]), lambda: h.unpack_data(ov.Tensor(h.pack_data(numbers, kind), [count], kind).data, kind, [count]).size)
""",
    "texts that models take and return": """
s = parameter([-1], "s", ov.Type.string); m = ov.Model([ops.result(s)], [s], "echo"); c = core.compile_model(m, "CPU"); r = c.create_infer_request()
for given in (["a", "bc"], ["a\\0", "b"], ["", "x"], ["é", "日本"], [b"x\\0y", b"\\0"], [b"a\\0\\0", b"bcd"]):
    tried(lambda: c([np.array(given)])[0], lambda: c([ov.Tensor(np.array(given))])[0], lambda: r.infer({"s": given})[0], lambda: r.get_output_tensor().str_data, lambda: r.get_output_tensor().bytes_data, lambda: r.get_input_tensor().str_data, lambda: c([np.array(given)], decode_strings=False)[0], lambda: r.results[0], lambda: ov.Tensor(np.array(given)).shape)
t = ov.Tensor(ov.Type.string, ov.Shape([2])); note(t.str_data, t.byte_size, t.size); t.str_data = ["x", "yz"]; note(t.bytes_data); r.infer([t]); note(r.get_output_tensor().str_data, r.get_tensor("s").str_data)
tried(lambda: c([np.array([1, 2])])[0], lambda: c(["text"])[0], lambda: c([[["a", "b"]]])[0], lambda: c([np.array([["a", "b"]])])[0], lambda: c([np.array(["a", None], object)])[0])
two = parameter([1, -1], "t", ov.Type.string); k = core.compile_model(ov.Model([ops.result(two)], [two]), "CPU"); tried(lambda: k([np.array([["a", "bc"]])])[0], lambda: k([[["a", "bc"]]])[0], lambda: k({"t": np.array([["longer", "b"]])})[0].dtype)
""",
    "requests of several threads": """
import threading
c = core.compile_model(classifier(), "CPU", {**CONFIG, "NUM_STREAMS": 2}); found, images = {}, {n: IMAGE * n for n in range(8)}
def work(numbers):
    request = c.create_infer_request()
    for n in numbers:
        request.start_async({0: images[n]}); request.wait(); found[n] = request.get_output_tensor().data.copy()
threads = [threading.Thread(target=work, args=(range(n, 8, 4),)) for n in range(4)]
[t.start() for t in threads]; [t.join() for t in threads]; note([found[n] for n in range(8)])
r = c.create_infer_request(); seen = []; done = threading.Event()
r.set_callback(lambda userdata: (seen.append(userdata), done.set()), {"n": 1}); r.start_async([IMAGE]); r.wait(); done.wait(600); note(seen, r.userdata)
r.set_callback(lambda request, kept=r: seen.append(request is None), None); r.start_async({"image": IMAGE}); r.wait(); note(seen)
r.start_async({"image": IMAGE}, userdata=[1, 2]); r.wait(); note(r.userdata, len(seen), r.wait_for(10)); note(r.latency > 0, r.get_compiled_model().inputs, r.model_outputs)
def bad(userdata):
    raise KeyError("gone")
r.set_callback(bad, None); r.start_async([IMAGE])
try:
    r.wait(); note("nothing")
except Exception as reason:
    note("gone" in str(reason))
r.set_callback(lambda userdata: None, None); r.start_async([IMAGE]); r.wait(); note(r.results[0], r.get_output_tensor(0).data)
""",
    "results as programs take them apart": """
x, y = parameter([2, 3], "x"), parameter([3], "y"); a, b = ops.add(x, y, name="a"), ops.multiply(x, y, name="b"); a.output(0).set_names({"sum"}); b.output(0).set_names({"product"})
m = core.read_model(saved(ov.Model([a, b, ops.result(ops.relu(a, name="c"), name="third")], [x, y], "three"))); c = core.compile_model(m, "CPU", CONFIG); X, Y = np.float32([[1, -2, 3], [4, -5, 6]]), np.float32([1, 2, 3])
out = c([X, Y]); s, p, u = out.values(); note(s, p, u); (first, *rest) = out.values(); note(len(rest), [k.any_name if k.names else "" for k in out], [sorted(k.names) for k in out.keys()])
note({sorted(k.names)[0] if k.names else k.get_index(): v.shape for k, v in out.items()}, out["sum"], out[c.outputs[2]], list(out.items())[1][1], dict(zip(("s", "p", "u"), out.values()))["p"], next(iter(out.values())))
note(isinstance(out, dict), type(out).__name__, bool(out), out.get("product"), "sum" in out, 0 in out, c.output(1) in out, out == out, len(out), out.names(), [list(map(sorted, out.names()))], type(out.to_dict()).__name__, [v.tolist() for v in out.to_tuple()])
tried(lambda: out[3], lambda: out["d"], lambda: out[-1], lambda: out[1.5], lambda: out[None], lambda: out.pop(0), lambda: out.update({}), lambda: out.copy(), lambda: out | {}, lambda: out.items()[0], lambda: len(out.keys()), lambda: {**out}, lambda: sorted(out), lambda: out[0:1], lambda: [*out][0] == c.output(0), lambda: del_(out))
names = [o.any_name for o in c.outputs[:2]]; note(names, [c.output(n).get_index() for n in names], [m.get_result_index(m.output(n)) for n in names], [c.outputs.index(c.output(n)) for n in names]); note([i.node.get_type_name() for i in c.inputs], [o.get_node().get_type_name() for o in m.outputs], [o.node.friendly_name for o in m.inputs])
kept = c([X, Y]); c([X * 0, Y]); note(kept[0]); r = c.create_infer_request(); one = r.infer([X, Y], share_outputs=False)[0]; two = r.infer([X * 2, Y], share_outputs=False)[0]; note(one, two, np.shares_memory(one, two), one.flags.writeable, one.flags.owndata in (True, False)); shared = r.infer([X, Y], share_outputs=True)[0]; note(shared)
note(c({"y": Y, "x": X})["sum"], c({0: X, "y": Y})[0], c((X, Y))[0], c.infer_new_request({0: X, 1: Y})["product"])
""",
    "layers that are looked at": """
m = core.read_model(saved(classifier())); from collections import Counter
note(Counter(types(m)), sorted(named(m)), [n.get_friendly_name() for n in m.get_ordered_ops() if n.get_type_name() not in ("Constant", "Parameter", "Result")])
for n in m.get_ordered_ops():
    note(n.get_friendly_name(), [i.get_source_output().get_node().get_friendly_name() for i in n.inputs()], [(t.get_node().get_friendly_name(), t.get_index()) for o in n.outputs() for t in sorted(o.get_target_inputs(), key=lambda t: t.get_index())], [o.get_index() for o in n.outputs()], [i.get_index() for i in n.inputs()])
    note(sorted(n.get_attributes().items()) if n.get_type_name() != "Constant" else sorted(n.get_attributes()), n.get_type_info().name, n.get_type_info().version_id, n.type_info == n.get_type_info(), [i.get_shape() for i in n.inputs()], [i.get_partial_shape() for i in n.inputs()], [i.get_element_type() for i in n.inputs()], [sorted(o.get_tensor().get_names()) for o in n.outputs()], [sorted(i.get_tensor().names) for i in n.inputs()])
conv, fc = named(m)["conv"], named(m)["fc"]; weight = conv.input_value(1).get_node(); note(weight.get_type_name(), weight.data.mean(), weight.get_data().shape, weight.get_vector()[:3], weight.get_element_type(), weight.data.dtype, weight.data.flags.writeable)
macs = sum(int(np.prod(n.get_output_shape(0)) * np.prod(n.input_value(1).get_shape()[1:])) for n in m.get_ops() if n.get_type_name() == "Convolution"); note(macs, sum(n.get_byte_size() for n in m.get_ops() if n.get_type_name() == "Constant"))
queue, reached = [m.get_results()[0]], set()
while queue:
    node = queue.pop(); reached.add(node.get_friendly_name()); queue += [v.get_node() for v in node.input_values() if v.get_node().get_friendly_name() not in reached]
note(len(reached) == len(m.get_ops()), conv == named(m)["conv"], conv != fc, conv in {conv}, {conv: 1}[named(m)["conv"]], conv.output(0) == fc.input_value(0), conv.output(0).get_node() == conv, hash(conv.output(0)) == hash(named(m)["conv"].output(0)), isinstance(conv, ov.Node), isinstance(conv.output(0), ov.Output), isinstance(weight, ov.op.Constant), isinstance(m.get_parameters()[0], ov.op.Parameter), isinstance(m.get_results()[0], ov.op.Result), isinstance(conv.input(0), ov.Input), isinstance(m.input(0), ov.Output), isinstance(core.compile_model(m, "CPU").input(0), ov.ConstOutput) if hasattr(ov, "ConstOutput") else None)
note(type(m.get_parameters()[0]).__name__, type(weight).__name__, type(m.get_results()[0]).__name__, type(conv).__name__, type(conv.output(0)).__name__, type(conv.input(0)).__name__, m.get_parameters()[0].get_layout() == ov.Layout(), m.get_parameters()[0].layout, repr(m.get_parameters()[0].get_layout()), m.get_results()[0].get_layout() if hasattr(m.get_results()[0], "get_layout") else None)
w = ops.constant((weight.data * 2).astype(np.float32), name="doubled"); conv.input(1).replace_source_output(w.output(0)); m.validate_nodes_and_infer_types(); note(computed(m, IMAGE), len(weight.output(0).get_target_inputs()))
""",
    "passes that look for blocks": """
class FuseBias(passes.MatcherPass):
    def __init__(self, log):
        super().__init__(); self.log = log
        any_input, weight = passes.AnyInput(), passes.WrapType("opset13.Constant"); conv = passes.WrapType("opset13.Convolution", [any_input.output(0), weight.output(0)])
        bias = passes.WrapType("opset13.Constant"); add = passes.WrapType("opset13.Add", [conv.output(0), bias.output(0)]); relu = passes.WrapType("opset13.Relu", add.output(0), passes.consumers_count(1))
        def callback(matcher):
            values = matcher.get_pattern_value_map(); root = matcher.get_match_root(); found = values[conv].get_node(); log.append((root.get_friendly_name(), found.get_friendly_name(), values[bias].get_node().data.shape))
            scaled = ops.constant(values[weight].get_node().data * 2); copy = found.clone_with_new_inputs([values[any_input], scaled.output(0)]) if hasattr(found, "clone_with_new_inputs") and package == "x" else ops.convolution(values[any_input], scaled, **{k: found.get_attributes()[k] for k in ("strides", "pads_begin", "pads_end", "dilations", "auto_pad")})
            new = ops.clamp(ops.add(copy, values[bias]), 0.0, 6.0); new.set_friendly_name(root.get_friendly_name()); self.register_new_node(new); util.replace_node(root, new); return True
        self.register_matcher(passes.Matcher(relu, "FuseBias"), callback)
log = []; m = core.read_model(saved(classifier())); manager = passes.Manager(); note(manager.register_pass(FuseBias(log)).get_name()); manager.run_passes(m); note(log, types(m), sorted(n for n in named(m) if "_" not in n), computed(m, IMAGE))
class Rename(passes.ModelPass):
    def run_on_model(self, model):
        for n in model.get_ordered_ops():
            if n.get_type_name() != "Constant":
                n.set_friendly_name("net/" + n.get_friendly_name())
        return True
class Stop(passes.ModelPass):
    def run_on_model(self, model):
        raise ValueError("stop here")
manager = passes.Manager(); manager.register_pass(Rename()); manager.register_pass(passes.ConstantFolding()); manager.register_pass(passes.Serialize(str(folder / "p.xml"), str(folder / "p.bin"))); manager.run_passes(m); note(sorted(n for n in named(core.read_model(folder / "p.xml")) if "/" in n and "_" not in n))
manager = passes.Manager(); manager.register_pass(Stop()); tried(lambda: manager.register_pass(5), lambda: manager.register_pass(), lambda: passes.WrapType("Relu"), lambda: passes.WrapType("opset13.Nope"), lambda: passes.WrapType(5), lambda: passes.Matcher(5, "x"), lambda: passes.MatcherPass(passes.Matcher(passes.AnyInput(), "any"), lambda matcher: False).apply(5), lambda: passes.Optional(["opset13.Nope"]))
try:
    manager.run_passes(m)
except Exception as reason:
    note("stop here" in str(reason))
class Chain(passes.MatcherPass):
    def __init__(self):
        super().__init__(); first = passes.WrapType("opset13.Relu"); second = passes.WrapType("opset13.Relu", [first.output(0)])
        self.register_matcher(passes.Matcher(second, "Chain"), lambda matcher: (matcher.get_match_root().output(0).replace(matcher.get_pattern_value_map()[first]), True)[1])
x = parameter([2], "x"); y = x
for n in range(6):
    y = ops.relu(y, name=f"relu{n}")
m = ov.Model([y], [x], "chain"); manager = passes.Manager(); manager.register_pass(Chain()); manager.run_passes(m); note(types(m), computed(m, np.float32([-1, 1])))
""",
    "layouts and batches": """
L = ov.Layout; m = core.read_model(saved(classifier())); h = of("layout_helpers") if package == "x" else ov.layout_helpers
note(h.get_layout(m.input(0)), m.input(0).get_tensor().get_names() == m.input(0).names, m.get_parameters()[0].get_layout().empty); m.get_parameters()[0].set_layout(L("NCHW")); note(h.get_layout(m.input(0)), m.get_parameters()[0].layout, ov.get_batch(m), ov.get_batch(m) == 1); ov.set_batch(m, 4); note(m.inputs, m.outputs, ov.get_batch(m).get_length()); ov.set_batch(m, ov.Dimension(1, 8)); note(m.inputs, ov.get_batch(m)); ov.set_batch(m, -1); note(m.inputs, ov.get_batch(m).is_dynamic)
p = m.input(0).get_node(); names = ("N", "C", "H", "W"); layout = p.layout; note([layout.get_index_by_name(n) for n in names], layout.has_name("C"), layout.has_name("D"), layout == "NCHW", layout == L("[N,C,H,W]"), h.has_batch(layout), h.batch_idx(layout), h.channels_idx(layout), h.height_idx(layout), h.width_idx(layout), h.has_depth(layout), layout.to_string(), str(layout), repr(layout))
tried(lambda: layout.get_index_by_name("D"), lambda: h.depth_idx(layout), lambda: p.set_layout("NHWC"), lambda: p.set_layout(L("NC")), lambda: h.set_layout(m.input(0), L("NHWC")), lambda: h.get_layout(m.input(0)), lambda: h.get_layout(m.outputs[0]), lambda: ov.set_batch(m, 2), lambda: m.inputs, lambda: ov.set_batch(m, "a"), lambda: ov.get_batch(ov.Model([ops.relu(parameter([2], "q"))], [])), lambda: L("N...C").has_name("N"), lambda: L("N??C").get_index_by_name("C"), lambda: L("...C").get_index_by_name("C"), lambda: L.scalar(), lambda: L("").empty, lambda: L() == L(""), lambda: hash(L("NC")), lambda: L("nchw") == L("NCHW"))
x = parameter([3, 4], "x"); n = ov.Model([ops.relu(x)], [x]); tried(lambda: ov.get_batch(n), lambda: ov.set_batch(n, 2), lambda: n.inputs, lambda: n.get_parameters()[0].set_layout(L("NC")), lambda: ov.get_batch(n), lambda: ov.set_batch(n, 2), lambda: n.inputs)
saved_to = saved(n, "layout"); note(h.get_layout(core.read_model(saved_to).input(0)), core.compile_model(core.read_model(saved_to), "CPU").inputs)
""",
}


@pytest.mark.filterwarnings("ignore:Data of string type will be copied")
@pytest.mark.parametrize("title", PROGRAMS)
def test_programs(title: str, tmp_path: Path) -> None:
    program = START + PROGRAMS[title]
    noted = []
    for package in ("openvino", "ir_runtime"):
        folder = tmp_path / package
        folder.mkdir()
        noted.append(run(program, package, folder=folder))
    theirs, ours = noted
    assert theirs
    assert len(ours) == len(theirs)
    for number, (mine, its) in enumerate(zip(ours, theirs, strict=True)):
        try:
            assert_same(mine, its)
        except AssertionError as reason:
            reason.add_note(f"in what is noted as number {number}")
            raise
