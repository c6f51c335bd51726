"""Times of layers, and the arithmetic of layers."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from harness.nets import looping

import ir_runtime
from ir_runtime.bench import profiling
from ir_runtime.bench.peaks import Peaks
from ir_runtime.bench.profiled import ProfileReport, StepTime
from ir_runtime.cli import main

DIGITS = Path(__file__).parents[2] / "examples/digits/digits.xml"


@pytest.fixture(scope="module")
def report() -> ProfileReport:
    return ir_runtime.profile(DIGITS, runs=2, backend="numpy")


def test_steps_are_those_of_the_compiled_model(report: ProfileReport) -> None:
    fused = {step.operations: step for step in report.steps}
    step = fused["Convolution-1", "Add-1", "ReLU-1"]
    assert len(step.layers) == 3
    assert (step.calls, step.within) == (1, "")
    assert all(step.seconds > 0 for step in report.steps)


def test_steps_have_the_flops_of_their_layers(report: ProfileReport) -> None:
    """The steps add up to the FLOPs of the model, and read all weights."""
    found = ir_runtime.cost(DIGITS, [1, 1, 8, 8])
    assert sum(step.flops or 0 for step in report.steps) == found.flops
    assert sum(step.bytes or 0 for step in report.steps) > 4 * found.parameters


def test_the_record_is_json_with_shares_of_one(report: ProfileReport) -> None:
    found = json.loads(report.to_json())
    assert sum(step["share"] for step in found["steps"]) == pytest.approx(1)
    assert sum(each["ms"] for each in found["operations"]) == pytest.approx(found["steps_ms"])
    assert found["operations"][0]["operation"] == "Convolution-1"
    assert found["backend"] == "numpy"
    assert found["peaks"]["gflops"] > 0
    assert "Convolution-1" in str(report)


def test_the_roofline() -> None:
    peaks = Peaks(flops=100e9, bandwidth=10e9)
    compute = StepTime(("a",), ("MatMul-1",), "", 0.2, 1, "", int(10e9), int(1e8))
    assert (compute.gflops, compute.gbytes) == (pytest.approx(50), pytest.approx(0.5))
    assert (compute.bound(peaks), compute.efficiency(peaks)) == ("compute", pytest.approx(0.5))
    memory = StepTime(("a",), ("Add-1",), "", 0.2, 2, "", int(1e6), int(1e9))
    assert (memory.bound(peaks), memory.efficiency(peaks)) == ("memory", pytest.approx(1))
    unknown = StepTime(("a",), ("NonZero-3",), "", 0.2, 1, "", None, None)
    assert (unknown.bound(peaks), unknown.efficiency(peaks), unknown.gflops) == (None, None, None)


def test_a_step_is_named_after_the_layer_with_the_most_flops() -> None:
    step = StepTime(
        ("convert", "conv"), ("Convert-1", "Convolution-1"), "", 0.2, 1, "", 10, 10, (0.1, 0.3), 1
    )
    assert (step.name, step.operation) == ("conv", "Convolution-1")
    assert step.spread == pytest.approx(0.5)
    report = ProfileReport("m", "numpy", None, (step,), 0.2, (), Peaks(1e9, 1e9), (0.1, 0.3))
    assert report.operations[0].operation == "Convolution-1"


def test_runs_that_differ_threefold_show_that_the_machine_is_busy() -> None:
    def report(fastest: float, slowest: float) -> ProfileReport:
        return ProfileReport("m", "numpy", None, (), fastest, (), Peaks(1e9, 1e9), (fastest, slowest))

    assert [report(1, slowest).is_busy for slowest in (2.9, 3)] == [False, True]
    assert report(1, 3).record()["busy"]


def test_no_layer_computes_faster_than_the_peak(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Other programs may slow down the measurement of the peak, but not that of the layers."""
    monkeypatch.setattr(profiling, "measure_peaks", lambda *_: Peaks(1.0, 1e9))
    found = ir_runtime.profile(DIGITS, runs=1, backend="numpy")
    assert found.peaks.flops == pytest.approx(1e9 * max(step.gflops or 0 for step in found.steps))


def test_steps_of_bodies_are_within_the_step_that_runs_them() -> None:
    net = looping("4", count=3)
    model = ir_runtime.read_model(net.xml(), net.weights)
    found = ir_runtime.profile(model, [np.ones(4, np.float32)], runs=2, backend="numpy")
    loop, twice = found.outermost[0], next(step for step in found.steps if step.within)
    assert (loop.operations, loop.calls) == (("Loop-5",), 1)
    assert (twice.name, twice.within, twice.calls, twice.flops) == ("loop/body/twice", "loop/body", 3, 4)
    assert twice.seconds < loop.seconds
    assert found.total == pytest.approx(sum(step.seconds for step in found.outermost))


def slices(trace: dict[str, Any], thread: int) -> list[dict[str, Any]]:
    return [event for event in trace["traceEvents"] if event["ph"] == "X" and event["tid"] == thread]


def test_the_trace_has_what_viewers_need(report: ProfileReport) -> None:
    trace = json.loads(json.dumps(report.chrome_trace()))
    named = {e["args"]["name"] for e in trace["traceEvents"] if e["name"] == "thread_name"}
    assert named == {"runs", "layers", "between layers", "layers in bodies"}
    assert all(isinstance(e["pid"], int) for e in trace["traceEvents"])
    assert all(e["ts"] >= 0 and e["dur"] >= 0 for e in trace["traceEvents"] if e["ph"] == "X")
    assert {e["ph"] for e in trace["traceEvents"]} == {"M", "X", "C"}


def test_layers_and_the_time_between_them_fill_the_runs(report: ProfileReport) -> None:
    trace = report.chrome_trace()
    runs, layers, waiting = (slices(trace, thread) for thread in (1, 2, 3))
    assert (len(runs), len(layers)) == (2, 2 * len(report.steps))
    filled = sum(event["dur"] for event in (*layers, *waiting))
    assert filled == pytest.approx(sum(event["dur"] for event in runs))
    events = sorted((*layers, *waiting), key=lambda event: event["ts"])
    assert all(a["ts"] + a["dur"] <= b["ts"] + 1e-3 for a, b in pairwise(events))


def test_openvinos_counters_beside_ours() -> None:
    found = ir_runtime.profile(DIGITS, runs=1, backend="numpy", against="openvino")
    assert found.other
    assert sum(each.seconds for each in found.compared) == pytest.approx(found.total)
    layers = [name for each in found.compared for name in each.layers]
    assert len(layers) == len(set(layers))
    convolution = next(each for each in found.compared if "Multiply_3001" in each.layers)
    assert convolution.other > 0
    assert any(node.startswith("Convolution") for node in convolution.nodes)


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"against": "onnxruntime"}, "unknown runtime 'onnxruntime'"),
        ({"backend": "nunpy"}, "unknown backend 'nunpy'"),
    ],
)
def test_what_is_refused(how: dict[str, Any], said: str) -> None:
    with pytest.raises(ir_runtime.InputError, match=said):
        ir_runtime.profile(DIGITS, **how)


def test_random_inputs_need_a_rank() -> None:
    model = ir_runtime.read_fragment(
        '<layer id="0" type="Abs" version="opset1"><input><port id="0"/></input>'
        '<output><port id="1"/></output></layer>'
    )
    model.reshape("...")
    with pytest.raises(ir_runtime.InputError, match="has no shape"):
        ir_runtime.profile(model)


def test_the_command(tmp_path: Path) -> None:
    trace = tmp_path / "trace.json"
    line = ["profile", str(DIGITS), "--runs", "1", "--backend", "numpy", "--top", "0", "--chrome", str(trace)]
    found = CliRunner().invoke(main, line, prog_name="ir-runtime")
    assert found.exit_code == 0, found.stderr
    assert "Convolution + Add + ReLU" in found.stdout
    assert found.stderr.endswith(f"saved the trace to {trace}\n")
    assert json.loads(trace.read_text())["traceEvents"]
    record = CliRunner().invoke(main, [*line[:6], "--json"], prog_name="ir-runtime")
    assert json.loads(record.stdout)["runs"] == 1


def test_a_trace_that_cannot_be_written_is_refused_first(tmp_path: Path) -> None:
    line = ["profile", str(DIGITS), "--chrome", str(tmp_path / "missing" / "trace.json")]
    found = CliRunner().invoke(main, line, prog_name="ir-runtime")
    assert found.exit_code == 2
    assert "missing" in found.stderr
