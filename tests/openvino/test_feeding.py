"""Stricter checks of inputs and names than OpenVINO's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from harness.nets import Net
from harness.snapshots import same_as_before

import ir_runtime as ir
from ir_runtime import opset13
from ir_runtime.codes import Code


def pair() -> Net:
    """A model with inputs a[?,3] (f32) and b[3] (i64) and the outputs both and top."""
    net = Net()
    a, b = net.parameter("a", "?,3", out="FP32 -1 3"), net.parameter("b", "3", "i64", out="I64 3")
    wide = net.op("Convert", b, out="FP32 3", name="wide", destination_type="f32")
    both = net.op("Add", a, wide, out="FP32 -1 3", name="both_layer", names="both")
    net.result(both, "first")
    net.result(
        net.op("ReduceMax", both, net.constant([1]), out="FP32 -1", name="top_layer", names="top"), "second"
    )
    return net


def single(shape: str = "2", element: str = "f32") -> ir.CompiledModel:
    net = Net()
    precision = {"f32": "FP32", "boolean": "BOOL"}.get(element, element.upper())
    net.result(net.parameter("x", shape, element, out=f"{precision} {shape.replace(',', ' ')}"))
    return ir.compile_model(ir.read_model(net.xml()))


@pytest.fixture
def model() -> ir.Model:
    return read()


@pytest.fixture
def compiled(model: ir.Model) -> ir.CompiledModel:
    return ir.compile_model(model)


def read() -> ir.Model:
    net = pair()
    return ir.read_model(net.xml(), net.weights)


def strict() -> ir.CompiledModel:
    return ir.compile_model(read(), strict=True)


A, B = np.ones((2, 3), np.float32), np.int64([1, 2, 3])

MISTAKES: dict[str, Callable[[ir.CompiledModel], Any]] = {
    "nothing": lambda c: c(),
    "empty": lambda c: c({}),
    "one_missing": lambda c: c({"a": A}),
    "too_few": lambda c: c([A]),
    "too_many": lambda c: c([A, B, A]),
    "only_one_array": lambda c: c(A),
    "unknown_name": lambda c: c({"a": A, "c": B}),
    "near_name": lambda c: c({"a": A, "top_layer": B}),
    "unknown_index": lambda c: c({0: A, 2: B}),
    "negative_index": lambda c: c({0: A, -1: B}),
    "key_of_no_kind": lambda c: c({1.5: A}),
    "port_of_an_output": lambda c: c({c.output(0): A}),
    "given_twice": lambda c: c({"a": A, 0: A, "b": B}),
    "wrong_type": lambda c: strict()([A.astype(np.float64), B]),
    "wrong_integers": lambda c: strict()([A, B.astype(np.int32)]),
    "type_without_a_name": lambda c: c([A.astype(complex), B]),
    "objects": lambda c: strict()([A.astype(object), B]),
    "wrong_rank": lambda c: c([A[0], B]),
    "wrong_length": lambda c: c([A, B[:2]]),
    "ragged": lambda c: c([[[1, 2, 3], [1, 2]], B]),
    "fractions": lambda c: c([A, [1.5, 2, 3]]),
    "too_large": lambda c: c([A, [2**70, 2, 3]]),
    "texts": lambda c: c([[["1", "2", "3"]], B]),
    "none": lambda c: c([A, [None, 1, 2]]),
    "what_is_no_array": lambda c: c([A, object()]),
    "result_name": lambda c: c([A, B])["near top"],
    "result_index": lambda c: c([A, B])[5],
    "output_name": lambda c: c.output("tops"),
    "output_unspecified": lambda c: c.output(),
    "tensor_by_index": lambda c: c.create_infer_request().get_tensor(0),
    "tensor_name": lambda c: c.create_infer_request().get_tensor("c"),
    "results_before_a_run": lambda c: c.create_infer_request().results,
    "set_wrong_shape": lambda c: c.create_infer_request().set_tensor("b", ir.Tensor(B[:2])),
    "set_wrong_output": lambda c: c.create_infer_request().set_tensor("top", ir.Tensor(B)),
    "set_several_for_one": lambda c: c.create_infer_request().set_input_tensors([ir.Tensor(A), ir.Tensor(A)]),
    "extra_output": lambda c: ir.compile_model(read(), outputs="not*"),
    "extra_output_near": lambda c: ir.compile_model(read(), outputs=["tops"]),
    "extra_output_port": lambda c: read().add_outputs(("both_layer", 1)),
    "extra_output_layer": lambda c: read().add_outputs(("nothing", 0)),
    "reshape_name": lambda c: read().reshape({"c": [1]}),
    "reshape_all": lambda c: read().reshape([1, 3]),
    "reshape_text": lambda c: read().reshape({"a": "x,3"}),
    "reshape_fraction": lambda c: read().reshape({"a": [1.5, 3]}),
    "reshape_refused": lambda c: read().reshape({"a": [1, 4]}),
    "dynamic_shape": lambda c: c.input("a").shape,
    "device": lambda c: ir.compile_model(read(), "TPU"),
    "backend": lambda c: ir.compile_model(read(), backend="numpi"),
    "property": lambda c: ir.compile_model(read(), config={"PERF_COUNTS": True}),
    "read_property": lambda c: c.get_property("NUM_STREAM"),
    "rt_info": lambda c: read().get_rt_info(["a", "b"]),
    "constant": lambda c: read().constant("weights"),
    "node_output": lambda c: read().get_parameters()[0].output(3),
    "data_of_no_constant": lambda c: read().get_parameters()[0].data,
}


@pytest.mark.parametrize("name", MISTAKES)
def test_message(name: str, compiled: ir.CompiledModel) -> None:
    with pytest.raises((ir.IRError, KeyError)) as caught:
        MISTAKES[name](compiled)
    problem = caught.value
    assert isinstance(problem, RuntimeError | KeyError)
    text = problem.args[0] if isinstance(problem, KeyError) else str(problem)
    same_as_before(f"messages/calls/{name}", text.replace("<bytes>", "m.xml"))


@pytest.mark.parametrize(
    ("name", "code"),
    [("nothing", Code.BAD_INPUT), ("wrong_type", Code.BAD_INPUT), ("unknown_name", Code.NO_SUCH_NAME),
     ("reshape_refused", Code.CONTRADICTION), ("device", Code.BAD_REQUEST), ("backend", Code.BAD_REQUEST)],
)  # fmt: skip
def test_codes(name: str, code: Code, compiled: ir.CompiledModel) -> None:
    with pytest.raises(ir.IRError) as caught:
        MISTAKES[name](compiled)
    assert caught.value.code == code


def test_a_request_that_is_refused_leaves_what_was_there(compiled: ir.CompiledModel) -> None:
    request = compiled.create_infer_request()
    first = request.infer([A, B])[0].copy()
    for wrong in ({"a": A[0]}, {"nope": A}, [A, B, B]):
        with pytest.raises(ir.InputError):
            request.infer(wrong)
        with pytest.raises(ir.InputError):
            request.start_async(wrong)
    np.testing.assert_array_equal(request.infer()[0], first)


def test_a_reshape_that_is_refused_leaves_the_model_as_it_was(model: ir.Model) -> None:
    before = repr(model)
    with pytest.raises(ir.ValidationError) as caught:
        model.reshape({"a": [1, 4]})
    assert caught.value.where is not None
    assert caught.value.where.layer == "both_layer"
    assert repr(model) == before
    model.reshape({"a": [5, 3]})
    assert model.input("a").shape == [5, 3]


@pytest.mark.parametrize(
    ("given", "expected"),
    [([1, 2], [1, 2]), ((1.5, 2), [1.5, 2]), ([[1, 2]], [1, 2]), (np.float32([1, 2]), [1, 2]), ({0: [1, 2]}, [1, 2]),
     ([True, False], [1, 0]), (range(2), [0, 1]), (np.array([1, 2], ">f4"), [1, 2]), ([np.float32([3, 4])], [3, 4])],
)  # fmt: skip
def test_what_one_input_takes(given: object, expected: list[float]) -> None:
    found = single()(given)[0]
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, expected)


def test_scalars() -> None:
    net = Net()
    net.result(net.parameter("x", "", out="FP32"))
    compiled = ir.compile_model(ir.read_model(net.xml()))
    for given in (1.5, [1.5], {"x": 1.5}, np.float32(1.5), np.array(1.5, np.float32)):
        assert compiled(given)[0].tolist() == 1.5


def test_integers_are_taken_only_where_nothing_is_lost() -> None:
    compiled = single("2", "i64")
    np.testing.assert_array_equal(compiled([1.0, 2.0])[0], [1, 2])
    for wrong in ([1.5, 2], [float("nan"), 1], [2**64, 1]):
        with pytest.raises(ir.InputError):
            compiled(wrong)


def test_a_torch_like_object_is_an_array() -> None:
    class Like:
        def __array__(self, dtype: object = None, copy: object = None) -> np.ndarray:
            return np.float32([1, 2])

    np.testing.assert_array_equal(single()([Like()])[0], [1, 2])


def test_tensors_of_openvino_are_taken() -> None:
    ov = pytest.importorskip("openvino")
    tensor = ov.Tensor(np.float32([1, 2]))
    np.testing.assert_array_equal(single()([tensor])[0], [1, 2])


def test_outputs_by_layer_tensor_and_glob(model: ir.Model) -> None:
    for outputs, names in (
        ("wide", ["wide"]),
        (["wide", "a"], ["wide", "a"]),
        ("both*", []),  # it is an output already
        ("w?de", ["wide"]),
        (("wide", 0), ["wide"]),
        ([("wide", 0)], ["wide"]),
        ([model.input("b")], ["b"]),
        ("*", ["a", "b", "wide"]),
    ):
        compiled = ir.compile_model(model, outputs=outputs)  # type: ignore[arg-type]
        assert [port.label for port in compiled.outputs] == ["both", "top", *names]
        results = compiled([A, B])
        for name in names:
            expected = {"wide": B.astype(np.float32), "a": A, "b": B}[name]
            np.testing.assert_array_equal(results[name], expected)
    assert len(model.outputs) == 2, "compiling changes nothing about the model"


def test_tensor_names_win_over_layer_names() -> None:
    net = Net()
    x = net.parameter("x", "2")
    first = net.op("ReLU", x, out="FP32 2", name="b", names="a")
    net.result(first, "r1")
    net.result(net.op("Negative", first, out="FP32 2", name="a", names="b"), "r2")
    results = ir.compile_model(ir.read_model(net.xml()))(np.float32([1, 2]))
    np.testing.assert_array_equal(results["a"], [1, 2])
    np.testing.assert_array_equal(results["b"], [-1, -2])
    np.testing.assert_array_equal(results["r2"], [-1, -2])


def test_a_core_remembers_properties(model: ir.Model) -> None:
    core = ir.Core()
    core.set_property({"PERF_COUNT": True})
    core.set_property("CPU", ("BACKEND", "reference"))
    assert core.get_property("CPU", "PERF_COUNT") is True
    compiled = core.compile_model(model, "CPU")
    assert compiled.backend == "reference"
    assert compiled.get_property("FULL_DEVICE_NAME") == "ir_runtime (reference backend)"
    request = compiled.create_infer_request()
    request.infer([A, B])
    assert [info.node_name for info in request.get_profiling_info()] == ["wide", "both_layer", "top_layer"]
    with pytest.raises(ir.InputError):
        core.set_property("CPU", ["BACKEND"])


def test_a_busy_request_is_refused_and_a_failure_is_raised_when_waiting(compiled: ir.CompiledModel) -> None:
    import threading

    request, hold = compiled.create_infer_request(), threading.Event()
    request.set_callback(lambda _: hold.wait(600))
    request.start_async([A, B])
    for again in (request.infer, request.start_async):
        with pytest.raises(ir.InputError, match="still running"):
            again([A, B])
    assert not request.wait_for(1)
    hold.set()
    request.wait()

    def fail(_: object) -> None:
        raise LookupError("mine")

    request.set_callback(fail)
    request.start_async([A, B])
    with pytest.raises(RuntimeError, match="the callback of the request raised LookupError: mine") as raised:
        request.wait()
    assert isinstance(raised.value.__cause__, LookupError)
    request.wait()


def test_a_queue_goes_on_after_what_it_refuses(compiled: ir.CompiledModel) -> None:
    queue = ir.AsyncInferQueue(compiled, 1)
    for _ in range(3):
        with pytest.raises(ir.InputError):
            queue.start_async([A])
    queue.start_async([A, B])
    queue.wait_all()

    def fail(request: ir.InferRequest, data: object) -> None:
        raise LookupError(data)

    queue.set_callback(fail)
    queue.start_async([A, B], "mine")
    with pytest.raises(LookupError, match="mine"):
        queue.wait_all()
    assert queue.is_ready()


def chained(inputs: list[str], outputs: list[str]) -> ir.CompiledModel:
    """A model that returns each of its inputs plus one, under other names."""
    ports, results = [], []
    for name, result in zip(inputs, outputs, strict=True):
        port = opset13.parameter([1], "f32", name=f"layer of {name}")
        port.output(0).set_names({name})
        results.append(opset13.add(port, np.float32([1])))
        results[-1].output(0).set_names({result})
        ports.append(port)
    return ir.compile_model(ir.Model(results, ports))


ONE, FIVE = np.float32([1]), np.float32([5])


def test_results_of_another_model_are_taken_by_their_place() -> None:
    first = chained(["x", "y"], ["p", "q"])
    for names in (["p", "q"], ["p", "other"], ["a", "b"]):
        second = chained(names, ["r", "s"])
        assert [array.tolist() for array in second(first([ONE, FIVE])).to_tuple()] == [[3], [7]]
        assert second.create_infer_request().infer(first([ONE, FIVE]))["s"].tolist() == [7]


def test_results_with_the_names_of_other_inputs_are_refused() -> None:
    first, second = chained(["x", "y"], ["p", "q"]), chained(["q", "p"], ["r", "s"])
    results = first([ONE, FIVE])
    with pytest.raises(ir.InputError, match="result 0 has the name of input 1, 'p'"):
        second(results)
    assert second({name: results[name] for name in "pq"})["s"].tolist() == [3]


def test_ports_of_another_model_stand_for_their_names() -> None:
    first, second = chained(["x"], ["p"]), chained(["p"], ["r"])
    assert second({first.output(): ONE})["r"].tolist() == [2]
    request = second.create_infer_request()
    request.set_tensor(first.output(), ir.Tensor(FIVE))
    assert request.infer()["r"].tolist() == [6]
    with pytest.raises(ir.InputError, match="unknown input 'r'"):
        second({second.output(): ONE})
