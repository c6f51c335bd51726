"""OpenVINO's Python samples and notebooks in miniature, on both packages."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness.dropin import assert_same, run

START = """
import importlib
package = ov.__name__
ops = importlib.import_module(package + ".opset13")
preprocess = importlib.import_module(package + ".preprocess")
CONFIG = {"INFERENCE_PRECISION_HINT": "f32"}

def refused(*calls):
    for call in calls:
        try:
            note(call())
        except Exception as reason:
            kinds = (IndexError, TypeError, ValueError, RuntimeError, AttributeError)
            note(next(kind.__name__ for kind in kinds if isinstance(reason, kind)))

def network(named=True):
    x = ops.parameter([1, 3, 4, 4], np.float32, name="x"); y = ops.relu(x, name="relu")
    x.output(0).set_names({"in"})
    if named:
        y.output(0).set_names({"out", "activation"})
    return ov.Model([ops.result(y, name="result")], [x], "network")
"""

PROGRAMS = {
    "nodes with several outputs": """
x = ops.parameter([4], np.float32, name="x"); s = ops.split(x, 0, 2, name="s")
s.output(0).set_names({"a"}); s.output(1).set_names({"b"}); y = ops.concat(s.outputs(), 0)
refused(lambda: s.shape, lambda: s.get_element_type(), lambda: s.output(1).shape)
note(ov.Model(s, [x]).outputs, ov.Model(y, [x]).outputs[0].shape, list(ops.constant([1, 2]).get_shape()))
refused(lambda: y.shape, lambda: y.get_element_type(), lambda: s.get_output_shape(1), lambda: x.shape)
""",
    "indices beyond a model": """
m = network(); c = ov.compile_model(m, "CPU")
refused(lambda: m.input(5), lambda: m.output(5), lambda: m.get_output_shape(4), lambda: m.reshape({3: [1]}))
refused(lambda: m.reshape(5), lambda: m.reshape({0: 5}), lambda: m.input("nope"))
try:
    c.input(5)
except RuntimeError:
    note("refused")
""",
    "arguments of other types": """
m = network(); core = ov.Core(); c = core.compile_model(m, "CPU"); r = c.create_infer_request()
q = ov.AsyncInferQueue(c, 1)
refused(lambda: core.set_property(5), lambda: core.compile_model(m, "CPU", "x"), lambda: c.export_model(5))
refused(lambda: r.set_tensors([ov.Tensor(np.zeros(1))]), lambda: m.get_ops()[0].output(0).replace(5))
refused(lambda: q.set_callback(5), lambda: ov.AsyncInferQueue(m, 1), lambda: r.wait_for(-1))
""",
    "numbers among tensors of a type": """
x = ops.parameter([4], np.float32, name="x")
limits = [ops.fake_quantize(x, 0.0, 1.0, 0.0, 1.0, 5), ops.fake_quantize(x, [0.0], [1.0], 0.0, 1.0, 5)]
others = [ops.prelu(x, 0.1), ops.prelu(x, [0.1, 0.2, 0.3, 0.4]), ops.pad(x, [1], [1], "constant", np.float32(0.5))]
c = ov.compile_model(ov.Model(limits + others, [x]), "CPU", CONFIG)
note(list(c(np.float32([-1, 0.3, 0.7, 2])).values()), [o.element_type for o in c.outputs])
i = ops.parameter([2], np.int64)
refused(lambda: ops.add(i, 1.5), lambda: i + 1.5, lambda: x + 1, lambda: ops.add(x, np.float64(1)))
note([v.get_element_type() for v in ops.add(i, 1).input_values() + ops.power(2.0, 3.0).input_values()])
""",
    "attributes by methods": """
x = ops.parameter([4, 2], np.float32, name="x"); s = ops.split(x, 0, 2); m = ops.softmax(x, 1)
note(s.get_num_splits(), m.get_axis()); m.set_axis(0); note(m.get_axis(), m.get_attributes())
refused(lambda: s.get_nothing(), lambda: s.set_nothing(1), lambda: x.get_axis())
pool = ops.avg_pool(ops.parameter([1, 1, 4, 4]), [2, 2], [0, 0], [0, 0], [2, 2], True); note(pool.get_attributes()["exclude-pad"])
note(ops.relu(x).get_friendly_name().split("_")[0], s.get_name().split("_")[0], hasattr(s, "get_axis"))
""",
    "constants that do not hold their numbers": """
T, S = ov.Type, ov.Shape([1])
refused(lambda: ov.op.Constant(T.u8, S, [256]), lambda: ov.op.Constant(T.i4, S, [8]), lambda: ov.op.Constant(T.i32, S, [2**31]))
refused(lambda: ov.op.Constant(T.f16, S, [1e6]), lambda: ov.op.Constant(T.f32, S, [1e300]).data, lambda: ops.constant([20], T.i4))
note(ops.constant([300, -1], np.uint8).data, ops.constant([1.9, -1.9], T.i8).data)
note(ov.op.Constant(T.u8, S, [1.5]).data)
""",
    "devices of layers": """
note(list(ov.Core().query_model(network(), "CPU").items()))
""",
    "names of outputs that are converted": """
def shown(model):
    nodes = [n for n in model.get_ordered_ops() if n.get_type_name() in ("Relu", "Convert", "Transpose", "Result")]
    return [(n.get_type_name(), n.get_friendly_name(), n.output(0).names) for n in nodes], [o.names for o in model.outputs]
def model_with(way):
    model = network(named=way not in ("none", "on the model", "on the result"))
    relu = model.get_results()[0].input_value(0)
    if way == "on the model":
        relu.set_names({"y"})
    if way in ("on the result", "on both"):
        model.output(0).get_tensor().set_names({"y"})
    if way == "on both":
        relu.get_tensor().add_names({"z"})
    if way == "direct":
        x = ops.parameter([1, 3, 4, 4], np.float32, name="x"); y = ops.relu(x, name="relu"); y.output(0).set_names({"y"})
        result = ops.result(y, name="r"); model = ov.Model([y], [x]); model.get_results()[0].set_friendly_name("end")
    return model.clone() if way == "clone" else model
for way in ("before", "none", "on the model", "on the result", "on both", "direct", "clone"):
    for step in ("type", "layout"):
        model = model_with(way); note(way, shown(model)); processor = preprocess.PrePostProcessor(model)
        if step == "type":
            processor.output(0).tensor().set_element_type(ov.Type.f16)
        else:
            processor.output(0).model().set_layout(ov.Layout("NCHW")); processor.output(0).tensor().set_layout(ov.Layout("NHWC"))
        model = processor.build(); note(shown(model), [o.names for o in ov.compile_model(model, "CPU").outputs])
        ov.save_model(model, folder / f"{package}.xml", compress_to_fp16=False)
        note(shown(ov.Core().read_model(folder / f"{package}.xml")))
""",
}


@pytest.mark.parametrize("title", PROGRAMS)
def test_programs(title: str, tmp_path: Path) -> None:
    program = START + PROGRAMS[title]
    assert_same(run(program, "ir_runtime", folder=tmp_path), run(program, "openvino", folder=tmp_path))


def test_text_becomes_constants() -> None:
    """OpenVINO 2026.4 crashes on most of them."""
    import ir_runtime as ir
    from ir_runtime import opset15

    words = opset15.constant([[b"ab", "é".encode()]])
    assert words.get_element_type() == ir.Type.string
    assert opset15.constant(["ab", "c"]).elements.tolist() == ["ab", "c"]
    assert words.data.tolist() == [[b"ab", "é".encode()]]
    unpacked = ir.compile_model(ir.Model(opset15.string_tensor_unpack(words).outputs(), []))([])
    assert [found.tolist() for found in unpacked.to_tuple()] == [[[0, 2]], [[2, 4]], [97, 98, 195, 169]]
