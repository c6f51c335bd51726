"""A reproducible sample of slightly wrong dims; ``make fuzz FUZZ="--kind lengths"`` tries more."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from harness.nets import Net

import ir_runtime as ir

from . import lengths
from .corpus import Case, Corpus, read, write
from .lengths import DisagreementError, compare, opened
from .mutations import mutant, recipe
from .target import compiled_backends
from .worker import MEMORY, Pool

INPUTS = 150


@cache
def corpus() -> Corpus:
    return list(lengths.cases())[::7]


def test_the_outcome_is_that_of_the_reference() -> None:
    """In a subprocess, which may crash on invalid reads."""
    outcomes = set()
    with Pool(corpus(), 1, compiled_backends()) as pool:
        for made, result in pool.run(recipe(corpus(), "lengths", 0, number) for number in range(INPUTS)):
            assert not result.finding, f"{result.finding}\n{made}\n{result.detail}"
            assert result.memory < MEMORY
            outcomes.add(result.outcome)
    assert {"result", "IR401", "IR402"} <= outcomes, "some lengths are right, some are refused in each way"


def test_a_recipe_makes_the_same_each_time() -> None:
    for number in range(20):
        first, second = (mutant(corpus(), recipe(corpus(), "lengths", 0, number)) for _ in range(2))
        assert first.xml == second.xml
        for one, other in zip(first.inputs or (), second.inputs or (), strict=True):
            np.testing.assert_array_equal(one, other, strict=True)


def case(**changed: object) -> Case:
    net = Net()
    x = net.parameter("x", "2,3,4")
    net.result(net.op("ReLU", x, out="FP32 2 3 4"))
    return replace(Case("relu", net.xml(), net.weights, (np.ones((2, 3, 4), np.float32),)), **changed)


def test_lengths_are_open_and_wrong() -> None:
    shapes, inputs = set(), set()
    for number in range(60):
        made = opened(case(), (number, number))
        assert made.inputs is not None
        shapes.add(str(ir.read_model(made.xml).input().partial_shape))
        inputs.add(made.inputs[0].shape)
    assert {"[?,?,?]", "[2,3,4]", "[?,3,4]"} <= shapes
    assert {(3, 3, 4), (2, 2, 4), (2, 3, 8), (0, 3, 4), (3, 2, 4)} <= inputs


@pytest.mark.parametrize("how", ["other results", "not refused", "refused"])
def test_a_backend_that_differs_is_found(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    refusal = ir.InputError("wrong")
    outcomes = {
        "other results": ([np.zeros(2)], [np.ones(2)]),
        "not refused": ([np.zeros(2)], refusal),
        "refused": (refusal, [np.ones(2)]),
    }
    found, wanted = outcomes[how]
    monkeypatch.setattr(
        lengths, "outcome_of", lambda model, backend, inputs: wanted if backend == "reference" else found
    )
    with pytest.raises(DisagreementError, match=f"{how} on numpy: Relu"):
        compare(case(), ("reference", "numpy"))


def test_what_is_saved_is_read_again(tmp_path: Path) -> None:
    words, short = np.array(["a", "bc"], object), np.ones(3, ir.Type.bf16.to_dtype())
    saved = case(name="x", inputs=(words, short, np.array(True)))
    write(saved, tmp_path / "x.xml")
    found = read(tmp_path / "x.xml")
    assert (found.name, found.xml, found.weights) == (saved.name, saved.xml, saved.weights)
    assert [x.dtype for x in found.inputs or ()] == [x.dtype for x in saved.inputs or ()]
    for one, other in zip(found.inputs or (), saved.inputs or (), strict=True):
        np.testing.assert_array_equal(one, other)
