"""The guide of eight differences: its code creates the files, and its commands print the shown output."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

import ir_runtime
from ir_runtime.cli import main
from ir_runtime.guides import guide

EXAMPLES = Path(ir_runtime.__file__).parents[1] / "examples"


def masked(line: str) -> str:
    """Mask the numbers of a line, which depend on the machine, and the spaces around them."""
    line = re.sub(r"_\d+", "_N", line)
    return " ".join(re.sub(r"\b\d[\d.]*(e[+-]\d+)?", "N", line).split())


def test_what_the_guide_shows_is_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "examples").symlink_to(EXAMPLES)
    monkeypatch.chdir(tmp_path)
    text = guide("debugging-stories").text
    names, count = dict[str, object](), 0
    for language, block in re.findall(r"```(python|console)\n(.*?)```", text, re.DOTALL):
        if language == "python":
            exec(block, names)
            continue
        for part in block.split("$ ir-runtime ")[1:]:
            line, *shown = part.splitlines()
            printed = [masked(each) for each in CliRunner().invoke(main, line.split()).output.splitlines()]
            expected = [masked(each) for each in shown if each != "..."]
            rest = iter(printed)
            assert [each for each in expected if each not in rest] == [], (line, printed)  # in this order
            assert "..." in shown or len(printed) == len(shown), (line, printed)
            count += 1
    assert count >= 10
