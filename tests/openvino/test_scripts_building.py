"""Scripts that build, reshape and export models, and their errors, on both packages."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness.dropin import START, assert_same, run

PROGRAMS = {
    "a network that is created layer by layer": """
from functools import partial
Parameter, Constant = of("op").Parameter, of("op").Constant
draw = np.random.default_rng(4)
def weights(*shape):
    return Constant(ov.Type.f32, ov.Shape(list(shape)), draw.normal(size=shape).astype(np.float32).ravel().tolist())
opset8 = of("opset8")
param = Parameter(ov.Type.f32, ov.Shape([4, 1, 12, 12])); note(param.get_friendly_name().split("_")[0], param.shape, param.get_element_type())
conv = opset8.convolution(param.output(0), weights(3, 1, 5, 5).output(0), ov.Strides([1, 1]), ov.CoordinateDiff([0, 0]), ov.CoordinateDiff([0, 0]), ov.Strides([1, 1]))
add = opset8.add(conv.output(0), weights(1, 3, 1, 1).output(0)); pad_begin, pad_end, strides, kernel = ov.Shape([0, 0]), ov.Shape([0, 0]), ov.Strides([2, 2]), ov.Shape([2, 2])
pool = opset8.max_pool(add.output(0), [2, 2], [1, 1], [0, 0], [0, 0], [2, 2], "ceil", None)
flat = opset8.reshape(pool.output(0), Constant(ov.Type.i64, ov.Shape([2]), [4, 48]).output(0), True)
dense = opset8.matmul(flat.output(0), weights(10, 48).output(0), False, True)
relu = opset8.relu(opset8.add(dense.output(0), weights(1, 10).output(0)).output(0)); softmax = opset8.softmax(relu.output(0), 1)
softmax.set_friendly_name("softmax"); model = ov.Model(softmax.output(0) if False else [softmax], [param], "lenet")
note(model.get_friendly_name(), model.inputs[0].shape, model.outputs[0].shape, types(model), [n.get_output_size() for n in model.get_ordered_ops()])
x = draw.normal(size=(4, 1, 12, 12)).astype(np.float32); note(computed(model, x))
ppp = preprocess.PrePostProcessor(model); ppp.input().tensor().set_element_type(ov.Type.u8).set_layout(ov.Layout("NHWC")); ppp.input().model().set_layout(ov.Layout("NCHW"))
model = ppp.build(); ov.set_batch(model, 4); note([(p.shape, p.element_type) for p in model.inputs], computed(model, (np.abs(x) * 50).astype(np.uint8).transpose(0, 2, 3, 1)))
note(sorted(pool.get_attributes().items()), sorted(conv.get_attributes().items()), softmax.get_attributes(), flat.get_attributes(), dense.get_attributes())
for call in (lambda: ov.Model([softmax.output(0)], [param], "one").outputs, lambda: ov.Model(softmax, [param], "one").outputs,
             lambda: ov.Model([ops.result(softmax)], [param]).get_friendly_name()[:5], lambda: ov.Model([], [param], "none").outputs, lambda: ov.Model([softmax], param, "x").inputs):
    tried(call)
""",
    "factories with their attributes by name and by position": """
x, i, b = parameter([2, 3, 8, 8], "x"), parameter([2, 4], "i", np.int64), parameter([2, 4], "b", np.bool_)
seq, boxes, scores = parameter([2, 5, 3], "seq"), parameter([1, 6, 4], "boxes"), parameter([1, 2, 6], "scores")
k = lambda *shape: ops.constant(np.ones(shape, np.float32))
n = lambda *numbers: ops.constant(np.array(numbers, np.int64))
made = [
    lambda: ops.avg_pool(x, [2, 2], [0, 0], [1, 1], [2, 2], exclude_pad=False, rounding_type="ceil", auto_pad="explicit"),
    lambda: ops.max_pool(x, [2, 2], [1, 1], [0, 0], [0, 0], [3, 3], auto_pad="same_upper", index_element_type="i32", axis=1),
    lambda: ops.convolution(x, k(4, 3, 3, 3), [2, 2], [0, 0], [0, 0], [1, 1], "same_lower"),
    lambda: ops.convolution_backprop_data(x, k(3, 4, 3, 3), [2, 2], n(16, 16), auto_pad="same_upper"),
    lambda: ops.convolution_backprop_data(x, k(3, 4, 3, 3), strides=[2, 2], output_padding=[1, 1]),
    lambda: ops.group_convolution(x, k(3, 2, 1, 3, 3), strides=[1, 1], pads_begin=[1, 1], pads_end=[1, 1], dilations=[1, 1]),
    lambda: ops.interpolate(x, n(4, 4), "nearest", "sizes", axes=n(2, 3)), lambda: ops.interpolate(x, k(2), "cubic", "scales", None, None, "align_corners", "floor", True, -0.5, n(2, 3)),
    lambda: ops.topk(x, 2, -1, "min", "index"), lambda: ops.topk(x, np.int64(2), axis=1, mode="max", sort="none", index_element_type="i64", stable=False),
    lambda: ops.softmax(x, axis=-1), lambda: ops.log_softmax(x, 1), lambda: ops.transpose(x, n(0, 2, 3, 1)), lambda: ops.transpose(x, [0, 2, 3, 1]),
    lambda: ops.reshape(x, [0, -1], True), lambda: ops.reshape(x, n(2, -1), special_zero=False), lambda: ops.squeeze(ops.unsqueeze(x, [0]), [0]), lambda: ops.squeeze(ops.unsqueeze(x, 0)),
    lambda: ops.strided_slice(x, [0, 0, 1, 1], [2, 3, 8, 8], [1, 1, 2, 2], [1, 1, 0, 0], [1, 1, 0, 0]), lambda: ops.strided_slice(x, [0], [1], begin_mask=[0], end_mask=[0], shrink_axis_mask=[1]),
    lambda: ops.slice(x, [1], [8], [2], [3]), lambda: ops.slice(x, [0, 0], [1, 2], [1, 1], [0, 1]), lambda: ops.split(x, 1, 3), lambda: ops.split(x, axis=ops.constant(1), num_splits=3), lambda: ops.variadic_split(x, 1, [1, -1]),
    lambda: ops.gather(x, [0, 2], 1), lambda: ops.gather(i, n(0), 1, batch_dims=0), lambda: ops.gather_elements(i, i, 1), lambda: ops.gather_nd(x, i, 0), lambda: ops.one_hot(i, 4, 1.0, 0.0, -1), lambda: ops.broadcast(i, [3, 2, 4]),
    lambda: ops.broadcast(i, n(2, 4, 5), n(0, 1), "explicit"), lambda: ops.pad(x, [0, 0, 1, 1], [0, 0, 2, 2], "reflect"), lambda: ops.pad(x, n(0, 0, 1, 1), n(0, 0, 1, 1), "constant", np.float32(3)), lambda: ops.clamp(x, -1.0, 1), lambda: ops.clamp(x, min_value=0, max_value=6),
    lambda: ops.elu(x, 0.5), lambda: ops.gelu(x, "tanh"), lambda: ops.gelu(x), lambda: ops.hard_sigmoid(x, np.float32(0.2), np.float32(0.5)), lambda: ops.selu(x, np.float32(1.6), np.float32(1.05)), lambda: ops.swish(x, np.float32(1.5)), lambda: ops.mish(x), lambda: ops.hswish(x), lambda: ops.lrn(x, n(1), 1, 0.5, 1, 5),
    lambda: ops.mvn(x, n(2, 3), True, 1e-9, "inside_sqrt"), lambda: ops.normalize_l2(x, n(1), 1e-6, "add"), lambda: ops.batch_norm_inference(x, k(3), k(3), k(3), k(3), 1e-5), lambda: ops.group_normalization(x, k(3), k(3), 3, 1e-5) if hasattr(ops, "group_normalization") else None,
    lambda: ops.lstm_sequence(seq, k(2, 1, 4), k(2, 1, 4), n(5, 5), k(1, 16, 3), k(1, 16, 4), k(1, 16), 4, "forward"), lambda: ops.gru_sequence(seq, k(2, 1, 4), n(5, 5), k(1, 12, 3), k(1, 12, 4), k(1, 16), 4, "reverse", linear_before_reset=True),
    lambda: ops.rnn_cell(k(2, 3), k(2, 4), k(4, 3), k(4, 4), k(4), 4, ["tanh"], [], []), lambda: ops.lstm_cell(k(2, 3), k(2, 4), k(2, 4), k(16, 3), k(16, 4), k(16), 4), lambda: ops.gru_cell(k(2, 3), k(2, 4), k(12, 3), k(12, 4), k(12), 4),
    lambda: ops.non_max_suppression(boxes, scores, n(3), ops.constant(np.float32(0.5)), ops.constant(np.float32(0.1)), ops.constant(np.float32(0)), box_encoding="center", sort_result_descending=False, output_type="i32"),
    lambda: ops.reduce_mean(x, [2, 3], True), lambda: ops.reduce_max(x, n(1)), lambda: ops.reduce_logical_and(b, 1), lambda: ops.reduce_l2(x, n(1), keep_dims=True), lambda: ops.cum_sum(x, 1, True, reverse=True), lambda: ops.convert(x, "f16"), lambda: ops.convert(x, np.int32), lambda: ops.convert(x, destination_type=ov.Type.boolean),
    lambda: ops.convert_like(i, x), lambda: ops.shape_of(x), lambda: ops.shape_of(x, "i32"), lambda: ops.range(0, 10, 2, "i32"), lambda: ops.range(ops.constant(0), ops.constant(5), ops.constant(1), output_type="f32"), lambda: ops.select(b, 1.0, 0.0), lambda: ops.select(b, i, 0),
    lambda: ops.fake_quantize(x, 0.0, 1.0, 0.0, 1.0, levels=256, auto_broadcast="numpy"), lambda: ops.matmul(seq, k(3, 4), False, False), lambda: ops.matmul(seq, k(4, 3), transpose_a=False, transpose_b=True), lambda: ops.prelu(x, 0.25), lambda: ops.depth_to_space(parameter([1, 8, 2, 2], "d"), "blocks_first", 2),
    lambda: ops.space_to_depth(x, "depth_first", block_size=2), lambda: ops.space_to_batch(x, [1, 1, 2, 2], [0, 0, 0, 0], [0, 0, 0, 0]), lambda: ops.shuffle_channels(parameter([1, 6, 2, 2], "e"), 1, 3), lambda: ops.tile(i, [2, 1]), lambda: ops.roll(x, [1], [0]), lambda: ops.reverse_sequence(x, n(1, 2), 0, 1), lambda: ops.einsum([seq, k(3, 4)], "bsh,ho->bso"),
    lambda: ops.roi_align(x, k(2, 4), n(0, 1), 2, 2, 2, 1.0, "avg"), lambda: ops.psroi_pooling(parameter([1, 8, 4, 4], "g"), ops.constant(np.zeros((2, 5), np.float32)), 2, 2, 1.0, 1, 1, "average"), lambda: ops.grid_sample(x, parameter([2, 4, 4, 2], "grid"), {"align_corners": True, "mode": "bicubic"}),
    lambda: ops.prior_box(n(4, 4), n(8, 8), {"min_size": [2.0], "offset": 0.5}), lambda: ops.detection_output(parameter([1, 8], "l"), parameter([1, 4], "c"), parameter([1, 1, 8], "p"), {"keep_top_k": [1], "nms_threshold": 0.5, "code_type": "caffe.PriorBoxParameter.CORNER"}),
    lambda: ops.ctc_greedy_decoder_seq_len(seq, n(5, 5), merge_repeated=False),
    lambda: ops.dft(parameter([4, 2], "dft"), n(0)), lambda: ops.bucketize(x, k(3), "i32", False), lambda: ops.eye(3, 4, 0, "f32"), lambda: ops.nms_rotated(parameter([1, 6, 5], "r"), scores, 3, 0.5, 0.1) if hasattr(ops, "nms_rotated") else None, lambda: ops.multinomial(k(2, 3), 2, "i32", True, False, 1, 2) if hasattr(ops, "multinomial") else None,
    lambda: ops.random_uniform(n(2, 2), 0.0, 1.0, "f32", 1, 2), lambda: ops.scatter_update(i, n(0), k(1, 4), 0), lambda: ops.scatter_elements_update(i, i, i, 1), lambda: ops.scatter_nd_update(i, n(0), n(5)), lambda: ops.idft(parameter([4, 2], "idft"), n(0)), lambda: ops.sqrt(x), lambda: ops.erf(x), lambda: ops.negative(x), lambda: ops.logical_not(b), lambda: ops.mod(i, 2), lambda: ops.floor_mod(i, n(3)), lambda: ops.squared_difference(x, x), lambda: ops.maximum(x, k(8)), lambda: ops.less_equal(i, 2), lambda: ops.is_nan(x), lambda: ops.is_inf(x, {"detect_negative": False}),
    lambda: ops.scaled_dot_product_attention(seq, seq, seq, causal=True) if hasattr(ops, "scaled_dot_product_attention") else None,
]
for number, make in enumerate(made):
    try:
        node = make()
        note(number, node and (node.get_type_name(), node.get_type_info().version_id, [(str(o.get_partial_shape()), o.get_element_type()) for o in node.outputs()], [v.get_node().get_type_name() for v in node.input_values()], sorted(node.get_attributes())))
    except Exception as reason:
        note(number, reason)
""",
    "shapes of inputs before compiling": """
def two():
    a, b = parameter([2, 3], "a"), parameter([1, 3], "b"); return ov.Model([ops.result(ops.add(a, b, name="sum"), name="out")], [a, b], "two")
m = two(); P, D = ov.PartialShape, ov.Dimension
for shapes in ({"a": [4, 3], "b": [4, 3]}, {0: [5, 3], 1: (1, 3)}, {m.input(0): P([-1, 3]), "b": "1,3"}, {"a": P([D(1, 8), 3]), 1: [D(1, 8), 3]}, {"a": "[?,3]", "b": "[1..4,3]"}, {"a": (D(), 3)}, {"b": [(1, 4), 3]}, {m.inputs[1]: [1, 3]}, {"a": list(ov.Shape([7, 3]))}, {"a": P("7,3"), "b": [7, 3]}):
    tried(lambda: m.reshape(shapes)); note(m.inputs, m.outputs, m.is_dynamic(), m.dynamic)
tried(*(lambda s=s: m.reshape(s) for s in ([1, 3], {"a": [1, 4]}, {"c": [1, 3]}, {5: [1]}, {"a": [1, 3, 3]}, {"a": [None, 3]}, {"a": 3}, {"a": [1.5, 3]}, {1.5: [1, 3]}, {"a": {}}, None, {}, {"a": ["a", 3]}, {"a": [(3, 1), 3]}, "1,3")))
note(m.inputs)
m = core.read_model(saved(classifier())); shape = m.input(0).partial_shape
for batch in (2, 4, -1, D(1, 8)):
    shape[0] = batch; tried(lambda: m.reshape({m.input(0): shape})); note(m.inputs, m.outputs)
tried(lambda: m.reshape([1, 3, -1, -1]), lambda: m.reshape(P([1, 3, D(8, 16), D(8, 16)])), lambda: m.reshape({0: [1, 3, (8, 16), "8..16"]}), lambda: m.reshape("?,3,?,?"), lambda: m.reshape((1, 3, 16, 16)), lambda: m.reshape([2, 4, 8, 8])); note(m.inputs, m.outputs)
c = core.compile_model(m, "CPU", CONFIG); m.reshape([3, 3, 8, 8]); note(c.inputs, m.inputs, c.input().shape == m.input().shape, computed(m, np.repeat(IMAGE, 3, 0)))
for name in ("a", "b"):
    n = two(); n.get_parameters()[0].set_partial_shape(P([-1, 3])); n.validate_nodes_and_infer_types(); note(n.inputs, n.outputs, n.input(0).get_partial_shape()[0].is_dynamic)
x = parameter([-1, 2], "x"); i = of("op.util").VariableInfo(); i.variable_id, i.data_shape, i.data_type = "v", P([-1, 2]), ov.Type.f32; v = of("op.util").Variable(i)
r = ops.read_value(ops.constant(np.zeros((1, 2), np.float32)), v); t = ops.add(r, x); s = ov.Model([ops.result(t)], [ops.assign(t, v)], [x], "s")
tried(lambda: s.reshape({"x": [1, 2]}, {"v": P([1, 2])})); note(s.inputs, s.outputs[0].partial_shape, s.get_variables()[0].info.data_shape)
""",
    "shapes and types as programs use them": """
c = core.compile_model(saved(classifier()), "CPU", CONFIG); port = c.input(0); n, ch, h, w = port.shape; note(n, ch, h, w, type(n).__name__)
note(port.shape[2:], port.shape[-1], list(port.shape)[2:], tuple(port.shape), len(port.shape), np.prod(port.shape), np.zeros(port.shape).shape, port.shape == (1, 3, 8, 8), port.shape == [1, 3, 8, 8], [1, 3, 8, 8] == port.shape)
note(f"{port.shape}", str(port.partial_shape), "x".join(map(str, port.shape)), f"{port.element_type}" != "", port.element_type.to_string(), port.element_type.get_type_name(), sorted(port.names), port.any_name, port.get_node().get_friendly_name())
tried(lambda: [*port.shape, 1], lambda: port.shape["a"], lambda: port.shape[1:3], lambda: 3 in port.shape, lambda: sum(port.shape), lambda: max(port.shape), lambda: hash(port.shape) is not None, lambda: reversed(port.shape) is not None, lambda: sorted(port.shape))
d = port.partial_shape; tried(lambda: d[0], lambda: d[0] == 1, lambda: int(d[0].get_length()), lambda: range(d[1].get_length()), lambda: d[-1], lambda: d[1:3], lambda: list(d), lambda: d.rank.get_length(), lambda: len(d), lambda: d.to_shape(), lambda: d.is_static, lambda: d.get_max_shape(), lambda: d == [1, 3, 8, 8], lambda: d[9], lambda: d.rank == 4, lambda: d.rank.is_static, lambda: d.all_non_negative, lambda: hash(d) is not None, lambda: {port: 1}[port], lambda: d != ov.PartialShape([1]))
T = ov.Type; table = {T.f32: "f", T.i64: "i"}; note(table[port.element_type], port.element_type in (T.f32, T.f16), port.element_type == T.f32, T("f32") if package == "x" else 0, port.element_type.is_real(), T.f32 == np.float32, port.element_type.to_dtype(), np.dtype(port.element_type.to_dtype()), np.zeros(1, port.element_type.to_dtype()).dtype)
tried(lambda: T(np.float32), lambda: T(np.dtype("int8")), lambda: T("i64"), lambda: T("float32"), lambda: T(None), lambda: T(5), lambda: T.f32.size, lambda: T.nothing, lambda: T.f32 < T.f64, lambda: len({T.f32, T.f32, T.i8}), lambda: T.f32.to_string(), lambda: T.u1.to_dtype(), lambda: T.nf4.to_dtype(), lambda: T.f32.get_type_name(), lambda: T.undefined)
""",
    "models with dims that stay open": """
x = parameter([-1, -1, 4], "x"); w = ops.constant(np.arange(8, dtype=np.float32).reshape(4, 2)); y = ops.matmul(x, w, False, False, name="y"); y.output(0).set_names({"y"})
m = core.read_model(saved(ov.Model([y, ops.result(ops.shape_of(x, "i32", name="s"), name="shape")], [x], "open"))); c = core.compile_model(m, "CPU", CONFIG); note(c.inputs, c.outputs, m.is_dynamic())
draw = np.random.default_rng(5); r = c.create_infer_request(); tried(lambda: r.get_input_tensor().shape, lambda: r.get_output_tensor(0).shape, lambda: r.get_tensor("y").shape, lambda: c.input().shape, lambda: c.output(0).get_shape())
for shape in ((1, 1, 4), (2, 3, 4), (1, 0, 4), (2, 3, 4), (3, 1, 4)):
    given = draw.normal(size=shape).astype(np.float32); note(c(given)["y"], r.infer({0: given}).to_tuple(), r.get_input_tensor().shape, r.get_output_tensor(1).data)
t = r.get_input_tensor(); t.shape = [2, 2, 4]; t.data[:] = 1; r.infer(); note(r.get_output_tensor(0).data, r.get_output_tensor(0).shape)
tried(lambda: r.infer({0: np.ones((2, 4), np.float32)})[0], lambda: r.infer({0: np.ones((2, 2, 5), np.float32)})[0], lambda: r.infer({0: np.float32(1)})[0], lambda: r.set_input_tensor(ov.Tensor(ov.Type.f32, ov.Shape([2, 2]))), lambda: r.set_input_tensor(ov.Tensor(ov.Type.i32, ov.Shape([2, 2, 4]))))
m.reshape([(1, 4), (2, 3), 4]); c = core.compile_model(m, "CPU", CONFIG); note(c.inputs, c.outputs)
tried(lambda: c(np.ones((4, 3, 4), np.float32))[1], lambda: c(np.ones((5, 3, 4), np.float32))[1], lambda: c(np.ones((4, 1, 4), np.float32))[1], lambda: c(np.ones((1, 2, 4), np.float64))[1])
note(c.output(0).get_partial_shape().get_max_shape(), c.output(0).get_partial_shape().get_min_shape(), c.input(0).partial_shape[0].get_max_length(), c.input().partial_shape.is_dynamic)
""",
    "blobs in files and streams": """
import tempfile, os
c = core.compile_model(classifier(), "CPU", CONFIG); expected = c(IMAGE)[0]; path = folder / f"{package}.blob"
with open(path, "wb") as file:
    file.write(c.export_model().getvalue())
with open(path, "rb") as file:
    note(np.allclose(core.import_model(file.read(), "CPU", CONFIG)(IMAGE)[0], expected))
stream = io.BytesIO(); note(c.export_model(stream)); stream.seek(0); read = core.import_model(stream, "CPU", CONFIG); note(read.inputs, read.outputs, np.allclose(read(IMAGE)["logits"], expected, atol=1e-3))
with open(path, "rb") as file:
    note(core.import_model(io.BytesIO(file.read()), device_name="CPU").output(0).any_name)
note(ov.Core().import_model(c.export_model(), "CPU").input().get_any_name(), type(c.export_model()).__name__)
tensor = ov.Tensor(np.frombuffer(path.read_bytes(), np.uint8)); note(core.import_model(tensor, "CPU", config=CONFIG).get_property("NETWORK_NAME"))
tried(lambda: core.import_model(b"", "CPU"), lambda: core.import_model(b"nothing of this kind", "CPU"), lambda: core.import_model(path.read_bytes(), "NOPE"), lambda: core.import_model(str(path), "CPU"), lambda: core.import_model(path, "CPU"), lambda: c.export_model("x"), lambda: core.import_model(path.read_bytes(), "CPU", {"NOPE": 1}))
cache = folder / f"{package}_cache"; core.set_property({"CACHE_DIR": str(cache)}); note(core.get_property("CPU", "CACHE_DIR") == str(cache))
for _ in range(2):
    note(core.compile_model(saved(classifier()), "CPU", CONFIG)(IMAGE)[0])
core.set_property({of("properties").cache_dir: ""}); note(core.get_property("CPU", of("properties").cache_dir))
other = ov.Core(); note(other.get_property("CPU", "CACHE_DIR"), other.compile_model(classifier(), "CPU", {**CONFIG, "CACHE_DIR": str(cache), "CACHE_MODE": "OPTIMIZE_SIZE"})(IMAGE)[0])
""",
    "times of layers": """
c = core.compile_model(saved(classifier()), "CPU", {**CONFIG, of("properties").enable_profiling: True}); r = c.create_infer_request(); r.infer([IMAGE])
info = r.get_profiling_info(); kinds = sorted({type(getattr(i, n)).__name__ for i in info for n in ("node_name", "node_type", "exec_type", "real_time", "cpu_time")}); note(kinds)
ran = [i for i in info if i.status == i.EXECUTED] if hasattr(info[0], "EXECUTED") else [i for i in info if i.status == i.Status.EXECUTED]; note(len(ran) > 0, all(i.real_time.total_seconds() >= 0 for i in info), sum(i.real_time.total_seconds() for i in ran) > 0)
note({str(i.status) for i in info} <= {"Status.EXECUTED", "Status.NOT_RUN", "Status.OPTIMIZED_OUT"}, len({i.node_name for i in info}) > 2, sorted(info, key=lambda i: i.real_time, reverse=True)[0].exec_type != "", type(info).__name__)
P = type(info[0]); note(P.__name__, [n for n in ("NOT_RUN", "OPTIMIZED_OUT", "EXECUTED") if hasattr(P, n)], P.Status.EXECUTED.name, int(P.Status.EXECUTED.value), list(P.Status.__members__), P.EXECUTED == P.Status.EXECUTED, str(P.Status.EXECUTED))
import datetime
made = ov.ProfilingInfo() if hasattr(ov, "ProfilingInfo") else P()
tried(lambda: (made.node_name, made.node_type, made.exec_type), lambda: made.real_time, lambda: made.cpu_time, lambda: P(1), lambda: P("a", "b"), lambda: setattr(made, "node_name", "x"), lambda: made.node_name, lambda: setattr(made, "real_time", datetime.timedelta(seconds=1)), lambda: setattr(made, "status", P.Status.EXECUTED), lambda: made.status, lambda: setattr(made, "nope", 1), lambda: hasattr(ov, "ProfilingInfo"))
note("classifier" in c.get_property("NETWORK_NAME"), r.latency > 0, core.compile_model(classifier(), "CPU", {"PERF_COUNT": "NO"}).get_property("PERF_COUNT"))
""",
    "devices that are not there": """
m = classifier()
tried(lambda: core.create_context("GPU", {}), lambda: core.create_context("CPU", {}), lambda: core.get_default_context("GPU"), lambda: core.get_default_context("CPU"), lambda: core.create_context("NOPE", {}), lambda: core.create_context("GPU"), lambda: core.create_context(5, {}), lambda: core.create_context())
tried(lambda: core.compile_model(m, "GPU"), lambda: core.compile_model(m, "NPU"), lambda: core.compile_model(m, "MYRIAD"), lambda: core.compile_model(m, "HETERO:GPU"), lambda: core.get_property("GPU", "FULL_DEVICE_NAME"), lambda: core.query_model(m, "GPU"), lambda: core.set_property("GPU", {"PERFORMANCE_HINT": "LATENCY"}), lambda: core.import_model(b"x", "GPU"), lambda: core.unload_plugin("NOPE"), lambda: ov.compile_model(m, "GPU"))
note(core.available_devices, "GPU" in core.available_devices, [d for d in core.available_devices if d.startswith("NPU")], next((d for d in ("NPU", "GPU", "CPU") if d in core.available_devices)))
c = core.compile_model(m, "CPU"); r = c.create_infer_request()
tried(lambda: c.get_context(), lambda: core.get_default_context("CPU").get_device_name())
tried(lambda: core.register_plugins("nothing.xml"), lambda: core.add_extension("libnothing.so"))
""",
    "kinds of errors": """
m = core.read_model(saved(classifier())); c = core.compile_model(m, "CPU", CONFIG); r = c.create_infer_request(); B = {}
tried(lambda: core.read_model("nothing.xml"), lambda: core.read_model(folder), lambda: core.read_model(b"<net"), lambda: core.read_model("nothing.onnx"), lambda: core.read_model(model="a.xml", weights="b.bin"), lambda: core.read_model(), lambda: core.compile_model("nothing.xml", "CPU"), lambda: core.compile_model(None, "CPU"), lambda: ov.compile_model("nothing.xml"), lambda: ov.save_model(5, "x.xml"), lambda: ov.save_model(m), lambda: ov.serialize(m))
tried(lambda: c.input("x"), lambda: c.input(3), lambda: c.output("x"), lambda: m.input("x"), lambda: m.output(3), lambda: c(5), lambda: c("a"), lambda: c([]), lambda: c({"x": IMAGE}), lambda: c({3: IMAGE}), lambda: c([IMAGE, IMAGE]), lambda: c(IMAGE[0]), lambda: c({1.5: IMAGE}), lambda: c({None: IMAGE}), lambda: c({"image": None}), lambda: c({"image": "text"}), lambda: c(IMAGE, None, 5, 6, 7))
tried(lambda: r.infer("a"), lambda: r.infer({"image": []}), lambda: r.infer({"image": [1, 2]}), lambda: r.get_tensor("x"), lambda: r.get_tensor(0), lambda: r.get_input_tensor(3), lambda: r.get_output_tensor(3), lambda: r.set_tensor("x", ov.Tensor(IMAGE)), lambda: r.set_tensor("image", ov.Tensor(IMAGE[0])), lambda: r.set_input_tensor(1, ov.Tensor(IMAGE)), lambda: r.set_output_tensor(0, ov.Tensor(IMAGE)), lambda: r.set_tensors({"x": ov.Tensor(IMAGE)}), lambda: r.set_input_tensors({0: IMAGE}), lambda: r.start_async("x"), lambda: r.wait_for("a"), lambda: r.set_callback(5))
tried(lambda: m.get_rt_info("x"), lambda: m.get_rt_info(["a", "b"]), lambda: m.get_rt_info(5), lambda: m.get_variable_by_id("x"), lambda: m.get_parameters()[3], lambda: m.add_outputs("nope"), lambda: m.add_outputs(["nope"]), lambda: m.add_outputs([("nope", 0)]), lambda: m.add_outputs([("fc", 3)]), lambda: m.add_outputs(5), lambda: m.add_outputs([5]), lambda: m.add_results(5), lambda: m.get_output_shape(3), lambda: m.get_output_op(4), lambda: m.set_friendly_name(5), lambda: m.clone(1), lambda: m.nothing, lambda: c.nothing, lambda: core.nothing, lambda: r.nothing, lambda: ov.nothing)
tried(lambda: ov.Model(), lambda: ov.Model(5), lambda: ov.Model([5], []), lambda: ov.Model([named(m)["fc"]], []), lambda: ov.Model([named(m)["fc"]], [named(m)["fc"]]), lambda: ov.Model(None, None, None), lambda: ov.Tensor(), lambda: ov.Tensor(None), lambda: ov.Tensor(ov.Type.f32, [1.5]), lambda: ov.Layout("N..."), lambda: ov.Layout("NN"), lambda: ov.Layout(5), lambda: ov.PartialShape("a"), lambda: ov.PartialShape(5), lambda: ov.Shape([-1]), lambda: ov.Dimension("a"), lambda: ov.Dimension(1.5))
n = named(m)["conv"]; tried(lambda: n.input(5), lambda: n.output(5), lambda: n.input_value(9), lambda: n.get_output_shape(3), lambda: n.set_arguments(5), lambda: n.nothing, lambda: n.data, lambda: n.output(0).set_names("a"), lambda: n.output(0).set_names(5), lambda: n.output(0).replace(n), lambda: n.output(0).get_tensor().any_name, lambda: util.replace_node(n, 5), lambda: util.replace_output_update_name(n.output(0), n.input_value(0)), lambda: n.output("a"), lambda: n.set_friendly_name(None))
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
