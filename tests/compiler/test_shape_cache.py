"""Results that depend on shapes alone are computed once per shape; views take one call."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from harness.nets import End, Net

import ir_runtime as ir
from ir_runtime.backends import available
from ir_runtime.compiler.match import KEPT, REMEMBERED, ShapeCache
from ir_runtime.compiler.shape_arithmetic import MOST
from ir_runtime.ir.tensor import Array
from ir_runtime.ops.shape import ShapeOf

backends = pytest.mark.parametrize("backend", [name for name in available() if name != "reference"])


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """Record the shapes that are computed."""
    found: list[tuple[int, ...]] = []
    usual = ShapeOf.evaluate

    def evaluate(self: ShapeOf, data: Array) -> Array:
        found.append(data.shape)
        return usual(self, data)

    monkeypatch.setattr(ShapeOf, "evaluate", evaluate)
    return found


def length(net: Net, x: End, axis: int, name: str = "length") -> End:
    shape = net.op("ShapeOf", x, out="I64 2", version="opset3", output_type="i64")
    return net.op("Gather", shape, net.constant([axis]), net.constant(0), out="I64 1", version="opset8",
                  name=name, batch_dims=0)  # fmt: skip


def ones_as_long(*, result: bool = True, **limits: Any) -> ir.Model:
    """A model that returns 100 ones per input column, and the input."""
    net = Net()
    x = net.parameter("x", "?,?", out="FP32 -1 -1")
    target = net.op("Multiply", length(net, x, 1), net.constant([100]), out="I64 1")
    ones = net.op("Broadcast", net.constant(1.0, "f32"), target, out="FP32 -1", version="opset3", name="ones")
    net.result(ones if result else net.op("ReLU", ones, out="FP32 -1"))
    net.result(net.op("ReLU", x, out="FP32 -1 -1", name="itself"))
    return ir.read_model(net.xml(), net.weights, limits=ir.Limits(**limits))


def kernels(compiled: ir.CompiledModel) -> list[ShapeCache]:
    return [step.kernel.run for step in compiled._plan.steps if isinstance(step.kernel.run, ShapeCache)]


@backends
def test_a_shape_that_came_before_is_not_measured_again(
    measured: list[tuple[int, ...]], backend: str
) -> None:
    compiled = ir.compile_model(ones_as_long(), backend=backend)
    measured.clear()
    for columns in (3, 4, 3, 0, 4, 3):
        assert compiled(np.ones((2, columns), np.float32))[0].tolist() == [1] * (100 * columns)
    assert measured == [(2, 3), (2, 4), (2, 0)]


@backends
def test_all_that_follows_from_shapes_is_one_step(backend: str) -> None:
    compiled = ir.compile_model(ones_as_long(result=False), backend=backend)
    types = [[layer.type for layer in step.layers] for step in compiled._plan.steps]
    assert ["ShapeOf", "Gather", "Multiply", "Broadcast"] in [each[:4] for each in types]


@backends
def test_a_caller_may_write_into_a_result(backend: str) -> None:
    compiled = ir.compile_model(ones_as_long(), backend=backend)
    x = np.ones((1, 2), np.float32)
    compiled(x)[0][:] = 7
    assert set(compiled(x)[0].tolist()) == {1}


def test_not_everything_is_kept() -> None:
    compiled = ir.compile_model(ones_as_long(), backend="numpy")
    (kernel,) = kernels(compiled)
    for columns in range(REMEMBERED + 10):
        compiled(np.ones((1, columns), np.float32))
    assert 0 < len(kernel.cached) <= REMEMBERED
    kernel.cached.clear()
    compiled(np.ones((1, KEPT // 400 + 1), np.float32))
    assert not kernel.cached
    for _ in range(3):
        compiled(np.ones((1, KEPT // 800), np.float32))
        compiled(np.ones((1, KEPT // 800 - 1), np.float32))
        assert sum(array.nbytes for arrays in kernel.cached.values() for array in arrays) <= KEPT


@backends
def test_limits_hold_and_the_layer_inside_is_named(backend: str) -> None:
    compiled = ir.compile_model(ones_as_long(memory=1_000_000), backend=backend)
    assert compiled(np.ones((1, 100), np.float32))[0].shape == (10_000,)
    with pytest.raises(ir.LimitError) as caught:
        compiled(np.ones((1, 10_000), np.float32))
    assert caught.value.where is not None
    assert caught.value.where.layer == "ones"


@backends
def test_what_cannot_be_names_the_layer_inside(backend: str) -> None:
    net = Net()
    x = net.parameter("x", "?,?", out="FP32 -1 -1")
    shape = net.op("ShapeOf", x, out="I64 2", version="opset3", output_type="i64")
    table = net.constant(np.arange(6.0), "f32")
    net.result(net.op("Reshape", table, shape, out="FP32 -1 -1", special_zero="false"))
    compiled = ir.compile_model(ir.read_model(net.xml(), net.weights), backend=backend)
    assert compiled(np.ones((3, 2), np.float32))[0].tolist() == [[0, 1], [2, 3], [4, 5]]
    with pytest.raises(ir.ExecutionError, match="holds 6 elements") as caught:
        compiled(np.ones((5, 1), np.float32))
    assert caught.value.where is not None
    assert caught.value.where.layer == "reshape"


def test_long_arithmetic_stays_apart() -> None:
    """Its intermediate results may have other consumers."""
    net = Net()
    x = net.parameter("x", "?,?", out="FP32 -1 -1")
    count = length(net, x, 0)
    for _ in range(MOST + 5):
        count = net.op("Add", count, net.constant([1]), out="I64 1")
    net.result(count)
    compiled = ir.compile_model(ir.read_model(net.xml(), net.weights), backend="numpy")
    assert compiled(np.ones((2, 1), np.float32))[0].tolist() == [MOST + 7]
    assert all(
        len(step.layers) <= MOST for step in compiled._plan.steps if isinstance(step.kernel.run, ShapeCache)
    )


def viewed(type: str, dims: str) -> tuple[Net, End]:
    """A layer that only changes the shape of its input."""
    net = Net()
    x = net.parameter("x", dims.replace("-1", "?").replace(" ", ","), out=f"FP32 {dims}")
    few = [net.constant([number]) for number in (1, 9, 2, 1)]
    others: dict[str, tuple[list[End], str, dict[str, Any]]] = {
        "Reshape": ([net.constant([0, -1])], "opset1", {"special_zero": "true"}),
        "Transpose": ([net.constant([2, 0, 1])], "opset1", {}),
        "Squeeze": ([net.constant([1])], "opset1", {}),
        "Unsqueeze": ([net.constant([0, 2])], "opset1", {}),
        "Slice": (few, "opset8", {}),
        "StridedSlice": (few[:3], "opset1", {"begin_mask": 0, "end_mask": 1}),
    }
    sources, version, how = others[type]
    return net, net.op(type, x, *sources, out="FP32", version=version, **how)


@backends
@pytest.mark.parametrize("dims", ["2 1 6", "-1 1 -1"])
@pytest.mark.parametrize("type", ["Reshape", "Transpose", "Squeeze", "Unsqueeze", "Slice", "StridedSlice"])
def test_views(type: str, dims: str, backend: str) -> None:
    net, end = viewed(type, dims)
    net.result(end)
    model = ir.read_model(net.xml(), net.weights)
    compiled, reference = (ir.compile_model(model, backend=name) for name in (backend, "reference"))
    assert any(step.kernel.operands is not None for step in compiled._plan.steps) or dims.startswith("-1")
    for shape in [(2, 1, 6)] if dims[0] == "2" else [(2, 1, 6), (3, 1, 4), (2, 1, 6), (1, 1, 1)]:
        x = np.arange(float(np.prod(shape)), dtype=np.float32).reshape(shape)
        np.testing.assert_array_equal(compiled(x)[0], reference(x)[0])


@backends
@pytest.mark.parametrize("target", [[3, 2], [-1, 2], [0, 2], [6], [-1], [2, -1, 1]], ids=str)
def test_a_shape_that_comes_at_run_time(target: list[int], backend: str) -> None:
    net = Net()
    x, shape = net.parameter("x", "?,?", out="FP32 -1 -1"), net.parameter("s", "?", "i64", out="I64 -1")
    net.result(net.op("Reshape", x, shape, out="FP32", special_zero="true"))
    model = ir.read_model(net.xml(), net.weights)
    compiled, reference = (ir.compile_model(model, backend=name) for name in (backend, "reference"))
    feeds = [np.arange(6, dtype=np.float32).reshape(3, 2), np.array(target)]
    np.testing.assert_array_equal(compiled(feeds)[0], reference(feeds)[0])
    with pytest.raises(ir.ExecutionError, match="reshape"):
        compiled([feeds[0], np.array([-2, 3])])
    with pytest.raises(ir.ExecutionError, match="holds 6 elements"):
        compiled([feeds[0], np.array([4])])
    empty = compiled([np.ones((0, 2), np.float32), np.array([-1, 2])])[0]
    assert empty.shape == (0, 2)


@backends
@pytest.mark.parametrize("dims", ["2 8 3", "-1 -1 3"])
@pytest.mark.parametrize("lengths", [None, [2, -1, 1], [1, 6, 1], [8, 0]], ids=str)
def test_parts_are_views(lengths: list[int] | None, dims: str, backend: str) -> None:
    net = Net()
    x = net.parameter("x", dims.replace("-1", "?").replace(" ", ","), out=f"FP32 {dims}")
    if lengths is None:
        ends = net.layer("Split", [x, net.constant(-2)], ["FP32"] * 4, num_splits=4)
    else:
        sources = [x, net.constant(-2), net.constant(lengths)]
        ends = net.layer("VariadicSplit", sources, ["FP32"] * len(lengths))
    for end in ends:
        net.result(end)
    model = ir.read_model(net.xml(), net.weights)
    compiled, reference = (ir.compile_model(model, backend=name) for name in (backend, "reference"))
    assert all(step.kernel.operands is not None for step in compiled._plan.steps)
    array = np.arange(48, dtype=np.float32).reshape(2, 8, 3)
    for found, wanted in zip(compiled(array).values(), reference(array).values(), strict=True):
        np.testing.assert_array_equal(found, wanted)
    if dims[0] == "-":
        with pytest.raises(ir.ExecutionError, match="split"):
            compiled(np.ones((2, 6 if lengths is None else 2, 3), np.float32))
