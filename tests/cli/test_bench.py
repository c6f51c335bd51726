"""``ir-runtime bench``: options, output, and equal results on both sides."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
import pytest
from click.testing import Result
from harness.nets import passing, total, write, write_chain
from models.stateful import total as running_total
from openvino import opset13 as op

import ir_runtime
from ir_runtime.analysis.random_inputs import random_array
from ir_runtime.backends import chosen
from ir_runtime.bench import report, timing
from ir_runtime.bench import start as starting
from ir_runtime.bench.agreement import Agreement, compare
from ir_runtime.bench.feeding import restore, store
from ir_runtime.bench.sides import OPENVINO, OURS, Runtime, Setting, Side
from ir_runtime.bench.timing import StopCondition, Timing, alternate, runner

Invoke = Callable[[str], Result]
Check = Callable[..., Result]

PAGE = """<layer id="0" type="ReLU" version="opset1">
<input><port id="0"><dim>2</dim></port></input>
<output><port id="1"><dim>2</dim></port></output>
</layer>"""

START = starting.Start(imported=0, read=0, compile=0, first=0, base=0, peak=0)

_FIGURE = re.compile(r" *\b\d+(\.\d+)?(e-?\d+)?(?=\s)")


def without_figures(text: str) -> str:
    """Mask the numbers of the table, and the versions."""
    lines = [_FIGURE.sub(" #", line) if line.startswith("  ") else line for line in text.splitlines(True)]
    joined = re.sub(r"(?m)^(ours|OpenVINO): (\w+) .*$", r"\1: \2 VERSION", "".join(lines))
    joined = re.sub(
        r"(?m)^( +)ours( +OpenVINO +ratio)?$",
        lambda m: " ours" + ((m[2] and " OpenVINO ratio") or ""),
        joined,
    )
    return re.sub(r"difference \S+,", "difference #,", joined)


def without_frontends(text: str) -> str:
    """Remove the list of OpenVINO's installed frontends."""
    return re.sub(r"Available frontends: .*", "Available frontends: …", text)


def record(found: Result) -> dict[str, Any]:
    assert found.exit_code == 0, found.output
    return json.loads(found.stdout)


def test_what_is_shown(folder: Path, check: Check) -> None:
    write_chain(folder)
    check("bench", "bench chain.xml -niter 3", hide=without_figures)


def test_what_is_shown_beside_openvino(folder: Path, check: Check) -> None:
    write_chain(folder)
    line = "bench chain.xml -niter 3 -nireq 2 -hint throughput -nthreads 2 --against openvino"
    check("bench_against", line, hide=without_figures)


def test_the_start_is_measured_on_the_same_backend(
    folder: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The measuring processes get its name."""
    asked = []
    write(folder, passing("f32", "512,512"))
    monkeypatch.setattr(report, "measure", lambda name, setting, *_: asked.append(setting.backend) or START)
    found = record(invoke("bench net.xml -niter 1 --json"))
    assert [side["backend"] for side in found["sides"]] == asked == [chosen()]
    assert record(invoke("bench net.xml -niter 1 --backend numpy --json"))["sides"][0]["backend"] == "numpy"


def test_json_has_every_figure(folder: Path, invoke: Invoke) -> None:
    write_chain(folder)
    found = record(invoke("bench chain.xml -niter 4 --backend reference --against openvino --json"))
    assert (found["model"], found["hint"], found["requests"], found["threads"]) == (
        "chain.xml",
        "latency",
        1,
        None,
    )
    assert found["inputs"] == [{"name": "x", "type": "f32", "shape": [2, 3], "source": "random"}]
    assert [side["runtime"] for side in found["sides"]] == ["ir_runtime", "openvino"]
    assert [side["backend"] for side in found["sides"]] == ["reference", "CPU"]
    assert found["agreement"] == {
        "agree": True,
        "difference": pytest.approx(0, abs=1e-6),
        "output": 0,
        "moved": 0,
    }
    ours, theirs = found["sides"]
    for side in (ours, theirs):
        assert side["runs"] == 4
        latency = side["latency_ms"]
        assert 0 < latency["min"] <= latency["median"] <= latency["max"]
        assert side["throughput"] == pytest.approx(1e3 / latency["mean"])
        assert side["peak_bytes"] > side["base_bytes"] > 1 << 20
        assert min(side[key] for key in ("import_ms", "read_ms", "compile_ms", "first_ms")) > 0
    ratio = found["ratio"]
    assert ratio["min"] == pytest.approx(ours["latency_ms"]["min"] / theirs["latency_ms"]["min"])
    assert ratio["peak"] == pytest.approx(ours["peak_bytes"] / theirs["peak_bytes"])
    assert ratio["load"] == pytest.approx(
        (ours["read_ms"] + ours["compile_ms"]) / (theirs["read_ms"] + theirs["compile_ms"])
    )


def test_without_another_side_nothing_is_compared(folder: Path, invoke: Invoke) -> None:
    write_chain(folder)
    found = record(invoke("bench chain.xml --niter=2 --nthreads=1 --nireq=1 --json"))
    assert len(found["sides"]) == 1
    assert (found["ratio"], found["agreement"], found["threads"]) == (None, None, 1)


def test_time_and_number_both_hold(folder: Path, invoke: Invoke) -> None:
    write_chain(folder)
    (side,) = record(invoke("bench chain.xml -niter 2 -t 0.05 --json"))["sides"]
    assert side["runs"] > 2
    assert side["runs"] / side["throughput"] >= 0.05


@pytest.mark.parametrize(
    ("shapes", "expected"),
    [("-shape 5,3", [5, 3]), ("-data_shape 'x=[7,3]'", [7, 3]), ("--shape '1..8,3'", [1, 3])],
)
def test_shapes_of_inputs(folder: Path, invoke: Invoke, shapes: str, expected: list[int]) -> None:
    write_chain(folder, rows="?")
    found = record(invoke(f"bench chain.xml {shapes} -niter 1 --against openvino --json"))
    assert found["inputs"][0]["shape"] == expected
    assert found["agreement"]["agree"]


def test_inputs_come_from_files(folder: Path, invoke: Invoke) -> None:
    write(folder, total())
    np.save("a.npy", np.ones(4, np.float32))
    found = record(invoke("bench net.xml -i a=a.npy -niter 1 --json"))
    assert [given["source"] for given in found["inputs"]] == ["a.npy", "random"]


@pytest.mark.parametrize("element", ["string", "bf16", "f16", "u8", "boolean", "f8e4m3"])
def test_any_type_of_input_reaches_both_sides(folder: Path, element: str) -> None:
    path = write(folder, passing(element, "2,3"))
    model = ir_runtime.read_model(path)
    given = [random_array(model._graph, model._port(model.inputs[0]), model.inputs[0].element_type, (2, 3))]
    arrays = restore(str(store(given, folder)))
    ours, theirs = (
        side.results(side.request(arrays))
        for side in (Side(name, Setting(str(path))) for name in (OURS, OPENVINO))
    )
    np.testing.assert_array_equal(ours[0], given[0])
    assert compare(ours, theirs) == Agreement(True, 0.0, 0)


@pytest.mark.parametrize("requests", [1, 2])
@pytest.mark.parametrize("runtime", [OURS, OPENVINO])
def test_variables_are_reset_before_each_run(
    folder: Path, monkeypatch: pytest.MonkeyPatch, runtime: Runtime, requests: int
) -> None:
    """Otherwise they would accumulate over runs and give another result."""
    path = folder / "net.xml"
    ov.save_model(running_total(), path, compress_to_fp16=False)
    side, made = Side(runtime, Setting(str(path))), []
    for name in ("request", "queue"):
        make = getattr(side, name)
        monkeypatch.setattr(side, name, lambda *given, make=make: made.append(make(*given)) or made[-1])
    runs = runner(side, [np.ones((1, 3), np.float32)], requests)
    results = alternate([runs], StopCondition(5))
    assert side.stateful
    assert len(results[0]) >= 5
    for request in made[-1] if requests > 1 else made:
        np.testing.assert_array_equal(request.query_state()[0].state.data, np.full((1, 3), 11))


class Pretended:
    """Simulated runs of given durations."""

    def __init__(self, each: float, turns: list[float]) -> None:
        self.timing, self._each, self._turns = Timing(), each, turns

    def warm_up(self) -> None:
        self._turns.append(0)

    def block(self, count: int) -> None:
        self._turns.append(self._each)
        self.timing.latencies += [self._each] * count
        self.timing.busy += self._each * count


def test_turns_are_even(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each side gets the same total time, however long its runs, and a warm-up run before each block."""
    monkeypatch.setattr(timing, "PAUSE", 0)
    told: list[float] = []
    turns: list[float] = []
    slow, fast = alternate(
        [Pretended(1 / 8, turns), Pretended(1 / 64, turns)], StopCondition(3, 1.0), told.append
    )
    assert (len(slow), len(fast)) == (8, 64)
    assert turns[:2] == [0, 0]
    assert turns[2:10] == [0, 1 / 8, 0, 1 / 64] * 2
    assert told == sorted(told)
    assert told[-1] == 1.0


@pytest.mark.parametrize(
    ("until", "runs"),
    [
        (StopCondition(7), 7),
        (StopCondition(1, 0.5), 50),
        (StopCondition(70, 0.5), 70),
        (StopCondition(7, 0.5), 50),
        (StopCondition(2000), 2000),
    ],
)
def test_number_and_time_are_kept(until: StopCondition, runs: int) -> None:
    turns: list[float] = []
    (found,) = alternate([Pretended(0.01, turns)], until)
    assert len(found) == pytest.approx(runs, abs=1)
    assert turns.count(0) == 1


@pytest.mark.parametrize(
    ("ours", "theirs", "agree", "difference"),
    [
        ([1.0, 2.0], [1.0, 2.0001], True, 5e-5),
        ([1.0, 0.0], [1000.0, 0.0], False, 0.999),
        ([1.0, 0.0], [1.0, 1e-5], True, 1e-5),
        ([np.nan, 1.0], [np.nan, 1.0], True, 0),
        ([np.nan, 1.0], [1.0, 1.0], False, np.inf),
        ([np.inf, 1.0], [-np.inf, 1.0], False, np.inf),
        ([1.0], [1.0, 2.0], False, np.inf),
        ([0.0], [0.0], True, 0),
        ([], [], True, 0),
    ],
)
def test_reals_agree_nearly(ours: list[float], theirs: list[float], agree: bool, difference: float) -> None:
    found = compare([np.float32(ours)], [np.float32(theirs)])
    assert (found.agree, found.difference) == (agree, pytest.approx(difference, rel=0.01))


def test_all_else_agrees_exactly() -> None:
    assert compare([np.int64([1, 2])], [np.int64([1, 2])]) == Agreement(True, 0.0, 0)
    assert compare([np.int64([10**9, 2])], [np.int64([10**9 + 1, 2])]) == Agreement(False, np.inf, 0)
    assert compare([np.float32([1])] * 2, [np.float32([1])] * 3) == Agreement(False, np.inf, 2)


def test_rows_in_another_order_are_told_apart() -> None:
    boxes, labels = np.float32([[0, 1], [2, 3], [4, 5]]), np.int64([7, 8, 9])
    other = [0, 2, 1]
    nearly = boxes + np.float32(1e-5)
    found = compare([nearly, labels], [boxes[other], labels[other]])
    assert (found.agree, found.moved, found.difference) == (False, 2, pytest.approx(2e-6, rel=0.1))
    assert compare([boxes, labels], [boxes[other], labels]).moved == 0
    assert compare([boxes[[0, 1, 1]]], [boxes[other]]) == Agreement(False, pytest.approx(0.4), 0)


def test_results_that_differ_are_said_to(folder: Path, invoke: Invoke) -> None:
    """Unseeded random numbers differ between runs."""
    x = op.parameter([3], np.float32)
    noise = op.random_uniform(op.constant([3]), op.constant(np.float32(0)), op.constant(np.float32(1)), "f32")
    ov.save_model(ov.Model([op.add(x, noise)], [x]), folder / "net.xml", compress_to_fp16=False)
    found = invoke("bench net.xml -niter 1 --against openvino")
    assert found.exit_code == 0
    assert "results DIFFER; largest relative difference " in found.stdout


@pytest.mark.parametrize(
    ("name", "line", "code"),
    [
        ("no_model", "bench none.xml", 3),
        ("no_backend", "bench chain.xml --backend nump", 2),
        ("no_hint", "bench chain.xml -hint fast", 2),
        ("no_side", "bench chain.xml --against onnxruntime", 2),
        ("no_count", "bench chain.xml -niter 0", 2),
        ("no_shape", "bench chain.xml -shape 2,4", 3),
        ("no_input", "bench chain.xml -data_shape y=2,3", 2),
        ("cpu_time_of_two", "bench chain.xml --cpu-time -nireq 2", 2),
        ("no_tensor", "bench codes.xml -niter 1 --against openvino", 2),
        ("refused", "bench page.xml -niter 1 --against openvino", 2),
    ],
)
def test_mistakes_are_said(folder: Path, check: Check, name: str, line: str, code: int) -> None:
    write_chain(folder)
    write(folder, passing("u4", "2"), "codes")
    write(folder, PAGE, "page")
    assert check(f"bench_{name}", line, hide=without_frontends).exit_code == code


def test_openvino_may_be_missing(folder: Path, check: Check, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openvino", None)
    write_chain(folder)
    assert check("bench_no_openvino", "bench chain.xml --against openvino").exit_code == 2


def test_a_process_that_fails_is_said(folder: Path, check: Check, monkeypatch: pytest.MonkeyPatch) -> None:
    def killed(*_: object, **__: object) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess([], -9, "", "")

    monkeypatch.setattr(starting, "run_module", killed)
    write_chain(folder)
    assert check("bench_killed", "bench chain.xml -niter 1").exit_code == 5


def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    """Skip the measurement of the start, which takes a process."""
    monkeypatch.setattr(report, "measure", lambda *_: START)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("-b 5", [5, 3]),
        ("-b 5 -layout '[NC]'", [5, 3]),
        ("-shape '[?,3]' -b 4", [4, 3]),
        ("-b 5 -layout x[CN]", None),
    ],
)
def test_a_batch_is_an_axis(
    folder: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch, options: str, expected: list[int] | None
) -> None:
    fast(monkeypatch)
    write_chain(folder)
    found = invoke(f"bench -m chain.xml {options} -niter 1 --json --against openvino")
    if expected is None:
        assert "'bias'" in found.stderr, "of 5 columns only 3 have a bias"
        return
    assert record(found)["inputs"][0]["shape"] == expected
    assert record(found)["agreement"]["agree"]


def test_streams_precision_and_the_queue_reach_the_sides(
    folder: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Setting] = []
    monkeypatch.setattr(report, "measure", lambda name, setting, *_: asked.append(setting) or START)
    write_chain(folder)
    line = "bench chain.xml -niter 1 -nstreams 2 -infer_precision f16 -api async -hint tput -nireq 1 --json"
    assert record(invoke(line))["hint"] == "throughput"
    (setting,) = asked
    assert (setting.streams, setting.precision, setting.queued) == (2, "f16", True)
    assert setting.properties(OURS)["NUM_STREAMS"] == "2"
    assert setting.properties(OURS)["INFERENCE_PRECISION_HINT"] == "f16"
    assert setting.properties(OPENVINO)["INFERENCE_PRECISION_HINT"] == "f16"
    assert setting.properties(OPENVINO)["PERFORMANCE_HINT"] == "THROUGHPUT"
    assert "PERFORMANCE_HINT" not in Setting("net.xml", hint="none").properties(OPENVINO)


def test_a_mode_is_ours_and_leaves_openvino_as_it_comes() -> None:
    setting = Setting("net.xml", hint="none", mode="performance")
    assert setting.properties(OURS) == {"EXECUTION_MODE_HINT": "PERFORMANCE"}
    assert setting.properties(OPENVINO) == {}
    assert Setting("net.xml", hint="none").properties(OURS) == {}
    assert Setting("net.xml", hint="none").properties(OPENVINO)["INFERENCE_PRECISION_HINT"] == "f32"


@pytest.mark.parametrize("precision", ["f32", "f16", "bf16"])
def test_each_side_says_what_it_multiplies_in(
    folder: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch, precision: str
) -> None:
    fast(monkeypatch)
    write_chain(folder)
    found = record(invoke(f"bench chain.xml -niter 1 --backend native --precision {precision} --json"))
    assert [side["precision"] for side in found["sides"]] == [precision]


def test_results_agree_within_what_their_products_allow() -> None:
    ours, theirs = [np.float32([1, 2])], [np.float32([1, 2.1])]
    assert not compare(ours, theirs).agree
    assert compare(ours, theirs, narrow=True).agree
    assert not compare(ours, [np.float32([1, 2.5])], narrow=True).agree
    assert not compare([np.int32([1, 2])], [np.int32([1, 3])], narrow=True).agree


def test_counters_are_shown_and_saved(folder: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    fast(monkeypatch)
    write_chain(folder)
    line = "bench chain.xml -niter 3 -pc -report_type {} --backend reference"
    found = invoke(line.format("average_counters"))
    assert "Layers, mean time" in found.stdout
    assert re.search(r"\n  shift +Add +\d", found.stdout)
    rows = (folder / "benchmark_average_counters_report.csv").read_text().splitlines()
    assert rows[0] == "layerName;execStatus;layerType;execType;realTime (ms);cpuTime (ms)"
    assert any(row.startswith("stretch;Status.EXECUTED;Multiply;") for row in rows)
    report_rows = (folder / "benchmark_report.csv").read_text().splitlines()
    assert {"Command line parameters", "Execution results", "total number of iterations;3"} <= {*report_rows}
    record(invoke(line.format("detailed_counters") + " --json"))
    detailed = (folder / "benchmark_detailed_counters_report.csv").read_text()
    assert detailed.count("layerName;") == 3


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("", "give the MODEL once: as the argument, or with -m"),
        ("chain.xml -m chain.xml", "give the MODEL once: as the argument, or with -m"),
        ("chain.xml -api sync -nireq 2", "-api sync is for one request at a time, not 2"),
        ("chain.xml -b 2 -layout [N", "'[N' is not [NAME]LAYOUT, such as [NCHW] or a[NC],b[N]"),
        ("chain.xml -d GPU", "device GPU is not available"),
    ],
)
def test_options_that_cannot_be(folder: Path, invoke: Invoke, options: str, said: str) -> None:
    write_chain(folder)
    found = invoke(f"bench {options}")
    assert found.exit_code == 2
    assert said in found.stderr


def test_ctrl_c_shows_the_runs_until_then(
    invoke: Invoke, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_chain(folder)
    monkeypatch.setattr(report, "measure", lambda *_: START)
    blocks: list[int] = []

    def interrupted(
        self: timing.SequentialRunner, count: int, run: Any = timing.SequentialRunner.block
    ) -> None:
        if len(blocks) == 2:
            raise KeyboardInterrupt
        blocks.append(count)
        run(self, 1)

    monkeypatch.setattr(timing.SequentialRunner, "block", interrupted)
    found = invoke("bench chain.xml -niter 50 --json --backend numpy")
    assert found.exit_code == 130
    figures = json.loads(found.stdout)
    assert (figures["partial"], figures["sides"][0]["runs"]) == (True, 2)
    blocks.clear()
    assert invoke("bench chain.xml -niter 50 --backend numpy").stdout.startswith("PARTIAL")
