"""Execution plans: folding, freeing, sharing, observers, and repeatable results from any thread."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from harness.nets import End, Net
from harness.session import only_new_objects

import ir_runtime as ir
from ir_runtime.backends import available, silent_default
from ir_runtime.ir.element import ElementType
from ir_runtime.ir.shape import PartialShape
from ir_runtime.ir.tensor import Array, Value
from ir_runtime.ops import Input, Op, Output, op, registry
from ir_runtime.ops._define.operation import T_FLOAT

DIGITS = Path(__file__).parents[2] / "examples/digits"
IMAGES = np.load(DIGITS / "images.npy")
backends = pytest.mark.parametrize("backend", available())


class _Probe(Op):
    """Base class of operations for these tests."""

    data = Input(T_FLOAT, "any")
    output = Output(T_FLOAT, "the same")

    def infer(self, data: Value) -> PartialShape:
        return data.shape


@pytest.fixture(autouse=True)
def operations() -> Iterator[None]:
    """Register operations: one fails, one has no kernel, one tracks its live results."""

    @op("ProbeFails-1")
    class Fails(_Probe):
        """Raise an error."""

        def evaluate(self, data: Array) -> Array:
            raise ZeroDivisionError("no such number")

    @op("ProbeInfers-1")
    class Infers(_Probe):
        """Has no `evaluate`."""

    @op("ProbeTraces-1")
    class Traces(_Probe):
        """Record which earlier results are still alive."""

        def evaluate(self, data: Array) -> Array:
            gc.collect()
            ALIVE.append([made() is not None for made in MADE])
            result = np.asarray(data + 1)
            MADE.append(weakref.ref(result))
            return result

    ALIVE.clear()
    MADE.clear()
    with only_new_objects():
        yield
    for cls in (Fails, Infers, Traces):
        registry.remove(cls)


ALIVE: list[list[bool]] = []
MADE: list[weakref.ref[Array]] = []


def read(net: Net) -> ir.Model:
    return ir.read_model(net.xml(), net.weights)


def chain(*types: str) -> ir.Model:
    net = Net()
    end: End = net.parameter("x", "3", out="FP32 3")
    for number, type in enumerate(types):
        end = net.op(type, end, out="FP32 3", name=f"{type}_{number}")
    net.result(end)
    return read(net)


X = np.float32([-1, 0, 2])


class Watch:
    """An observer that records the inputs and outputs of each step."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, list[Array], list[Array]]] = []

    def before(self, step: ir.Step, inputs: Sequence[Array]) -> None:
        self.seen.append((step.layer.name, [np.array(x) for x in inputs], []))

    def after(self, step: ir.Step, outputs: Sequence[Array], seconds: float) -> None:
        name, _, made = self.seen[-1]
        assert name == step.layer.name
        assert seconds >= 0
        made += [np.array(x) for x in outputs]


def constants_and_more() -> Net:
    """A model in which (c + c) is constant and x * (c + c) is not."""
    net = Net()
    x, c = net.parameter("x", "2", out="FP32 2"), net.constant([1, 2], "f32", name="c")
    doubled = net.op("Add", c, c, out="FP32 2", name="doubled")
    net.result(net.op("Multiply", x, doubled, out="FP32 2", name="product"))
    return net


def test_constants_are_folded_but_by_the_reference() -> None:
    model = read(constants_and_more())
    folded, kept = (ir.compile_model(model, backend=b) for b in ("numpy", "reference"))
    assert [s.layer.name for s in folded._plan.steps] == ["product"]
    assert [s.layer.name for s in kept._plan.steps] == ["doubled", "product"]
    for compiled in (folded, kept):
        np.testing.assert_array_equal(compiled(np.float32([5, 6]))[0], [10, 24])


def test_what_grows_a_lot_is_not_folded() -> None:
    net = Net()
    x = net.parameter("x", "1", out="FP32 1")
    wide = net.op(
        "Broadcast", net.constant([1], "f32"), net.constant([1 << 20]), out=f"FP32 {1 << 20}", name="wide", version="opset3", mode="numpy"
    )  # fmt: skip
    net.result(net.op("Multiply", x, wide, out=f"FP32 {1 << 20}", name="product"))
    compiled = ir.compile_model(read(net), backend="numpy")
    assert [s.layer.name for s in compiled._plan.steps] == ["wide", "product"]


def test_layers_nobody_needs_do_not_run() -> None:
    net = Net()
    x = net.parameter("x", "3", out="FP32 3")
    net.op("ProbeFails", x, out="FP32 3", name="aside")
    net.result(net.op("ReLU", x, out="FP32 3"))
    for backend in available():
        np.testing.assert_array_equal(ir.compile_model(read(net), backend=backend)(X)[0], [0, 0, 2])


@backends
def test_buffers_are_freed_after_their_last_use(backend: str) -> None:
    compiled = ir.compile_model(chain(*["ProbeTraces"] * 5), backend=backend)
    np.testing.assert_array_equal(compiled(X)[0], X + 5)
    assert list(ALIVE) == [[False] * max(n - 1, 0) + [True] * (n > 0) for n in range(5)], (
        "only the last is alive"
    )


def test_what_is_read_later_is_kept() -> None:
    net = Net()
    first = net.op("ProbeTraces", net.parameter("x", "3"), out="FP32 3", name="a")
    third = net.op("ProbeTraces", net.op("ProbeTraces", first, out="FP32 3"), out="FP32 3")
    net.result(net.op("Add", third, first, out="FP32 3"))
    result = ir.compile_model(read(net), backend="reference")(X)[0]
    np.testing.assert_array_equal(result, X + 3 + X + 1)
    assert ALIVE[-1] == [True, True]


@backends
def test_nothing_is_held_between_runs(backend: str) -> None:
    compiled = ir.compile_model(chain("ProbeTraces", "ProbeTraces", "ReLU"), backend=backend)
    given = X.copy()
    seen = weakref.ref(given)
    compiled(given)
    del given
    gc.collect()
    assert seen() is None
    assert [made() for made in MADE] == [None, None]


@backends
def test_observers_see_every_layer(backend: str) -> None:
    watch = Watch()
    compiled = ir.compile_model(read(constants_and_more()), backend=backend)
    result = compiled(np.float32([5, 6]), observers=[watch])
    assert [name for name, _, _ in watch.seen] == ["doubled", "product"]
    (_, [a, b], [doubled]), (_, [x, factor], [product]) = watch.seen
    for found, expected in (
        (a, [1, 2]),
        (b, [1, 2]),
        (doubled, [2, 4]),
        (factor, [2, 4]),
        (x, [5, 6]),
        (product, [10, 24]),
    ):
        np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(result[0], product)


@backends
def test_observers_see_a_real_network_layer_by_layer(backend: str) -> None:
    model = ir.read_model(DIGITS / "digits.xml")
    watch, again = Watch(), Watch()
    compiled = ir.compile_model(model, backend=backend)
    observed = compiled(IMAGES[:3], observers=[watch, again])
    layers = [
        node.friendly_name
        for node in model.get_ordered_ops()
        if node.type not in ("Parameter", "Constant", "Result")
    ]
    assert [name for name, _, _ in watch.seen] == layers
    assert len(again.seen) == len(layers)
    np.testing.assert_allclose(observed[0], compiled(IMAGES[:3])[0], rtol=1e-5, atol=1e-5)
    extra = ir.compile_model(model, backend=backend, outputs=layers)(IMAGES[:3])
    for name, _, outputs in watch.seen:
        np.testing.assert_allclose(extra[name], outputs[0], rtol=1e-5, atol=1e-5)


def test_backends_compute_the_same_intermediate_results() -> None:
    model = ir.read_model(DIGITS / "digits.xml")
    results = [ir.compile_model(model, backend=b, outputs="*")(IMAGES) for b in available()]
    assert len(results[0]) > 10
    for found in results[1:]:
        for port, wanted in results[0].items():
            if wanted.dtype.kind == "f":
                np.testing.assert_allclose(found[port], wanted, rtol=1e-4, atol=1e-4)
            else:  # which of two pixels is the larger one, rounding may decide
                assert np.mean(found[port] != wanted) < 1e-3


@backends
def test_requests_take_observers_too(backend: str) -> None:
    request = ir.compile_model(read(constants_and_more()), backend=backend).create_infer_request()
    watch = Watch()
    request.infer([np.float32([5, 6])], observers=[watch])
    assert len(watch.seen) == 2
    assert request.latency > 0


class Mistaken(Watch):
    """An observer that raises an error."""

    def __init__(self, when: str) -> None:
        super().__init__()
        self.when = when

    def before(self, step: ir.Step, inputs: Sequence[Array]) -> None:
        if self.when == "before":
            raise LookupError("mine")

    def after(self, step: ir.Step, outputs: Sequence[Array], seconds: float) -> None:
        raise LookupError("mine")


@pytest.mark.parametrize("when", ["before", "after"])
def test_what_an_observer_raises_comes_through(when: str) -> None:
    compiled = ir.compile_model(chain("ReLU"))
    with pytest.raises(LookupError, match="mine"):
        compiled(X, observers=[Mistaken(when)])
    np.testing.assert_array_equal(compiled(X)[0], [0, 0, 2])


@backends
def test_a_layer_that_fails_is_named(backend: str) -> None:
    compiled = ir.compile_model(chain("ReLU", "ProbeFails"), backend=backend)
    with pytest.raises(ir.ExecutionError) as caught:
        compiled(X)
    problem = caught.value
    assert problem.where == ir.Location("<bytes>", 6, "ProbeFails_1", "ProbeFails-1")
    assert "failed on the data it was given: ZeroDivisionError: no such number" in str(problem)
    assert isinstance(problem.__cause__, ZeroDivisionError)


def test_a_constant_layer_that_fails_is_named_when_compiling() -> None:
    net = Net()
    net.result(net.op("ProbeFails", net.constant(np.ones(5000), "f32"), out="FP32 5000", name="broken"))
    with pytest.raises(ir.ExecutionError, match="broken"):
        ir.compile_model(read(net), backend="numpy")


def test_a_small_constant_layer_that_fails_makes_the_model_invalid() -> None:
    net = Net()
    net.result(net.op("ProbeFails", net.constant([1], "f32"), out="FP32 1", name="broken"))
    with pytest.raises(ir.ValidationError, match=r"broken.*ZeroDivisionError"):
        read(net)


@backends
def test_an_operation_that_only_infers(backend: str) -> None:
    model = chain("ProbeInfers")
    assert model.report.ok
    assert model.output().shape == [3]
    with pytest.raises(ir.UnsupportedError, match="ProbeInfers-1 can be checked, but not run") as caught:
        ir.compile_model(model, backend=backend)
    assert caught.value.where == ir.Location("<bytes>", 5, "ProbeInfers_0", "ProbeInfers-1")


def test_unknown_operations_cannot_be_compiled_but_looked_at() -> None:
    net = Net()
    x = net.parameter("x", "3", out="FP32 3")
    known = net.op("ReLU", x, out="FP32 3", name="known")
    net.result(net.op("Mystery", known, out="FP32 3", name="unknown"))
    model = ir.read_model(net.xml(), strict=False)
    assert model.output().shape == [3], "the file's word is taken"
    with pytest.raises(ir.UnsupportedError, match=r"Mystery \(opset1\)") as caught:
        ir.compile_model(model)
    assert caught.value.where is not None
    assert caught.value.where.layer == "unknown"


@pytest.mark.parametrize("mistake", ["unconnected", "cycle", "arity"])
def test_models_that_cannot_run_are_not_compiled(mistake: str) -> None:
    net = constants_and_more()
    if mistake == "unconnected":
        net.edges.pop(2)
    elif mistake == "cycle":
        net.edges[0] = (3, 2, 2, 0)
    else:
        net.layers[3] = net.layers[3].replace('type="Multiply"', 'type="ReLU"')
    model = ir.read_model(net.xml(), net.weights, strict=False)
    with pytest.raises(ir.ValidationError):
        ir.compile_model(model)


def test_declarations_that_are_wrong_do_not_keep_a_model_from_running() -> None:
    net = Net()
    net.result(net.op("ReLU", net.parameter("x", "3"), out="FP16 7"))
    model = ir.read_model(net.xml())
    assert [len(model.report.errors), len(model.report.warnings)] == [0, 2]
    np.testing.assert_array_equal(ir.compile_model(model)(X)[0], [0, 0, 2])


def sharing() -> Net:
    """A model that outputs an input, a constant, views of both, and one tensor twice."""
    net = Net()
    x, c = net.parameter("x", "2,3", out="FP32 2 3"), net.constant([[1, 2, 3], [4, 5, 6]], "f32", name="c")
    y = net.op("ReLU", x, out="FP32 2 3", name="y")
    flat = net.op("Reshape", y, net.constant([6]), out="FP32 6", name="flat", special_zero=False)
    turned = net.op("Transpose", y, net.constant([1, 0]), out="FP32 3 2", name="turned")
    of_input = net.op("Reshape", x, net.constant([6]), out="FP32 6", name="of_input", special_zero=False)
    of_constant = net.op(
        "Reshape", c, net.constant([6]), out="FP32 6", name="of_constant", special_zero=False
    )
    wide = net.op(
        "Broadcast", net.op("ReduceSum", y, net.constant([0, 1]), out="FP32", name="total"), net.constant([4]), out="FP32 4", name="wide", version="opset3", mode="numpy"
    )  # fmt: skip
    for end in (x, c, y, y, flat, turned, of_input, of_constant, wide):
        net.result(end)
    return net


@backends
def test_results_share_memory_with_nothing(backend: str) -> None:
    net = sharing()
    buffer = bytearray(net.weights)
    model = ir.read_model(net.xml(), buffer)
    compiled = ir.compile_model(model, backend=backend)
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    results = compiled(x).to_tuple()
    expected = [np.array(r) for r in results]
    for i, result in enumerate(results):
        assert result.flags.writeable
        assert result.flags.c_contiguous
        assert not np.shares_memory(result, x)
        assert not np.shares_memory(result, model.constant("c"))
        assert not any(np.shares_memory(result, other) for other in results[i + 1 :])
    for result in results:
        result[...] = 99
    np.testing.assert_array_equal(x.ravel(), range(6))
    assert bytes(buffer) == net.weights
    for found, wanted in zip(compiled(x).to_tuple(), expected, strict=True):
        np.testing.assert_array_equal(found, wanted)


@backends
def test_results_of_requests_are_not_their_tensors(backend: str) -> None:
    net = sharing()
    request = ir.compile_model(read(net), backend=backend).create_infer_request()
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    first = request.infer([x])
    tensors = [*request.output_tensors, *request.input_tensors]
    for tensor in tensors:
        assert not any(np.shares_memory(tensor.data, array) for array in first.to_tuple())
    kept = [np.array(a) for a in first.to_tuple()]
    request.infer([x + 1])
    for found, wanted in zip(first.to_tuple(), kept, strict=True):
        np.testing.assert_array_equal(found, wanted)


@backends
def test_inputs_are_never_changed(backend: str) -> None:
    model = ir.read_model(DIGITS / "digits.xml")
    given = IMAGES[:2].copy()
    given.flags.writeable = False
    ir.compile_model(model, backend=backend)(given)
    np.testing.assert_array_equal(given, IMAGES[:2])


@backends
def test_results_are_the_same_on_every_run(backend: str) -> None:
    compiled = ir.compile_model(ir.read_model(DIGITS / "digits.xml"), backend=backend)
    images = IMAGES[:20]
    first = compiled(images)[0]
    for _ in range(3):
        assert compiled(images)[0].tobytes() == first.tobytes()
    again = ir.compile_model(ir.read_model(DIGITS / "digits.xml"), backend=backend)
    assert again(images)[0].tobytes() == first.tobytes()


@backends
def test_one_compiled_model_runs_in_many_threads(backend: str) -> None:
    compiled = ir.compile_model(ir.read_model(DIGITS / "digits.xml"), backend=backend)
    batches = [IMAGES[i : i + 1 + i % 5] for i in range(15)]
    alone = [compiled(batch)[0].tobytes() for batch in batches]
    start = threading.Barrier(8)

    def run(thread: int) -> list[bool]:
        request = compiled.create_infer_request() if thread % 2 else None
        start.wait()
        same = []
        for batch, expected in zip(batches, alone, strict=True):
            results = request.infer([batch]) if request else compiled(batch)
            same.append(results[0].tobytes() == expected)
        return same

    with ThreadPoolExecutor(8) as pool:
        assert all(all(same) for same in pool.map(run, range(8)))


def test_observers_in_many_threads() -> None:
    """The unfused plan is compiled once, by the first thread."""
    compiled = ir.compile_model(ir.read_model(DIGITS / "digits.xml"))

    def run(_: int) -> int:
        watch = Watch()
        compiled(IMAGES[:1], observers=[watch])
        return len(watch.seen)

    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(run, range(8)))) == 1


def test_a_compiled_model_does_not_follow_its_model() -> None:
    model = ir.read_model(DIGITS / "digits.xml")
    compiled = ir.compile_model(model)
    model.reshape([2, 1, 8, 8])
    model.add_outputs("*")
    assert len(compiled.outputs) == 1
    assert compiled(IMAGES[:5])[0].shape == (5, 10)


@pytest.mark.filterwarnings("ignore:the backend 'numpy' is used")  # on a processor that no library is for
def test_the_environment_names_the_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    model = read(constants_and_more())
    monkeypatch.delenv("IR_RUNTIME_BACKEND", raising=False)
    assert ir.compile_model(model).backend == silent_default()
    monkeypatch.setenv("IR_RUNTIME_BACKEND", "reference")
    compiled = ir.compile_model(model)
    assert compiled.backend == "reference"
    assert len(compiled._plan.steps) == 2
    assert ir.compile_model(model, backend="numpy").backend == "numpy"
    monkeypatch.setenv("IR_RUNTIME_BACKEND", "fast")
    with pytest.raises(ir.InputError, match="unknown backend 'fast'"):
        ir.compile_model(model)
    monkeypatch.setenv("IR_RUNTIME_BACKEND", "")
    assert ir.compile_model(model).backend == silent_default()


def test_empty_tensors_go_through() -> None:
    net = Net()
    net.result(net.op("ReLU", net.parameter("x", "?,3", out="FP32 -1 3"), out="FP32 -1 3"))
    for backend in available():
        found = ir.compile_model(read(net), backend=backend)(np.zeros((0, 3), np.float32))[0]
        assert found.shape == (0, 3)


def test_a_model_without_inputs() -> None:
    net = Net()
    net.result(net.constant([1, 2], "f32"))
    for given in ([], {}, None):
        np.testing.assert_array_equal(ir.compile_model(read(net))(given)[0], [1, 2])


def test_types_of_results_are_those_declared() -> None:
    net = Net()
    x = net.parameter("x", "2", "f16", out="FP16 2")
    net.result(net.op("Exp", x, out="FP16 2"))
    compiled = ir.compile_model(read(net))
    found = compiled(np.float16([0, 1]))[0]
    assert ElementType.from_dtype(found.dtype) is compiled.output().element_type
