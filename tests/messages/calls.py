"""Messages for invalid calls from Python, beyond those of tests/openvino/test_feeding.py."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from harness.nets import Net
from harness.refusals import Call

import ir_runtime as ir
from ir_runtime.ir.element import ElementType
from ir_runtime.ops import Op

FOLDER = "messages"

X = np.ones(2, np.float32)


def passing(element: str = "f32", names: str | None = "x") -> ir.Model:
    """A model that returns its input."""
    net = Net()
    net.result(net.parameter("x", "2", element, names=names))
    return ir.read_model(net.xml())


def fed(element: str, array: Any) -> Callable[[], Any]:
    """Feed an array to an input of an element type."""
    return lambda: ir.compile_model(passing(element))([array])


def unfed() -> ir.Model:
    """A model with an unconnected input of a layer."""
    net = Net()
    x = net.parameter("x", "2")
    net.result(net.op("Add", x, x, name="sum"))
    del net.edges[1]
    return ir.read_model(net.xml(), strict=False)


def running() -> Any:
    """A running request."""
    return ir.compile_model(passing()).create_infer_request()


class Undefined(ir.Op):
    """An operation that defines nothing."""


class Silent(ir.Op):
    """An operation without `evaluate`."""

    def validate_and_infer_types(self) -> None:
        self.set_output_type(0, self.get_input_element_type(0), self.get_input_partial_shape(0))


def silent() -> ir.Model:
    """A model with an operation without `evaluate`."""
    x = ir.opset13.parameter([2], np.float32, name="x")
    node = Silent(inputs=[x])
    node.set_friendly_name("silent")
    return ir.Model([node], [x])


def counting() -> ir.Model:
    """A model with a variable ``seen``."""
    net = Net()
    x = net.parameter("x", "2", out="FP32 2")
    seen = net.op(
        "ReadValue",
        x,
        out="FP32 2",
        version="opset6",
        variable_id="seen",
        variable_type="f32",
        variable_shape="2",
    )
    total = net.op("Add", x, seen, out="FP32 2", name="sum")
    net.op("Assign", total, out="FP32 2", version="opset6", variable_id="seen")
    net.result(total)
    return ir.read_model(net.xml())


def busy() -> None:
    """Start a request that is already running."""
    request, hold = ir.compile_model(passing()).create_infer_request(), threading.Event()
    request.set_callback(lambda _: hold.wait(600))
    request.start_async([X])
    try:
        request.infer([X])
    finally:
        hold.set()
        request.wait()


def waiting_for_itself() -> None:
    """Wait for a request in its own callback."""
    request = ir.compile_model(passing()).create_infer_request()
    request.set_callback(lambda _: request.wait())
    request.start_async([X])
    request.wait()


def lost_in_a_fork() -> None:
    """Wait in a child process for a request of the parent."""
    request, hold = ir.compile_model(passing()).create_infer_request(), threading.Event()
    request.set_callback(lambda _: hold.wait(600))
    request.start_async([X])
    request.after_fork()
    try:
        request.wait()
    finally:
        hold.set()


def warned(model: Callable[[], ir.Model] = passing, **properties: object) -> str:
    """Return the warnings for properties without effect."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ir.compile_model(model(), None, properties)
    return "\n".join(str(w.message) for w in caught)


def precision_that_is_not_followed() -> str:
    return warned(BACKEND="numpy", INFERENCE_PRECISION_HINT="bf16")


def groups_of_activations_that_are_not_followed() -> str:
    return warned(BACKEND="numpy", DYNAMIC_QUANTIZATION_GROUP_SIZE=48)


def denormal_numbers_that_are_kept() -> str:
    return warned(BACKEND="numpy", CPU_DENORMALS_OPTIMIZATION=True)


def caches_that_are_not_packed() -> str:
    return warned(counting, BACKEND="numpy", KV_CACHE_PRECISION="u8")


class Unfinished(Op):
    """An operation without a kernel."""


def set_state(value: Any) -> None:
    (state,) = ir.compile_model(counting()).create_infer_request().query_state()
    state.state = value


PYTHON = (TypeError, ValueError, AttributeError, ir.IRError)

REFUSALS = [
    Call("codes too high", fed("u3", np.uint8([9, 1]))),
    Call("numbers for texts", fed("string", X)),
    Call("no array", fed("f32", [[1, 2], [3]])),
    Call("too large", fed("i8", [1000, 1])),
    Call("name in a package", lambda: ir.Modell, PYTHON),
    Call("model of no kind", lambda: ir.read_model(5), PYTHON),  # type: ignore[arg-type]
    Call("weights of no kind", lambda: ir.read_model(Net().xml(), 5), PYTHON),  # type: ignore[arg-type]
    Call("text that is not well-formed", lambda: ir.read_model("<net")),
    Call("null in a path", lambda: ir.read_model("a\0.xml")),
    Call("long path", lambda: ir.read_model("a" * 500)),
    Call("weights left out", lambda: ir.Core().set_property("CPU", ["PERF_COUNT"])),
    Call("hint of no kind", lambda: warned(PERFORMANCE_HINT="FAST")),
    Call("threads that are no number", lambda: warned(INFERENCE_NUM_THREADS="many")),
    Call("extension of another kind", lambda: ir.Core().add_extension("libcustom.so")),
    Call("class that is no operation", lambda: ir.Core().add_extension(int)),
    Call("extension that is no class", lambda: ir.Core().add_extension(5)),
    Call("member of another kind", lambda: passing().add_parameters([5])),
    Call("sink that assigns nothing", lambda: passing().add_sinks(passing().results)),
    Call("variables", lambda: counting().reshape([2], {"seen": [3]})),
    Call("variable of another shape", lambda: set_state(np.ones(3, np.float32))),
    Call("variable of another type", lambda: set_state(ir.Tensor(["a", "b"]))),
    Call("array for a tensor", lambda: running().set_input_tensor(0, [1])),
    Call(
        "tensor of another shape for an output",
        lambda: running().set_output_tensor(ir.Tensor(np.ones(3, np.float32))),
    ),
    Call("text for names of a tensor", lambda: passing().input().set_names("image")),
    Call("jobs of a queue below 0", lambda: ir.AsyncInferQueue(ir.compile_model(passing()), -1)),
    Call("number for the name of a property", lambda: ir.Core().set_property({5: 1})),
    Call("number for the name of a layer", lambda: passing().set_friendly_name(5)),  # type: ignore[arg-type]
    Call("half of an index", lambda: passing().input(0.5)),  # type: ignore[arg-type]
    Call("shape that is none", lambda: passing().reshape({"x": None})),  # type: ignore[dict-item]
    Call("context of a GPU", lambda: ir.Core().create_context("GPU", {})),
    Call("callback that is none", lambda: running().set_callback(5)),
    Call("operation that defines nothing", lambda: Undefined(inputs=[ir.opset13.constant(1)])),
    Call("operation that does not compute", lambda: ir.compile_model(silent())(X)),
    Call("input without an edge", lambda: unfed().get_ordered_ops()[1].input(1).get_source_output()),
    Call("input that a layer has not", lambda: passing().get_ordered_ops()[1].input(7)),
    Call("tensor without a name", lambda: passing(names="").input(0).any_name),
    Call("constant of none", lambda: passing().constant("weights")),
    Call("request that runs", busy),
    Call("request that waits for itself", waiting_for_itself),
    Call("request that ran in the parent", lost_in_a_fork),
    Call("tensor of another type", lambda: ir.Tensor(X, type=ElementType.i64)),
    Call("tensor of no type", lambda: ir.Tensor(np.ones(2, complex))),
    Call("texts of numbers", lambda: ir.Tensor(X).str_data),
    Call("copy of another type", lambda: ir.Tensor(X).copy_from(np.ones(2))),
    Call("packed bytes", lambda: ir.Tensor(np.uint8([1, 2, 3]), [2], ElementType.u4)),
    precision_that_is_not_followed,
    groups_of_activations_that_are_not_followed,
    caches_that_are_not_packed,
    denormal_numbers_that_are_kept,
]
