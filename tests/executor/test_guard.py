"""Guards cost nothing where they are not needed; failures are explained; results match inference; interrupts pass through."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from inspect import getclosurevars, isfunction
from typing import Any

import numpy as np
import pytest
from harness.nets import Net, looping

import ir_runtime as ir
from ir_runtime.backends import available
from ir_runtime.backends.common import blas as _blas
from ir_runtime.backends.numpy import parallel
from ir_runtime.executor.guard import REMEMBERED, Guard
from ir_runtime.ir.shape import PartialShape
from ir_runtime.ir.tensor import Array, Value
from ir_runtime.ops import Input, Op, Output, op, registry
from ir_runtime.ops._define.operation import T_FLOAT

backends = pytest.mark.parametrize("backend", available())


def read(net: Net, **limits: float) -> ir.Model:
    return ir.read_model(net.xml(), net.weights, limits=ir.Limits(**limits))  # type: ignore[arg-type]


def adding(rows: str) -> Net:
    net = Net()
    dims = f"{'-1' if rows == '?' else rows} 3"
    a, b = (net.parameter(name, f"{rows},3", out=f"FP32 {dims}") for name in "ab")
    net.result(net.op("Maximum", a, b, out=f"FP32 {dims}"))
    return net


def guards(compiled: ir.CompiledModel) -> list[Guard]:
    functions = [step.kernel.run for step in compiled._plan.steps]
    closures = [getclosurevars(run).nonlocals for run in functions if isfunction(run)]
    return [values["guard"] for values in closures if "guard" in values]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record the operations whose types are inferred."""
    found: list[str] = []
    usual = Op.infer_types

    def infer_types(self: Op, *inputs: Value, **context: Any) -> Any:
        found.append(self.name)
        return usual(self, *inputs, **context)

    monkeypatch.setattr(Op, "infer_types", infer_types)
    return found


@backends
def test_shapes_that_are_known_have_no_guard(backend: str) -> None:
    assert not guards(ir.compile_model(read(adding("2")), backend=backend))
    assert len(guards(ir.compile_model(read(adding("?")), backend=backend))) == 1


def test_a_result_that_is_small_for_certain_has_no_guard() -> None:
    assert not guards(ir.compile_model(read(adding("0..100"))))


def test_what_is_bounded_and_little_is_not_inferred(asked: list[str]) -> None:
    compiled = ir.compile_model(read(adding("?")))
    asked.clear()
    compiled([np.ones((5, 3), np.float32)] * 2)
    assert asked == []


@backends
def test_sizes_in_proportion_are_known_at_any_length(asked: list[str], backend: str) -> None:
    """The product of all rows and weights would exceed any limit."""
    net = Net()
    x = net.parameter("x", "?,100", out="FP32 -1 100")
    weights = net.constant(np.eye(100), "f32")
    net.result(net.op("MatMul", x, weights, out="FP32 -1 100", transpose_a="false", transpose_b="false"))
    compiled = ir.compile_model(read(net, memory=100_000), backend=backend)
    asked.clear()
    for rows in (1, 20, 100):
        assert compiled(np.ones((rows, 100), np.float32))[0].shape == (rows, 100)
    assert asked == []
    with pytest.raises(ir.LimitError):
        compiled(np.ones((130, 100), np.float32))


def test_what_was_inferred_is_remembered(asked: list[str]) -> None:
    compiled = ir.compile_model(read(adding("?"), memory=100_000))
    x = np.ones((500, 3), np.float32)  # 1500 * 1500 would be too many
    asked.clear()
    compiled([x, x])
    assert asked == ["Maximum"]
    compiled([x, x])
    compiled([x, x])
    assert asked == ["Maximum"]


def test_contents_of_small_inputs_are_told_apart(asked: list[str]) -> None:
    net = Net()
    target = net.parameter("target", "?", "i64", out="I64 -1")
    net.result(net.op("Broadcast", net.constant(1.0, "f32"), target, out="FP32 -1", version="opset3"))
    compiled = ir.compile_model(read(net))
    asked.clear()
    for count in (4, 5, 4, 5):
        assert compiled(np.array([count]))[0].shape == (count,)
    assert asked == ["Broadcast", "Broadcast"]


def test_a_guard_does_not_remember_everything() -> None:
    net = Net()
    target = net.parameter("target", "?", "i64", out="I64 -1")
    net.result(net.op("Broadcast", net.constant(1.0, "f32"), target, out="FP32 -1", version="opset3"))
    compiled = ir.compile_model(read(net))
    for count in range(REMEMBERED + 10):
        compiled(np.array([count]))
    (guard,) = guards(compiled)
    assert len(guard.cached) == 10


def failing(net: Net, feeds: Any, backend: str) -> ir.ExecutionError:
    with pytest.raises(ir.ExecutionError) as caught:
        ir.compile_model(read(net), backend=backend)(feeds)
    return caught.value


@backends
@pytest.mark.parametrize("type", ["Maximum", "Add"])
def test_shapes_that_contradict_are_told_in_our_words(type: str, backend: str) -> None:
    net = Net()
    a, b = (net.parameter(name, "?", out="FP32 -1") for name in "ab")
    net.result(net.op(type, a, b, out="FP32 -1", name="both"))
    problem = failing(net, [np.ones(2, np.float32), np.ones(3, np.float32)], backend)
    assert problem.where is not None
    assert problem.where.layer == "both"
    assert "do not broadcast" in problem.message
    assert "ValueError" not in problem.message


@backends
def test_the_layer_that_refuses_is_named_in_a_fused_step(backend: str) -> None:
    net = Net()
    x = net.parameter("x", "?,4", out="FP32 -1 4")
    other = net.parameter("y", "?,4", out="FP32 -1 4")
    product = net.op("MatMul", x, net.constant(np.eye(4), "f32"), out="FP32 -1 4", transpose_a="false",
                     transpose_b="false")  # fmt: skip
    net.result(net.op("Add", net.op("ReLU", product, out="FP32 -1 4"), other, out="FP32 -1 4"))
    problem = failing(net, [np.ones((2, 4), np.float32), np.ones((3, 4), np.float32)], backend)
    assert problem.where is not None
    assert problem.where.layer == "add"


@backends
def test_no_broadcasting_means_none_at_run_time_too(backend: str) -> None:
    net = Net()
    a, b = (net.parameter(name, "?", out="FP32 -1") for name in "ab")
    net.result(net.op("Add", a, b, out="FP32 -1", auto_broadcast="none"))
    assert ir.compile_model(read(net), backend=backend)([np.ones(3, np.float32)] * 2)[0].tolist() == [2, 2, 2]
    problem = failing(net, [np.ones(1, np.float32), np.ones(3, np.float32)], backend)
    assert "auto_broadcast is none" in problem.message


@backends
@pytest.mark.parametrize(
    "type", ["GatherElements", "GatherND", "ScatterUpdate", "EmbeddingSegmentsSum", "Split"]
)
def test_data_that_break_a_contract_name_the_layer(type: str, backend: str) -> None:
    net = Net()
    data = net.parameter("data", "?,2", out="FP32 -1 2")
    if type == "Split":
        net.result(net.layer("Split", [data, net.constant(0)], ["FP32 -1 2", "FP32 -1 2"], num_splits=2)[0])
        feeds: list[Array] = [np.ones((3, 2), np.float32)]
    elif type == "ScatterUpdate":
        index = net.parameter("index", "?", "i64", out="I64 -1")
        updates = net.parameter("updates", "?,2", out="FP32 -1 2")
        net.result(net.op(type, data, index, updates, net.constant(0), out="FP32 -1 2", version="opset3"))
        feeds = [np.ones((3, 2), np.float32), np.array([7]), np.ones((1, 2), np.float32)]
    elif type == "EmbeddingSegmentsSum":
        ends = [net.parameter(name, "?", "i64", out="I64 -1") for name in ("indices", "segments")]
        count = net.parameter("count", "", "i64", out="I64")
        net.result(net.op(type, data, *ends, count, out="FP32 -1 2", version="opset3"))
        feeds = [np.ones((3, 2), np.float32), np.array([7]), np.array([0]), np.array(1)]
    else:
        rank = "?,2" if type == "GatherElements" else "?,1"
        index = net.parameter("index", rank, "i64", out="I64 " + rank.replace("?", "-1").replace(",", " "))
        how = {"axis": 0} if type == "GatherElements" else {"batch_dims": 0}
        net.result(net.op(type, data, index, out="FP32 -1 2", **how,
                          version="opset6" if type == "GatherElements" else "opset8"))  # fmt: skip
        feeds = [np.ones((3, 2), np.float32), np.full((1, int(rank[-1])), 7)]
    problem = failing(net, feeds, backend)
    assert problem.where is not None
    assert problem.where.layer == type.lower()
    assert "IndexError" not in problem.message
    assert "ValueError" not in problem.message


@backends
def test_a_file_that_lies_about_parts_is_found_out(backend: str) -> None:
    """The port map declares parts of 3, so 2 iterations give 6; the body returns its whole input."""
    net = looping("?", joined=True, part_size=3, count=2)
    assert ir.compile_model(read(net), backend=backend)(np.ones(3, np.float32))[0].shape == (6,)
    problem = failing(net, np.ones(2, np.float32), backend)
    assert problem.where is not None
    assert problem.where.layer == "loop"
    assert problem.message == "returned f32[4], but f32[6] was inferred"


@pytest.fixture
def operations() -> Iterator[None]:
    """Register an operation that returns another shape than inferred, and one that is interrupted."""

    @op("ProbeLies-1")
    class Lies(Op):
        """Return one element too many."""

        data = Input(T_FLOAT, "any")
        output = Output(T_FLOAT, "more")

        def infer(self, data: Value) -> PartialShape:
            return data.shape

        def evaluate(self, data: Array) -> Array:
            return np.append(data, data[:1])

    @op("ProbeInterrupted-1")
    class Interrupted(Op):
        """Raise `KeyboardInterrupt` if requested."""

        data = Input(T_FLOAT, "any")
        output = Output(T_FLOAT, "the same")

        def infer(self, data: Value) -> PartialShape:
            return data.shape

        def evaluate(self, data: Array) -> Array:
            if data[0] < 0:
                raise KeyboardInterrupt
            return data

    yield
    for cls in (Lies, Interrupted):
        registry.remove(cls)


@pytest.mark.usefixtures("operations")
@backends
def test_an_output_that_is_not_what_was_inferred_is_an_error(backend: str) -> None:
    net = Net()
    net.result(net.op("ProbeLies", net.parameter("x", "2", out="FP32 2"), out="FP32 2", name="liar"))
    problem = failing(net, np.ones(2, np.float32), backend)
    assert problem.where is not None
    assert problem.where.layer == "liar"
    assert problem.message == "returned f32[3], but f32[2] was inferred"


def counting() -> Net:
    """A variable that accumulates ``x``, and a layer after it."""
    net = Net()
    x = net.parameter("x", "1", out="FP32 1")
    says = {"variable_id": "v", "variable_type": "f32", "variable_shape": "1"}
    held = net.op("ReadValue", net.constant([0.0], "f32"), out="FP32 1", version="opset6", **says)
    total = net.op("Add", held, x, out="FP32 1")
    net.layer("Assign", [total], ["FP32 1"], version="opset6", variable_id="v")
    net.result(net.op("ProbeInterrupted", net.op("Add", total, net.op("Multiply", x, net.constant([1000.0], "f32"),
               out="FP32 1"), out="FP32 1", name="after"), out="FP32 1"))  # fmt: skip
    return net


@pytest.mark.usefixtures("operations")
@backends
def test_an_interrupt_leaves_variables_as_they_were(backend: str) -> None:
    request = ir.compile_model(read(counting()), backend=backend).create_infer_request()
    request.infer(np.array([1], np.float32))
    before = request.query_state()[0].state.data.copy()
    with pytest.raises(KeyboardInterrupt):
        request.infer(np.array([-1], np.float32))
    assert request.query_state()[0].state.data.tolist() == before.tolist() == [1]
    assert request.infer(np.array([1], np.float32))[0].tolist() == [1002]


def test_a_queue_goes_on_after_an_interrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    queue = ir.AsyncInferQueue(ir.compile_model(read(adding("2"))), 1)
    x = [np.ones((2, 3), np.float32)] * 2

    def interrupted(request: ir.InferRequest, inputs: Any, share: bool) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(ir.InferRequest, "_take", interrupted)
        with pytest.raises(KeyboardInterrupt):
            queue.start_async(x)
    done: list[float] = []
    queue.set_callback(lambda request, _: done.append(float(request.results[0][0, 0])))
    for _ in range(3):
        queue.start_async(x)
    queue.wait_all()
    assert done == [1, 1, 1]
    assert queue.is_ready()


def test_a_chunk_that_fails_ends_the_layer_and_the_threads_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "max_threads", 2)
    started: list[int] = []
    dropped = threading.Event()

    class Chunks(deque[int]):
        def clear(self) -> None:
            super().clear()
            dropped.set()

    monkeypatch.setattr(parallel, "deque", Chunks)

    def work(chunk: int) -> None:
        started.append(chunk)
        if chunk == 0:
            raise KeyboardInterrupt
        assert dropped.wait(600)

    with parallel.single_blas():
        with pytest.raises(KeyboardInterrupt):
            parallel.parallel_for(work, range(1000), 1 << 62)
        assert started in ([0], [0, 1], [1, 0]), "nobody begins what is left"
        complete: list[int] = []
        parallel.parallel_for(complete.append, range(1000), 1 << 62)
    assert sorted(complete) == list(range(1000))


def test_blas_has_its_threads_again_after_an_interrupt() -> None:
    blas = _blas.Blas()
    numbers = [4]
    blas._get, blas._set = lambda: numbers[-1], numbers.append

    def run() -> None:
        with blas.single(), blas.single():
            assert numbers[-1] == 1
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run()
    assert numbers[-1] == 4
