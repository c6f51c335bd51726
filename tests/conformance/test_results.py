"""Scores, expected failures, comparison of two runs, and reports."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from lxml import etree

from ir_runtime.conformance.pages import difference_page, junit, run_page
from ir_runtime.conformance.results import Difference, Expected, Result, Run, Status, read_expected, read_run
from ir_runtime.errors import InputError


def result(id: str, status: Status = "passed", types: Sequence[str] = ("f32",), message: str = "") -> Result:
    operation = id.partition("/")[0]
    return Result(id, operation, "value", types, [f"{operation} C1"], status, message)


def sample() -> Run:
    results = [
        result("Add-1/0001"),
        result("Add-1/0002", "failed", ("f16", "f32"), "<script>alert(1)</script>"),
        result("Exp-1/0001", "unsupported", message="no Exp"),
        result("Exp-1/0002", "crashed", message="SIGFPE"),
    ]
    return Run("openvino", "2026.4.1", "corpus.zip", results)


def test_scores_count_all_but_the_unsupported() -> None:
    run = sample()
    assert (run.score.passed, run.score.total) == (1, 3)
    assert {name: str(score) for name, score in run.scores("operation").items()} == {
        "Add-1": "1 of 2",
        "Exp-1": "0 of 1",
    }
    assert {name: str(score) for name, score in run.scores("type").items()} == {
        "f16": "0 of 1",
        "f32": "1 of 3",
    }
    assert list(run.scores("clause")) == ["Add-1 C1", "Exp-1 C1"]
    assert [failing.id for failing in run.failing] == ["Add-1/0002", "Exp-1/0002"]


def test_expected_failures_fail_and_nothing_else(tmp_path: Path) -> None:
    file = tmp_path / "known.txt"
    file.write_text("# known\n\nAdd-1/0002  # rounds twice\nExp-1/*  # dies\nAdd-1/0001 # mended?\n")
    run = sample().mark_expected(read_expected(file))
    assert run.failing == []
    assert [case.id for case in run.unexpected_passes] == ["Add-1/0001"]
    assert [case.expected for case in run.results] == ["mended?", "rounds twice", "dies", "dies"]


def test_failures_may_be_expected_in_some_types(tmp_path: Path) -> None:
    file = tmp_path / "known.txt"
    file.write_text("Add-1/* u4 f16  # rounds twice\nExp-1/* u4  # dies\n")
    run = sample().mark_expected(read_expected(file))
    assert [failing.id for failing in run.failing] == ["Exp-1/0002"]
    file.write_text("Add-1/0002 u5  # rounds twice\n")
    with pytest.raises(InputError, match="expected the id of a case"):
        read_expected(file)


def test_patterns_may_match_cases_that_pass() -> None:
    run = sample().mark_expected([Expected("Add-1/*", "some round twice")])
    assert run.unexpected_passes == []
    assert [failing.id for failing in run.failing] == ["Exp-1/0002"]


@pytest.mark.parametrize("line", ["Add-1/0002", "Add-1/0002 Add-1/0003 # both", "Add-1/0002 #"])
def test_expected_failures_need_a_reason(tmp_path: Path, line: str) -> None:
    file = tmp_path / "known.txt"
    file.write_text(f"# known\n{line}\n")
    with pytest.raises(InputError, match=r"known.txt:2: expected the id of a case and a reason"):
        read_expected(file)


def test_a_run_is_read_as_it_was_written(tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    file.write_text(json.dumps(sample().record()))
    assert read_run(file).record() == sample().record()


@pytest.mark.parametrize("text", ["", "[]", '{"against": 1}', "[" * 100_000])
def test_what_is_no_run_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "run.json"
    file.write_text(text)
    with pytest.raises(InputError, match="is not the JSON of a run"):
        read_run(file)


def difference() -> Difference:
    results = [
        result("Add-1/0001", "failed", message="worse"),
        result("Add-1/0002"),
        result("Exp-1/0002", "hung"),
        result("Sin-1/0001"),
    ]
    return Difference(sample(), Run("openvino", "2026.5.0", "corpus.zip", results))


def test_runs_are_compared_case_by_case() -> None:
    assert str(difference()) == "2026.4.1 → 2026.5.0: 1 fixed, 1 new, 1 changed, 1 added, 1 removed"
    found = difference().record()
    assert {name: [case["id"] for case in found[name]] for name in ("fixed", "new", "changed", "added", "removed")} == {  # type: ignore[index, union-attr, call-overload]
        "fixed": ["Add-1/0002"], "new": ["Add-1/0001"], "changed": ["Exp-1/0002"], "added": ["Sin-1/0001"],
        "removed": ["Exp-1/0001"],
    }  # fmt: skip
    other = Difference(sample(), Run("numpy", "0.1", "corpus.zip", sample().results))
    assert str(other) == "openvino 2026.4.1 → numpy 0.1: 0 fixed, 0 new"


def test_junit_has_a_suite_for_each_operation() -> None:
    root = etree.fromstring(junit(sample().mark_expected([Expected("Exp-1/0002", "dies")])).encode())
    assert (root.get("tests"), root.get("failures"), root.get("skipped")) == ("4", "1", "2")
    assert [suite.get("name") for suite in root] == ["Add-1", "Exp-1"]
    assert [case.get("message") for case in root.iter("skipped")] == ["no Exp", "dies"]
    (failure,) = root.iter("failure")
    assert failure.get("message") == "<script>alert(1)</script>"


@pytest.mark.parametrize("page", [run_page(sample()), difference_page(difference())])
def test_pages_escape_what_runtimes_say_and_load_nothing(page: str) -> None:
    assert "<script" not in page
    assert "default-src 'none'" in page
    assert page.count("</html>") == 1
    assert "Add-1/" in page.replace("<wbr>", "")
