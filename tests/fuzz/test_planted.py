"""A sample of folders with planted modules; ``make fuzz`` tries more."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness.planted import FORMS, Form, Planted

from .planted import Trial, executed, trial


@pytest.mark.parametrize("number", range(3))
def test_what_is_planted_is_not_executed(number: int, tmp_path: Path) -> None:
    assert executed(trial(0, number), tmp_path) == []


@pytest.mark.parametrize("form", FORMS)
def test_what_is_executed_is_seen(form: Form, tmp_path: Path) -> None:
    planted = Planted(tmp_path / "models", tmp_path / "log", tmp_path / "home", ["numpy", "click"], form)
    planted.run("-c", "import click")
    assert planted.executed() == ["click in models", ""]


def test_trials_are_the_same_each_time() -> None:
    trials = [trial(0, number) for number in range(50)]
    assert trials == [trial(0, number) for number in range(50)]
    assert {made.start for made in trials} == {"script", "module"}
    assert {made.form for made in trials} == set(FORMS)
    assert isinstance(trials[0], Trial)
    assert len({made.command for made in trials}) > 10
