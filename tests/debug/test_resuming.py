"""Interrupted work resumes from a cache, with the results of uninterrupted work."""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from harness.debugging import FAULTS, WrongLayer, interrupting, network, noting
from models.networks import NETWORKS

import ir_runtime as ir
from ir_runtime import debug
from ir_runtime.debug.caching import Cache, Entry, caching, entry_for
from ir_runtime.debug.case import Case
from ir_runtime.debug.progress import Interrupted, showing
from ir_runtime.debug.reference import Reference
from ir_runtime.debug.tensors import computed_layers
from ir_runtime.ir.tensor import Array


def test_what_another_runtime_computed_is_not_computed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, inputs = network("plain_cnn", tmp_path)
    whole = debug.compare(model, inputs, "numpy").record()
    cache = tmp_path / "cache"
    with pytest.raises(Interrupted), caching(cache), showing(interrupting(0.7)):
        debug.compare(model, inputs, "numpy")
    assert any(cache.iterdir())
    with monkeypatch.context() as changed, caching(cache):
        changed.setattr(import_module("ir_runtime.debug.compare"), "side_of", None)
        assert debug.compare(model, inputs, "numpy").record() == whole
    assert not any(cache.iterdir()), "what is done needs nothing to go on from"


@pytest.mark.parametrize("layers", [(), "*"])
@pytest.mark.parametrize("name", NETWORKS)
def test_the_oracle_goes_on_where_it_was_interrupted(name: str, layers: str, tmp_path: Path) -> None:
    model, inputs = network(name, tmp_path)
    whole, seen = debug.oracle(model, inputs, layers), list[list[str]]()
    for at in (0.3, 0.6):
        interrupted = pytest.raises(Interrupted)
        with interrupted as stopped, caching(tmp_path / "cache"), showing(noting(seen, at)):
            debug.oracle(model, inputs, layers)
    assert bool(stopped.value.partial) == bool(layers)
    with caching(tmp_path / "cache"), showing(noting(seen, 2)):
        found = debug.oracle(model, inputs, layers)
    assert list(found) == list(whole)
    assert all(found[key].tobytes() == array.tobytes() for key, array in whole.items())
    computing = {layer.name for layer in computed_layers(Reference(model).graph)}
    runs = [set(run[:-1] if index < 2 else run) & computing for index, run in enumerate(seen)]
    assert all(runs)
    assert sum(map(len, runs)) == len(set().union(*runs)), "nothing is computed twice"
    assert not any((tmp_path / "cache").iterdir())


def test_a_budget_goes_on_with_the_next_layer(tmp_path: Path) -> None:
    model, inputs = network("encoder", tmp_path)
    whole, skipped = debug.budget(model, inputs, "int8"), list[float]()
    with pytest.raises(Interrupted) as stopped, caching(tmp_path / "cache"), showing(interrupting(0.5)):
        debug.budget(model, inputs, "int8")
    assert 0 < len(stopped.value.partial.layers) < len(whole.layers)
    with caching(tmp_path / "cache"), showing(lambda *_: None, skipped.append):
        assert debug.budget(model, inputs, "int8") == whole
    assert len(skipped) == len(stopped.value.partial.layers)


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
            entry_for("a", model, inputs, "native"),
            entry_for("a", model, [inputs[0] + 1], "numpy"),
            entry_for("a", other, inputs, "numpy"),
            entry_for("a", reshaped, inputs, "numpy"),
            entry_for("a", model, inputs, _edited(tmp_path, 2)),
            entry_for("a", model, inputs, _edited(tmp_path, 3)),
        ]
        folders = {str(entry._folder) for entry in entries if entry is not None}
        assert len(folders) == len(entries)
        assert entry_for("a", model, inputs, lambda inputs, names: {}) is None
        assert entry_for("a", model, inputs, "theirs.npz") is None
    assert entry_for("a", model, inputs, "numpy") is None


def test_a_damaged_entry_is_computed_again(tmp_path: Path) -> None:
    model, inputs = network("plain_cnn", tmp_path)
    whole = debug.compare(model, inputs, "numpy").record()
    with pytest.raises(Interrupted), caching(tmp_path / "cache"), showing(interrupting(0.7)):
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


@pytest.fixture
def wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A named side with a faulty layer."""
    model, _ = network("plain_cnn", tmp_path)
    side = WrongLayer(computed_layers(Reference(model).graph)[7].name, FAULTS["scaled"])
    monkeypatch.setattr(import_module("ir_runtime.debug.compare"), "side_of", lambda _: side)
    return "numpy"


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record the models that were compared completely, by their results."""
    found: list[str] = []
    module = import_module("ir_runtime.debug.compare")
    judge = module._judge_case

    def noting(case: Case, entry: Entry | None) -> Any:
        result = judge(case, entry)
        found.append(" ".join(layer.name for layer in case.layers))
        return result

    monkeypatch.setattr(module, "_judge_case", noting)
    return found


SEARCHES: dict[str, Callable[[ir.Model, list[Array], str], Any]] = {
    "bisect": debug.bisect,
    "reduce": debug.reduce,
}


@pytest.mark.parametrize("kind", SEARCHES)
@pytest.mark.parametrize("is_model", [False, True], ids=["runtime", "other model"])
def test_a_search_goes_on_with_the_next_part(
    kind: str, is_model: bool, tmp_path: Path, wrong: str, compared: list[str]
) -> None:
    model, inputs = network("plain_cnn", tmp_path)
    side = _edited(tmp_path) if is_model else wrong
    whole, parts = SEARCHES[kind](model, inputs, side), list(compared)
    compared.clear()
    for at in (0.25, 0.36):
        with pytest.raises(Interrupted), caching(tmp_path / "cache"), showing(interrupting(at)):
            SEARCHES[kind](model, inputs, side)
    assert 0 < len(compared) < len(parts)
    with caching(tmp_path / "cache"):
        found = SEARCHES[kind](model, inputs, side)
    assert compared == parts, "nothing is compared twice"
    assert found.record() == whole.record()
    assert not any((tmp_path / "cache").iterdir())


def _edited(folder: Path, step: int = 2) -> str:
    """Write the network with another dilation in a convolution; return its path."""
    text, other = (folder / "plain_cnn.xml").read_text(), folder / "other.xml"
    values = 'dilations="{0}, {0}" pads_begin="{0}, {0}" pads_end="{0}, {0}"'
    assert values.format(1) in text
    other.write_text(text.replace(values.format(1), values.format(step)))
    other.with_suffix(".bin").write_bytes((folder / "plain_cnn.bin").read_bytes())
    return str(other)


@pytest.mark.parametrize(("factor", "overflows"), [(1e4, False), (3e4, True)])
def test_a_trace_goes_on_with_the_next_layer(factor: float, overflows: bool, tmp_path: Path) -> None:
    """The first layer overflows, so that no peak exists, or nothing overflows."""
    model, inputs = network("plain_cnn", tmp_path)
    inputs = [inputs[0] * factor]
    whole, seen = debug.trace_nan(model, inputs, "f16", 99), list[list[str]]()
    assert (len(whole.origins), len(whole.peaks)) == (
        (1, 0) if overflows else (0, len(computed_layers(Reference(model).graph)))
    )
    with pytest.raises(Interrupted) as stopped, caching(tmp_path / "cache"), showing(noting(seen, 0.5)):
        debug.trace_nan(model, inputs, "f16", 99)
    partial = stopped.value.partial
    assert partial.partial
    assert str(partial).startswith("PARTIAL")
    assert len(partial.origins) == len(whole.origins)
    assert overflows or 0 < len(partial.peaks) < len(whole.peaks)
    with caching(tmp_path / "cache"), showing(noting(seen, 2)):
        assert debug.trace_nan(model, inputs, "f16", 99) == whole
    computing = {layer.name for layer in computed_layers(Reference(model).graph)}
    first, second = ({*layers} & computing for layers in (seen[0][:-1], seen[1]))
    assert first | second == computing
    assert not first & second, "nothing is computed twice"
    assert not any((tmp_path / "cache").iterdir())
