"""Split, Concat and views take one NumPy call; equal layers share functions and slots."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from harness.layers import calls
from harness.nets import End, Net

import ir_runtime as ir
from ir_runtime import opset1
from ir_runtime.backends import UNREAD, Kernel, available
from ir_runtime.backends.numpy.kernels.movement import MAX_ELEMENTS
from ir_runtime.executor.plan import ExecutionPlan, instructions_of
from ir_runtime.executor.step import Step
from ir_runtime.ir.tensor import Array

FAST = [name for name in available() if name != "reference"]
backends = pytest.mark.parametrize("backend", FAST)
X: Array = np.arange(32, dtype=np.float32).reshape(4, 8)


def read(net: Net) -> ir.Model:
    return ir.read_model(net.xml(), net.weights)


def agree(model: ir.Model, backend: str, *feeds: Array) -> ExecutionPlan:
    """Run a model with and without an observer, and compare with the reference; return the plan."""
    compiled, reference = (ir.compile_model(model, backend=name) for name in (backend, "reference"))
    wanted = list(reference(list(feeds)).values())
    for found in (compiled(list(feeds)), compiled(list(feeds), observers=[Observer()])):
        for ours, theirs in zip(found.values(), wanted, strict=True):
            np.testing.assert_array_equal(ours, theirs)
    return compiled._plan


class Observer:
    """An observer that checks the arrays of every step."""

    def before(self, step: ir.Step, inputs: Sequence[Array]) -> None:
        assert all(isinstance(array, np.ndarray) for array in inputs)

    def after(self, step: ir.Step, outputs: Sequence[Array], seconds: float) -> None:
        assert len(outputs) == len(step.writes)


def types(plan: ExecutionPlan) -> list[tuple[str, ...]]:
    return [tuple(layer.type for layer in step.layers) for step in plan.steps]


def parts(net: Net, x: End, lengths: Sequence[int], axis: int, rows: int = 4) -> list[End]:
    says = [f"FP32 {rows} {n}" if axis == 1 else f"FP32 {n} 8" for n in lengths]
    return net.layer("VariadicSplit", [x, net.constant(axis), net.constant(lengths)], says)


def slice_of(net: Net, x: End, start: int, stop: int, step: int, axis: int, says: str) -> End:
    bounds = [net.constant([n]) for n in (start, stop, step, axis)]
    return net.op("Slice", x, *bounds, out=says, version="opset8")


def shuffled(net: Net, x: End) -> list[End]:
    a, b, c = parts(net, x, [1, 2, 5], 1)
    return [c, a, b, a]


def halves(net: Net, x: End) -> list[End]:
    first, second = (
        net.layer("Split", [x, net.constant(0)], ["FP32 2 8"] * 2, num_splits=2) for _ in range(2)
    )
    return [first[1], second[0]]


def rolled(net: Net, x: End) -> list[End]:
    return [slice_of(net, x, 3, 8, 1, 1, "FP32 4 5"), slice_of(net, x, 0, 3, 1, 1, "FP32 4 3")]


def mixed(net: Net, x: End) -> list[End]:
    ends = [net.constant([0, at]) for at in (0, 99)]
    masks = {"begin_mask": "1,0", "end_mask": "1,0"}
    every = net.op("StridedSlice", x, *ends, net.constant([1, 2]), out="FP32 4 4", **masks)
    return [every, *parts(net, x, [3, -1], 1)]


REGIONS: list[tuple[Callable[[Net, End], list[End]], int]] = [
    (shuffled, 1),
    (halves, 0),
    (rolled, 1),
    (mixed, 1),
]


@backends
@pytest.mark.parametrize(("regions", "axis"), REGIONS)
def test_concatenated_regions_are_one_step(
    regions: Callable[[Net, End], list[End]], axis: int, backend: str
) -> None:
    net = Net()
    ends = regions(net, net.parameter("x", "4,8", out="FP32 4 8"))
    net.result(net.op("Concat", *ends, out="FP32", axis=axis))
    assert len(agree(read(net), backend, X).steps) == 1


@backends
def test_parts_with_other_readers_are_computed_for_them(backend: str) -> None:
    net = Net()
    first, second = parts(net, net.parameter("x", "4,8", out="FP32 4 8"), [3, 5], 1)
    net.result(net.op("Concat", second, first, out="FP32 4 8", axis=1))
    net.result(first, name="first")
    plan = agree(read(net), backend, X)
    assert sorted(types(plan)) == [("VariadicSplit",), ("VariadicSplit", "Concat")]


@backends
@pytest.mark.parametrize("dims", ["-1 8", f"{MAX_ELEMENTS} 8"])
def test_large_regions_are_not_fused(dims: str, backend: str) -> None:
    net = Net()
    x = net.parameter("x", dims.replace("-1", "?").replace(" ", ","), out=f"FP32 {dims}")
    first, second = parts(net, x, [3, 5], 1, int(dims.split()[0]))
    net.result(net.op("Concat", second, first, out=f"FP32 {dims}", axis=1))
    rows = 4 if dims[0] == "-" else MAX_ELEMENTS
    plan = agree(read(net), backend, np.ones((rows, 8), np.float32))
    assert types(plan) == [("VariadicSplit",), ("Concat",)]


@backends
def test_regions_of_two_tensors_are_not_fused(backend: str) -> None:
    net = Net()
    x, y = (net.parameter(name, "4,8", out="FP32 4 8") for name in "xy")
    ends = [parts(net, end, [4, 4], 1)[i] for i, end in enumerate((x, y))]
    net.result(net.op("Concat", *ends, out="FP32 4 8", axis=1))
    assert len(agree(read(net), backend, X, -X).steps) == 3


@backends
def test_concat_of_a_single_region(backend: str) -> None:
    net = Net()
    first, _ = parts(net, net.parameter("x", "4,8", out="FP32 4 8"), [3, 5], 1)
    net.result(net.op("Concat", first, out="FP32 4 3", axis=1))
    agree(read(net), backend, X)


@backends
@pytest.mark.parametrize("dims", ["4 8", "-1 8"])
@pytest.mark.parametrize("number", [0, 1, 2])
def test_only_the_part_that_is_read_is_computed(number: int, dims: str, backend: str) -> None:
    net = Net()
    x = net.parameter("x", dims.replace("-1", "?").replace(" ", ","), out=f"FP32 {dims}")
    end = parts(net, net.op("ReLU", x, out=f"FP32 {dims}"), [1, 2, 5], 1, -1)[number]
    net.result(net.op("ReLU", end, out="FP32"))
    plan = agree(read(net), backend, X)
    (kernel,) = (step.kernel for step in plan.steps if step.layer.type == "VariadicSplit")
    assert kernel.operands is not None
    assert kernel.only == (number, 3)
    made = kernel(X)
    assert [array is UNREAD for array in made] == [i != number for i in range(3)]


@backends
@pytest.mark.parametrize("indices", [1, -1, 4, [3, 0, 0], [-4, 3], [4, 0], []], ids=str)
@pytest.mark.parametrize("element", ["i32", "i64"])
def test_known_indices(indices: Any, element: str, backend: str) -> None:
    """Out-of-range indices select zeros. A single index is a view; several are copied by native kernels in a replay; no indices need no kernel."""
    net = Net()
    x = net.parameter("x", "4,8", out="FP32 4 8")
    picked = net.op("Gather", x, net.constant(indices, element), net.constant(0), out="FP32",
                    version="opset8", batch_dims=0)  # fmt: skip
    net.result(picked)
    (step,) = agree(read(net), backend, X).steps
    inside = not np.any(np.array(indices) > 3)
    is_view = backend == "numpy" or np.ndim(indices) == 0
    assert (step.kernel.operands is not None) == (inside and is_view and bool(np.size(indices)))


def views(length: int) -> ir.Model:
    """Return a model of views: reshapes, transposes and slices."""
    net = Net()
    end = net.parameter("x", "4,8", out="FP32 4 8")
    for _ in range(length // 6):
        end = net.op("Reshape", end, net.constant([8, 4]), out="FP32 8 4", special_zero="false")
        end = net.op("Transpose", end, net.constant([1, 0]), out="FP32 4 8")
        end = net.op("Unsqueeze", end, net.constant(0), out="FP32 1 4 8")
        end = net.op("Squeeze", end, net.constant(0), out="FP32 4 8")
        first, second = parts(net, end, [3, 5], 1)
        end = net.op("Concat", net.op("ReLU", second, out="FP32 4 5"), first, out="FP32 4 8", axis=1)
    net.result(end)
    return read(net)


@backends
def test_equal_layers_share_functions_and_slots(backend: str) -> None:
    plan = agree(views(300), backend, X)
    assert len(plan.steps) > 300
    assert sum(array is None for array in plan.slots) < 10
    assert len(set(plan.instructions)) < 20


@backends
def test_a_trivial_view_costs_three_calls(backend: str) -> None:
    """Three calls take about 1.5 µs (tests/bench/chain.py)."""
    compiled = ir.compile_model(views(2000), backend=backend)
    for _ in range(2):  # the second run may be recorded
        compiled(X)
    assert calls(lambda: compiled(X)) < 3 * len(compiled._plan.steps) + 300


@backends
def test_results_that_are_read_later_keep_their_slots(backend: str) -> None:
    """Every result has a second consumer many layers later."""
    net = Net()
    ends = [net.parameter("x", "4,8", out="FP32 4 8")]
    for number in range(20):
        ends.append(
            net.op("Transpose", ends[-1], net.constant([1, 0]), out=f"FP32 {'4 8' if number % 2 else '8 4'}")
        )
    for number in range(0, 20, 2):
        total = net.op("Add", ends[number], ends[-1 - number], out="FP32 4 8", name=f"sum_{number}")
        net.result(total, name=f"out_{number}")
    net.result(ends[7], name="inner")
    agree(read(net), backend, X)


def step(kernel: Any, reads: tuple[int, ...], writes: tuple[int, ...], frees: tuple[int, ...] = ()) -> Step:
    model = ir.compile_model(views(6), backend="reference")
    return Step(model._plan.steps[0].layer, kernel, reads, writes, frees)


def test_steps_that_do_the_same_to_the_same_slots_share_their_move() -> None:
    kernel = Kernel.unary(np.abs)
    first, second, third = instructions_of(
        [step(kernel, (0, 1), (0,)), step(Kernel.unary(np.abs), (0,), (0,)), step(kernel, (2,), (0,))]
    )
    assert first is second is not third


@pytest.mark.parametrize("kernel", [lambda x: (x,), lambda x: x], ids=["a tuple", "an array"])
@pytest.mark.parametrize("reads", [(0,), (0, 0, 0, 0)], ids=["one input", "several"])
def test_too_few_outputs_change_nothing(kernel: Any, reads: tuple[int, ...]) -> None:
    (instruction,) = instructions_of([step(Kernel(lambda *arrays: kernel(arrays[0])), reads, (0, 1), (0,))])
    slots: list[Any] = [X, None]
    with pytest.raises(ir.ExecutionError, match="it has 2 outputs, but its code returned 1"):
        instruction(slots)
    assert slots == [X, None]


@backends
@pytest.mark.parametrize(
    "indices", [np.zeros((3, 0)), [[1, -1], [3, 7], [0, 0]], [[2], [-4]], np.zeros((0, 2))], ids=str
)
def test_tuples_of_any_length(indices: object, backend: str) -> None:
    """Index tuples of length 0 select all of the data."""
    net = Net()
    tuples = net.parameter("i", "?,?", "i64")
    net.result(net.op("GatherND", net.parameter("x", "4,8"), tuples, version="opset8"))
    agree(read(net), backend, np.asarray(indices, np.int64), X)


@pytest.mark.parametrize("source", ["i64", "i16", "boolean"])
@pytest.mark.parametrize("target", ["i32", "u8", "u32"])
def test_integers_become_narrower_by_one_call(source: str, target: str) -> None:
    x = opset1.parameter([5], source)
    model = ir.Model([opset1.convert(x, target)], [x])
    numbers = np.array([0, 1, -1, 300, 40_000]).astype(x.element_type.to_dtype())
    plan = agree(model, "numpy", numbers)
    assert all(step.kernel.operands is not None for step in plan.steps)


def test_indices_of_u32_are_taken_by_one_call() -> None:
    x, index = opset1.parameter([4, 8], np.float32), opset1.parameter([2], "u32")
    plan = agree(ir.Model([opset1.gather(x, index, 0)], [x, index]), "numpy", X, np.array([3, 0], np.uint32))
    assert calls(lambda: plan.run([X, np.array([3, 0], np.uint32)])) < 60
