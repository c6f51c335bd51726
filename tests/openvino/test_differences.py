"""The OpenVINO guide's statements on precision, passes, copies and dims, checked on both packages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from harness.dropin import assert_same, run

START = """
from importlib import import_module
ops = import_module(f"{ov.__name__}.opset13")
passes = import_module(f"{ov.__name__}.passes")
config = {"INFERENCE_PRECISION_HINT": "f32"}
draw = np.random.default_rng(0)

def outputs(model, *arrays):
    return [ov.compile_model(model, "CPU", config)(list(arrays))[0], *evaluated(model, arrays)]

def evaluated(model, arrays):
    tensors = [ov.Tensor(np.zeros(port.shape, port.element_type.to_dtype())) for port in model.outputs]
    assert model.evaluate(tensors, [ov.Tensor(array) for array in arrays])
    return [tensor.data for tensor in tensors]
"""

SAME = {
    "a division that is marked": """
a, b = ops.parameter([1000], np.float32), ops.parameter([1000], np.float32)
quotient = ops.divide(a, b)
quotient.get_rt_info()["nonconvertable_divide_0"] = True
x, y = draw.normal(size=(2, 1000)).astype(np.float32)
note(*[int((found != x / y).sum()) for found in outputs(ov.Model([quotient], [a, b]), x, y)])
""",
    "f16 and f32 beside each other": """
x = ops.parameter([4], np.float16)
array, limits = np.float16([-1, 0.2, 0.3, 4]), [ops.constant(np.float32(n)) for n in (0, 1.1)]
for node in (ops.prelu(x, ops.constant(np.float32([0.1]))), ops.fake_quantize(x, *limits, *limits, 256)):
    note(ov.compile_model(ov.Model([node], [x]), "CPU", config)(array)[0])
""",
    "precision that is asked for": """
x, weights = ops.parameter([2, 64], np.float32), draw.normal(size=(64, 8)).astype(np.float32)
model = ov.Model([ops.matmul(x, ops.constant(weights), False, False)], [x])
array = draw.normal(size=(2, 64)).astype(np.float32)
for wanted in ({"EXECUTION_MODE_HINT": "ACCURACY"}, config):
    compiled = ov.compile_model(model, "CPU", wanted)
    note(compiled(array)[0])
note(compiled.get_property("INFERENCE_PRECISION_HINT"))
""",
    "the same bytes on every run": """
x, weights = ops.parameter([64, 256], np.float32), draw.normal(size=(256, 300)).astype(np.float32)
y = ops.softmax(ops.matmul(x, ops.constant(weights), False, False), 1)
compiled = ov.compile_model(ov.Model([ops.reduce_sum(y, ops.constant([0]))], [x]), "CPU", config)
array = draw.normal(size=(64, 256)).astype(np.float32)
note(len({compiled(array)[0].tobytes() for _ in range(20)}))
""",
}

LOOP = """
def loop(count):
    x, h = ops.parameter([1, count, 3], np.float32), ops.parameter([1, 3], np.float32, name="h")
    step, state = ops.parameter([1, 1, 3], np.float32), ops.parameter([1, 3], np.float32, name="state")
    squeezed = ops.relu(ops.squeeze(step, ops.constant([1])))
    after = ops.tanh(ops.add(squeezed, ops.multiply(state, ops.constant(np.float32(0.5)))))
    iterator = ops.tensor_iterator()
    iterator.set_friendly_name("loop")
    iterator.set_body(ov.Model([ops.result(after)], [step, state]))
    iterator.set_sliced_input(step, x.output(0), 0, 1, 1, -1, 1)
    iterator.set_merged_input(state, h.output(0), after.output(0))
    return ov.Model([ops.result(iterator.get_iter_value(after.output(0), -1))], [x, h])

def run_twice(model):
    request = ov.compile_model(model, "CPU", config).create_infer_request()
    arrays = [np.full(port.shape, 0.5, np.float32) for port in model.inputs]
    note(request.infer(arrays)[0], request.infer(arrays)[0], request.query_state()[0].state.data)
    request.reset_state()
    note(request.infer(arrays)[0], [v.get_info().variable_id for v in model.get_variables()], len(model.sinks))
"""
SAME |= {
    f"LowLatency2({use}) of {count} iterations": f"""{LOOP}
model, manager = loop({count}), passes.Manager()
manager.register_pass(passes.LowLatency2({use}))
manager.run_passes(model)
run_twice(model)
"""
    for use in ("", "False")
    for count in (1, 2)
}


@pytest.mark.parametrize("title", SAME)
def test_what_is_the_same(title: str) -> None:
    ours, theirs = (run(START + SAME[title], package) for package in ("ir_runtime", "openvino"))
    assert_same(ours, theirs)


# The program, what OpenVINO notes, and what is noted here.
OTHER: dict[str, tuple[str, Any, Any]] = {
    "division": (
        """
a, b = ops.parameter([10000], np.float32), ops.parameter([10000], np.float32)
x, y = draw.normal(size=(2, 10000)).astype(np.float32)
wrong = [int((found != x / y).sum()) for found in outputs(ov.Model([ops.divide(a, b)], [a, b]), x, y)]
note(wrong[0] > 1000, wrong[1])
""",
        [True, 0],
        [False, 0],
    ),
    "FakeQuantize, Add, FakeQuantize": (
        """
x, limits = ops.parameter([1, 3, 2, 2], np.float32), [ops.constant(np.float32(n)) for n in (0, 2.55)]
first = ops.fake_quantize(x, *limits, *limits, 256)
total = ops.add(first, ops.constant(np.full((1, 3, 1, 1), 0.005, np.float32)))
array = (np.arange(12, dtype=np.float32) * 0.013).reshape(1, 3, 2, 2)
run, evaluated = outputs(ov.Model([ops.fake_quantize(total, *limits, *limits, 256)], [x]), array)
note(np.array_equal(run, evaluated))
""",
        [False],
        [True],
    ),
    "defaults of precision": (
        """
core = ov.Core()
for name in ("EXECUTION_MODE_HINT", "DYNAMIC_QUANTIZATION_GROUP_SIZE"):
    note(core.get_property("CPU", name))
""",
        ["<ExecutionMode.PERFORMANCE: 1>", 32],
        ["<ExecutionMode.ACCURACY: 2>", 0],
    ),
    "saved models": (
        """
x = ops.parameter([1, 64], np.float32)
model = ov.Model([ops.matmul(x, ops.constant(np.ones((64, 8), np.float32)), False, False)], [x])
for name, how in (("plain", {}), ("narrow", {"compress_to_fp16": True}), ("wide", {"compress_to_fp16": False})):
    ov.save_model(model, folder / f"{name}.xml", **how)
    note((folder / f"{name}.bin").stat().st_size)
""",
        [1024, 1024, 2048],
        [2048, 1024, 2048],
    ),
    "loops of one iteration": (
        f"""{LOOP}
model, manager = loop(1), passes.Manager()
manager.register_pass(passes.LowLatency2())
manager.run_passes(model)
note("TensorIterator" in [node.get_type_name() for node in model.get_ops()])
""",
        [False],
        [True],
    ),
    "copies of operations of one's own": (
        """
class Plus(ov.Op):
    def __init__(self, inputs=None, n=0):
        super().__init__(self)
        self.n = n
        if inputs is not None:
            self.set_arguments(inputs)
            self.constructor_validate_and_infer_types()
    def validate_and_infer_types(self):
        self.set_output_type(0, self.get_input_element_type(0), self.get_input_partial_shape(0))
    def clone_with_new_inputs(self, inputs):
        return Plus(inputs, self.n + 1)
    def has_evaluate(self):
        return True
    def evaluate(self, outputs, inputs):
        outputs[0].data[:] = inputs[0].data + self.n
        return True
    def visit_attributes(self, visitor):
        visitor.on_attributes({"n": self.n})
        return True

x = ops.parameter([1], np.float32)
plus = Plus([x], 3)
model = ov.Model([plus.output(0)], [x])
note(plus.clone_with_new_inputs([x]).n)
for each in (model, model.clone()):
    note(float(evaluated(each, [np.float32([1])])[0][0]))
""",
        [4, 4.0, 5.0],
        [4, 4.0, 4.0],
    ),
    "variables that layers use": (
        """
info = ov.op.util.VariableInfo()
info.data_shape, info.data_type, info.variable_id = ov.PartialShape([1]), ov.Type.f32, "v"
variable = ov.op.util.Variable(info)
x = ops.parameter([1], np.float32)
read = ops.read_value(x, variable)
found = {"results": [ops.result(read)], "sinks": [ops.assign(read, variable)]}
model = ov.Model(**found, parameters=[x], variables=[variable])
model.remove_variable(variable)
note(len(model.get_variables()))
""",
        [0],
        [1],
    ),
    "lengths of sequences beyond their time": (
        """
x, h = ops.parameter([2, 3, 4], np.float32), ops.parameter([2, 1, 5], np.float32)
weights = [ops.constant(draw.normal(size=(1, 15, *n)).astype(np.float32)) for n in ((4,), (5,), ())]
arrays = [draw.normal(size=shape).astype(np.float32) for shape in ((2, 3, 4), (2, 1, 5))]
def run(lengths):
    sequence = ops.gru_sequence(x, h, ops.constant(np.int32(lengths)), *weights, 5, "forward")
    model = ov.Model([sequence.output(0), sequence.output(1)], [x, h])
    return ov.compile_model(model, "CPU", config)(arrays)
inside = run([3, 3])
try:
    beyond = run([3, 9])
    note(np.array_equal(inside[0], beyond[0]), bool((beyond[1][1] == 0).all()))
except RuntimeError as reason:
    note("refused")
""",
        [True, True],
        ["refused"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("title", OTHER)
def test_what_differs(title: str, tmp_path: Path) -> None:
    program, theirs, ours = OTHER[title]
    assert run(START + program, "openvino", folder=tmp_path) == theirs
    assert run(START + program, "ir_runtime", folder=tmp_path) == ours
