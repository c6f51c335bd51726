"""A reproducible sample of empty tensors with huge dims; ``make oracle`` tries some for each operation."""

from __future__ import annotations

import zlib
from functools import cache
from random import Random

import numpy as np
import pytest

import ir_runtime as ir

from . import empties
from .corpus import Case, Corpus
from .empties import LIMITS, SINGLE, compare, emptied
from .lengths import DisagreementError
from .mutations import Recipe, mutant, recipe
from .target import compiled_backends
from .test_lengths import case
from .worker import Pool

INPUTS, EACH = 80, 4
"""Inputs that are always tried, and samples of each operation that are tried with ``make oracle``, once each."""


@cache
def corpus(every: bool = False) -> Corpus:
    return [case for case in empties.cases() if every or not zlib.crc32(case.name.encode()) % 23]


def recipes() -> list[Recipe]:
    return [recipe(corpus(), "empties", 0, number) for number in range(INPUTS)]


def of_every_operation() -> list[Recipe]:
    """Two or three variants of some samples of each operation."""
    samples: dict[str, list[int]] = {}
    for index, sample in enumerate(corpus(every=True)):
        samples.setdefault(sample.name.partition("(")[0], []).append(index)
    rng = Random(0)
    return [
        Recipe("empties", index, index, tuple(rng.randrange(1 << 32) for _ in range(rng.choice((2, 2, 3)))))
        for indices in samples.values()
        for index in indices[:: -(-len(indices) // EACH)]
    ]


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.oracle)])
def test_lengths_without_elements_take_neither_memory_nor_time(every: bool) -> None:
    """In a subprocess with bounded CPU time for each input."""
    outcomes, findings = set(), []
    with Pool(corpus(every), 2 if every else 1, compiled_backends()) as pool:
        for made, result in pool.run(of_every_operation() if every else recipes()):
            if result.finding:
                findings.append(
                    f"{result.finding}\n{corpus(every)[made.base].name}: {made}\n{result.detail[-600:]}"
                )
            outcomes.add(result.outcome)
    assert not findings, "\n\n".join(findings)
    assert {"result", "IR402", "IR501"} <= outcomes, "some lengths are right, some are refused in each way"


def test_a_recipe_makes_the_same_each_time() -> None:
    for made in recipes()[:20]:
        first, second = (mutant(corpus(), made) for _ in range(2))
        assert first.xml == second.xml
        assert [x.shape for x in first.inputs or ()] == [x.shape for x in second.inputs or ()]


def test_lengths_are_0_and_huge() -> None:
    shapes = {x.shape for number in range(60) for x in emptied(case(), (number, number)).inputs or ()}
    assert all(0 in shape or np.prod(shape) <= empties.LARGEST_INPUT for shape in shapes)
    assert max(length for shape in shapes for length in shape) >= 1 << 31


@pytest.mark.parametrize("size", [SINGLE + 1, 2])
def test_memory_beyond_the_limit_is_found(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """In one array, or in many small ones."""

    def outcome(model: ir.Model, backend: str, inputs: object, limits: ir.Limits) -> object:
        try:
            return (
                [np.empty(size, np.uint8)]
                if size > 2
                else [np.empty(LIMITS.memory, np.uint8) for _ in range(5)]
            )
        except MemoryError:
            return []

    monkeypatch.setattr(empties, "outcome_of", outcome)
    made: Case = emptied(case(), (1, 1))
    with pytest.raises(DisagreementError, match="memory on reference: Relu"):
        compare(made, ("reference",))
