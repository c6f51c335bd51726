"""``ir-runtime conformance``: run the conformance suite against a runtime, and compare two runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .._util.escaping import visible
from .exits import Exit
from .helping import GroupedCommand
from .models import as_json, count_option
from .progress import bar
from .render import Record, plain, plural, result, table
from .terminal import show

if TYPE_CHECKING:
    from ..conformance.case import Case, Meta
    from ..conformance.results import Difference, Result, Run, Status
    from ..conformance.runner import Cases

__all__ = ["conformance"]

_EPILOG = """\b
ir-runtime conformance run corpus.zip --against openvino
ir-runtime conformance run corpus.zip --against 'python device.py' --select 'Reduce*' --resume run.log
ir-runtime conformance run corpus.zip --against openvino --xfail known.txt -o run.json -o run.html
ir-runtime conformance run --generate 1000 --seed 7 --against openvino --failures bugs
ir-runtime conformance compare old.json new.json -o changes.html

'run' takes a corpus, a .zip or a folder. Cases run in separate processes, so that a crash or hang costs one case only.
'compare' takes two files written by 'run -o'. The exit code of run is 1 if a case fails unexpectedly, or passes although
it is expected to fail; that of compare is 1 if a case fails that passed before. See 'ir-runtime guide conformance'.
"""
_REST = "--json or -o has all"
_WRITTEN = (".json", ".xml", ".html")


@click.command(epilog=_EPILOG, cls=GroupedCommand, group="Check")
@click.argument("action", type=click.Choice(["run", "compare"]))
@click.argument("paths", metavar="[PATH]...", nargs=-1)
@click.option(
    "--against",
    metavar="RUNTIME",
    help="The runtime to test: openvino, openvino:GPU, openvino:reference (Model.evaluate), a backend of this package, or a "
    "command, which is called with a folder.",
)
@click.option(
    "--select",
    "selected",
    multiple=True,
    metavar="GLOB",
    help="Run only cases whose id, operation, kind or clause matches: 'Reduce*', refusal. Repeatable.",
)
@count_option("--generate", help="Run this many generated cases instead of a corpus.")
@click.option(
    "--seed", type=click.IntRange(min=0), default=0, metavar="S", help="Seed of the generated cases."
)
@click.option(
    "--failures",
    metavar="FOLDER",
    help="Save failing cases in this folder; generated cases are shrunk first.",
)
@click.option(
    "--xfail", metavar="FILE", help="File of expected failures, one case per line, each with '# reason'."
)
@click.option("--resume", metavar="FILE", help="Record each result in this file, and resume from it.")
@click.option(
    "-o",
    "--output",
    "outputs",
    multiple=True,
    metavar="PATH",
    help="Write the results: .json, .xml for JUnit, .html. Repeatable.",
)
@count_option("-j", "--jobs", help="Number of worker processes. Default: one per core, at most 4.")
@click.option(
    "--case-timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="Time limit of one case.",
)
@as_json
def conformance(
    action: str,
    paths: Sequence[str],
    against: str | None,
    selected: Sequence[str],
    generate: int | None,
    seed: int,
    failures: str | None,
    xfail: str | None,
    resume: str | None,
    outputs: Sequence[str],
    jobs: int | None,
    case_timeout: float,
    as_json: bool,
) -> None:
    """Score a runtime on conformance cases, or compare two such runs."""
    _check_outputs(action, outputs)
    if action == "compare":
        if against or selected or xfail or resume or generate or failures:
            raise click.UsageError("compare takes two files that 'run -o' has written, -o and --json")
        _compare(paths, outputs, as_json)
        return
    if against is None:
        raise click.UsageError(
            "give --against: openvino, openvino:GPU, openvino:reference, a backend, or a command"
        )
    if len(paths) != (generate is None):
        raise click.UsageError(f"run takes one corpus, a .zip or a folder, or --generate; got {len(paths)}")
    running = _Running(against, jobs, case_timeout, resume, xfail)
    if generate is None:
        finished = _run_corpus(running, paths[0], selected, failures)
    else:
        finished = _run_generated(running, generate, seed, selected, failures)
    _write(outputs, finished)
    result(as_json, lambda: {"action": "run", **finished.record()}, lambda: _text(finished))
    if finished.failing or finished.unexpected_passes:
        raise SystemExit(Exit.FINDINGS)


@dataclass(frozen=True)
class _Running:
    """Options of a conformance run."""

    against: str
    jobs: int | None
    seconds: float
    resume: str | None
    xfail: str | None

    def run(self, source: Cases, cases: Sequence[Meta]) -> Run:
        from .._util.cores import parallelism
        from ..conformance.results import read_expected
        from ..conformance.runner import run

        expected = [] if self.xfail is None else read_expected(self.xfail)
        log = None if self.resume is None else Path(self.resume)
        with bar(f"running on {visible(self.against)}", len(cases)) as shown:
            finished = run(
                source, self.against, cases, jobs=self.jobs or min(parallelism(), 4), seconds=self.seconds, log=log,
                show=lambda name: shown.advance(1, name),
            )  # fmt: skip
        return finished.mark_expected(expected)


def _run_corpus(running: _Running, path: str, selected: Sequence[str], failures: str | None) -> Run:
    from ..conformance.case import Case
    from ..conformance.corpus import Corpus, select

    corpus = Corpus(path)
    finished = running.run(corpus, select(corpus.cases, selected))
    if failures is not None:
        for result in finished.failing:
            Case.parse(corpus.files(result.id)).save(Path(failures) / result.id)
        _show_saved(len(finished.failing), failures)
    return finished


def _run_generated(
    running: _Running, count: int, seed: int, selected: Sequence[str], failures: str | None
) -> Run:
    from fnmatch import fnmatchcase

    from ..conformance.generate import Generated, shrink
    from ..conformance.runner import case_runner

    def is_selected(operation: str) -> bool:
        return not selected or any(fnmatchcase(operation, glob) for glob in selected)

    with bar("generating", count) as shown:
        generated = Generated(count, seed, is_selected, lambda name: shown.advance(1, name))
    finished = running.run(generated, generated.cases)
    if failures is not None:
        failing = finished.failing
        with bar("shrinking", len(failing)) as shown, case_runner(running.against, running.seconds) as ask:
            for result in failing:
                case = shrink(generated.recipes[result.id], result.id, _fails_like(ask, result))
                case.save(Path(failures) / case.id)
                shown.advance(1, result.id)
        _show_saved(len(failing), failures)
    return finished


def _fails_like(ask: Callable[[Case], Status], result: Result) -> Callable[[Case], bool]:
    """Return a predicate: whether a case fails in the same way as a given result."""

    def fails(case: Case) -> bool:
        return ask(case) == result.status

    return fails


def _show_saved(count: int, folder: str) -> None:
    show(f"saved {plural(count, 'case')} in {visible(folder)}", err=True)


def _compare(paths: Sequence[str], outputs: Sequence[str], as_json: bool) -> None:
    from ..conformance.results import Difference, read_run

    if len(paths) != 2:
        raise click.UsageError(f"compare takes two files that 'run -o' has written; got {len(paths)}")
    difference = Difference(*map(read_run, paths))
    _write(outputs, difference)
    result(
        as_json, lambda: {"action": "compare", **difference.record()}, lambda: _difference_text(difference)
    )
    if difference.broken:
        raise SystemExit(Exit.FINDINGS)


def _check_outputs(action: str, outputs: Sequence[str]) -> None:
    """Check before the run that results can be written."""
    from .._util.files import resolve_target
    from ..errors import InputError

    for path in outputs:
        if Path(path).suffix not in _WRITTEN:
            raise InputError(
                f"{path!r} must end in .json, .xml or .html", hint="-o run.json -o run.html writes both"
            )
        if action == "compare" and path.endswith(".xml"):
            raise InputError(
                "the difference of two runs is not written as JUnit XML",
                hint="-o changes.html or -o changes.json",
            )
        resolve_target(Path(path))


def _write(outputs: Sequence[str], results: Run | Difference) -> None:
    from .._util.files import save_text

    for path in outputs:
        save_text(path, _written(Path(path).suffix, results))
        show(f"saved {visible(path)}", err=True)


def _written(suffix: str, results: Run | Difference) -> str:
    from ..conformance import pages
    from ..conformance.results import Run
    from .render import SCHEMA, dump

    is_run = isinstance(results, Run)
    if suffix == ".json":
        record: Record = {"schema": SCHEMA, "action": "run" if is_run else "compare", **results.record()}
        return dump(record, whole=True) + "\n"
    if not isinstance(results, Run):
        return pages.difference_page(results)
    return pages.junit(results) if suffix == ".xml" else pages.run_page(results)


def _text(run: Run) -> str:
    score, unsupported = run.score, run.statuses["unsupported"]
    share = f" ({score.passed / score.total:.2%})" if score.total else ""
    lines = [f"{visible(run.name)}: {score} cases pass{share}"]
    if unsupported:
        lines[0] += f"; {plain(unsupported)} more are of operations that it does not have"
    wrong = [case for case in run.results if case.counts and not case.passed]
    if expected := sum(bool(case.expected) for case in wrong):
        lines[0] += f"; {plain(expected)} fail as expected"
    if wrong:
        failing = {case.operation for case in wrong}
        rows = [
            [name, plain(score.passed), plain(score.total)]
            for name, score in run.scores("operation").items()
            if name in failing
        ]
        lines.append(
            table(
                "Operations with failures",
                ["operation", "passed", "of"],
                rows,
                right=("passed", "of"),
                rest=_REST,
            )
        )
    lines += _tables(
        {
            "Cases that fail": run.failing,
            "Cases that pass, though they are expected to fail": run.unexpected_passes,
        }
    )
    return "\n".join(lines)


def _difference_text(difference: Difference) -> str:
    groups = {
        "New failures": difference.broken,
        "Fixed": difference.fixed,
        "Wrong in another way": difference.changed,
    }
    return "\n".join([visible(str(difference)), *_tables(groups)])


def _tables(groups: dict[str, list[Result]]) -> list[str]:
    header = ["case", "outcome", "message"]
    return [
        table(
            title, header, [[r.id, r.status, r.message] for r in results], sentences=["message"], rest=_REST
        )
        for title, results in groups.items()
        if results
    ]
