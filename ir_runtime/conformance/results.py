"""Results of runs: statuses, scores, expected failures, and the difference between two runs."""

from __future__ import annotations

import fnmatch
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from .._util.escaping import cut, one_line
from .._util.records import Record
from ..codes import Code
from ..errors import InputError
from ..ir.element import ElementType
from .case import Meta

__all__ = ["Difference", "Expected", "Result", "Run", "Score", "Status", "read_expected", "read_run"]

Status: TypeAlias = Literal["passed", "failed", "refused", "crashed", "hung", "unsupported", "damaged"]
"""The outcome of a case. ``failed``: wrong outputs; ``refused``: an error instead of outputs; ``crashed``: the process of the
runtime crashed; ``hung``: the time limit was exceeded; ``unsupported``: the runtime lacks the operation, so that the case does
not count; ``damaged``: the case cannot be read."""

_MOST_MESSAGE = 500
_MOST_FILE = 1 << 29
_TYPES = {element.label for element in ElementType}


@dataclass(frozen=True)
class Result:
    """The result of a runtime for a case.

    Args:
        id: the id of the case.
        operation: the operation with its version.
        kind: the kind of the case.
        types: the element types of its inputs and outputs.
        clauses: the clauses that it checks.
        status: the outcome.
        message: the difference or error; empty if the case passes.
        expected: why the case is expected to fail; empty if it is expected to pass.
    """

    id: str
    operation: str
    kind: str
    types: Sequence[str]
    clauses: Sequence[str]
    status: Status
    message: str = ""
    expected: str = ""

    @classmethod
    def of(cls, case: Meta, status: Status, message: str = "") -> Result:
        """Return the result of a case."""
        types = sorted({element.label for element in (*case.inputs, *case.outputs)})
        text = cut(one_line(message, _MOST_MESSAGE), _MOST_MESSAGE)
        return cls(case.id, case.operation, case.kind, types, case.clauses, status, text)

    @property
    def counts(self) -> bool:
        """Whether the case counts in scores: the runtime supports the operation."""
        return self.status != "unsupported"

    @property
    def passed(self) -> bool:
        """Whether the runtime passes the case."""
        return self.status == "passed"

    @property
    def failing(self) -> bool:
        """Whether the case counts and fails, and is not expected to."""
        return self.counts and not self.passed and not self.expected

    def record(self) -> Record:
        """Return a dict for JSON."""
        return {
            "id": self.id, "operation": self.operation, "kind": self.kind, "types": list(self.types),
            "clauses": list(self.clauses), "status": self.status, "message": self.message, "expected": self.expected,
        }  # fmt: skip

    @classmethod
    def parse(cls, record: Mapping[str, Any]) -> Result:
        """Return a result from its `record`; raise ``ValueError``, ``KeyError`` or ``TypeError`` if that is invalid."""
        texts = {name: str(record[name]) for name in ("id", "operation", "kind", "message", "expected")}
        if record["status"] not in get_args(Status):
            raise ValueError(f"the status {record['status']!r}")
        types, clauses = (tuple(map(str, record[name])) for name in ("types", "clauses"))
        return cls(
            texts["id"], texts["operation"], texts["kind"], types, clauses, record["status"], texts["message"], texts["expected"],
        )  # fmt: skip


@dataclass(frozen=True)
class Score:
    """The number of cases that pass, and of all that count."""

    passed: int
    total: int

    def record(self) -> Record:
        """Return a dict for JSON."""
        return {"passed": self.passed, "total": self.total}

    def __str__(self) -> str:
        return f"{self.passed:,} of {self.total:,}"


@dataclass(frozen=True)
class Run:
    """The results of a run.

    Args:
        against: the runtime.
        version: the version of the runtime; empty if unknown.
        corpus: the name of the corpus.
        results: the result of each case.
    """

    against: str
    version: str
    corpus: str
    results: Sequence[Result]

    @property
    def name(self) -> str:
        """The runtime with its version."""
        return f"{self.against} {self.version}".strip()

    @property
    def score(self) -> Score:
        """The score of all cases."""
        return _score(self.results)

    @property
    def statuses(self) -> Mapping[str, int]:
        """The number of cases with each status."""
        counts = Counter(result.status for result in self.results)
        return {status: counts[status] for status in get_args(Status)}

    @property
    def failing(self) -> list[Result]:
        """The results of cases that fail, except expected failures."""
        return [result for result in self.results if result.failing]

    @property
    def unexpected_passes(self) -> list[Result]:
        """The results of cases that pass, although their ids are listed as expected failures."""
        return [result for result in self.results if result.passed and result.expected]

    def scores(self, by: Literal["operation", "type", "clause", "kind"]) -> dict[str, Score]:
        """Return the score of each operation, element type, clause or kind."""
        keys: dict[str, Callable[[Result], Iterable[str]]] = {
            "operation": lambda result: [result.operation],
            "kind": lambda result: [result.kind],
            "type": lambda result: result.types,
            "clause": lambda result: result.clauses,
        }
        groups: dict[str, list[Result]] = {}
        for result in self.results:
            for key in keys[by](result):
                groups.setdefault(key, []).append(result)
        return {key: _score(groups[key]) for key in sorted(groups)}

    def mark_expected(self, expected: Sequence[Expected]) -> Run:
        """Return the run with expected failures marked."""
        return replace(self, results=[_mark_expected(result, expected) for result in self.results])

    def record(self) -> Record:
        """Return a dict for JSON."""
        scores: Record = {
            f"by_{by}": {name: score.record() for name, score in self.scores(by).items()}
            for by in ("operation", "type", "clause", "kind")
        }
        return {
            "against": self.against, "version": self.version, "corpus": self.corpus, **self.score.record(),
            "statuses": dict(self.statuses), "failing": len(self.failing),
            "unexpected_passes": [result.id for result in self.unexpected_passes], **scores,
            "cases": [result.record() for result in self.results],
        }  # fmt: skip


def _score(results: Iterable[Result]) -> Score:
    counting = [result for result in results if result.counts]
    return Score(sum(result.passed for result in counting), len(counting))


@dataclass(frozen=True)
class Expected:
    """An entry of a list of expected failures.

    Args:
        pattern: the id of a case, which must fail; or a pattern with ``*``, ``?`` or ``[``, whose cases may also pass.
        reason: the reason of the failure.
        types: restricts the pattern to cases with any of these element types; empty for all cases.
    """

    pattern: str
    reason: str
    types: Sequence[str] = ()

    @property
    def is_exact(self) -> bool:
        """Whether the pattern is the id of a single case."""
        return not any(sign in self.pattern for sign in "*?[")

    def is_about(self, result: Result) -> bool:
        """Return whether the entry applies to a case."""
        return fnmatch.fnmatchcase(result.id, self.pattern) and (
            not self.types or not {*self.types}.isdisjoint(result.types)
        )


def _mark_expected(result: Result, expected: Sequence[Expected]) -> Result:
    for entry in expected:
        if entry.is_about(result) and (entry.is_exact or not result.passed):
            return replace(result, expected=entry.reason)
    return result


def read_expected(path: Path | str) -> list[Expected]:
    """Read a file of expected failures, whose lines are ``PATTERN [TYPE ...]  # REASON``; see `Expected`.

    Raises:
        InputError: if a line has no reason, or an unknown type.
        OSError: if the file cannot be read.
    """
    entries = []
    for number, line in enumerate(_text_of(path).splitlines(), 1):
        selected, _, reason = (part.strip() for part in line.partition("#"))
        if not selected:
            continue
        pattern, *types = selected.split()
        if not reason or not _TYPES.issuperset(types):
            raise InputError(
                f"{path}:{number}: expected the id of a case and a reason, got {line.strip()[:80]!r}",
                code=Code.BAD_REQUEST,
                hint="such as 'Add-1/0007  # rounds twice'; 'Add-1/*' means all of an operation, 'Add-1/* u4' those with u4",
            )
        entries.append(Expected(pattern, reason, types))
    return entries


def read_run(path: Path | str) -> Run:
    """Read the JSON of a run.

    Raises:
        InputError: if the file is not the JSON of a run.
        OSError: if it cannot be read.
    """
    try:
        record = json.loads(_text_of(path))
        against, version, corpus = (str(record[name]) for name in ("against", "version", "corpus"))
        return Run(against, version, corpus, [Result.parse(case) for case in record["cases"]])
    except (ValueError, KeyError, TypeError, RecursionError) as reason:
        raise InputError(
            f"{path} is not the JSON of a run: {type(reason).__name__}: {reason}",
            code=Code.BAD_REQUEST,
            hint="'ir-runtime conformance run ... -o run.json' writes one",
        ) from None


def _text_of(path: Path | str) -> str:
    """Read a text file of bounded size."""
    with open(path, "rb") as file:
        raw = file.read(_MOST_FILE + 1)
    if len(raw) > _MOST_FILE:
        raise InputError(f"{path} has more than {_MOST_FILE} bytes", code=Code.LIMIT)
    return raw.decode(errors="replace")


@dataclass(frozen=True)
class Difference:
    """The difference between an old and a new run.

    Args:
        old: the old run.
        new: the new run.
    """

    old: Run
    new: Run

    def _pairs(self) -> list[tuple[Result, Result]]:
        old = {result.id: result for result in self.old.results}
        return [(old[result.id], result) for result in self.new.results if result.id in old]

    @property
    def fixed(self) -> list[Result]:
        """The new results of cases that failed and now pass."""
        return [new for old, new in self._pairs() if new.passed and not old.passed]

    @property
    def broken(self) -> list[Result]:
        """The new results of cases that passed and now fail."""
        return [new for old, new in self._pairs() if old.passed and not new.passed]

    @property
    def changed(self) -> list[Result]:
        """The new results of cases that still fail, with another status."""
        return [
            new
            for old, new in self._pairs()
            if not old.passed and not new.passed and old.status != new.status
        ]

    @property
    def added(self) -> list[Result]:
        """The results of cases that are only in the new run."""
        return _only_in(self.new, self.old)

    @property
    def removed(self) -> list[Result]:
        """The results of cases that are only in the old run."""
        return _only_in(self.old, self.new)

    @property
    def names(self) -> tuple[str, str]:
        """The names of the runs: just the versions if the runtime is the same."""
        if self.old.against == self.new.against and self.old.version and self.new.version:
            return self.old.version, self.new.version
        return self.old.name, self.new.name

    def __str__(self) -> str:
        counts = [(len(self.fixed), "fixed"), (len(self.broken), "new")]
        counts += [
            (len(results), word)
            for results, word in ((self.changed, "changed"), (self.added, "added"), (self.removed, "removed"))
            if results
        ]
        return f"{' → '.join(self.names)}: {', '.join(f'{count:,} {word}' for count, word in counts)}"

    def record(self) -> Record:
        """Return a dict for JSON."""
        lists: dict[str, Sequence[Result]] = {
            "fixed": self.fixed, "new": self.broken, "changed": self.changed, "added": self.added, "removed": self.removed,
        }  # fmt: skip
        sides = {"old": self.old, "newer": self.new}
        return {
            **{
                side: {
                    "against": run.against,
                    "version": run.version,
                    "corpus": run.corpus,
                    **run.score.record(),
                }
                for side, run in sides.items()
            },
            **{name: [result.record() for result in results] for name, results in lists.items()},
        }


def _only_in(run: Run, other: Run) -> list[Result]:
    ids = {result.id for result in other.results}
    return [result for result in run.results if result.id not in ids]
