"""The behavior of runtimes at decisions: cases run and are described, and pages show the record."""

from __future__ import annotations

import datetime
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from conformance.values import cases_of
from harness.conformance_cases import counter, relu, write_zip, wrong
from harness.sample import Sample, case, ints, numbers

from engines import record
from engines.onnx_command import main, run
from engines.onnx_nodes import NoOperation
from ir_runtime.conformance.adapters import write_folder
from ir_runtime.conformance.case import Case
from ir_runtime.conformance.corpus import Corpus
from ir_runtime.conformance.judge import judge
from ir_runtime.conformance.results import Result, Status
from ir_runtime.ops import Op, registry
from ir_runtime.ops._define import engines as records
from ir_runtime.ops._define.describe import page

OURS = {"reference": "A 1", "numpy": "B 2"}


def operation(name: str) -> type[Op]:
    return next(cls for cls in registry if cls.versioned_name() == name)


def result(status: Status, message: str = "", kind: str = "value") -> Result:
    return Result("ReduceMax-1/D4", "ReduceMax-1", kind, ["f32"], (), status, message)


def in_onnxruntime(folder: Path, sample: Sample) -> tuple[Case, Sequence[np.ndarray]]:
    (found,) = cases_of("X-1/0001", sample)
    write_folder(folder, found)
    return found, run(folder)


@pytest.mark.parametrize(
    ("results", "words"),
    [
        ([result("passed")], "as here"),
        ([result("failed", "first at [1]: expected 2.0, got nan")], "nan in place of 2.0"),
        ([result("failed", "the model must be refused, got outputs", "refusal")], "is not refused"),
        ([result("crashed", "SIGFPE")], "the process dies: SIGFPE"),
        ([result("refused", "no such axis")], "an error: no such axis"),
        ([result("hung", "no answer within 60 s")], "no answer"),
        ([result("unsupported", "no operation corresponds")], "no operation corresponds"),
        ([result("unsupported", "no type"), result("passed")], "as here"),
        (
            [result("passed"), result("passed"), result("failed", "expected 0, got 1")],
            "as here in 2 of 3 cases; 1 in place of 0",
        ),
    ],
)
def test_outcomes_are_put_into_words(results: Sequence[Result], words: str) -> None:
    assert record.outcome(results) == words


def test_only_the_answer_of_this_package_is_as_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Alternative outputs do not count here: the question is which one a runtime chooses."""
    monkeypatch.setattr(record, "runtimes", lambda: OURS)
    decision = operation("ReLU-1").decided()[0] if operation("ReLU-1").decided() else "zero is kept"
    cited = [f"ReLU-1 D1: {decision}"]
    other = replace(wrong(), clauses=cited, alternatives=[relu().expected])
    corpus = Corpus(write_zip(tmp_path / "corpus.zip", [replace(relu(), clauses=cited), other, relu(3)]))
    by_runtime = record.ask(corpus, corpus.cases)
    assert [*by_runtime] == ["A 1", "B 2"]
    for results in by_runtime.values():
        assert [(one.id, one.status) for one in results] == [
            ("Relu-1/0001", "passed"), ("Relu-1/0002", "failed"),
        ]  # fmt: skip
        assert record.outcome(results) == "as here in 1 of 2 cases; 0.0 in place of 5.0"


def test_the_record_has_each_decision(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record, "runtimes", lambda: OURS)
    decisions = operation("ReduceMax-1").decided()
    (shown,) = cases_of("ReduceMax-1/D1", case("ReduceMax-1", numbers(2, 3), ints()))
    cases = [replace(shown, clauses=[f"ReduceMax-1 D1: {decisions[0]}"])]
    corpus = Corpus(write_zip(tmp_path / "corpus.zip", cases))
    written = json.loads(record.text(corpus, corpus.cases, datetime.date(2026, 1, 2)))
    assert (written["day"], written["runtimes"]) == ("2026-01-02", ["A 1", "B 2"])
    assert written["decisions"]["ReduceMax-1"] == {
        decision: ["as here", "as here"] if decision == decisions[0] else [] for decision in decisions
    }


def test_pages_show_the_record(monkeypatch: pytest.MonkeyPatch) -> None:
    cls = operation("ReduceMax-1")
    outcomes = {
        decision: [] if number else ["as here", "a|b"] for number, decision in enumerate(cls.decided())
    }
    stored = {"day": "2026-01-02", "runtimes": ["A 1", "B 2"], "decisions": {"ReduceMax-1": outcomes}}
    monkeypatch.setattr(records, "_load_record", lambda: stored)
    lines = page(cls).splitlines()
    place = lines.index("## Engines at decisions")
    assert lines[place + 4 : place + 8] == [
        "| | A 1 | B 2 |", "|---|---|---|", "| D1 | as here | a\\|b |", "| D2 | no case shows it |  |",
    ]  # fmt: skip
    assert "## Engines at decisions" not in page(operation("Identity-16"))


def test_each_decision_has_an_entry() -> None:
    """After a decision is added or reworded, run ``make engines``."""
    decided = {cls.versioned_name(): cls.decided() for cls in registry if registry.is_own(cls)}
    stored = {name: records.engines(name) for name in decided}
    assert {name: [*stored[name].outcomes] for name in decided} == {
        name: [*decisions] for name, decisions in decided.items()
    }
    for engines in stored.values():
        assert {len(outcomes) for outcomes in engines.outcomes.values()} <= {0, len(engines.runtimes)}


@pytest.mark.parametrize(
    "sample",
    [
        case("ReduceMax-1", numbers(2, 3), ints(1), keep_dims=True),
        case("Convert-1", numbers(5, dtype="f32"), destination_type="bf16"),
        case("Convert-1", numbers(5, dtype="bf16"), destination_type="f32"),
        case("TopK-11", numbers(2, 5), np.int64(2), axis=1, mode="max", sort="value"),
        case("Gather-8", numbers(5, 2), ints(3, 0), np.int64(0), _constant=(2,)),
        case("ReduceSum-1", numbers(2, 3), ints(), _constant=(1,)),
        case("Equal-1", np.array(["a", "b"], object), np.array(["a", "c"], object)),
        case(
            "MaxPool-1",
            numbers(1, 2, 4, 4),
            strides=[2, 2],
            pads_begin=[0, 0],
            pads_end=[0, 0],
            kernel=[2, 2],
        ),
        case("FloorMod-1", ints(-7, 7), ints(2, -2)),
        case("Slice-8", numbers(6), ints(4), ints(0), ints(-2)),
    ],
    ids=str,
)
def test_onnx_runtime_is_asked_through_its_own_operations(tmp_path: Path, sample: Sample) -> None:
    found, outputs = in_onnxruntime(tmp_path, sample)
    assert judge(found, outputs).message == ""


@pytest.mark.parametrize(
    "sample",
    [
        case("FakeQuantize-1", numbers(2), *np.float32([0, 1, 0, 1]), levels=256),
        case("FloorMod-1", numbers(2), numbers(2)),
        case("Add-1", numbers(2, 3), numbers(2), auto_broadcast="pdpd"),
        case("Sin-1", ints(1)),
        case("Convert-1", numbers(2), destination_type="u2"),
    ],
    ids=str,
)
def test_where_nothing_corresponds_this_is_said(tmp_path: Path, sample: Sample) -> None:
    with pytest.raises(NoOperation, match=r"corresponds|not implemented"):
        in_onnxruntime(tmp_path, sample)


def test_as_a_command_it_writes_outputs_or_says_why_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cases = {
        "right": relu(),
        "several": counter(),
        "refused": next(
            cases_of("X-1/1", case("LRN-1", numbers(1, 2, 3, 3), ints(1), alpha=1, beta=1, bias=1, size=2))
        ),
    }
    codes = {}
    for name, found in cases.items():
        (tmp_path / name).mkdir()
        write_folder(tmp_path / name, found)
        codes[name] = main(tmp_path / name)
    assert codes == {"right": 0, "several": 4, "refused": 1}
    assert np.load(tmp_path / "right" / "outputs" / "0.npy").tolist() == [0, 2]
    assert capsys.readouterr().out == "several operations\nsize_ % 2 == 1 was false.\n"
