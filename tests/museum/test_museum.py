"""The museum: known differences are cases, failures are grouped, and bundles describe the findings."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from harness.conformance_cases import relu

from ir_runtime.conformance.case import Case
from ir_runtime.conformance.corpus import Corpus
from ir_runtime.conformance.results import Result, Run, Status
from museum.exhibits import exhibits, page, ranges, write

RELEASES = ("2026.0", "2026.3", "2026.4")


def result(id: str, status: Status, message: str, types: tuple[str, ...] = ("f32",)) -> Result:
    return Result(id, "ReLU-1", "value", types, ["ReLU-1 C1"], status, message)


def runs() -> dict[str, Run]:
    wrong = "output 0: {} of 2 elements differ, first at [0]: expected {}, got {}"
    newest = [
        result("ReLU-1/0001", "failed", wrong.format(1, "5.0", "4.0")),
        result("ReLU-1/0002", "failed", wrong.format(2, "7.5", "1.0")),
        result("ReLU-1/0003", "failed", wrong.format(1, "nan", "0.0")),
        result("ReLU-1/0004", "crashed", "SIGFPE"),
        result("ReLU-1/0005", "passed", ""),
        result("ReLU-1/0006", "unsupported", "none"),
    ]
    former = [replace(found, status="passed") for found in newest[:2]] + newest[2:]
    both = {"2026.0": newest, "2026.3": former, "2026.4": newest}
    return {name: Run("openvino", name, "corpus", results) for name, results in both.items()}


def read(identity: str) -> Case:
    case = replace(relu(), id=identity, clauses=["ReLU-1 C1"])
    return replace(case, notes="", weights=bytes(64)) if identity.endswith("1") else case


def test_failures_are_grouped_by_what_differs(tmp_path: Path) -> None:
    found = exhibits(runs(), read)
    assert [(e.case.id, e.alike, list(e.releases)) for e in found] == [
        ("ReLU-1/0002", 2, ["2026.0", "2026.4"]),
        ("ReLU-1/0003", 1, list(RELEASES)),
        ("ReLU-1/0004", 1, list(RELEASES)),
    ]
    for exhibit in found:
        write(tmp_path, exhibit, RELEASES)
    assert len(Corpus(tmp_path).cases) == 3
    text = (tmp_path / "ReLU-1-0004" / "issue.md").read_text()
    assert "OpenVINO 2026.0–2026.4" in text
    assert "SIGFPE" in text
    assert "ReLU-1 C1" in text
    assert sum(line.startswith("| ReLU") for line in page(found, RELEASES)) == 3


def test_causes_that_operations_share_are_one_difference() -> None:
    """Missing element types affect all operations; other differences of these types do not count as such."""
    wrong = "output 0: 1 of 2 elements differ, first at [0]: expected {}, got {}"
    differences = {
        "ReLU-1/0001": (wrong.format("0.1495399515838437", "0.1495399624109268"), "f64"),
        "Sin-1/0001": (wrong.format("0.4835437182186925", "0.4835436940193176"), "f64"),
        "Add-1/0001": (wrong.format("9223372036854775807", "2147483520"), "i64"),
        "Mod-1/0001": (wrong.format("-9223372036854775808", "-2147483648"), "i64"),
        "Pad-1/0001": (wrong.format("3.5", "0.0"), "f64"),
        "Range-1/0001": ("output 0: expected shape [0], got [2]", "i64"),
        "Gather-8/0001": (wrong.format("15", "6"), "i64"),
    }
    results = [
        replace(result(id, "failed", message, (type,)), operation=id.partition("/")[0])
        for id, (message, type) in differences.items()
    ]
    found = exhibits({"2026.4": Run("openvino", "2026.4", "corpus", results)}, read)
    assert sorted(exhibit.alike for exhibit in found) == [1, 1, 1, 2, 2]


def test_releases_are_shown_as_ranges() -> None:
    assert ranges(RELEASES, RELEASES) == "2026.0–2026.4"
    assert ranges(["2026.0", "2026.4"], RELEASES) == "2026.0, 2026.4"
