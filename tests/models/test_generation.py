"""A language model with its KV cache in variables, token by token, against OpenVINO."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from harness.oracle import PLUGIN, core

import ir_runtime
from ir_runtime.backends import available
from ir_runtime.ir.tensor import Array
from models.zoo import example_inputs, ir_path

pytestmark = pytest.mark.oracle
STEPS = 32


def requests(backend: str) -> tuple[Any, Any]:
    """Our request and OpenVINO's, with empty caches."""
    path = ir_path("llama")
    ours = ir_runtime.compile_model(path, backend=backend)
    return ours.create_infer_request(), core().compile_model(path, "CPU", PLUGIN).create_infer_request()


def run(request: Any, tokens: Array, seen: int, beams: list[int]) -> Array:
    """Return logits for more tokens of sequences that continue the `beams` of the previous run."""
    batch, length = tokens.shape
    inputs = {
        "input_ids": tokens,
        "attention_mask": np.ones((batch, seen + length), np.int64),
        "position_ids": np.arange(seen, seen + length)[None].repeat(batch, 0),
        "beam_idx": np.array(beams, np.int32),
    }
    return np.array(request.infer(inputs)[0])


def generate(request: Any, prompt: Array, steps: int = STEPS) -> tuple[list[int], list[Array]]:
    """Generate greedily; return the tokens and their logits."""
    tokens: list[int] = []
    logits = [run(request, prompt, 0, [0])[:, -1]]
    while len(tokens) < steps:
        tokens.append(int(logits[-1].argmax()))
        seen = prompt.shape[1] + len(tokens) - 1
        logits.append(run(request, np.array([tokens[-1:]]), seen, [0])[:, -1])
    return tokens, logits


@pytest.mark.parametrize("backend", available())
def test_generates_the_same_tokens(backend: str) -> None:
    ours, theirs = requests(backend)
    prompt = example_inputs("llama")["input_ids"]
    found, wanted = generate(ours, prompt), generate(theirs, prompt)
    assert found[0] == wanted[0]
    assert len(set(found[0])) > STEPS // 4
    np.testing.assert_allclose(found[1], wanted[1], rtol=1e-3, atol=1e-4)
    same_state(ours, theirs, prompt.shape[1] + STEPS)


@pytest.mark.parametrize("backend", available())
def test_starts_anew_after_reset(backend: str) -> None:
    ours, theirs = requests(backend)
    for seed in (0, 1):
        prompt = example_inputs("llama", seed)["input_ids"]
        assert generate(ours, prompt, 4)[0] == generate(theirs, prompt, 4)[0]
        ours.reset_state()
        theirs.reset_state()


@pytest.mark.parametrize("backend", available())
def test_a_prompt_at_once_or_in_pieces(backend: str) -> None:
    ours, _ = requests(backend)
    prompt = example_inputs("llama")["input_ids"]
    at_once = run(ours, prompt, 0, [0])
    ours.reset_state()
    pieces = [run(ours, prompt[:, a:b], a, [0]) for a, b in ((0, 4), (4, 5), (5, 9))]
    np.testing.assert_allclose(np.concatenate(pieces, 1), at_once, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("backend", available())
def test_beams(backend: str) -> None:
    """Sequences are exchanged, and one replaces the other."""
    ours, theirs = requests(backend)
    rng = np.random.default_rng(0)
    seen = 0
    for length, beams in ((5, [0, 1]), (1, [1, 0]), (1, [0, 1]), (1, [1, 1]), (2, [0, 1]), (1, [0, 0])):
        tokens = rng.integers(256, size=(2, length))
        found, wanted = (run(request, tokens, seen, beams) for request in (ours, theirs))
        np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-4)
        seen += length
        same_state(ours, theirs, seen)


@pytest.mark.parametrize("backend", available())
def test_more_beams_than_before(backend: str) -> None:
    """Three sequences continue one prompt."""
    ours, theirs = requests(backend)
    prompt = example_inputs("llama")["input_ids"]
    np.testing.assert_allclose(run(ours, prompt, 0, [0]), run(theirs, prompt, 0, [0]), rtol=1e-3, atol=1e-4)
    tokens = np.array([[3], [5], [7]])
    found, wanted = (run(request, tokens, 9, [0, 0, 0]) for request in (ours, theirs))
    np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-4)
    same_state(ours, theirs, 10)


def same_state(ours: Any, theirs: Any, length: int) -> None:
    """Require equal states by name, with the same number of tokens."""
    wanted = {state.name: np.array(state.state.data) for state in theirs.query_state()}
    found = {state.name: np.array(state.state.data) for state in ours.query_state()}
    assert found.keys() == wanted.keys()
    for name, array in found.items():
        assert array.shape[2] == length
        np.testing.assert_allclose(array, wanted[name], rtol=1e-3, atol=1e-4)
