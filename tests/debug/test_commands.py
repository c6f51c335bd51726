"""Commands that run models on a device: bisecting and reducing with them, their errors, flaky results, states and time limits."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import ir_runtime as ir
from ir_runtime import debug
from ir_runtime import opset13 as op
from ir_runtime._version import __version__ as version
from ir_runtime.cli import main
from ir_runtime.debug.extract import step_of

X = np.float32([[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]])

DEVICE = """
import json, sys
from pathlib import Path
from xml.etree import ElementTree
import numpy as np
folder = Path(sys.argv[-1])
names = json.loads((folder / "names.json").read_text())
weights = (folder / "model.bin").read_bytes() if (folder / "model.bin").exists() else b""
inputs = [np.load(folder / each["file"]) for each in names["inputs"]]
root = ElementTree.parse(folder / "model.xml").getroot()
sources = {(e.get("to-layer"), e.get("to-port")): e.get("from-layer") for e in root.iter("edge")}
layers = {layer.get("id"): layer for layer in root.iter("layer")}
functions = {
    "Exp": np.exp, "ReLU": lambda x: np.maximum(x, 0), "Convert": np.float32, "MatMul": np.matmul, "Add": np.add,
    "Tanh": lambda x: np.tanh(x) * np.float32(1.5),
}
given = [id for id, layer in layers.items() if layer.get("type") == "Parameter"]
values = dict(zip(given, inputs))

def constant(data):
    start, dtype = int(data["offset"]), {"f32": np.float32, "f16": np.float16}[data["element_type"]]
    array = np.frombuffer(weights[start : start + int(data["size"])], dtype)
    return array.reshape([int(length) for length in data["shape"].split(",") if length])

def value(id):
    if id not in values:
        layer = layers[id]
        if layer.get("type") == "Const":
            values[id] = constant(layer.find("data").attrib)
        else:
            ports = [port.get("id") for port in layer.iterfind("input/port")]
            values[id] = functions[layer.get("type")](*(value(sources[id, port]) for port in ports))
    return values[id]

ends = [layer for layer in layers.values() if layer.get("type") == "Result"]
results = [value(sources[end.get("id"), end.find("input/port").get("id")]) for end in ends]
for result, each in zip(results, names["outputs"]):
    np.save(folder / each["file"], result)
"""
"""A small runtime, whose Tanh is wrong."""


def network() -> ir.Model:
    """Four layers, the third a Tanh."""
    x = op.parameter([2, 3], np.float32, name="x")
    weights = op.constant(np.float32(np.arange(12).reshape(3, 4) / 12).astype(np.float16))
    y = op.matmul(op.exp(x, name="first"), op.convert(weights, "f32"), False, False, name="second")
    return ir.Model([op.relu(op.tanh(y, name="third"), name="fourth")], [x])


def stateful() -> ir.Model:
    """Add x to a variable, 1 at first, and apply Tanh."""
    x = op.parameter([2, 3], np.float32, name="x")
    before = op.read_value(op.constant(np.ones((2, 3), np.float32)), "sum")
    after = op.add(before, x, name="added")
    result = op.tanh(after, name="third")
    return ir.Model([op.result(result)], [op.assign(after, "sum")], [x])


@pytest.fixture(scope="module")
def device(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("device") / "device.py"
    path.write_text(DEVICE)
    return shlex.join([sys.executable, str(path)])


def test_commands_find_the_wrong_layer_and_reduce_the_model_to_it(device: str, tmp_path: Path) -> None:
    side = debug.Command(device)
    found = debug.bisect(network(), X, side)
    assert found.layers == ("third",)
    assert "times 1.5, in 'third'" in str(found.report.likeness)
    reduced = debug.reduce(network(), X, side, tmp_path / "bug", keep_values=True)
    assert reduced.layers == ("third",)
    done = subprocess.run(
        [sys.executable, tmp_path / "bug" / "show.py"], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("unexplained: ")
    text = (tmp_path / "bug" / "issue.md").read_text()
    assert f"ir_runtime {version}, NumPy {np.__version__}" in text
    assert "- Tanh-1(f32[2,4]) -> f32[2,4]" in text
    row = next(line for line in text.splitlines() if line.startswith("| 0 |"))
    differ, place, expected, got = (cell.strip() for cell in row.strip("|").split("|")[1:])
    assert (differ, place) == ("8 of 8", "[0, 0]")
    assert float(got) == pytest.approx(1.5 * float(expected), rel=1e-5)


def test_texts_for_issues_list_what_widens_weights(tmp_path: Path) -> None:
    class Device:
        def observe(self, model: Any, reference: Any, feeds: Any, ports: Any) -> debug.Observation:
            results = ir.compile_model(model)(list(feeds))
            wrong = any(node.type == "MatMul" for node in model.get_ops())
            return debug.Observation("device", [results[0] * np.float32(1.5 if wrong else 1)])

    debug.reduce(network(), X, Device(), tmp_path / "bug")
    text = (tmp_path / "bug" / "issue.md").read_text()
    assert "- Convert-1(f16[3,4]) -> f32[3,4], destination_type=f32" in text
    assert "- MatMul-1(f32[2,3], f32[3,4]) -> f32[2,4], transpose_a=False transpose_b=False" in text


def test_a_command_may_write_tensors_in_between_and_other_layouts(tmp_path: Path) -> None:
    script = tmp_path / "device.py"
    script.write_text(
        DEVICE
        + "\nnp.save(folder / names['outputs'][0]['file'], results[0].reshape(-1))"
        + "\nkept = {each['name']: each['file'] for each in names['tensors']}"
        + "\nnp.save(folder / kept['first'], np.exp(inputs[0]))"
    )
    report = debug.compare(network(), X, debug.Command([sys.executable, str(script)]))
    assert [unit.name for unit in report.units] == ["first"]
    assert report.verdict == "unexplained"
    assert "is read from [8]" in str(report)


@pytest.mark.parametrize(
    ("script", "message"),
    [
        (
            "import sys; print('no such chip'); sys.exit(3)",
            "ended with exit code 3\n  hint: it printed last: no such chip",
        ),
        ("import os; os.kill(os.getpid(), 9)", "ended with SIGKILL\n  hint: it printed nothing"),
        ("print('done')", "wrote no outputs/0.npy, the output .*\n  hint: it printed last: done"),
        (
            "open(sys.argv[-1] + '/outputs/0.npy', 'w').write('text')",
            "wrote outputs/0.npy: 'outputs/0.npy' has no arrays",
        ),
        (
            "np.savez(open(sys.argv[-1] + '/outputs/0.npy', 'wb'), a=np.ones(2), b=np.ones(2))",
            "is an archive of arrays, not one",
        ),
        ("np.save(sys.argv[-1] + '/outputs/0.npy', np.int8([1]))", "is int8, the model has f32"),
    ],
)
@pytest.mark.parametrize("search", [debug.bisect, debug.reduce])
def test_what_commands_do_wrongly_is_said(search: Any, script: str, message: str) -> None:
    if "SIGKILL" in message and not hasattr(os, "killpg"):
        pytest.skip("this system has no signals")
    side = debug.Command([sys.executable, "-c", f"import sys, numpy as np\n{script}"])
    with pytest.raises(ir.InputError) as found:
        search(network(), X, side)
    assert __import__("re").search(message, str(found.value))


def test_commands_that_cannot_be_started_are_said(tmp_path: Path) -> None:
    with pytest.raises(ir.InputError, match="cannot start 'no-such-program': No such file"):
        debug.bisect(network(), X, debug.Command("no-such-program --fast"))
    for wrong in ("", "python 'device.py"):
        with pytest.raises(ir.InputError, match="command"):
            debug.Command(wrong)


def test_a_result_of_another_shape_is_a_difference() -> None:
    save = "import sys, numpy as np; np.save(sys.argv[-1] + '/outputs/0.npy', np.ones(3, np.float32))"
    report = debug.compare(network(), X, debug.Command([sys.executable, "-c", save]))
    assert report.verdict == "unexplained"
    assert report.outputs[0].reason == "its shape is [3], not [2, 4]"


def flaky(wrong: int) -> Any:
    """A device whose Tanh is wrong in every third run of a model."""
    runs: dict[str, Any] = {}

    class Device:
        def observe(self, model: Any, reference: Any, feeds: Any, ports: Any) -> debug.Observation:
            run = next(runs.setdefault(str([node.friendly_name for node in model.get_ops()]), count(1)))
            patch = {
                n.friendly_name: lambda y: y * np.float32(2) for n in model.get_ops() if n.type == "Tanh"
            }
            results = ir.compile_model(model)(list(feeds), patch=None if run % wrong else patch)
            return debug.Observation("flaky", [results[0]])

    return Device()


def test_flaky_results_are_found_by_running_often() -> None:
    assert debug.compare(network(), X, flaky(3)).explained
    report = debug.compare(network(), X, debug.Repeated(flaky(3), 5))
    assert report.verdict == "unexplained"
    assert "run 3 is judged: the first of its kind among 2 different results in 3 runs" in str(report)
    assert "5 runs gave the same result" in str(debug.compare(network(), X, debug.Repeated(flaky(9), 5)))
    assert debug.bisect(network(), X, debug.Repeated(flaky(3), 4)).layers == ("third",)
    assert debug.reduce(network(), X, debug.Repeated(flaky(2), 2)).layers == ("third",)
    with pytest.raises(ir.InputError, match="a side is run at least once, not 0 times"):
        debug.Repeated("numpy", 0)


class Wrong:
    """A side in this process with a wrong Tanh."""

    def observe(self, model: Any, reference: Any, feeds: Any, ports: Any) -> debug.Observation:
        patch = {n.friendly_name: lambda y: y * np.float32(1.5) for n in model.get_ops() if n.type == "Tanh"}
        results = ir.compile_model(model)(list(feeds), patch=patch)
        return debug.Observation("wrong", [results[index] for index in range(len(model.outputs))])


@pytest.mark.parametrize("before", [None, {"sum": np.full((2, 3), 0.25, np.float32)}])
@pytest.mark.parametrize("search", [debug.bisect, debug.reduce])
def test_steps_with_variables_are_cut(search: Any, before: Any) -> None:
    for side in ("openvino", "numpy"):
        assert not search(stateful(), X, side, states=before)
    assert search(stateful(), X, Wrong(), states=before).layers == ("third",)
    held = 1 if before is None else 0.25
    step, feeds = step_of(stateful(), [X], before)
    assert [port.get_any_name() for port in step.inputs] == ["x", "sum"]
    np.testing.assert_array_equal(feeds[1], np.full((2, 3), held, np.float32))
    results = ir.compile_model(step)(feeds)
    np.testing.assert_allclose(results[0], np.tanh(X + held), rtol=1e-6)
    np.testing.assert_allclose(results[1], X + held, rtol=1e-6)


def test_what_variables_hold_is_checked() -> None:
    with pytest.raises(ir.InputError, match="unknown variable 'some'"):
        debug.bisect(stateful(), X, "numpy", {"some": X})
    with pytest.raises(ir.InputError, match="has no variables"):
        debug.bisect(network(), X, "numpy", {"some": X})
    with pytest.raises(ir.InputError, match="sum"):
        debug.compare(stateful(), X, "numpy", states={"sum": X[:1]})
    report = debug.compare(stateful(), X, "numpy", states={"sum": X})
    assert report.explained
    assert len(report.outputs) == 2


def test_another_ir_is_compared_at_the_same_step(tmp_path: Path) -> None:
    ir.save_model(stateful(), tmp_path / "net.xml", compress_to_fp16=False)
    assert debug.compare(stateful(), X, str(tmp_path / "net.xml"), states={"sum": X}).explained
    assert not debug.bisect(stateful(), X, str(tmp_path / "net.xml"), {"sum": X})


@pytest.mark.parametrize("command", ["bisect", "compare"])
def test_commands_at_the_command_line(command: str, device: str, tmp_path: Path) -> None:
    ir.save_model(stateful(), tmp_path / "net.xml", compress_to_fp16=False)
    np.save(tmp_path / "x.npy", X)
    np.savez(tmp_path / "state.npz", sum=X)
    line = [
        command,
        str(tmp_path / "net.xml"),
        "--run",
        device,
        "--repeat",
        "2",
        "-i",
        str(tmp_path / "x.npy"),
    ]
    line += ["--state", str(tmp_path / "state.npz"), "--json"]
    done = CliRunner().invoke(main, line)
    assert done.exit_code == 1, done.output
    record = json.loads(done.stdout)
    assert record["verdict"] == "unexplained"
    if command != "compare":
        assert record["layers"] == ["third"]
    both = CliRunner().invoke(
        main, [*line[:2], "--run", device, "--against", "numpy", "--random", *line[12:]]
    )
    assert both.exit_code == 2
    assert "give " in both.stderr


SLOW = [sys.executable, "-c", "import time; time.sleep(600)"]


def test_a_command_ends_with_the_time_limit(tmp_path: Path) -> None:
    """Its child processes end, too: none remains that would write the file."""
    ir.save_model(network(), tmp_path / "net.xml", compress_to_fp16=False)
    np.save(tmp_path / "x.npy", X)
    line = ["bisect", str(tmp_path / "net.xml"), "--run", shlex.join(SLOW), "-i", str(tmp_path / "x.npy")]
    done = subprocess.run(
        [sys.executable, "-m", "ir_runtime", *line, "--timeout", "3"],
        capture_output=True, text=True, check=False, timeout=500,
    )  # fmt: skip
    assert done.returncode == 5
    assert "it takes longer than 3 seconds, the limit" in done.stderr
    assert "Traceback" not in done.stderr


def test_partial_results_are_given_when_the_time_is_up(tmp_path: Path) -> None:
    """A device that is slow on parts of the model: the findings so far are reported."""
    calls = count(1)

    class Device:
        def observe(self, model: Any, reference: Any, feeds: Any, ports: Any) -> debug.Observation:
            if next(calls) > 2:
                raise ir.LimitError("it takes longer than 3 seconds, the limit", limit="seconds")
            return debug.Observation("slow", [2 * ir.compile_model(model)(list(feeds))[0]])

    with pytest.raises(debug.TimedOut, match="it takes longer") as found:
        debug.bisect(network(), X, Device())
    partial = found.value.partial
    assert partial.partial
    assert "PARTIAL" in str(partial)
    assert partial.layers == ("first", "second")
    calls = count(2)
    with pytest.raises(debug.TimedOut) as found:
        debug.reduce(network(), X, Device())
    assert found.value.partial.partial


@pytest.mark.parametrize("as_json", [False, True])
def test_the_command_line_prints_partial_results_at_the_timeout(
    as_json: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ir.save_model(network(), tmp_path / "net.xml", compress_to_fp16=False)

    def search(*_: object) -> None:
        raise debug.TimedOut(
            debug.compare(network(), X, "numpy"), "it takes longer than 3 seconds", limit="seconds"
        )

    monkeypatch.setattr(debug, "bisect", search)
    line = [
        "bisect",
        str(tmp_path / "net.xml"),
        "--against",
        "numpy",
        "--random",
        *(["--json"] if as_json else []),
    ]
    done = CliRunner().invoke(main, line)
    assert done.exit_code == 5
    assert "it takes longer than 3 seconds" in done.stderr
    if as_json:
        assert json.loads(done.stdout)["verdict"] == "explained"
    else:
        assert done.stdout.startswith("explained")
