"""Group failures of several releases by their difference, and write a bundle for each group."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ir_runtime.conformance.case import Case
from ir_runtime.conformance.results import Result, Run

__all__ = ["Exhibit", "exhibits", "page", "ranges", "write"]

_EXPECTED = re.compile(r"expected (\S+), got (\S+)")


@dataclass(frozen=True)
class Exhibit:
    """A difference.

    Args:
        case: the smallest case that shows it.
        result: the result of the newest release.
        alike: the number of cases that show it.
        releases: the affected releases, oldest first.
    """

    case: Case
    result: Result
    alike: int
    releases: Sequence[str]

    @property
    def name(self) -> str:
        """The name of its folder."""
        return self.result.id.replace("/", "-")


def exhibits(runs: Mapping[str, Run], read: Callable[[str], Case]) -> list[Exhibit]:
    """Return the differences of the newest release.

    Args:
        runs: the run of each release over the same cases, oldest first.
        read: returns a case by its id.
    """
    newest = list(runs.values())[-1]
    by_release = {name: {result.id: result for result in run.results} for name, run in runs.items()}
    groups: dict[tuple[str, ...], list[Result]] = {}
    for result in newest.results:
        if result.counts and not result.passed:
            groups.setdefault(_key(result), []).append(result)
    found = []
    for group in groups.values():
        cases = {result.id: read(result.id) for result in group}
        smallest = min(group, key=lambda result: _size(cases[result.id]))
        affected = [
            name
            for name, results in by_release.items()
            if smallest.id in results and results[smallest.id].counts and not results[smallest.id].passed
        ]
        found.append(Exhibit(cases[smallest.id], smallest, len(group), affected))
    return sorted(found, key=lambda exhibit: exhibit.case.id)


def _key(result: Result) -> tuple[str, ...]:
    """Return the grouping key of a difference.

    It is a cause shared by many operations; or else the expected and actual kinds of values, the operation, clause and types.
    """
    cause = _cause(result)
    if cause:
        return (cause,)
    operation = result.id if result.operation == "several" else result.operation
    match = _EXPECTED.search(result.message)
    if match is None:
        message = re.sub(r"-?\d[\d.e+-]*", "0", result.message)
    else:
        message = " for ".join(_kind(text) for text in match.groups())
    wide = [type for type in result.types if type in ("f64", "i64", "u64")]
    return (operation, result.status, message, *result.clauses, *wide)


def _cause(result: Result) -> str:
    """Return a cause shared by many operations, such as an element type that the plugin lacks; or nothing."""
    match = _EXPECTED.search(result.message)
    try:
        expected, got = map(float, match.groups()) if match else (math.nan, math.nan)
    except ValueError:  # shapes, truth values
        return ""
    if "f64" in result.types and abs(expected - got) <= _F32 * abs(expected):
        return "f64 is computed in f32"
    if not {"i64", "u64", "u32"}.isdisjoint(result.types) and abs(expected) >= _I32 - 1:
        return "integers of more than 31 bits are computed in i32"
    return ""


_F32 = 2.0**-22
"""The relative error of a few roundings in f32."""
_I32 = 2.0**31


def _kind(text: str) -> str:
    """Return the kind of a value: NaN, infinity, zero, or another one."""
    for kind in ("nan", "inf", "True", "False"):
        if kind in text:
            return kind
    return "0" if text in ("0", "0.0", "-0.0") else "a number"


def _size(case: Case) -> int:
    return len(case.xml) + len(case.weights) + sum(array.nbytes for array in case.inputs)


def ranges(releases: Sequence[str], known: Sequence[str]) -> str:
    """Return releases in words: the first and the last of each run of neighbours among those that were asked.

    >>> ranges(["2024.6", "2025.1", "2026.0"], ["2024.6", "2025.1", "2025.4", "2026.0"])
    '2024.6–2025.1, 2026.0'
    """
    places = [known.index(name) for name in releases]
    runs: list[list[int]] = []
    for place in places:
        if runs and place == runs[-1][-1] + 1:
            runs[-1].append(place)
        else:
            runs.append([place])
    return ", ".join(known[run[0]] if len(run) == 1 else f"{known[run[0]]}–{known[run[-1]]}" for run in runs)


def write(folder: Path, exhibit: Exhibit, known: Sequence[str]) -> None:
    """Write the bundle of a difference: the files of the case, and a text for an issue."""
    exhibit.case.save(folder / exhibit.name)
    (folder / exhibit.name / "issue.md").write_text(_issue(exhibit, known), encoding="utf-8")


def _issue(exhibit: Exhibit, known: Sequence[str]) -> str:
    case, result = exhibit.case, exhibit.result
    clauses = f", {', '.join(case.clauses)}" if case.clauses else ""
    layers = [kind.decode() for kind in dict.fromkeys(re.findall(rb'<layer [^>]*type="(\w+)"', case.xml))]
    operations = ", ".join(kind for kind in layers if kind not in ("Parameter", "Const", "Result"))
    return (
        f"# {case.operation}{clauses}: {result.message or result.status}\n\n"
        f"The model `model.xml` has {operations}; `input_0.npy` and so on are its inputs, `expected_0.npy` and so on what its page says"
        f" (source: {case.source}).\n\n"
        f"- outcome: {result.status}\n- difference: {result.message}\n"
        f"- affected: OpenVINO {ranges(exhibit.releases, known)}\n- cases like it: {exhibit.alike}\n"
    )


def page(found: Sequence[Exhibit], known: Sequence[str]) -> Iterator[str]:
    """Yield the lines of a table of all differences."""
    yield f"# Differences of OpenVINO {known[-1]}\n"
    yield f"Releases that were asked: {', '.join(known)}.\n"
    yield "| bundle | operation | clause | outcome | releases | cases |"
    yield "|---|---|---|---|---|---|"
    for exhibit in found:
        case, result = exhibit.case, exhibit.result
        cells = (
            exhibit.name, case.operation, ", ".join(case.clauses), f"{result.status}: {result.message}".replace("|", "/"),
            ranges(exhibit.releases, known), str(exhibit.alike),
        )  # fmt: skip
        yield f"| {' | '.join(cells)} |"
