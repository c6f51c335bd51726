"""Layers that the NumPy backend fuses, also in concurrent runs."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from harness.kernels import layouts, numbers, same
from harness.nets import End, Net
from harness.oracle import Ours

from ir_runtime._util.forks import computing
from ir_runtime.backends import load
from ir_runtime.backends.numpy import backend
from ir_runtime.compiler.compile import compile_plan
from ir_runtime.executor.plan import ExecutionPlan
from ir_runtime.ir.tensor import Array

pytestmark = pytest.mark.usefixtures("one_and_three_threads")


def both(net: Net, *feeds: Array) -> list[tuple[str, ...]]:
    """Compare numpy with the reference; return the types of the layers of each step."""
    ours = Ours(net.xml(), net.weights)
    assert list(ours.report) == []
    for feed in feeds:
        feed.setflags(write=False)
    for found, wanted in zip(ours.run(feeds, "numpy"), ours.run(feeds), strict=True):
        same(found, wanted)
    return [tuple(la.type for la in step.layers) for step in plan_of(ours).steps]


def plan_of(ours: Ours, backend: str = "numpy", fold: bool = True) -> ExecutionPlan:
    return compile_plan(ours.graph, ours.values, ours.outputs, load(backend)[1], fold)


def conv(net: Net, x: End, channels: int, outputs: int, size: int = 3, seed: int = 0) -> End:
    w = net.constant(numbers(outputs, channels, size, size, seed=seed), "f32")
    pad = size // 2
    return net.op(
        "Convolution",
        x,
        w,
        strides="1,1",
        pads_begin=f"{pad},{pad}",
        pads_end=f"{pad},{pad}",
        dilations="1,1",
    )


def bias(net: Net, x: End, channels: int) -> End:
    return net.op("Add", x, net.constant(numbers(1, channels, 1, 1, seed=5), "f32"))


@pytest.mark.parametrize(
    ("shape", "batch"), [("1,4,9,7", 1), ("?,4,9,7", 1), ("?,4,9,7", 2), ("?,4,?,?", 1), ("?,4,?,?", 2)]
)
@pytest.mark.parametrize("size", [1, 3])
def test_bias_and_activation(shape: str, size: int, batch: int) -> None:
    net = Net()
    x = net.parameter("x", shape)
    net.result(net.op("ReLU", bias(net, conv(net, x, 4, 80, size), 80)))
    assert both(net, numbers(batch, 4, 9, 7)) == [("Convolution", "Add", "ReLU")]


@pytest.mark.parametrize(("channels", "outputs"), [(40, 136), (5, 136)])
def test_threads_share_the_outputs_of_few_windows(channels: int, outputs: int) -> None:
    """With 40 channels and Winograd, post-ops run after all threads have finished."""
    net = Net()
    x, y = net.parameter("x", f"1,{channels},10,11"), net.parameter("y", f"1,{outputs},10,11")
    summed = net.op("Add", bias(net, conv(net, x, channels, outputs), outputs), y)
    net.result(net.op("ReLU", summed))
    feeds = numbers(1, channels, 10, 11), numbers(1, outputs, 10, 11)
    assert both(net, *feeds) == [("Convolution", "Add", "Add", "ReLU")]


@pytest.mark.parametrize("order", [0, 1])
@pytest.mark.parametrize("shape", ["2,8,6,6", "?,8,6,6"])
def test_residual(order: int, shape: str) -> None:
    net = Net()
    x = net.parameter("x", shape)
    inside = bias(net, conv(net, x, 8, 8), 8)
    pair = (inside, x) if order else (x, inside)
    net.result(net.op("Clamp", net.op("Add", *pair), min=0, max=6))
    assert both(net, numbers(2, 8, 6, 6)) == [("Convolution", "Add", "Add", "Clamp")]


def test_residual_of_two_convolutions() -> None:
    net = Net()
    x = net.parameter("x", "1,8,6,6")
    net.result(net.op("ReLU", net.op("Add", conv(net, x, 8, 8), conv(net, x, 8, 8, 1, seed=3))))
    steps = both(net, numbers(1, 8, 6, 6))
    assert sorted(steps) == [("Convolution",), ("Convolution", "Add", "ReLU")]


def test_a_result_with_several_readers_is_kept() -> None:
    net = Net()
    x = net.parameter("x", "1,4,6,6")
    inside = conv(net, x, 4, 4)
    net.result(net.op("Add", net.op("ReLU", inside), net.op("Sigmoid", inside)))
    assert ("Convolution",) in both(net, numbers(1, 4, 6, 6))


def test_a_model_output_is_kept() -> None:
    net = Net()
    x = net.parameter("x", "1,4,6,6")
    inside = conv(net, x, 4, 4)
    net.result(inside)
    net.result(net.op("ReLU", inside), "second")
    assert both(net, numbers(1, 4, 6, 6)) == [("Convolution",), ("ReLU",)]


def test_a_result_that_one_layer_reads_twice_is_kept() -> None:
    net = Net()
    inside = conv(net, net.parameter("x", "1,4,6,6"), 4, 4)
    net.result(net.op("Multiply", inside, inside))
    assert both(net, numbers(1, 4, 6, 6)) == [("Convolution",), ("Multiply",)]


@pytest.mark.parametrize("shape", ["2,4,6,6", "1,4,6,1", "6", "?,4,6,6"])
def test_an_operand_that_may_change_the_shape_is_not_fused(shape: str) -> None:
    net = Net()
    inside = conv(net, net.parameter("x", "1,4,6,6"), 4, 4)
    net.result(net.op("Add", inside, net.parameter("y", shape)))
    other = numbers(*(2 if n == "?" else int(n) for n in shape.split(",")))
    assert both(net, numbers(1, 4, 6, 6), other) == [("Convolution",), ("Add",)]


def test_subtraction_from_a_constant_does_not_commute() -> None:
    net = Net()
    inside = conv(net, net.parameter("x", "1,4,6,6"), 4, 4)
    net.result(net.op("Subtract", net.constant(numbers(1, 4, 1, 1), "f32"), inside))
    both(net, numbers(1, 4, 6, 6))


def test_transformer_layers_are_fused() -> None:
    net = Net()
    x = net.parameter("x", "?,5,8")
    row = net.constant(numbers(8), "f32")
    normal = net.op(
        "MVN",
        x,
        net.constant([-1]),
        version="opset6",
        eps=1e-5,
        eps_mode="inside_sqrt",
        normalize_variance=True,
    )
    scaled = net.op("Add", net.op("Multiply", normal, row), row)
    wide = net.op("MatMul", scaled, net.constant(numbers(32, 8), "f32"), transpose_a=False, transpose_b=True)
    gelu = net.op(
        "Gelu",
        net.op("Add", wide, net.constant(numbers(1, 1, 32), "f32")),
        version="opset7",
        approximation_mode="erf",
    )
    back = net.op("MatMul", gelu, net.constant(numbers(8, 32), "f32"), transpose_a=False, transpose_b=True)
    net.result(net.op("Add", x, back))
    assert both(net, numbers(3, 5, 8)) == [
        ("MVN", "Multiply", "Add"),
        ("MatMul", "Add", "Gelu"),
        ("MatMul", "Add"),
    ]


@pytest.mark.parametrize("stored", [0, 1, 2], ids=["rows", "channels last", "strided"])
def test_a_chain_of_post_ops(stored: int) -> None:
    net = Net()
    x, c = net.parameter("x", "2,3,4,5"), net.constant(numbers(1, 3, 1, 1), "f32")
    chain = net.op("Add", net.op("Multiply", x, c), net.constant(numbers(5), "f32"))
    net.result(net.op("Sigmoid", net.op("Multiply", chain, x)))
    assert both(net, layouts(numbers(2, 3, 4, 5))[stored]) == [("Multiply", "Add", "Multiply", "Sigmoid")]


def test_a_plan_with_observers_fuses_nothing() -> None:
    net = Net()
    net.result(net.op("ReLU", bias(net, conv(net, net.parameter("x", "1,4,6,6"), 4, 4), 4)))
    plan = plan_of(Ours(net.xml(), net.weights), fold=False)
    assert [step.layers for step in plan.steps] == [(step.layer,) for step in plan.steps]


def test_concurrent_runs_do_not_interfere() -> None:
    net = Net()
    x = net.parameter("x", "?,8,20,20")
    for _ in range(3):
        x = net.op("ReLU", bias(net, conv(net, x, 8, 8), 8))
    net.result(x)
    ours = Ours(net.xml(), net.weights)
    plan = plan_of(ours)
    feeds = [numbers(1 + n % 2, 8, 20, 20, seed=n) for n in range(8)]
    wanted = [plan.run([feed])[0] for feed in feeds]
    found: dict[int, Array] = {}

    def work(n: int) -> None:
        for _ in range(5):
            found[n] = plan.run([feeds[n]])[0]

    workers = [threading.Thread(target=work, args=(n,)) for n in range(len(feeds))]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    for n, array in enumerate(wanted):
        np.testing.assert_array_equal(found[n], array)


def test_plans_limit_blas_to_one_thread() -> None:
    net = Net()
    net.result(net.op("MatMul", net.parameter("x", "2,3"), net.parameter("y", "3,2")))
    assert plan_of(Ours(net.xml())).around == (computing, backend.around)


def test_plans_of_small_maps_set_up_nothing() -> None:
    net = Net()
    net.result(net.op("ReLU", net.parameter("x", "1")))
    assert plan_of(Ours(net.xml())).around == (computing,)
