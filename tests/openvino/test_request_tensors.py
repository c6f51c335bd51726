"""Batches set entry by entry, results that share memory, and read-only arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from harness.dropin import assert_same, run

import ir_runtime as ir
from ir_runtime import opset13 as ops

REQUEST = """
def request(shape, layout):
    x = ops.parameter(ov.PartialShape(shape), np.float32, name="x")
    x.set_layout(ov.Layout(layout))
    return ov.compile_model(ov.Model([ops.relu(x)], [x]), "CPU").create_infer_request()

def entries(count, shape=(1, 3)):
    return [ov.Tensor(np.full(shape, number, np.float32)) for number in range(count)]
"""

PROGRAMS = {
    "batches": """
for shape, layout in (([4, 3], "NC"), ([-1, 3], "N...")):
    for give in (lambda r, t: r.set_input_tensors(t), lambda r, t: r.set_input_tensors(0, t), lambda r, t: r.set_tensors("x", t)):
        r, tensors = request(shape, layout), entries(4)
        give(r, tensors)
        note(r.infer()[0])
        tensors[1].data[:] = 9
        note(r.infer()[0])
        r.set_input_tensor(ov.Tensor(np.ones((4, 3), np.float32)))
        note(r.infer()[0])
r = request([4, 3], "NC")
r.set_input_tensors(entries(1, (4, 3)))
note(r.infer()[0])
""",
    "batches that do not fit": """
for shape, layout, tensors in (([4, 3], "NC", entries(2)), ([4, 3], "NC", entries(2, (2, 3))), ([4, 3], "...", entries(4)), ([3, 4], "CN", entries(4, (3, 1)))):
    try:
        request(shape, layout).set_input_tensors(tensors)
    except RuntimeError:
        note("refused")
""",
    "results in the memory of tensors": """
r = request([2, 3], "NC")
first = r.infer([np.ones((2, 3), np.float32)], share_outputs=True)[0]
note(np.shares_memory(first, r.get_output_tensor(0).data), first)
again = r.infer([np.zeros((2, 3), np.float32)], share_outputs=True)[0]
note(np.shares_memory(again, r.get_output_tensor(0).data), again)
own = r.infer([np.ones((2, 3), np.float32)])[0]
note(np.shares_memory(own, r.get_output_tensor(0).data), r.get_output_tensor(0).data, own)
""",
    "arrays that cannot be written to": """
given = np.ones((2, 3), np.float32)
given.flags.writeable = False
r = request([2, 3], "NC")
r.infer([given], share_inputs=True)
held = r.get_input_tensor().data
held[:] = 5
note(held.flags.writeable, given, r.infer()[0])
""",
    "tensors of outputs before and after": """
r = request([2, 3], "NC")
tensor = r.get_output_tensor(0)
shared = r.infer([np.ones((2, 3), np.float32)], share_outputs=True)[0]
note(tensor.data, np.shares_memory(shared, tensor.data))
mine = ov.Tensor(np.zeros((2, 3), np.float32))
r.set_output_tensor(0, mine)
shared = r.infer([np.full((2, 3), 2, np.float32)], share_outputs=True)[0]
note(mine.data, np.shares_memory(shared, mine.data))
""",
    "assign and read_value": """
node = ops.assign()
note(node.get_type_name(), node.get_input_size(), ov.op.read_value().get_type_name())
""",
    "runtime information of ports of compiled models": """
port = ov.compile_model(ov.Model([ops.relu(x := ops.parameter([2]))], [x]), "CPU").output(0)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    port.rt_info["a"] = 1
note([warning.category.__name__ for warning in caught])
""",
    "addresses": """
model = ov.Model([ops.relu(x := ops.parameter([2]))], [x])
note(type(model._get_raw_address()).__name__, model._get_raw_address() == model._get_raw_address())
""",
    "profiles": """
x = ops.parameter([2, 3], np.float32)
node = ops.softmax(ops.result(x).input_value(0), 1)
compiled = ov.compile_model(ov.Model([node], [x]), "CPU", {"PERF_COUNT": True})
request = compiled.create_infer_request()
request.infer([np.ones((2, 3), np.float32)])
note([info.node_type for info in request.profiling_info if info.node_type.lower() == "softmax"])
""",
    "kinds of errors": """
x = ops.parameter([2], np.float32, name="x")
model = ov.Model([ops.relu(x)], [x])
compiled = ov.compile_model(model, "CPU")
for wrong in (lambda: compiled(object()), lambda: compiled([object()]), lambda: ov.PartialShape([("?", "?")]),
              lambda: ov.PartialShape(object()), lambda: ov.Shape(object()), lambda: ov.Shape(["a"]), lambda: model.clone().add_outputs(0), lambda: ov.Core().get_property("CPU", 5),
              lambda: compiled.create_infer_request().wait_for("a")):
    try:
        wrong()
    except TypeError:
        note("refused")
""",
}

HEAD = """
import warnings
import numpy as np
import PACKAGE as ov
import PACKAGE.opset13 as ops
from PACKAGE.passes import Manager
"""


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name: str) -> None:
    ours, theirs = (
        run((HEAD + REQUEST + PROGRAMS[name]).replace("PACKAGE", package), package)
        for package in ("ir_runtime", "openvino")
    )
    assert_same(ours, theirs)
    assert ours


def request(count: int) -> ir.InferRequest:
    x = ops.parameter([count], np.float32, name="x")
    return ir.compile_model(ir.Model([ops.relu(x)], [x])).create_infer_request()


def test_shared_results_are_not_overwritten_where_no_tensor_was_asked_for() -> None:
    run = request(3)
    first = run.infer([np.ones(3, np.float32)], share_outputs=True)[0]
    run.infer([np.zeros(3, np.float32)], share_outputs=True)
    assert first.tolist() == [1, 1, 1]


def test_batches_of_another_type_are_refused() -> None:
    x = ops.parameter([2, 3], np.float32, name="x")
    x.set_layout(ir.Layout("NC"))
    run = ir.compile_model(ir.Model([ops.relu(x)], [x])).create_infer_request()
    tensors: list[Any] = [ir.Tensor(np.ones((1, 3)))] * 2
    with pytest.raises(ir.InputError, match="must be f32 of one shape"):
        run.set_input_tensors(tensors)


def test_requests_beyond_those_of_a_queue_are_refused() -> None:
    x = ops.parameter([2], np.float32, name="x")
    queue = ir.AsyncInferQueue(ir.compile_model(ir.Model([ops.relu(x)], [x])), 2)
    with pytest.raises(IndexError, match="the queue has 2 requests, asked for 5"):
        queue[5]
