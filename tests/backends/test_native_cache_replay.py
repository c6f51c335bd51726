"""Runs with variables and growing caches are replayed, with the bits of runs that are not."""

from __future__ import annotations

from typing import Any

import numpy as np
import openvino as ov
import pytest
from models import llm, stateful
from models.compressed import f32

import ir_runtime as ir
from ir_runtime.backends import available
from ir_runtime.ir.tensor import Array

if "native" not in available():
    pytest.skip("native is not installed", allow_module_level=True)

from ir_runtime.backends.native.threading import replay

SIZES = llm.Sizes(layers=2, width=48, inner=64, heads=6, shared=2, vocabulary=50)
F32: dict[str, str] = {}
U8 = {"KV_CACHE_PRECISION": "u8"}
BEAMS = 2
KEPT = [0, 1]


class Pair:
    """Two requests that must always agree; the model of the second is never replayed."""

    def __init__(self, models: tuple[ir.CompiledModel, ir.CompiledModel]) -> None:
        self.replayed, self.plain = (model.create_infer_request() for model in models)

    def infer(self, feeds: dict[str, Array]) -> Array:
        """Return the first output."""
        found, wanted = self.replayed.infer(feeds), self.plain.infer(feeds)
        for one, other in zip(found.values(), wanted.values(), strict=True):
            np.testing.assert_array_equal(one, other)
        for one, other in zip(self.states(self.replayed), self.states(self.plain), strict=True):
            np.testing.assert_array_equal(one, other)
        return found[0]

    @staticmethod
    def states(request: ir.InferRequest) -> list[Array]:
        return [state.state.data for state in request.query_state()]

    def reset(self) -> None:
        for request in (self.replayed, self.plain):
            request.reset_state()


class Fallbacks:
    """Counts the replays that fell back to single steps because an array had another layout."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count, self._run = 0, replay.run_steps
        monkeypatch.setattr(replay, "run_steps", self.run)

    def run(self, *args: Any) -> None:
        self.count += 1
        self._run(*args)


@pytest.fixture
def fallbacks(monkeypatch: pytest.MonkeyPatch) -> Fallbacks:
    return Fallbacks(monkeypatch)


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> ir.Model:
    path = tmp_path_factory.mktemp("llama") / "model.xml"
    ov.save_model(llm.build(f32, SIZES), path, compress_to_fp16=False)
    return ir.read_model(path)


def compiled(model: ir.Model, config: dict[str, str] = F32) -> tuple[ir.CompiledModel, ir.CompiledModel]:
    """Return the model compiled twice, the second time without replays."""
    replayed, plain = (ir.compile_model(model, "CPU", config, backend="native") for _ in range(2))
    object.__setattr__(plain._plan.programs, "replayer", None)
    return replayed, plain


def step(tokens: int, past: int, seed: int, beams: list[int] = KEPT) -> dict[str, Array]:
    feeds = llm.step(tokens, past, SIZES, seed)
    rows = {name: np.repeat(feeds[name], BEAMS, 0) for name in feeds if name != "beam_idx"}
    rows["input_ids"] = np.random.default_rng(seed).integers(SIZES.vocabulary, size=(BEAMS, tokens))
    return rows | {"beam_idx": np.array(beams, np.int32)}


def generate(pair: Pair, prompt: int, steps: int, seed: int = 0, reordered: int = -1) -> None:
    pair.infer(step(prompt, 0, seed))
    for index in range(steps):
        beams = [1, 0] if index == reordered else KEPT
        pair.infer(step(1, prompt + index, seed + index, beams))


@pytest.mark.parametrize("config", [F32, U8], ids=["f32", "u8"])
def test_steps_of_later_texts_are_replayed(
    llama: ir.Model, config: dict[str, str], fallbacks: Fallbacks
) -> None:
    models = compiled(llama, config)
    pair = Pair(models)
    for seed in range(4):
        generate(pair, 5, 4, seed)
        pair.reset()
    assert not fallbacks.count
    programs = models[0]._plan.programs.recorded.values()
    assert len(programs) == 5
    assert max(len(program.instructions) for program in programs) == 1


@pytest.mark.parametrize("config", [F32, U8], ids=["f32", "u8"])
def test_beams_are_reordered_where_others_were_not(
    llama: ir.Model, config: dict[str, str], fallbacks: Fallbacks
) -> None:
    pair = Pair(compiled(llama, config))
    for seed, reordered in enumerate([-1, -1, -1, 0, 2, -1]):
        generate(pair, 6, 4, seed, reordered)
        pair.reset()


def test_a_prompt_of_another_length_comes_to_the_same_buffers(llama: ir.Model, fallbacks: Fallbacks) -> None:
    """This holds even when a buffer becomes full: capacities depend on lengths alone."""
    pair = Pair(compiled(llama))
    for prompt in (60, 60, 60, 58, 61, 64):
        generate(pair, prompt, 67 - prompt, prompt)
        pair.reset()
    assert not fallbacks.count


def test_requests_go_their_own_ways_from_one_state(llama: ir.Model) -> None:
    models = compiled(llama)
    for seed in range(3):  # the third text is replayed
        one, two = Pair(models), Pair(models)
        one.infer(step(5, 0, seed))
        for left, right in ((one.replayed, two.replayed), (one.plain, two.plain)):
            for mine, other in zip(left.query_state(), right.query_state(), strict=True):
                other.state = mine.state
        held = one.replayed.query_state()[0].state.data.copy()
        turns = ((one, 5), (two, 5), (one, 6))
        logits = [pair.infer(step(1, past, 10 * seed + index)) for index, (pair, past) in enumerate(turns)]
        assert not np.array_equal(*logits[:2])
        np.testing.assert_array_equal(Pair.states(two.replayed)[0][:, :, :5], held)


def test_results_that_callers_hold_stay_as_they_are(tmp_path: Any) -> None:
    ov.save_model(stateful.decoder(BEAMS), tmp_path / "decoder.xml", compress_to_fp16=False)
    model, _ = compiled(ir.read_model(tmp_path / "decoder.xml"))
    for seed in range(4):
        request, kept = model.create_infer_request(), []
        for index in range(4):
            new = np.random.default_rng(4 * seed + index).standard_normal((BEAMS, 2, 1, 4)).astype(np.float32)
            found = request.infer([new, np.array(KEPT, np.int32)])[1]
            np.testing.assert_array_equal(found[:, :, -1:], new)
            kept.append((found, found.copy()))
        for found, before in kept:
            np.testing.assert_array_equal(found, before)


def test_variables_are_read_and_assigned_by_replays(tmp_path: Any) -> None:
    for number, built in enumerate(
        (stateful.total(), stateful.cache(), stateful.previous(), stateful.input_before())
    ):
        path = tmp_path / f"{number}.xml"
        ov.save_model(built, path, compress_to_fp16=False)
        pair = Pair(compiled(ir.read_model(path)))
        shape = [2] if number > 1 else [1, 3 - number]
        for _ in range(4):
            for index in range(4):
                x = np.random.default_rng(index).standard_normal(shape).astype(np.float32)
                pair.infer({"x": x})
            pair.reset()
