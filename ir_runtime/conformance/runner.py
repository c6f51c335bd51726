"""Run the cases of a corpus against a runtime in separate processes, resuming an interrupted run."""

from __future__ import annotations

import json
import queue
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import IO, Protocol, Self

from .._util.files import create, reopen
from .._util.forks import register
from ..codes import Code
from ..errors import ExecutionError, InputError, IRError
from .adapters import is_foreign, version_of
from .case import Case, Meta
from .results import Result, Run, Status
from .worker import Job, Worker

__all__ = ["SECONDS", "Cases", "case_runner", "run"]

SECONDS = 60.0
"""The time limit of a case, in seconds."""

Show = Callable[[str], None]
"""A function that is called with the id of each finished case."""


class Cases(Protocol):
    """A set of cases, such as a `Corpus`."""

    @property
    def name(self) -> str:
        """The name of the set."""

    @property
    def digest(self) -> str:
        """A hash of all cases."""

    def files(self, identity: str) -> Mapping[str, bytes]:
        """Return the files of a case by name."""


def run(
    corpus: Cases,
    against: str,
    cases: Sequence[Meta],
    *,
    jobs: int = 1,
    seconds: float = SECONDS,
    log: Path | None = None,
    show: Show = lambda _: None,
) -> Run:
    """Run cases against a runtime.

    Args:
        corpus: the set of cases, such as a `Corpus`.
        against: the runtime; see `ir_runtime.conformance.adapters.adapter`.
        cases: the cases to run.
        jobs: the number of processes that run cases concurrently.
        seconds: the time limit of a case.
        log: a file to which each result is appended; cases that it already contains are skipped.
        show: called with the id of each finished case.

    Raises:
        InputError: if the runtime does not exist, or the log belongs to another run.
    """
    version = _version_of(against, seconds)
    title = {"against": against, "version": version, "corpus": corpus.digest}
    with _open_log(log, title) as (results, keep):
        left = [case for case in cases if case.id not in results]
        for case in cases:
            if case.id in results:
                show(case.id)
        for result in _results(corpus, against, left, jobs, seconds):
            results[result.id] = result
            keep(result)
            show(result.id)
    return Run(against, version, corpus.name, [results[case.id] for case in cases])


@contextmanager
def case_runner(against: str, seconds: float = SECONDS) -> Iterator[Callable[[Case], Status]]:
    """Yield a function that runs a case against a runtime in a separate process, and returns the outcome."""
    worker = Worker()
    try:
        yield lambda case: worker.run(Job(against, dict(case.files()), seconds)).status
    finally:
        worker.stop()


def _version_of(against: str, seconds: float) -> str:
    """Return the version of a runtime; a foreign one is imported in a separate process."""
    if not is_foreign(against):
        return version_of(against)
    worker = Worker()
    try:
        answer = worker.run(Job(against, {}, max(seconds, SECONDS)))
    finally:
        worker.stop()
    if answer.status == "passed":
        return answer.message
    raise InputError(f"cannot run cases against {against!r}: {answer.message}", code=Code.BAD_REQUEST)


def _results(
    corpus: Cases, against: str, cases: Sequence[Meta], jobs: int, seconds: float
) -> Iterator[Result]:
    """Yield results in order of completion; the files of cases are read in this thread."""
    waiting = iter(cases)
    with _Crew(against, seconds, min(jobs, len(cases))) as crew:
        in_flight = sum(crew.submit(corpus, case) for case in islice(waiting, crew.size + 1))
        while in_flight:
            result = crew.next_result()
            in_flight += sum(crew.submit(corpus, case) for case in islice(waiting, 1)) - 1
            yield result


class _Crew:
    """A pool of threads, each of which runs cases in a process of its own."""

    def __init__(self, against: str, seconds: float, size: int) -> None:
        self.size = size
        self._against, self._seconds = against, seconds
        self._todo: queue.SimpleQueue[tuple[Meta, Mapping[str, bytes]] | None] = queue.SimpleQueue()
        self._done: queue.SimpleQueue[Result | BaseException] = queue.SimpleQueue()
        self._workers = [Worker() for _ in range(size)]
        self._threads = [
            threading.Thread(target=self._serve, args=(worker,), daemon=True) for worker in self._workers
        ]
        register(self)

    def after_fork(self) -> None:
        """Drop the workers, which belong to the parent, and make `next_result` raise an error in the forked process."""
        self._threads, self._workers = [], []
        self._todo, self._done = queue.SimpleQueue(), queue.SimpleQueue()
        self._done.put(
            ExecutionError(
                "the process was forked while cases ran",
                code=Code.BAD_REQUEST,
                hint="start the run again in the child, or fork before it",
            )
        )

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        for _worker in self._workers:
            self._todo.put(None)
        for worker in self._workers:
            worker.kill()
        for thread in self._threads:
            thread.join()
        for worker in self._workers:
            worker.stop()

    def submit(self, corpus: Cases, case: Meta) -> int:
        """Submit a case; return the number of results to expect, 1."""
        try:
            self._todo.put((case, corpus.files(case.id)))
        except IRError as reason:
            self._done.put(Result.of(case, "damaged", reason.message))
        return 1

    def next_result(self) -> Result:
        """Wait for the next result."""
        item = self._done.get()
        if isinstance(item, BaseException):
            raise item
        return item

    def _serve(self, worker: Worker) -> None:
        try:
            while (entry := self._todo.get()) is not None:
                case, files = entry
                answer = worker.run(Job(self._against, files, self._seconds))
                message = "" if answer.status == "passed" else answer.message
                self._done.put(Result.of(case, answer.status, message))
        except BaseException as reason:  # raised again by the waiting thread
            self._done.put(reason)


@contextmanager
def _open_log(
    path: Path | None, title: Mapping[str, str]
) -> Iterator[tuple[dict[str, Result], Callable[[Result], None]]]:
    """Open the log of a run; yield its results, and a function that appends a result."""
    if path is None:
        yield {}, lambda _: None
        return
    results: dict[str, Result] = {}
    with reopen(path) if path.exists() else create(path) as file:
        end = _read_log(path, file, title, results) if path.stat().st_size else 0
        if not end:
            _append(file, title)
        else:
            file.truncate(end)
            file.seek(end)
        yield results, lambda result: _append(file, result.record())


def _read_log(path: Path, file: IO[bytes], title: Mapping[str, str], results: dict[str, Result]) -> int:
    """Read a log into ``results``; return the offset of the end of its last complete line."""
    end = 0
    try:
        for line in file:
            if not line.endswith(b"\n"):  # the run was interrupted while writing
                break
            record = json.loads(line)
            if not end and record != dict(title):
                raise InputError(
                    f"{path} belongs to another run: of {record}",
                    code=Code.BAD_REQUEST,
                    hint="give another file, or remove it",
                )
            if end:
                result = Result.parse(record)
                results[result.id] = result
            end += len(line)
    except (ValueError, KeyError, TypeError) as reason:
        raise InputError(
            f"{path} is not the log of a run: {reason}",
            code=Code.BAD_REQUEST,
            hint="give another file, or remove it",
        ) from None
    return end


def _append(file: IO[bytes], record: Mapping[str, object]) -> None:
    file.write(json.dumps(record).encode() + b"\n")
    file.flush()
