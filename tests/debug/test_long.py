"""Work that takes long: within a memory limit, interrupted, and called again."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from harness.wrong_sides import FAULTS, WrongLayer
from models.networks import NETWORKS, save

import ir_runtime as ir
from ir_runtime import debug
from ir_runtime.cli import main
from ir_runtime.debug.caching import Cache, caching, entry_for
from ir_runtime.debug.progress import Interrupted, showing
from ir_runtime.debug.reference import Reference
from ir_runtime.debug.spilling import MemoryBudget, Tensors
from ir_runtime.debug.tensors import computed_layers
from ir_runtime.ir.graph import Port
from ir_runtime.ir.tensor import Array


def network(name: str, folder: Path, **limits: int) -> tuple[ir.Model, list[Array]]:
    path = folder / f"{name}.xml"
    model = ir.read_model(path if path.exists() else save(name, folder), limits=ir.Limits(**limits))  # type: ignore[arg-type]
    return model, NETWORKS[name][1]()


@pytest.fixture
def spilled(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The files into which tensors are written."""
    found: list[Path] = []
    write = MemoryBudget.write

    def noting(self: MemoryBudget, array: Array) -> Array:
        mapped = write(self, array)
        assert isinstance(mapped, np.memmap)
        found.append(Path(str(mapped.filename)))
        assert self.resident <= self.limit
        return mapped

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


def _interrupting(at: float) -> Callable[[float, str], None]:
    def show(part: float, _: str) -> None:
        if part >= at:
            raise KeyboardInterrupt

    return show


def test_an_interrupt_leaves_a_partial_report_and_no_files(tmp_path: Path, spilled: list[Path]) -> None:
    model, inputs = network("plain_cnn", tmp_path, memory=LIMITS["plain_cnn"])
    with showing(_interrupting(0.7)), pytest.raises(Interrupted) as stopped:
        debug.compare(model, inputs, "numpy")
    report = stopped.value.partial
    assert report.partial
    assert not report.explained
    assert report.verdict == "unknown"
    assert report.units
    assert not report.outputs
    assert str(report).startswith("PARTIAL")
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
}


@pytest.mark.parametrize("kind", WORK)
def test_what_was_found_by_then_says_that_it_is_partial(kind: str, tmp_path: Path) -> None:
    model, inputs = network("plain_cnn", tmp_path)
    with showing(_interrupting(0.4 if kind == "reduce" else 0.8)), pytest.raises(Interrupted) as stopped:
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


def test_what_another_runtime_computed_is_not_computed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, inputs = network("plain_cnn", tmp_path)
    whole = debug.compare(model, inputs, "numpy").record()
    cache = tmp_path / "cache"
    with pytest.raises(Interrupted), caching(cache), showing(_interrupting(0.7)):
        debug.compare(model, inputs, "numpy")
    assert any(cache.iterdir())
    with monkeypatch.context() as changed, caching(cache):
        changed.setattr(import_module("ir_runtime.debug.observed"), "side_of", None)
        assert debug.compare(model, inputs, "numpy").record() == whole
    assert not any(cache.iterdir()), "what is done needs nothing to go on from"


@pytest.mark.parametrize("layers", [(), "*"])
@pytest.mark.parametrize("name", NETWORKS)
def test_the_oracle_goes_on_where_it_was_interrupted(name: str, layers: str, tmp_path: Path) -> None:
    model, inputs = network(name, tmp_path)
    whole, seen = debug.oracle(model, inputs, layers), list[list[str]]()
    for at in (0.3, 0.6):
        interrupted = pytest.raises(Interrupted)
        with interrupted as stopped, caching(tmp_path / "cache"), showing(_noting(seen, at)):
            debug.oracle(model, inputs, layers)
    assert bool(stopped.value.partial) == bool(layers)
    with caching(tmp_path / "cache"), showing(_noting(seen, 2)):
        found = debug.oracle(model, inputs, layers)
    assert list(found) == list(whole)
    assert all(found[key].tobytes() == array.tobytes() for key, array in whole.items())
    computing = {layer.name for layer in computed_layers(Reference(model).graph)}
    runs = [set(run[:-1] if index < 2 else run) & computing for index, run in enumerate(seen)]
    assert all(runs)
    assert sum(map(len, runs)) == len(set().union(*runs)), "nothing is computed twice"
    assert not any((tmp_path / "cache").iterdir())


def _noting(seen: list[list[str]], at: float) -> Callable[[float, str], None]:
    """Note the layers that run, and interrupt there."""
    seen.append([])

    def show(part: float, layer: str) -> None:
        seen[-1].append(layer)
        if part >= at:
            raise KeyboardInterrupt

    return show


def test_a_budget_goes_on_with_the_next_layer(tmp_path: Path) -> None:
    model, inputs = network("encoder", tmp_path)
    whole, parts = debug.budget(model, inputs, "int8"), list[float]()
    with pytest.raises(Interrupted) as stopped, caching(tmp_path / "cache"), showing(_interrupting(0.5)):
        debug.budget(model, inputs, "int8")
    assert 0 < len(stopped.value.partial.layers) < len(whole.layers)
    with caching(tmp_path / "cache"), showing(lambda part, _: parts.append(part)):
        assert debug.budget(model, inputs, "int8") == whole
    again = [part for part in parts if part > 0.1]  # behind the run that all errors are relative to
    assert min(again) > 0.4


def test_other_models_inputs_and_sides_have_other_entries(tmp_path: Path) -> None:
    model, inputs = network("plain_cnn", tmp_path)
    other = model.clone()
    other.get_ops()[-1].set_friendly_name("other")
    reshaped = model.clone()
    reshaped.reshape([4, 3, 32, 32])
    with caching(tmp_path / "cache"):
        entries = [
            entry_for("a", model, inputs, "numpy"),
            entry_for("b", model, inputs, "numpy"),
            entry_for("a", model, inputs, "numba"),
            entry_for("a", model, [inputs[0] + 1], "numpy"),
            entry_for("a", other, inputs, "numpy"),
            entry_for("a", reshaped, inputs, "numpy"),
        ]
        folders = {str(entry._folder) for entry in entries if entry is not None}
        assert len(folders) == len(entries)
        assert entry_for("a", model, inputs, lambda inputs, names: {}) is None
        assert entry_for("a", model, inputs, "theirs.npz") is None
    assert entry_for("a", model, inputs, "numpy") is None


def test_a_damaged_entry_is_computed_again(tmp_path: Path) -> None:
    model, inputs = network("plain_cnn", tmp_path)
    whole = debug.compare(model, inputs, "numpy").record()
    with pytest.raises(Interrupted), caching(tmp_path / "cache"), showing(_interrupting(0.7)):
        debug.compare(model, inputs, "numpy")
    for path in (tmp_path / "cache").rglob("seen.3"):
        path.write_bytes(path.read_bytes()[:-4])
    with caching(tmp_path / "cache"):
        assert debug.compare(model, inputs, "numpy").record() == whole


def test_a_folder_that_others_may_write_is_no_cache(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    with pytest.raises(ir.InputError, match="cannot be used as a cache: others may write it"):
        Cache(shared)


def test_a_folder_of_another_user_is_no_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    uid = os.geteuid() + 1
    monkeypatch.setattr(os, "geteuid", lambda: uid)
    with pytest.raises(ir.InputError, match="it belongs to another user"):
        Cache(tmp_path)


def test_the_command_ends_with_what_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = save("plain_cnn", tmp_path)
    module = import_module("ir_runtime.cli.long")
    monkeypatch.setattr(module, "_estimating", lambda _: _interrupting(0.7))
    command = ["compare", str(path), "--against", "numpy", "--random", "--cache", str(tmp_path / "cache")]
    stopped = CliRunner().invoke(main, command)
    assert stopped.exit_code == 130, stopped.output
    assert stopped.stdout.startswith("PARTIAL")
    assert stopped.stderr.strip() == "interrupted"
    stopped = CliRunner().invoke(main, [*command, "--json"])
    assert stopped.exit_code == 130
    assert json.loads(stopped.stdout)["partial"] is True, "one document, not an error behind it"
    assert stopped.stderr.strip() == "interrupted"
    monkeypatch.undo()
    done = CliRunner().invoke(main, command)
    assert done.exit_code == 0, done.output
    assert done.stderr == ""
