"""Random operations continue and restart their sequences where OpenVINO's do."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from harness.nets import Net, body_of


def uniform(global_seed: int, op_seed: int, layers: int = 1, **how: Any) -> Net:
    """Layers that draw ``n`` random numbers."""
    net = Net()
    count = net.parameter("n", "1", "i64", out="I64 1")
    limits = net.constant(0, "f32"), net.constant(1, "f32")
    for index in range(layers):
        drawn = net.op(
            "RandomUniform", count, *limits, out="FP32 -1", name=f"random{index}", version="opset8",
            output_type="f32", global_seed=global_seed, op_seed=op_seed, **how,
        )  # fmt: skip
        net.result(drawn, f"result{index}")
    return net


def multinomial(global_seed: int, op_seed: int) -> Net:
    net = Net()
    count = net.parameter("n", "1", "i64", out="I64 1")
    drawn = net.op(
        "Multinomial", net.constant(np.full((1, 100), 0.01), "f32"), count, out="I64 1 -1", version="opset13",
        convert_type="i64", with_replacement=True, log_probs=False, global_seed=global_seed, op_seed=op_seed,
    )  # fmt: skip
    net.result(drawn)
    return net


def compiled(net: Net, package: str = "ir_runtime", **how: Any) -> Any:
    core = pytest.importorskip(package).Core()
    return core.compile_model(core.read_model(net.xml(), net.weights), "CPU", **how)


def history(net: Net, package: str = "ir_runtime") -> list[list[float]]:
    """Return the draws of consecutive requests and calls, then those of the model compiled again."""
    model, again = compiled(net, package), compiled(net, package)
    one, other = model.create_infer_request(), model.create_infer_request()
    runs = [one.infer, one.infer, other.infer, one.infer, model, model.infer_new_request, again, again]
    return [
        run([np.int64([n])])[0].ravel().tolist()
        for run, n in zip(runs, (4, 4, 7, 1, 9, 4, 4, 4), strict=True)
    ]


@pytest.mark.parametrize("alignment", ["tensorflow", "pytorch"])
@pytest.mark.parametrize("seeds", [(0, 5), (5, 0), (3, 7)])
def test_as_in_openvino(seeds: tuple[int, int], alignment: str) -> None:
    net = uniform(*seeds, alignment=alignment)
    assert history(net) == history(net, "openvino")


def test_with_seeds_only_a_new_compilation_begins_anew() -> None:
    *drawn, first, second = history(uniform(3, 7))
    assert (first, second) == tuple(drawn[:2])
    assert all(a[0] != b[0] for a, b in pairwise(drawn))


def test_without_seeds_every_run_draws_others() -> None:
    drawn = [found[0] for found in history(uniform(0, 0))]
    assert len(set(drawn)) == len(drawn)


@pytest.mark.parametrize("seeds", [(3, 7), (0, 5), (2**40 + 3, 2**35 + 1)])
def test_classes_are_drawn_as_in_openvino(seeds: tuple[int, int]) -> None:
    """Each run draws the same, as in OpenVINO."""
    ours, theirs = (history(multinomial(*seeds), package) for package in ("ir_runtime", "openvino"))
    assert ours == theirs
    assert len({tuple(run) for run in ours if len(run) == 4}) == 1


@pytest.mark.parametrize("element", ["f32", "f16", "f64"])
@pytest.mark.parametrize("logarithms", [False, True])
def test_classes_without_replacement(element: str, logarithms: bool) -> None:
    draw = np.random.default_rng(0).uniform(0.1, 1, (3, 40))
    net = Net()
    probs = net.parameter("x", "3,40", element, out=f"{'FP' + element[1:]} 3 40")
    drawn = net.op(
        "Multinomial", probs, net.constant([20]), out="I64 3 20", version="opset13",
        convert_type="i64", with_replacement=False, log_probs=logarithms, global_seed=3, op_seed=7,
    )  # fmt: skip
    net.result(drawn)
    given = (np.log(draw) if logarithms else draw).astype({"f32": "f4", "f16": "f2", "f64": "f8"}[element])
    found, right = (compiled(net, package)([given])[0] for package in ("ir_runtime", "openvino"))
    np.testing.assert_array_equal(found, right)


def test_each_layer_has_a_sequence_of_its_own() -> None:
    net = uniform(3, 7, layers=2)
    ours, theirs = (
        [model([np.int64([4])]).to_tuple() for _ in range(3)]
        for model in (compiled(net), compiled(net, "openvino"))
    )
    np.testing.assert_array_equal(ours, theirs)


def test_a_run_that_is_observed_goes_on_with_the_sequence() -> None:
    class Blind:
        def before(self, step: Any, inputs: Any) -> None:
            pass

        def after(self, step: Any, outputs: Any, seconds: float) -> None:
            pass

    net, four = uniform(3, 7), np.int64([4])
    observed, plain = compiled(net), compiled(net)
    found = [observed(four)[0], observed(four, observers=[Blind()])[0], observed(four)[0]]
    np.testing.assert_array_equal(found, [plain(four)[0] for _ in range(3)])


@pytest.mark.parametrize("backend", ["reference", "numpy"])
def test_on_every_backend(backend: str) -> None:
    net, four = uniform(3, 7), np.int64([4])
    one, other = compiled(net, backend=backend), compiled(net)
    for _ in range(3):
        np.testing.assert_array_equal(one(four)[0], other(four)[0])


def test_runs_at_once_draw_different_numbers() -> None:
    net = uniform(3, 7)
    model, single = compiled(net), compiled(net)
    with ThreadPoolExecutor(8) as pool:
        found = {tuple(run[0].tolist()) for run in pool.map(model, [np.int64([5])] * 64)}
    assert found == {tuple(single(np.int64([5]))[0].tolist()) for _ in range(64)}


def looping() -> Net:
    """A loop that draws a random number in each of three iterations and returns all."""
    net, inner = Net(), Net()
    net.weights = b"\x01" + np.int64([1]).tobytes() + np.float32([0, 1]).tobytes()

    def constant(offset: int, element: str, shape: str, says: str) -> Any:
        size = {"i64": 8, "f32": 4, "boolean": 1}[element]
        return inner.op(
            "Const", name=f"at{offset}", element_type=element, shape=shape, offset=offset, size=size, out=says
        )

    round_ = inner.parameter("round", "1", out="FP32 1")
    drawn = inner.op(
        "RandomUniform", constant(1, "i64", "1", "I64 1"), constant(9, "f32", "", "FP32"), constant(13, "f32", "", "FP32"),
        out="FP32 1", version="opset8", output_type="f32", global_seed=3, op_seed=7,
    )  # fmt: skip
    inner.result(inner.op("Add", round_, drawn, name="sum", out="FP32 1"), name="given")
    inner.result(constant(0, "boolean", "", "BOOL"), name="goes_on")
    numbers = {
        name: i
        for i, layer in enumerate(inner.layers)
        for name in ("given", "goes_on")
        if f'"{name}"' in layer
    }
    trips = net.op("Const", name="trips", element_type="i64", shape="", offset=17, size=8, out="I64")
    net.weights += np.int64(3).tobytes()
    start = net.op("Const", name="start", element_type="boolean", shape="", offset=0, size=1, out="BOOL")
    x = net.parameter("x", "1", out="FP32 1")
    inside = (
        '<port_map><input external_port_id="2" internal_layer_id="0"/>'
        f'<output external_port_id="3" internal_layer_id="{numbers["given"]}" axis="0" start="0" end="-1" stride="1" part_size="1"/>'
        f'<output external_port_id="-1" internal_layer_id="{numbers["goes_on"]}" purpose="execution_condition"/></port_map>'
    )
    out = net.layer("Loop", [trips, start, x], ["FP32 -1"], version="opset5", inside=inside + body_of(inner))
    net.result(out[0])
    return net


def test_in_a_loop_the_sequence_goes_on() -> None:
    net, zero = looping(), np.zeros(1, np.float32)
    ours, theirs = (
        [model(zero)[0] for _ in range(2)] for model in (compiled(net), compiled(net, "openvino"))
    )
    np.testing.assert_array_equal(ours, theirs)
    assert len({*ours[0].tolist(), *ours[1].tolist()}) == 6


def test_beyond_the_end_of_a_stream() -> None:
    from ir_runtime.ops.kernels.random import philox

    assert philox(3, 7, 4, start=2**64 + 5).tolist() == philox(3, 8, 24)[20:].tolist()
    assert philox(3, 2**64 - 1, 4, start=2**64).tolist() == philox(3, 0, 4).tolist()
