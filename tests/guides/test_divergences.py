"""The guide to divergences and its program have the same cases, each of which runs here."""

from __future__ import annotations

import re

import numpy as np
import pytest
from bench.divergences import CASES

from ir_runtime import compile_model
from ir_runtime.guides import guide
from ir_runtime.ops import registry
from ir_runtime.ops._define.describe import link


def _names(text: str) -> list[str]:
    """Return the cases in the first column of a table."""
    rows = [line for line in text.splitlines() if line.startswith("| `")]
    return [name for row in rows for name in re.findall(r"`([a-z0-9-]+)`", row.split("|")[1])]


def _pages(text: str) -> list[str]:
    """Return the operations linked in a text."""
    return re.findall(r"(?<!^)\[([A-Z]\w+-\d+)\]", text, re.MULTILINE)


def test_the_guide_lists_every_case_and_says_whether_its_page_decides_it() -> None:
    listed, _, calculated = guide("divergences").text.partition("## By hand")
    decided, _, open_ones = calculated.partition("the page leaves a choice")
    assert _names(listed) == [*CASES]
    assert sorted(_names(decided) + _names(open_ones)) == sorted(CASES)
    assert len(_names(decided)) >= 10


def test_every_row_links_its_page() -> None:
    text = guide("divergences").text
    rows = [line for line in text.splitlines() if line.startswith("| `")]
    assert all(_pages(row) for row in rows)
    urls = {cls.versioned_name(): link(cls) for cls in registry}
    links = dict(re.findall(r"^\[(.+)\]: (\S+)$", text, re.MULTILINE))
    assert links == {name: urls[name] for name in _pages(text)}


@pytest.mark.parametrize("name", CASES)
def test_every_case_runs_as_its_page_says(name: str) -> None:
    model, inputs = CASES[name]()
    results = compile_model(model)(inputs)
    assert all(np.asarray(results[index]).dtype.kind in "fiub" for index in range(len(results)))
