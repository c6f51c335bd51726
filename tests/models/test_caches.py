"""Caches that grow by a token per run: appended in place, without affecting other arrays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
import pytest
from harness.oracle import PLUGIN, core

import ir_runtime
from ir_runtime.compiler.kv_cache import ROOM, append_kernel
from ir_runtime.ir.tensor import Array
from models.stateful import decoder


@pytest.fixture
def path(tmp_path: Path) -> Path:
    ov.serialize(decoder(1), tmp_path / "decoder.xml")
    return tmp_path / "decoder.xml"


@pytest.fixture
def two_beams(tmp_path: Path) -> Path:
    ov.serialize(decoder(2), tmp_path / "decoder.xml")
    return tmp_path / "decoder.xml"


def token(beams: int, length: int = 1, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal((beams, 2, length, 4)).astype(np.float32)


@pytest.mark.parametrize("backend", ["reference", "numpy"])
def test_agrees_with_openvino_also_when_beams_are_reordered(two_beams: Path, backend: str) -> None:
    ours = ir_runtime.compile_model(two_beams, backend=backend).create_infer_request()
    theirs = core().compile_model(two_beams, "CPU", PLUGIN).create_infer_request()
    for run in range(2 * ROOM):
        beams = np.array([1, 0] if run in (3, 4, 90) else [0, 0] if run == 50 else [0, 1], np.int32)
        inputs = [token(2, 5 if run == 0 else 1, run), beams]
        wanted = theirs.infer(inputs)
        found = ours.infer(inputs)
        for i in range(2):
            np.testing.assert_allclose(found[i], wanted[i], rtol=1e-5, atol=1e-6)


def test_what_was_given_out_stays_as_it_is(path: Path) -> None:
    """A result, a saved state and a request started from it are independent."""
    compiled = ir_runtime.compile_model(path)
    one, two = compiled.create_infer_request(), compiled.create_infer_request()
    beams = np.array([0], np.int32)
    first = one.infer([token(1, 3), beams])[1]
    before = first.copy()
    (saved,) = one.query_state()
    two.query_state()[0].state = saved.state
    left = one.infer([token(1, 1, 1), beams])[1]
    right = two.infer([token(1, 1, 2), beams])[1]
    np.testing.assert_array_equal(first, before)
    np.testing.assert_array_equal(left[:, :, :3], right[:, :, :3])
    np.testing.assert_array_equal(left[:, :, 3:], token(1, 1, 1))
    np.testing.assert_array_equal(right[:, :, 3:], token(1, 1, 2))


class Kept:
    """An observer that records the address of the concatenated cache."""

    def __init__(self) -> None:
        self.places: list[Any] = []

    def before(self, step: ir_runtime.Step, inputs: Any) -> None:
        pass

    def after(self, step: ir_runtime.Step, outputs: Any, seconds: float) -> None:
        if step.layer.type == "Concat" and outputs[0].ndim == 4:
            self.places.append(outputs[0].__array_interface__["data"][0])


def test_most_runs_copy_nothing(path: Path) -> None:
    compiled = ir_runtime.compile_model(path)
    kept, state, beams = Kept(), {}, np.array([0], np.int32)
    for run in range(1000):
        compiled._run_arrays([token(1, 1, run), beams], [kept], variables=state)
    assert len(kept.places) == 1000
    moves = sum(a != b for a, b in zip(kept.places, kept.places[1:], strict=False))
    assert moves <= 12  # a buffer half as large again each time: 64, 96 … 1000


def test_one_buffer_is_not_written_twice() -> None:
    append = append_kernel(0)
    start = append(np.zeros((2, 3)), np.ones((1, 3)))
    one, two = append(start, np.full((1, 3), 2.0)), append(start, np.full((1, 3), 3.0))
    assert one[3].tolist() == [2, 2, 2]
    assert two[3].tolist() == [3, 3, 3]
    assert not np.shares_memory(one, two)


@pytest.mark.parametrize("held", [(2, 0, 3), (2, 5, 3), (0, 4, 3)])
def test_the_size_of_a_longer_cache_is_known_without_inference(held: tuple[int, ...]) -> None:
    """This includes an empty cache, as after a reset."""
    append = append_kernel(-2)
    arrays = np.zeros(held), np.ones((held[0], 2, 3))
    assert append.result_shape(*arrays) == append(*arrays).shape  # type: ignore[attr-defined]


def test_a_view_of_a_buffer_is_no_cache() -> None:
    append = append_kernel(1)
    whole = append(np.zeros((2, 3)), np.ones((2, 1)))
    part = append(whole[:, 1:], np.full((2, 1), 5.0))
    assert part.tolist() == [[0, 0, 1, 5]] * 2
    assert whole.tolist() == [[0, 0, 0, 1]] * 2
    assert append(whole[::-1], np.full((2, 1), 7.0)).tolist() == [[0, 0, 0, 1, 7]] * 2
