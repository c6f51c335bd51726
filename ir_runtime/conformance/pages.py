"""Format the results of a run as JUnit XML for CI, and as an HTML page in the style of model reports."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Sequence
from importlib.resources import files
from typing import Literal

from .._util.markup import element, table
from .._version import __version__
from .results import Difference, Result, Run, Score

__all__ = ["difference_page", "junit", "run_page"]

_MOST_ROWS = 20_000
_SIDES: tuple[Literal["operation", "type", "clause", "kind"], ...] = ("operation", "type", "kind", "clause")


def junit(run: Run) -> str:
    """Return a run as JUnit XML, with a suite for each operation; expected failures are marked as skipped."""
    groups: dict[str, list[Result]] = {}
    for result in run.results:
        groups.setdefault(result.operation, []).append(result)
    suites = [_suite(operation, results) for operation, results in sorted(groups.items())]
    body = _element_with_counts("testsuites", f"ir-conformance: {run.name}", run.results, suites)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{body}\n'


def _suite(operation: str, results: Sequence[Result]) -> str:
    return _element_with_counts("testsuite", operation, results, map(_testcase, results))


def _element_with_counts(tag: str, name: str, results: Sequence[Result], inside: Iterable[str]) -> str:
    failures = sum(map(_is_failure, results))
    skipped = sum(bool(_skip_reason(result)) for result in results)
    return element(tag, *inside, name=name, tests=len(results), failures=failures, skipped=skipped)


def _testcase(result: Result) -> str:
    inside = []
    if reason := _skip_reason(result):
        inside.append(element("skipped", message=reason))
    elif _is_failure(result):
        message = result.message or f"expected to fail: {result.expected}"
        inside.append(element("failure", type=result.status, message=message))
    return element("testcase", *inside, classname=result.operation, name=result.id)


def _is_failure(result: Result) -> bool:
    return result.failing or (result.passed and bool(result.expected))


def _skip_reason(result: Result) -> str:
    """Return the reason why a case is skipped, or an empty string."""
    if not result.counts:
        return result.message or "unsupported"
    return result.expected if not result.passed else ""


def run_page(run: Run) -> str:
    """Return a run as an HTML page."""
    title = f"{run.name}: {run.score} cases pass"
    parts = [
        element(
            "p", text=f"Corpus {run.corpus}. {_share(run.score)} of the cases that count pass.", class_="soft"
        )
    ]
    counts = [(status, f"{count:,}") for status, count in run.statuses.items() if count]
    parts.append(table("Cases by outcome", ["outcome", "cases"], counts))
    wrong = [result for result in run.results if result.counts and not result.passed]
    parts.append(_results("Cases that fail", wrong))
    for by in _SIDES:
        rows = [
            (name, f"{score.passed:,}", f"{score.total:,}", _share(score))
            for name, score in run.scores(by).items()
        ]
        if rows:
            parts.append(table(f"By {by}", [by, "passed", "of", "share"], rows, _MOST_ROWS))
    return _page(title, run.corpus, parts)


def difference_page(difference: Difference) -> str:
    """Return the difference of two runs as an HTML page."""
    scores = [
        (run.name, run.corpus, str(run.score), _share(run.score)) for run in (difference.old, difference.new)
    ]
    parts = [table("Runs", ["runtime", "corpus", "passed", "share"], scores)]
    for caption, results in (
        ("New failures", difference.broken),
        ("Fixed", difference.fixed),
        ("Wrong in another way", difference.changed),
        ("Cases of the new run alone", difference.added),
        ("Cases of the old run alone", difference.removed),
    ):
        if results:
            parts.append(_results(caption, results))
    return _page(str(difference), " → ".join(difference.names), parts)


def _results(caption: str, results: Iterable[Result]) -> str:
    rows = [(r.id, ", ".join(r.clauses), r.status, r.message, r.expected) for r in results]
    if not rows:
        return element("p", text="No case fails.")
    return table(caption, ["case", "clauses", "outcome", "message", "expected, because"], rows, _MOST_ROWS)


def _share(score: Score) -> str:
    return f"{score.passed / score.total:.2%}" if score.total else "nothing"


def _page(title: str, subtitle: str, parts: Iterable[str]) -> str:
    style = files("ir_runtime.report").joinpath("static/page.css").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    head = element(
        "head",
        '<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f'<meta name="generator" content="ir_runtime {__version__}">',
        element("title", text=title),
        f"<style>{style}</style>",
    )
    name = element("div", element("h1", text=title), element("p", text=subtitle), class_="name")
    sections = "".join(element("section", part, id=f"view-layers-{i}") for i, part in enumerate(parts))
    main = element("main", f'<div id="view-charts">{sections}</div>')
    return f'<!doctype html>\n<html lang="en">{head}{element("body", element("header", name), main)}</html>\n'
