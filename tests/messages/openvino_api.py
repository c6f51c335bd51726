"""Messages for properties and devices of OpenVINO that are not supported here."""

from __future__ import annotations

import contextlib
import tempfile
import warnings
from pathlib import Path

from harness.refusals import Call

import ir_runtime as ir
from ir_runtime import _offline_transformations, properties
from ir_runtime import opset13 as ops
from ir_runtime.exceptions import UserInputError
from ir_runtime.utils.node_factory import NodeFactory
from messages.calls import passing
from messages.running import X

FOLDER = "messages"


def compiled(device: str | None = None, **config: object) -> ir.CompiledModel:
    return ir.Core().compile_model(passing(), device, config)


def crossed() -> None:
    """Feed the results of a model to one with the same input names in another order."""
    ports = {name: ops.parameter([2], name=name) for name in "ab"}
    for name, port in ports.items():
        port.output(0).set_names({name})
    first = ir.compile_model(ir.Model(list(ports.values()), list(ports.values())))
    second = ir.compile_model(ir.Model([ops.add(*ports.values())], [ports["b"], ports["a"]]))
    second(first([X, X]))


def configured(plugin: str) -> None:
    """Start with a plugin configuration file; its folder is masked in messages."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        Path("plugins.xml").write_text(f"<ie><plugins>{plugin}</plugins></ie>")
        ir.Core("plugins.xml")


def failing() -> None:
    """Wait for a request whose callback raises an error."""

    def fail(userdata: object) -> None:
        raise KeyError("mine")

    request = compiled().create_infer_request()
    request.set_callback(fail)
    request.start_async(X)
    request.wait()


def exported() -> bytes:
    blob = compiled().export_model()
    assert blob is not None
    return blob.getvalue()


def beams() -> ir.Model:
    """A model in which ``beam_idx`` selects rows of an input."""
    x, rows = ops.parameter([4, 2], "f32", name="x"), ops.parameter([-1], "i32", name="beam_idx")
    return ir.Model([ops.gather(x, rows, 0, name="rows")], [x, rows])


def imported(program: str) -> None:
    exec(program, {"ir": ir})


class Idle(ir.Op):
    """An operation that computes nothing."""

    def validate_and_infer_types(self) -> None:
        self.set_output_type(0, self.get_input_element_type(0), self.get_input_partial_shape(0))


class Misnamed(ir.Op):
    def get_type_info(self) -> ir.DiscreteTypeInfo:
        return "Misnamed"  # type: ignore[return-value]


class Demanding(ir.Op):
    def __init__(self, inputs: object) -> None:
        super().__init__(self)


def idle() -> None:
    x = ops.parameter([2], "f32")
    node = Idle(None, [x])
    node.set_friendly_name("idle")
    ir.compile_model(ir.Model([node.output(0)], [x]))(X)


def batch(layout: str, *shapes: list[int], element: str = "f32", key: object = "x") -> None:
    """Set a tensor for each batch entry of the input x[2,3]."""
    x = ops.parameter([2, 3], "f32", name="x")
    x.set_layout(ir.Layout(layout))
    request = ir.compile_model(ir.Model([ops.relu(x, name="y")], [x])).create_infer_request()
    request.set_tensors(key, [ir.Tensor(getattr(ir.Type, element), shape) for shape in shapes])  # type: ignore[call-overload]


def runtime_information_of_a_compiled_port() -> str:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        compiled().output(0).rt_info["a"] = 1
    return "\n".join(str(warning.message) for warning in caught)


NAMES = (AttributeError, ImportError)

REFUSALS = [
    runtime_information_of_a_compiled_port,
    Call("extension of no kind", lambda: ir.OpExtension(bool)),  # type: ignore[arg-type]
    Call("operation of no name", lambda: ir.OpExtension(Misnamed)),
    Call("operation that needs arguments", lambda: ir.OpExtension(Demanding)),
    Call("operation that does not compute", idle),
    Call("variable that is missing", lambda: ir.op.assign(ops.parameter([2]))),
    Call("batch without a layout", lambda: batch("...", [1, 3], [1, 3])),
    Call("batch of more rows", lambda: batch("NC", [2, 3], [2, 3])),
    Call("batch of another type", lambda: batch("NC", [1, 3], [1, 3], element="i32")),
    Call("batch of nothing", lambda: batch("NC")),
    Call("outputs without indices", lambda: compiled().create_infer_request().set_output_tensors([])),
    Call("batch of an output", lambda: batch("NC", [1, 3], [1, 3], key="y")),
    Call("shape of no kind", lambda: ir.Shape(5), (TypeError,)),  # type: ignore[arg-type]
    Call("partial shape of no kind", lambda: ir.PartialShape(5), (TypeError,)),  # type: ignore[arg-type]
    Call(
        "attributes without arguments",
        lambda: NodeFactory().create("TopK", None, {"axis": 1}),
        (UserInputError,),
    ),
    Call(
        "attributes of a node that are missing", lambda: NodeFactory().create("Concat", [ops.parameter([2])])
    ),
    Call("opset of no number", lambda: NodeFactory("opset99")),
    Call("name that is not here", lambda: ir.RemoteTensor, NAMES),
    Call("name that is mistyped", lambda: ir.read_modle, NAMES),
    Call("name like no other", lambda: ir.Qqqq, NAMES),
    Call("name of a part", lambda: ir.frontend.FrontEndManger, NAMES),
    Call("attribute of an object", lambda: ir.Core().read_modl, NAMES),
    Call("attribute like no other", lambda: ir.Core().qqqq, NAMES),
    Call("import of a name", lambda: imported("from ir_runtime import RemoteTensor"), NAMES),
    Call("import from a module", lambda: imported("from ir_runtime.exceptions import UserInputEror"), NAMES),
    Call("import of a module", lambda: imported("import ir_runtime.tools.benchmark"), NAMES),
    Call("blob of no bytes", lambda: ir.Core().import_model(5)),
    Call("blob of another kind", lambda: ir.Core().import_model(b"abc")),
    Call("blob of OpenVINO", lambda: ir.Core().import_model(b"RR_UPCVO" + bytes(60))),
    Call("blob that is cut off", lambda: ir.Core().import_model(exported()[:20])),
    Call("blob with fewer bytes", lambda: ir.Core().import_model(exported()[:-1])),
    Call("blob of another version", lambda: ir.Core().import_model(exported()[:8] + b"\2" + exported()[9:])),
    Call("blob that is damaged", lambda: ir.Core().import_model(exported()[:-1] + b"x")),
    Call("operation by a mistyped name", lambda: NodeFactory("opset1").create("Addd", [])),
    Call("operation by another name", lambda: NodeFactory("opset1").create("Qqqqqqqq", [])),
    Call(
        "shape of several outputs", lambda: ops.split(ops.parameter([2], name="x"), 0, 2, name="halves").shape
    ),
    Call("request that is none", lambda: setattr(compiled(), "_infer_request", "request")),
    Call("outputs that are none", lambda: passing().add_outputs([0])),
    Call("variable without a name", lambda: passing().reshape({"x": [2]}, {0: [1]})),  # type: ignore[dict-item]
    Call("index and name of a port", lambda: passing().input(0, tensor_name="x")),
    Call("results in another order", crossed),
    Call("file that is no file", lambda: compiled().export_model(5)),
    Call("tensors without names", lambda: compiled().create_infer_request().set_tensors([])),
    Call("replacement that is no output", lambda: ops.parameter([2], name="x").output(0).replace(5)),
    Call("time below 0", lambda: compiled().create_infer_request().wait_for(-1)),
    Call("callback that is no function", lambda: ir.AsyncInferQueue(compiled(), 1).set_callback(5)),
    Call("callback that raises", failing),
    Call("queue of a model that is not compiled", lambda: ir.AsyncInferQueue(passing(), 1)),
    Call("config that is no mapping", lambda: ir.Core().compile_model(passing(), "CPU", "x")),
    Call("number that a type cannot hold", lambda: ir.op.Constant(ir.Type.u8, ir.Shape([1]), [256])),
    Call("transformation", lambda: _offline_transformations.apply_pruning_transformation(passing())),
    Call(
        "variables without beams",
        lambda: _offline_transformations.stateful_to_stateless_transformation(passing()),
    ),
    Call(
        "beams of no variable", lambda: _offline_transformations.stateful_to_stateless_transformation(beams())
    ),
    Call("conversion", lambda: ir.convert_model("model.onnx")),
    Call("device that is not available", lambda: compiled("GPU")),
    Call("device that is no name", lambda: ir.Core().compile_model(passing(), 5)),
    Call("device in small letters", lambda: compiled("cpu")),
    Call("unknown device", lambda: compiled("TPU0")),
    Call("device with a number", lambda: compiled("CPU.1")),
    Call("devices without one", lambda: compiled("HETERO")),
    Call("one of several devices", lambda: compiled("HETERO:GPU,CPU")),
    Call("properties of several devices", lambda: ir.Core().get_property("AUTO:CPU", "PERF_COUNT")),
    Call("unknown property", lambda: compiled(PERF_COUNTS=True)),
    Call("property like no other", lambda: compiled(X=1)),
    Call("property of another device", lambda: compiled(NPU_TURBO=True)),
    Call("property that can only be read", lambda: compiled(FULL_DEVICE_NAME="x")),
    Call("property after compiling", lambda: compiled().set_property({"PERF_COUNT": True})),
    Call("property without a value", lambda: compiled().get_property("AFFINITY")),
    Call("plugin without a name", lambda: configured('<plugin location="plugin.so"/>')),
    Call("flag", lambda: compiled(PERF_COUNT=2)),
    Call("number", lambda: compiled(NUM_STREAMS=-7)),
    Call("fraction", lambda: compiled(CPU_SPARSE_WEIGHTS_DECOMPRESSION_RATE="x")),
    Call("mapping", lambda: compiled(DEVICES_UTILIZATION_THRESHOLD=3)),
    Call("choice", lambda: compiled(EXECUTION_MODE_HINT="FAST")),
    Call("element type", lambda: compiled(KV_CACHE_PRECISION="i64")),
    Call("value of a property", lambda: properties.enable_profiling(2), (TypeError,)),
    Call("value of what has none", lambda: properties.available_devices(2), (TypeError,)),
    Call("plugin", lambda: ir.Core().register_plugin("libplugin.so", "MINE")),
]
