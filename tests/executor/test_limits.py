"""Limits on runs: memory before it is allocated, iterations, and time; the error names the layer."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from fuzz.series import SHAPES
from harness.nets import Net, looping

import ir_runtime as ir
from ir_runtime._util import deadline
from ir_runtime.backends import available
from ir_runtime.executor import plan
from ir_runtime.ir.shape import PartialShape
from ir_runtime.ir.tensor import Array, Value
from ir_runtime.ops import Input, Op, Output, op, registry
from ir_runtime.ops._define.operation import T_FLOAT

backends = pytest.mark.parametrize("backend", available())


def curves(*types: str, shape: str = "1000") -> Net:
    net = Net()
    dims = " ".join("-1" if n == "?" else n for n in shape.split(","))
    last = net.parameter("x", shape, out=f"FP32 {dims}")
    for type in types:
        last = net.op(type, last, out=f"FP32 {dims}")
    net.result(last)
    return net


def read(net: Net, **limits: float) -> ir.Model:
    return ir.read_model(net.xml(), net.weights, limits=ir.Limits(**limits))  # type: ignore[arg-type]


def refused(limit: str, layer: str | None, caught: pytest.ExceptionInfo[ir.LimitError]) -> None:
    assert caught.value.limit == limit
    assert caught.value.where is not None
    assert caught.value.where.layer == layer
    assert f"Limits({limit}=...)" in caught.value.hint


@backends
def test_memory_is_planned_when_compiling(backend: str) -> None:
    """The peak is the input and two of three results."""
    net = curves("Exp", "Sqrt", "Sin")
    compiled = ir.compile_model(read(net, memory=12_000), backend=backend)
    assert compiled(np.ones(1000, np.float32))[0].shape == (1000,)
    with pytest.raises(
        ir.LimitError, match="12000 bytes of memory are needed at once; the limit is 11999"
    ) as caught:
        ir.compile_model(read(net, memory=11_999), backend="reference")
    refused("memory", "sqrt", caught)


def test_limits_come_with_the_model_and_can_be_given_again(tmp_path: Path) -> None:
    net = curves("Exp", "Sqrt")
    path = tmp_path / "m.xml"
    path.write_bytes(net.xml())
    small, large = ir.Limits(memory=1000), ir.Limits(memory=12_000)
    for refuse in (
        lambda: ir.compile_model(ir.Core().read_model(path, limits=small)),
        lambda: ir.compile_model(path, limits=small),
        lambda: ir.Core().compile_model(path, limits=small),
        lambda: ir.CompiledModel(ir.read_model(path), limits=small),
    ):
        with pytest.raises(ir.LimitError):
            refuse()
    assert ir.read_model(path, limits=small).limits is small
    assert ir.compile_model(ir.read_model(path, limits=small), limits=large).limits is large


def test_what_is_folded_counts() -> None:
    net = Net()
    ones = net.op(
        "Broadcast", net.constant(1.0, "f32"), net.constant([1000]), out="FP32 1000", version="opset3"
    )
    net.result(net.op("Add", net.parameter("x", "1000", out="FP32 1000"), ones, out="FP32 1000"))
    x = np.ones(1000, np.float32)
    assert ir.compile_model(read(net, memory=12_000))(x)[0][0] == 2
    with pytest.raises(ir.LimitError):
        ir.compile_model(read(net, memory=11_999))


def test_the_memory_of_bodies_counts() -> None:
    net = looping("1000")
    ir.compile_model(read(net, memory=20_000))
    with pytest.raises(ir.LimitError) as caught:
        ir.compile_model(read(net, memory=10_000))
    assert caught.value.where is not None
    assert (caught.value.where.layer or "").startswith("loop")


MAKERS = {
    "Broadcast": ("opset3", [("value", "1", "f32"), ("target", "?", "i64")], {"mode": "numpy"}),
    "Tile": ("opset1", [("data", "?", "f32"), ("repeats", "?", "i64")], {}),
    "Range": (
        "opset4",
        [("start", "", "i64"), ("stop", "", "i64"), ("step", "", "i64")],
        {"output_type": "f32"},
    ),
    "Pad": ("opset1", [("data", "?", "f32"), ("b", "?", "i64"), ("e", "?", "i64")], {"pad_mode": "constant"}),
    "Eye": (
        "opset9",
        [("rows", "", "i64"), ("columns", "", "i64"), ("shift", "", "i64")],
        {"output_type": "f32"},
    ),
}
FEEDS = {
    "Broadcast": lambda n: (np.ones(1, np.float32), np.array([n])),
    "Tile": lambda n: (np.ones(1, np.float32), np.array([n])),
    "Range": lambda n: (np.array(0), np.array(n), np.array(1)),
    "Pad": lambda n: (np.ones(1, np.float32), np.array([0]), np.array([n - 1])),
    "Eye": lambda n: (np.array(1), np.array(n), np.array(0)),
}


def maker(type: str) -> Net:
    version, inputs, data = MAKERS[type]
    net = Net()
    ends = [
        net.parameter(name, shape, element, out=f"{element.replace('f', 'FP').replace('i', 'I')} "
                      + ("-1" if shape == "?" else shape)) for name, shape, element in inputs
    ]  # fmt: skip
    out = "FP32 -1 -1" if type == "Eye" else "FP32 -1"
    net.result(net.op(type, *ends, out=out, version=version, **data))
    return net


@backends
@pytest.mark.parametrize("type", MAKERS)
def test_sizes_are_looked_at_before_the_run_makes_them(type: str, backend: str) -> None:
    compiled = ir.compile_model(read(maker(type), memory=8_100), backend=backend)
    assert compiled(FEEDS[type](2_000))[0].size == 2_000
    for count in (2_030, 2**40, 2**62):
        with pytest.raises(ir.LimitError) as caught:
            compiled(FEEDS[type](count))
        assert caught.value.where is not None
        assert caught.value.where.layer == type.lower()
    assert compiled(FEEDS[type](10))[0].size == 10, "it goes on after a refusal"


@backends
def test_the_usual_limits_do_not_let_a_run_take_the_machine(backend: str) -> None:
    compiled = ir.compile_model(read(maker("Range")), backend=backend)
    with pytest.raises(ir.LimitError) as caught:
        compiled(FEEDS["Range"](2**60))
    assert caught.value.limit in ("memory", "elements")


def test_elements_are_limited_while_running() -> None:
    compiled = ir.compile_model(read(maker("Broadcast"), elements=100))
    assert compiled(FEEDS["Broadcast"](100))[0].size == 100
    with pytest.raises(ir.LimitError, match="a tensor has 101 elements; the limit is 100") as caught:
        compiled(FEEDS["Broadcast"](101))
    refused("elements", "broadcast", caught)


@backends
def test_products_are_looked_at(backend: str) -> None:
    """An outer product of small inputs is large; a fused Add is covered as well."""
    net = Net()
    a, b = (
        net.parameter(name, s, out=f"FP32 {d}") for name, s, d in (("a", "?,1", "-1 1"), ("b", "1,?", "1 -1"))
    )
    product = net.op("MatMul", a, b, out="FP32 -1 -1", transpose_a="false", transpose_b="false")
    net.result(net.op("Add", product, net.constant([[1.0]], "f32"), out="FP32 -1 -1"))
    compiled = ir.compile_model(read(net, memory=100_000), backend=backend)

    def feeds(n: int) -> tuple[Array, Array]:
        return np.ones((n, 1), np.float32), np.ones((1, n), np.float32)

    assert compiled(feeds(100))[0].shape == (100, 100)
    with pytest.raises(ir.LimitError) as caught:
        compiled(feeds(160))
    assert caught.value.where is not None
    assert caught.value.where.layer == "matmul"


@backends
@pytest.mark.parametrize("limit", ["elements", "memory"])
def test_lengths_that_add_up_are_looked_at(limit: str, backend: str) -> None:
    """Concat, of which kernels know the shape without inference."""
    net = Net()
    a, b = (net.parameter(name, "?,4", out="FP32 -1 4") for name in "ab")
    net.result(net.op("Concat", a, b, out="FP32 -1 4", axis=0))
    most = {"elements": 1000, "memory": 2 * 4000}[limit]
    compiled = ir.compile_model(read(net, **{limit: most}), backend=backend)
    for rows in (150, 151, 150):
        feeds = np.ones((100, 4), np.float32), np.ones((rows, 4), np.float32)
        if rows == 150:
            assert compiled(feeds)[0].shape == (250, 4)
            continue
        with pytest.raises(ir.LimitError) as caught:
            compiled(feeds)
        refused(limit, "concat", caught)


@backends
def test_what_is_alive_is_counted_together(backend: str) -> None:
    """Each result is small, but all are read by the last layer."""
    net = Net()
    target = net.parameter("target", "?", "i64", out="I64 -1")
    parts = [
        net.op(
            "Broadcast", net.constant(float(n), "f32"), target, out="FP32 -1", version="opset3", name=f"b{n}"
        )
        for n in range(8)
    ]
    turned = [net.op("Exp", part, out="FP32 -1", name=f"e{n}") for n, part in enumerate(parts)]
    net.result(net.op("Concat", *turned, out="FP32 -1", axis=0))
    compiled = ir.compile_model(read(net, memory=200_000), backend=backend)
    assert compiled(np.array([1000]))[0].shape == (8000,)
    with pytest.raises(ir.LimitError) as caught:
        compiled(np.array([8000]))
    assert caught.value.limit == "memory"


def test_iterations_are_limited() -> None:
    compiled = ir.compile_model(read(looping(), trips=10))
    x = np.ones(2, np.float32)
    assert compiled((np.array(10), x))[0].tolist() == [1024, 1024]
    with pytest.raises(ir.LimitError, match="loops run 11 iterations in all; the limit is 10") as caught:
        compiled((np.array(11), x))
    refused("trips", "loop", caught)


def test_iterations_of_all_loops_are_counted_together() -> None:
    """Nested loops multiply, so a limit for each loop alone would bound nothing."""
    made = SHAPES["loops_nested"](3)
    once, thrice = np.zeros((1, 2), np.float32), np.ones((1, 2), np.float32)
    for x, count in (once, 4), (thrice, 3 + 9 + 27 + 81):
        model = ir.read_model(made.xml, made.weights, limits=ir.Limits(trips=count))
        compiled = ir.compile_model(model, backend="numpy")
        assert compiled((x,))[0].shape == compiled((x,))[0].shape == (1, 2)  # each run has the whole limit
        model = ir.read_model(made.xml, made.weights, limits=ir.Limits(trips=count - 1))
        message = f"loops run {count} iterations in all; the limit is {count - 1}"
        with pytest.raises(ir.LimitError, match=message) as caught:
            ir.compile_model(model, backend="numpy")((x,))
        assert caught.value.limit == "trips"


def test_parts_of_iterations_are_limited() -> None:
    compiled = ir.compile_model(read(looping("1000", joined=True, part_size=1000), memory=100_000))
    x = np.ones(1000, np.float32)
    assert compiled((np.array(10), x))[0].shape == (10_000,)
    with pytest.raises(ir.LimitError) as caught:
        compiled((np.array(100_000), x))
    refused("memory", "loop", caught)


class Clock:
    """A clock that advances by one step each time it is read."""

    now = step = 0.0

    def monotonic(self) -> float:
        self.now += self.step
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Replace the clock of deadlines and of the runs that have one."""
    clock = Clock()
    for module in (deadline, plan):
        monkeypatch.setattr(module, "time", clock)
    return clock


def test_a_loop_without_end_ends_when_the_time_is_up(clock: Clock) -> None:
    compiled = ir.compile_model(read(looping(), seconds=0.3))
    clock.step = 0.001
    with pytest.raises(ir.LimitError, match=r"longer than 0\.3 seconds") as caught:
        compiled((np.array(-1), np.ones(2, np.float32)))
    assert caught.value.limit == "seconds"
    assert caught.value.where is not None
    assert (caught.value.where.layer or "").startswith("loop")


def test_time_is_counted_anew_for_each_run(clock: Clock) -> None:
    compiled = ir.compile_model(read(curves("Exp"), seconds=0.2))
    clock.now += 0.25
    assert compiled(np.zeros(1000, np.float32))[0][0] == 1


def test_reading_and_compiling_are_timed() -> None:
    net = curves(*["Exp"] * 50)
    with pytest.raises(ir.LimitError, match="longer than 1e-09 seconds"):
        read(net, seconds=1e-9)
    with pytest.raises(ir.LimitError, match="longer than 1e-09 seconds"):
        ir.compile_model(read(net), limits=ir.Limits(seconds=1e-9))
    found = list(ir.validate(net.xml(), limits=ir.Limits(seconds=1e-9)))
    assert [d.code for d in found] == ["IR501"]


@pytest.fixture
def greedy() -> Iterator[None]:
    """An operation that always runs out of memory."""

    @op("ProbeGreedy-1")
    class Greedy(Op):
        """Raise `MemoryError`."""

        data = Input(T_FLOAT, "any")
        output = Output(T_FLOAT, "the same")

        def infer(self, data: Value) -> PartialShape:
            return data.shape

        def evaluate(self, data: Array) -> Array:
            raise MemoryError("Unable to allocate 3 TiB")

    yield
    registry.remove(Greedy)


@pytest.mark.usefixtures("greedy")
@backends
def test_a_lack_of_memory_names_the_layer(backend: str) -> None:
    compiled = ir.compile_model(read(curves("ProbeGreedy")), backend=backend)
    with pytest.raises(ir.ExecutionError, match=r"not enough memory .* Unable to allocate 3 TiB") as caught:
        compiled(np.ones(1000, np.float32))
    assert caught.value.where is not None
    assert caught.value.where.layer == "probegreedy"
