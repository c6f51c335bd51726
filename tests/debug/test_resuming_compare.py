"""An interrupted comparison resumes with the interrupted run, whichever side is judged."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from debug.test_body_decisions import X, _floored
from debug.test_onnxruntime import X as IMAGES
from debug.test_onnxruntime import converted  # noqa: F401  a fixture
from harness.debugging import interrupting, network

import ir_runtime as ir
from ir_runtime import debug
from ir_runtime.cli.long import _Estimate
from ir_runtime.debug.caching import _identify, caching
from ir_runtime.debug.progress import Interrupted, showing
from ir_runtime.debug.reference import Reference
from ir_runtime.ir.tensor import Array


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Record the completed runs of the reference, and whether each was in f64."""
    found: list[bool] = []
    run = Reference.run

    def noting(self: Reference, *arguments: Any) -> list[Array]:
        results = run(self, *arguments)
        found.append(self._wide)
        return results

    monkeypatch.setattr(Reference, "run", noting)
    return found


def _arrays(model: ir.Model, inputs: list[Array], folder: Path) -> Any:
    """An archive of the outputs and inner tensors."""
    truth = debug.oracle(model, inputs, layers="*")
    np.savez(folder / "theirs.npz", **{name: array.astype(np.float32) for name, array in truth.items()})
    return str(folder / "theirs.npz")


def _function(model: ir.Model, inputs: list[Array], _: Path) -> Any:
    """A side whose identity is unknown, so it is called again."""
    outputs = dict(enumerate(debug.oracle(model, inputs).outputs))
    return lambda inputs, names: outputs


SIDES: dict[str, Callable[..., Any]] = {
    "backend": lambda *_: "numpy",
    "archive": _arrays,
    "function": _function,
}


@pytest.mark.parametrize("at", [0.4, 0.55, 0.7, 0.76, 0.9])
@pytest.mark.parametrize("kind", SIDES)
def test_no_run_that_was_finished_is_repeated(kind: str, at: float, tmp_path: Path, runs: list[bool]) -> None:
    model, inputs = network("encoder", tmp_path)
    side, cache = SIDES[kind](model, inputs, tmp_path), tmp_path / "cache"
    runs.clear()
    whole, all_runs = debug.compare(model, inputs, side).record(), list(runs)
    runs.clear()
    with pytest.raises(Interrupted), caching(cache), showing(interrupting(at)):
        debug.compare(model, inputs, side)
    done = list(runs)
    assert len(done) < len(all_runs)
    with caching(cache):
        assert debug.compare(model, inputs, side).record() == whole
    assert runs == all_runs
    assert not any(cache.iterdir()), "what is done needs nothing to go on from"


def test_decisions_inside_bodies_are_taken_as_before(tmp_path: Path) -> None:
    """The reference decides 7 for 0.7, the side 6: open decisions are tried after the interrupt as before it."""
    model, side = _floored(), [np.float32([6, 7])]
    whole, cache = debug.compare(model, X, side).record(), tmp_path / "cache"
    parts: list[float] = []
    for at in (0.6, 0.75, 0.9, 0.95):
        with pytest.raises(Interrupted), caching(cache), showing(interrupting(at)):
            debug.compare(model, X, side)
    with caching(cache), showing(lambda part, _: parts.append(part)):
        assert debug.compare(model, X, side).record() == whole
    assert parts[-1] == pytest.approx(1)


def test_what_openvino_computed_gets_its_shape_again(tmp_path: Path) -> None:
    """Tensors are observed flat, and get the shape of their layer, which does not run again."""
    model, inputs = network("encoder", tmp_path)
    whole, cache = debug.compare(model, inputs, "openvino").record(), tmp_path / "cache"
    with pytest.raises(Interrupted), caching(cache), showing(interrupting(0.97)):
        debug.compare(model, inputs, "openvino")
    with caching(cache):
        assert debug.compare(model, inputs, "openvino").record() == whole


def test_an_onnx_model_is_not_run_again(
    tmp_path: Path,
    converted: ir.Model,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    side, cache = f"onnxruntime:{tmp_path / 'net.onnx'}", tmp_path / "cache"
    whole = debug.compare(converted, IMAGES, side).record()
    with pytest.raises(Interrupted), caching(cache), showing(interrupting(0.7)):
        debug.compare(converted, IMAGES, side)
    with monkeypatch.context() as changed, caching(cache):
        changed.setattr(import_module("ir_runtime.debug.compare"), "side_of", None)
        assert debug.compare(converted, IMAGES, side).record() == whole
    assert not any(cache.iterdir())


@pytest.mark.parametrize("changed", ["net.onnx", "net.data"])
def test_an_onnx_model_with_another_file_is_another(
    changed: str,
    tmp_path: Path,
    converted: ir.Model,  # noqa: F811
) -> None:
    """Its weights may be in external files."""
    model = onnx.load(tmp_path / "net.onnx")
    onnx.save(model, tmp_path / "net.onnx", save_as_external_data=True, location="net.data", size_threshold=0)
    side = f"onnxruntime:{tmp_path / 'net.onnx'}"
    before, path = _identify(side), tmp_path / changed
    assert before is not None
    assert _identify(side) == before
    path.write_bytes(path.read_bytes()[:-1] + b"\1")
    assert _identify(side) != before


def test_an_error_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, inputs = network("plain_cnn", tmp_path)
    cache = tmp_path / "cache"
    with pytest.raises(Interrupted), caching(cache), showing(interrupting(0.7)):
        debug.compare(model, inputs, "numpy")
    assert any(cache.iterdir())

    def fail(part: float, _: str) -> None:
        if part > 0.9:
            raise ir.InputError("something is wrong")

    with pytest.raises(ir.InputError), caching(cache), showing(fail):
        debug.compare(model, inputs, "numpy")
    assert not any(cache.iterdir())


class _Bar:
    """A progress bar that records its state."""

    def __init__(self) -> None:
        self.items: list[str] = []

    def advance(self, steps: float = 1, item: str = "") -> None:
        """Record an item."""
        self.items.append(item)


def test_the_time_that_is_left_follows_from_what_was_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    """With half of the work cached and a quarter computed in a minute, the last quarter takes a minute, not twenty seconds."""
    now = [100.0]
    monkeypatch.setattr("ir_runtime.cli.long.time.monotonic", lambda: now[0])
    bar = _Bar()
    estimate = _Estimate(bar)  # type: ignore[arg-type]
    estimate.skip(0.5)
    estimate.show(0.5, "known")
    now[0] += 60
    estimate.show(0.75, "computed")
    assert bar.items == ["known", "about 1:00 min left"]


@pytest.mark.parametrize("kind", ["compare", "budget", "bisect", "reduce"])
def test_what_is_known_counts_as_skipped(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work finished before the interrupt is skipped and counts for no time."""
    model, inputs = network("plain_cnn", tmp_path)
    work: dict[str, Callable[[], Any]] = {
        "compare": lambda: debug.compare(model, inputs, "numpy"),
        "budget": lambda: debug.budget(model, inputs, "int8"),
        "bisect": lambda: debug.bisect(model, inputs, _edited(tmp_path)),
        "reduce": lambda: debug.reduce(model, inputs, _edited(tmp_path)),
    }
    skipped: list[float] = []
    at = 0.36 if kind == "reduce" else 0.8
    with pytest.raises(Interrupted), caching(tmp_path / "cache"), showing(interrupting(at), skipped.append):
        work[kind]()
    assert not skipped
    with caching(tmp_path / "cache"), showing(lambda *_: None, skipped.append):
        work[kind]()
    assert 0.5 * at < sum(skipped) < at + 1e-9


def _edited(folder: Path) -> str:
    """Write the network with other dilations; return its path."""
    text, other = (folder / "plain_cnn.xml").read_text(), folder / "other.xml"
    values = 'dilations="{0}, {0}" pads_begin="{0}, {0}" pads_end="{0}, {0}"'
    other.write_text(text.replace(values.format(1), values.format(2)))
    other.with_suffix(".bin").write_bytes((folder / "plain_cnn.bin").read_bytes())
    return str(other)
