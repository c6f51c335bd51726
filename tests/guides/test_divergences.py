"""The page of divergences and the program that shows them have the same cases, and each is a model that runs here."""

from __future__ import annotations

import re

import numpy as np
import pytest
from bench.divergences import CASES

from ir_runtime import compile_model
from ir_runtime.guides import guide


def _names(text: str) -> list[str]:
    """The cases in the first column of a table."""
    rows = [line for line in text.splitlines() if line.startswith("| `")]
    return [name for row in rows for name in re.findall(r"`([a-z0-9-]+)`", row.split("|")[1])]


def test_the_page_lists_every_case() -> None:
    listed, _, calculated = guide("divergences").text.partition("## By hand")
    assert _names(listed) == [*CASES]
    assert len(_names(calculated)) >= 10
    assert set(_names(calculated)) <= {*CASES}


@pytest.mark.parametrize("name", CASES)
def test_every_case_runs_as_its_page_says(name: str) -> None:
    model, inputs = CASES[name]()
    results = compile_model(model)(inputs)
    assert all(np.asarray(results[index]).dtype.kind in "fiub" for index in range(len(results)))
