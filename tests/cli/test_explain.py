"""Each code has a page, whose example produces that code."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import ir_runtime as ir
from ir_runtime.cli import main
from ir_runtime.codes import Code
from ir_runtime.explanations import explanation

ROOT = Path(__file__).parents[2]
FENCED = re.compile(r"```(\w+)\n(.*?)\n```", re.DOTALL)
NUMBERS = {"IR306": (9).to_bytes(8, "little")}


def shown(code: Code) -> set[str]:
    """Return the codes that the example produces, by validating or by running a command."""
    page = explanation(code)
    ((kind, text),) = FENCED.findall(page.example)
    if kind == "console":
        said = CliRunner().invoke(main, text.removeprefix("$ ir-runtime ").split()).output
        return set(re.findall(r"IR\d{3}", said))
    size = re.search(r"\.bin of (\d+) bytes", page.example)
    weights = NUMBERS.get(code, b"").ljust(int(size[1]), b"\0") if size else None
    release = re.search(r"--for ([\d.]+)", page.example)
    found = ir.validate(text.encode(), weights, for_release=release and release[1])
    return {finding.code for finding in found}


@pytest.mark.parametrize("code", list(Code))
def test_the_example_shows_the_code(code: Code, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert shown(code) == {code}


@pytest.mark.parametrize("code", list(Code))
def test_pages_are_whole(code: Code) -> None:
    page = explanation(code)
    assert all((page.meaning, page.example, page.fix))
    assert f"# {code}: {code.summary}\n" in page.markdown
    assert page.text().startswith(f"{code}: {code.summary}\n")
    assert "```" not in page.text()
    assert max(map(len, page.meaning.splitlines())) <= 100


def test_every_page_has_a_code() -> None:
    pages = {path.stem for path in (ROOT / "ir_runtime/explanations").glob("*.md")}
    assert pages == {code.value for code in Code}


def test_a_page(check: Callable[..., Result]) -> None:
    assert check("explain_ir301", "explain ir301").exit_code == 0


def test_the_list(check: Callable[..., Result]) -> None:
    assert check("explain_all", "explain").exit_code == 0


def test_no_such_code(check: Callable[..., Result]) -> None:
    assert check("explain_unknown", "explain IR31").exit_code == 2


def test_json(invoke: Callable[[str], Result]) -> None:
    page = json.loads(invoke("explain IR103 --json").stdout)
    assert page.keys() == {"schema", "code", "summary", "meaning", "example", "fix"}
    listed = json.loads(invoke("explain --json").stdout)["codes"]
    assert [entry["code"] for entry in listed] == [code.value for code in Code]
