"""``ir-runtime conformance``: output, files and errors."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from harness.conformance_cases import relu, small_corpus, write_folder, write_zip

from ir_runtime.conformance.corpus import Corpus

Invoke = Callable[[str], Result]
Check = Callable[..., Result]


@pytest.fixture(autouse=True)
def corpus(folder: Path) -> Path:
    (folder / "known.txt").write_text("Relu-1/0002  # rounds up\n")
    (folder / "bad.txt").write_text("Relu-1/0002\n")
    write_folder(folder / "good", [relu()])
    return write_zip(folder / "corpus.zip", small_corpus())


def test_a_run_is_scored(check: Check) -> None:
    assert check("conformance_run", "conformance run corpus.zip --against numpy").exit_code == 1


def test_expected_failures_are_no_findings(check: Check) -> None:
    found = check("conformance_xfail", "conformance run corpus.zip --against numpy --xfail known.txt")
    assert found.exit_code == 0


def test_cases_are_selected(invoke: Invoke) -> None:
    found = invoke("conformance run corpus.zip --against numpy --select 'Relu*' --json")
    assert json.loads(found.stdout)["total"] == 3


def test_cases_that_fail_are_kept(folder: Path, invoke: Invoke) -> None:
    line = "conformance run corpus.zip --against numpy --select Relu-1 --failures bugs"
    assert "saved 1 case in bugs" in invoke(line).stderr
    assert [case.id for case in Corpus(folder / "bugs").cases] == ["Relu-1/0002"]


def test_generated_cases_are_run_and_made_smaller(folder: Path, invoke: Invoke) -> None:
    (folder / "device.py").write_text("import sys; sys.exit(1)")
    line = (
        f"conformance run --generate 2 --select Exp-1 --against '{sys.executable} device.py' --failures bugs"
    )
    found = invoke(line)
    assert found.exit_code == 1
    assert "0 of 2 cases pass" in found.stdout
    assert len(Corpus(folder / "bugs").cases) == 2


def test_results_are_written_and_compared(folder: Path, check: Check, invoke: Invoke) -> None:
    line = "conformance run corpus.zip --against numpy -o run.json -o run.xml -o run.html --resume run.log"
    assert invoke(line).exit_code == 1
    assert (folder / "run.html").read_text().startswith("<!doctype html>")
    assert "<testsuites" in (folder / "run.xml").read_text()
    record = json.loads((folder / "run.json").read_text())
    for case in record["cases"]:
        case["status"] = {"Relu-1/0002": "passed", "Relu-1/0001": "failed"}.get(case["id"], case["status"])
    (folder / "new.json").write_text(json.dumps(record | {"version": "9.9"}))
    (folder / "run.json").write_text(
        json.dumps(json.loads((folder / "run.json").read_text()) | {"version": "9.8"})
    )
    found = check("conformance_compare", "conformance compare run.json new.json -o changes.html")
    assert found.exit_code == 1
    assert "9.8 → 9.9" in (folder / "changes.html").read_text()
    assert invoke("conformance compare new.json new.json").exit_code == 0


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("no_side", "run corpus.zip"),
        ("no_corpus", "run --against numpy"),
        ("no_file", "run missing.zip --against numpy"),
        ("no_operation", "run --generate 2 --select Rel --against numpy"),
        ("both", "run good --generate 2 --against numpy"),
        ("no_match", "run good --against numpy --select Tan"),
        ("no_runtime", "run good --against nump"),
        ("no_device", "run good --against openvino:"),
        ("no_reason", "run good --against numpy --xfail bad.txt"),
        ("no_form", "run good --against numpy -o run.txt"),
        ("one_run", "compare run.json"),
        ("no_run", "compare known.txt known.txt"),
        ("compare_against", "compare known.txt known.txt --against numpy"),
        ("compare_junit", "compare old.json new.json -o x.xml"),
    ],
)
def test_usage_is_explained(check: Check, name: str, line: str) -> None:
    assert check(f"conformance_{name}", f"conformance {line}").exit_code == 2
