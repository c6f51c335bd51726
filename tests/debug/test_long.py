"""Long work: within a memory limit, interrupted, and repeated."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from harness.debugging import FAULTS, WrongLayer, interrupting, network
from models.networks import save

import ir_runtime as ir
from ir_runtime import debug
from ir_runtime import opset13 as op
from ir_runtime.cli import main
from ir_runtime.cli.long import _Estimate
from ir_runtime.debug.progress import Interrupted, showing
from ir_runtime.debug.reference import Reference
from ir_runtime.debug.spilling import MemoryBudget, SpilledArray, Tensors
from ir_runtime.debug.tensors import computed_layers
from ir_runtime.ir.graph import Port
from ir_runtime.ir.tensor import Array


@pytest.fixture
def spilled(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Return the files to which tensors are spilled."""
    found: list[Path] = []
    write = MemoryBudget.write

    def noting(self: MemoryBudget, array: Array) -> SpilledArray:
        file = write(self, array)
        assert isinstance(file.read(), np.memmap)
        found.append(file.path)
        return file

    monkeypatch.setattr(MemoryBudget, "write", noting)
    return found


# More than the largest layer needs in f64, and less than all tensors take.
LIMITS = {"plain_cnn": 400_000, "encoder": 400_000}


@pytest.mark.parametrize("name", LIMITS)
def test_what_does_not_fit_is_on_the_disk_and_the_report_is_the_same(
    name: str, tmp_path: Path, spilled: list[Path]
) -> None:
    model, inputs = network(name, tmp_path)
    whole = debug.compare(model, inputs, "numpy")
    assert not spilled
    model, _ = network(name, tmp_path, memory=LIMITS[name])
    assert debug.compare(model, inputs, "numpy").record() == whole.record()
    assert spilled
    assert not any(path.exists() for path in spilled)


def test_tensors_of_the_oracle_are_files_until_they_are_not_needed(
    tmp_path: Path, spilled: list[Path]
) -> None:
    model, inputs = network("plain_cnn", tmp_path)
    wanted = dict(debug.oracle(model, inputs, layers="*"))
    model, _ = network("plain_cnn", tmp_path, memory=LIMITS["plain_cnn"])
    truth = debug.oracle(model, inputs, layers="*")
    assert spilled
    assert all(path.exists() for path in spilled)
    for name, array in wanted.items():
        np.testing.assert_array_equal(truth[name], array)
    del truth
    assert not any(path.exists() for path in spilled)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int4", "bool"])
def test_types_come_back_as_they_were(dtype: str) -> None:
    array = np.arange(6000).reshape(2, 3000).astype(np.dtype(dtype))
    budget = MemoryBudget(0)
    tensors = Tensors(budget)
    tensors[Port(0, 0)] = array
    found = tensors[Port(0, 0)]
    assert found.dtype == array.dtype
    assert found.tobytes() == array.tobytes()
    del tensors[Port(0, 0)]
    budget.close()


def test_an_interrupt_leaves_a_partial_report_and_no_files(tmp_path: Path, spilled: list[Path]) -> None:
    model, inputs = network("plain_cnn", tmp_path, memory=LIMITS["plain_cnn"])
    with showing(interrupting(0.7)), pytest.raises(Interrupted) as stopped:
        debug.compare(model, inputs, "numpy")
    report = stopped.value.partial
    assert report.partial
    assert not report.explained
    assert report.verdict == "unknown"
    assert report.units
    assert not report.outputs
    assert "PARTIAL" in str(report)
    assert spilled
    assert not any(path.exists() for path in spilled)


WORK: dict[str, Callable[[ir.Model, list[Array]], Any]] = {
    "oracle": lambda model, inputs: debug.oracle(model, inputs, layers="*"),
    "budget": lambda model, inputs: debug.budget(model, inputs, "int8"),
    "compare": lambda model, inputs: debug.compare(model, inputs, "reference"),
    "bisect": lambda model, inputs: debug.bisect(
        model, inputs, WrongLayer(computed_layers(Reference(model).graph)[-1].name, FAULTS["scaled"])
    ),
    "reduce": lambda model, inputs: debug.reduce(
        model, inputs, WrongLayer(computed_layers(Reference(model).graph)[4].name, FAULTS["scaled"])
    ),
    "trace-nan": debug.trace_nan,
}


@pytest.mark.parametrize("kind", WORK)
def test_what_was_found_by_then_says_that_it_is_partial(kind: str, tmp_path: Path) -> None:
    model, inputs = network("plain_cnn", tmp_path)
    with showing(interrupting(0.4 if kind == "reduce" else 0.8)), pytest.raises(Interrupted) as stopped:
        WORK[kind](model, inputs)
    partial = stopped.value.partial
    assert partial.partial
    assert "PARTIAL" in str(partial)
    assert json.loads(json.dumps(partial.record()))["partial"] is True


@pytest.mark.parametrize("kind", WORK)
def test_progress_rises_to_the_end(kind: str, tmp_path: Path) -> None:
    model, inputs = network("plain_cnn", tmp_path)
    parts: list[float] = []
    with showing(lambda part, _: parts.append(part)):
        WORK[kind](model, inputs)
    assert parts == sorted(parts)
    assert len(parts) > 10
    assert parts[-1] == pytest.approx(1)


def test_the_command_ends_with_what_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = save("plain_cnn", tmp_path)
    interrupt = interrupting(0.7)
    monkeypatch.setattr(_Estimate, "show", lambda self, part, item: interrupt(part, item))
    command = ["compare", str(path), "--against", "numpy", "--random", "--cache", str(tmp_path / "cache")]
    goes_on = "interrupted; the same command goes on from here"  # after what --random chose
    stopped = CliRunner().invoke(main, command)
    assert stopped.exit_code == 130, stopped.output
    assert "PARTIAL: " in stopped.stdout
    assert stopped.stderr.splitlines()[1:] == [goes_on]
    stopped = CliRunner().invoke(main, [*command, "--json"])
    assert stopped.exit_code == 130
    assert json.loads(stopped.stdout)["partial"] is True, "one document, not an error behind it"
    assert stopped.stderr.splitlines()[1:] == [goes_on]
    monkeypatch.undo()
    done = CliRunner().invoke(main, command)
    assert done.exit_code == 0, done.output
    assert done.stderr.splitlines()[1:] == []


@pytest.mark.oracle
@pytest.mark.skipif(sys.platform != "linux", reason="measures resident memory as Linux reports it")
def test_a_process_stays_within_its_memory_limit(tmp_path: Path) -> None:
    """Of 30 tensors of 8 MB in f64 a run needs two at once; the others are in files."""
    size, limit = 1 << 23, 1 << 26
    x = y = op.parameter([size // 8], np.float32, name="x")
    for _ in range(15):
        y = op.relu(op.negative(y))
    ir.save_model(ir.Model([y], [x]), tmp_path / "chain.xml")
    program = (
        "import sys, numpy as np, ir_runtime as ir\n"
        "from ir_runtime import debug\n"
        "def peak():\n"
        "    found = next(line for line in open('/proc/self/status') if line.startswith('VmHWM'))\n"
        "    return int(found.split()[1]) << 10\n"
        "path, limit, size = sys.argv[1], *map(int, sys.argv[2:])\n"
        "model = ir.read_model(path, limits=ir.Limits(memory=limit))\n"
        "x, before = np.ones(size // 8, np.float32), peak()\n"
        "truth = debug.oracle(model, [x], layers='*')\n"
        "assert all(array.max() <= 1 for array in truth.values())\n"
        "print(len(truth), peak() - before)\n"
        "del truth\n"
        "assert debug.compare(model, [x], 'reference').explained\n"
        "print(peak() - before)\n"
    )
    run = [sys.executable, "-c", program, str(tmp_path / "chain.xml"), str(limit), str(size)]
    printed = subprocess.run(run, check=True, capture_output=True, text=True).stdout
    count, oracle, compared = map(int, printed.split())
    assert count * size > 3 * limit
    assert oracle < limit
    assert compared < limit + 2 * size, "what Python itself takes; errors are measured on parts of tensors"
