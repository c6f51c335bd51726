"""The runner: a crash or a hang costs one case, results are logged, and worker processes end."""

from __future__ import annotations

import json
import os
import shlex
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from harness.conformance_cases import crashing, relu, small_corpus, write_folder

from ir_runtime.conformance import worker
from ir_runtime.conformance.case import Case
from ir_runtime.conformance.corpus import Corpus
from ir_runtime.conformance.results import Run, Status
from ir_runtime.conformance.runner import run
from ir_runtime.errors import InputError


def corpus_of(folder: Path, cases: Sequence[Case]) -> Corpus:
    return Corpus(write_folder(folder / "corpus", cases))


def statuses(finished: Run) -> dict[str, str]:
    return {result.id: result.status for result in finished.results}


def python(code: str) -> str:
    """A command that runs Python code in the folder of a case."""
    start = "import os, sys, json, numpy as np; os.chdir(sys.argv[-1])"
    return shlex.join([sys.executable, "-c", f"{start}\n{code}"])


@pytest.mark.parametrize("jobs", [1, 3])
def test_every_case_has_a_result(tmp_path: Path, jobs: int) -> None:
    corpus, shown = corpus_of(tmp_path, small_corpus()), list[str]()
    finished = run(corpus, "numpy", corpus.cases, jobs=jobs, show=shown.append)
    assert statuses(finished) == {
        "Add-1/0001": "passed", "Relu-1/0001": "passed", "Relu-1/0002": "failed", "Relu-1/0003": "passed",
    }  # fmt: skip
    assert sorted(shown) == [case.id for case in corpus.cases]
    assert finished.version


def test_a_crash_costs_one_case(tmp_path: Path) -> None:
    corpus = corpus_of(tmp_path, [crashing(), *small_corpus()])
    finished = run(corpus, "openvino", corpus.cases)
    assert statuses(finished) == {
        "Add-1/0001": "passed", "Gather-8/0001": "crashed", "Relu-1/0001": "passed", "Relu-1/0002": "failed",
        "Relu-1/0003": "passed",
    }  # fmt: skip
    assert next(result.message for result in finished.results if result.status == "crashed") == "SIGFPE"


@pytest.mark.parametrize(("second", "status"), [("passed", "passed"), ("refused", "refused")])
def test_a_case_without_memory_is_run_again_in_a_new_process(
    monkeypatch: pytest.MonkeyPatch, second: Status, status: Status
) -> None:
    """An earlier case might have corrupted the heap."""
    answers = [worker.Answer("passed"), worker.Answer("refused", "std::bad_alloc"), worker.Answer(second)]
    at_work = worker.Worker()
    stops: list[int] = []

    def answer(job: worker.Job) -> worker.Answer:
        at_work._process = object()  # type: ignore[assignment]
        return answers.pop(0)

    monkeypatch.setattr(at_work, "_try", answer)
    monkeypatch.setattr(at_work, "stop", lambda: stops.append(len(answers)))
    job = worker.Job("numpy", {}, 1)
    assert at_work.run(job).status == "passed"
    assert at_work.run(job).status == status
    assert stops == [1]


@pytest.mark.parametrize("grace", [0.0, 600.0])
def test_a_hang_costs_one_case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, grace: float) -> None:
    """The process ends itself or, without grace, is killed."""
    monkeypatch.setattr(worker, "_GRACE", grace)
    corpus = corpus_of(tmp_path, [relu()])
    finished = run(corpus, python("while True: pass"), corpus.cases, seconds=0.5)
    assert statuses(finished) == {"Relu-1/0001": "hung"}


def test_a_command_ends_with_the_process_that_waits_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "_LEAVE", 600.0)
    began = tmp_path / "began"
    hang = python(f"""
with open({f"{began}.part"!r}, 'w') as file:
    file.write(str(os.getpid()))
os.rename({f"{began}.part"!r}, {str(began)!r})
while True: pass
""")
    at_work = worker.Worker()
    answers: list[worker.Answer] = []
    job = worker.Job(hang, dict(relu().files()), 600)
    thread = threading.Thread(target=lambda: answers.append(at_work.run(job)))
    thread.start()
    while not began.exists() and thread.is_alive():
        time.sleep(0.01)
    at_work.kill()
    thread.join()
    assert [answer.status for answer in answers] == ["crashed"]
    with pytest.raises(ProcessLookupError):
        os.kill(int(began.read_text()), 0)


def test_commands_are_scored_by_what_they_leave(tmp_path: Path) -> None:
    corpus = corpus_of(tmp_path, [relu()])
    leave = "np.save('outputs/0.npy', np.load('inputs/0.npy'){})"
    ends = {
        python(leave.format(".clip(0)")): "passed",
        python(leave.format("")): "failed",
        python("sys.exit(4)"): "unsupported",
        python("sys.exit(1)"): "refused",
        python("os.abort()"): "crashed",
        python("pass"): "failed",
    }
    for command, status in ends.items():
        assert statuses(run(corpus, command, corpus.cases)) == {"Relu-1/0001": status}


def test_a_refusal_passes_where_the_command_fails(tmp_path: Path) -> None:
    corpus = corpus_of(tmp_path, small_corpus())
    cases = [case for case in corpus.cases if case.kind == "refusal"]
    assert statuses(run(corpus, python("sys.exit(1)"), cases)) == {"Add-1/0001": "passed"}
    assert statuses(run(corpus, python("pass"), cases)) == {"Add-1/0001": "failed"}


def test_damaged_cases_are_results_too(tmp_path: Path) -> None:
    corpus = corpus_of(tmp_path, small_corpus())
    (tmp_path / "corpus" / "Relu-1" / "0001" / "input_0.npy").write_bytes(b"text")
    finished = run(corpus, "numpy", corpus.cases)
    assert statuses(finished)["Relu-1/0001"] == "damaged"
    assert statuses(finished)["Relu-1/0003"] == "passed"


def test_a_run_goes_on_from_its_log(tmp_path: Path) -> None:
    corpus, log = corpus_of(tmp_path, small_corpus()), tmp_path / "run.log"
    first = run(corpus, "numpy", corpus.cases, log=log)
    title, *lines = log.read_text().splitlines()
    assert len(lines) == len(corpus.cases)
    kept = [json.loads(line) | {"message": "kept"} for line in lines[:2]]
    log.write_text("\n".join([title, *map(json.dumps, kept), lines[2][:20]]))  # ended while it wrote
    second = run(corpus, "numpy", corpus.cases, log=log)
    assert statuses(second) == statuses(first)
    assert [result.id for result in second.results if result.message == "kept"] == sorted(
        record["id"] for record in kept
    )
    assert len(log.read_text().splitlines()) == len(corpus.cases) + 1


def test_logs_of_other_runs_are_refused(tmp_path: Path) -> None:
    corpus, log = corpus_of(tmp_path, [relu()]), tmp_path / "run.log"
    run(corpus, "numpy", corpus.cases, log=log)
    with pytest.raises(InputError, match="belongs to another run"):
        run(corpus, "reference", corpus.cases, log=log)
    log.write_text("text\n")
    with pytest.raises(InputError, match="is not the log of a run"):
        run(corpus, "reference", corpus.cases, log=log)


def test_runtimes_that_are_not_there_are_refused(tmp_path: Path) -> None:
    corpus = corpus_of(tmp_path, [relu()])
    with pytest.raises(InputError, match="unknown runtime 'openvin'"):
        run(corpus, "openvin", corpus.cases)
    with pytest.raises(InputError, match="cannot run cases against 'openvino:': unknown runtime 'openvino:'"):
        run(corpus, "openvino:", corpus.cases)
