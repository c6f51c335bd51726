"""A reproducible sample of broken models; ``make fuzz`` tries more."""

from __future__ import annotations

from functools import cache

import pytest

from .corpus import Corpus, build
from .mutations import OF_FILES, Kind, mutant, recipe
from .worker import MEMORY, SECONDS, guarded

INPUTS = 60
SEEDS = 2


@cache
def corpus() -> Corpus:
    return build()


@pytest.mark.parametrize("kind", OF_FILES)
@pytest.mark.parametrize("seed", range(SEEDS))
def test_the_outcome_is_a_model_or_an_error(kind: Kind, seed: int) -> None:
    outcomes = set()
    for number in range(INPUTS):
        made = recipe(corpus(), kind, seed, number)
        result = guarded(mutant(corpus(), made), seconds=4 * SECONDS)
        assert not result.finding, f"{result.finding}\n{made}\n{result.detail}"
        assert result.memory < MEMORY
        outcomes.add(result.outcome)
    assert len(outcomes) > 4, "changes go deep enough to be told apart"


def test_names_stay_names() -> None:
    """Tries more than the known hostile words, on the models of the corpus."""
    for number in range(INPUTS // 3):
        made = recipe(corpus(), "names", 0, number)
        result = guarded(mutant(corpus(), made), seconds=4 * SECONDS)
        assert not result.finding, f"{result.finding}\n{made}\n{result.detail}"


@pytest.mark.parametrize("kind", [*OF_FILES, "names"])
def test_a_recipe_makes_the_same_each_time(kind: Kind) -> None:
    for number in range(20):
        made = recipe(corpus(), kind, 0, number)
        assert mutant(corpus(), made) == mutant(corpus(), made)
        assert made == recipe(corpus(), kind, 0, number)


def test_good_models_pass() -> None:
    some = [case for case in corpus()[::9] if case.xml.lstrip().startswith(b"<?xml")]
    assert {guarded(case, seconds=4 * SECONDS).outcome for case in some} == {"model"}
