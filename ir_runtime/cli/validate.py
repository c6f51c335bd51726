"""``ir-runtime validate``: find errors in models; show them as text, JSON, SARIF or GitHub annotations."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import click

from .._util.escaping import github_data, github_property, sarif_text
from .._version import __version__
from .exits import Exit
from .helping import GroupedCommand
from .models import count_option, weights
from .options import limit_options
from .progress import Bar, bar
from .render import Record, dump, finding, plural, rest, result
from .shaping import shape_options, shapes_of
from .terminal import show

if TYPE_CHECKING:
    from ..diagnostics import Diagnostic, Diagnostics, Location, More
    from ..ir.shape import PartialShape
    from ..limits import Limits

__all__ = ["validate"]

_EPILOG = """\b
ir-runtime validate net.xml
ir-runtime validate 'models/**/*.xml' --strict --format sarif > findings.sarif
ir-runtime validate net.xml --shape 'data=[1..8,3,?,?]'
ir-runtime validate net.xml --for 2024.6
ir-runtime explain IR301
"""

_Item = TypeVar("_Item")

_LARGE = 2 << 20
_FORMATS = ("text", "json", "sarif", "github")


@click.command(epilog=_EPILOG, cls=GroupedCommand, group="Check")
@click.argument("models", metavar="MODEL...", nargs=-1, required=True)
@click.option(
    "-f",
    "--format",
    "form",
    type=click.Choice(_FORMATS),
    default="text",
    show_default=True,
    help="Output format.",
)
@click.option("--json", "form", flag_value="json", help="The same as --format json.")
@click.option("--strict", is_flag=True, help="Treat warnings as errors.")
@click.option(
    "--for",
    "for_release",
    metavar="RELEASE",
    help="Also report features that this release of OpenVINO does not support, such as 2024.6.",
)
@shape_options
@click.option(
    "--max-findings",
    type=click.IntRange(min=0),
    metavar="N",
    help="Findings to show per file; further ones are counted. By default, 1000.",
)
@count_option("-j", "--jobs", help="Number of files to validate in parallel.")
@weights
@limit_options
@click.pass_context
def validate(
    ctx: click.Context,
    models: Sequence[str],
    form: str,
    strict: bool,
    for_release: str | None,
    shapes: Sequence[str],
    max_findings: int | None,
    jobs: int | None,
    weights: str | None,
    limits: Limits,
) -> None:
    """Find errors in each MODEL without running it.

    MODEL is the .xml of an IR, a page of the specification (all of its examples are checked), a folder (all .xml
    files in it), or a pattern such as 'models/**/*.xml'. Findings are listed in the order of the file, with file, line,
    layer, code, message, cause and fix; a file that cannot be read is a finding, too. Beyond --max-findings,
    findings are only counted. The exit code is 1 if there is an error, or with --strict a warning.
    """
    files = [file for model in models for file in _expand_pattern(model)]
    if weights is not None and len(files) > 1:
        raise click.UsageError("--weights needs exactly one MODEL")
    if max_findings is not None:
        limits = replace(limits, findings=max_findings)
    if for_release is not None:
        from ..releases.release import Release

        Release.of(for_release)  # an unknown release is a usage error, not a finding
    check = partial(
        _check,
        weights=weights,
        shapes=shapes_of(shapes),
        limits=limits,
        strict=strict,
        for_release=for_release,
    )
    each = _print_findings if form == "text" else _print_nothing
    reports = []
    with _reports(check, files, jobs) as checked:
        for file, report in zip(files, checked, strict=True):
            reports.append((file, report))
            each(file, report)
    _print_reports(form, reports)
    show(_summary([report for _, report in reports]), err=True)
    if not all(report.ok for _, report in reports):
        ctx.exit(Exit.FINDINGS)


def _expand_pattern(pattern: str) -> list[str]:
    """Return the .xml files in a folder, the file of exactly this name, or else the files that match the pattern."""
    if os.path.isdir(pattern):
        inside = sorted(glob.glob(os.path.join(glob.escape(pattern), "**", "*.xml"), recursive=True))
        if not inside:
            raise click.UsageError(f"{pattern!r} contains no .xml")
        return inside
    if os.path.exists(pattern) or not glob.has_magic(pattern):
        return [pattern]
    found = sorted(glob.glob(pattern, recursive=True))
    if not found:
        raise click.UsageError(f"no file matches {pattern!r}")
    return found


def _check(
    file: str,
    weights: str | None,
    shapes: Mapping[str | int | None, PartialShape],
    limits: Limits,
    strict: bool,
    for_release: str | None,
) -> Diagnostics:
    from .._util.command_line import for_command_line
    from ..openvino.validating import validate as check

    with for_command_line():  # also in a process of the pool
        report = check(file, weights=weights, shapes=shapes or None, limits=limits, for_release=for_release)
    if strict:
        report.escalate()
    return report


@contextmanager
def _reports(
    check: Callable[[str], Diagnostics], files: Sequence[str], jobs: int | None
) -> Iterator[Iterable[Diagnostics]]:
    """Validate files in parallel; yield an iterable of their reports in order, with a progress bar on a terminal."""
    count = min(len(files), jobs or _worthwhile(files))
    with bar("validating", len(files)) as shown:
        if count == 1:
            yield map(check, _count(files, shown))
            return
        from .._util.child_process import process_pool

        with process_pool(count) as pool:
            try:
                yield _count(pool.map(check, files), shown)
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise


def _worthwhile(files: Sequence[str]) -> int:
    """Return the number of processes worth starting: each costs as much time as checking a megabyte."""
    size = sum(os.path.getsize(file) for file in files if os.path.isfile(file))
    if size <= _LARGE:
        return 1
    from .._util.cores import parallelism

    return parallelism()


def _count(items: Iterable[_Item], shown: Bar) -> Iterator[_Item]:
    """Yield items, advancing a progress bar, which is erased while the caller prints results."""
    for item in items:
        shown.erase()
        yield item
        shown.advance()


def _print_findings(file: str, report: Diagnostics) -> None:
    from ..diagnostics import fold

    for found in fold(report):
        show(finding(found))
    for more in report.more:
        show(rest(file, more))


def _print_nothing(file: str, report: Diagnostics) -> None:
    """Print nothing, for formats that are printed as a whole at the end."""


def _print_reports(form: str, reports: Sequence[tuple[str, Diagnostics]]) -> None:
    if form == "json":
        result(True, lambda: {"files": [_record(file, report) for file, report in reports]}, str)
    elif form == "sarif":
        click.echo(dump(_sarif(reports)))
    elif form == "github":
        for line in _github_commands(reports):
            click.echo(line)


def _record(model: str, report: Diagnostics) -> Record:
    findings = [found.record() for found in report]
    return {"file": model, "ok": report.ok, "findings": findings, "more": [m.record() for m in report.more]}


def _summary(reports: Sequence[Diagnostics]) -> str:
    from ..diagnostics import Severity

    errors = sum(report.count(Severity.ERROR) for report in reports)
    warnings = sum(report.count(Severity.WARNING) for report in reports)
    return f"{plural(len(reports), 'file')}, {plural(errors, 'error')}, {plural(warnings, 'warning')}"


# Source: OASIS, "Static Analysis Results Interchange Format (SARIF) Version 2.1.0".
_SARIF_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


def _sarif(reports: Sequence[tuple[str, Diagnostics]]) -> Record:
    """Return a SARIF log of one run over all files, with a rule for each code found.

    Findings beyond the limit are counted in notifications without a location.
    """
    findings = [finding for _, report in reports for finding in report]
    codes = sorted({finding.code for finding in findings})
    notifications = [_sarif_notification(file, more) for file, report in reports for more in report.more]
    invocation = {"executionSuccessful": True, "toolExecutionNotifications": notifications}
    return {
        "$schema": _SARIF_SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "ir-runtime",
                        "version": __version__,
                        "semanticVersion": __version__,
                        "rules": [_sarif_rule(code) for code in codes],
                    }
                },
                **({"invocations": [invocation]} if notifications else {}),
                "columnKind": "unicodeCodePoints",
                "results": [_sarif_result(finding, codes) for finding in findings],
            }
        ],
    }


def _sarif_rule(code: str) -> Record:
    from ..codes import Code
    from ..explanations import explanation

    page = explanation(code)
    return {
        "id": code,
        "name": Code.of(code).name.title().replace("_", ""),
        "shortDescription": {"text": Code.of(code).summary},
        "fullDescription": {"text": page.meaning},
        "help": {"text": page.text(), "markdown": page.markdown},
    }


def _sarif_notification(file: str, more: More) -> Record:
    return {
        "associatedRule": {"id": more.code},
        "level": str(more.severity),
        "message": {"text": more.text},
        "locations": [{"physicalLocation": {"artifactLocation": {"uri": _uri(file)}}}],
    }


def _sarif_result(found: Diagnostic, codes: Sequence[str]) -> Record:
    result: Record = {
        "ruleId": found.code,
        "ruleIndex": codes.index(found.code),
        "level": str(found.severity),
        "message": {"text": sarif_text(found.message, *([found.hint] if found.hint else []))},
    }
    if found.where is not None and found.where.file:
        result["locations"] = [_sarif_location(found.where, _sarif_region(found))]
    if related := [_sarif_related(number, c.message, c.where) for number, c in enumerate(found.causes)]:
        result["relatedLocations"] = related
    return result


def _sarif_region(finding: Diagnostic) -> Record:
    excerpt, line = finding.excerpt, finding.line
    if excerpt is None:
        return {"startLine": line} if line else {}
    region: Record = {"startLine": excerpt.line, "snippet": {"text": excerpt.text}}
    if excerpt.width:
        start = excerpt.skipped + excerpt.column
        region |= {"startColumn": start, "endColumn": start + excerpt.width}
    return region


def _sarif_related(number: int, message: str, where: Location) -> Record:
    region = {"startLine": where.line} if where.line else {}
    return {"id": number, "message": {"text": sarif_text(message)}, **_sarif_location(where, region)}


def _sarif_location(where: Location, region: Record) -> Record:
    location: Record = {"physicalLocation": {"artifactLocation": {"uri": _uri(where.file)}}}
    if region:
        location["physicalLocation"]["region"] = region
    if where.layer is not None:
        logical = {"name": where.layer, "kind": "element"}
        location["logicalLocations"] = [{**logical, "fullyQualifiedName": where.layer}]
    return location


def _uri(file: str) -> str:
    """Return a path as a URI, relative to the working directory if possible."""
    from pathlib import Path
    from urllib.parse import quote

    path = Path(file)
    if path.is_absolute():
        return path.as_uri()
    return quote(path.as_posix())


# Source: GitHub's documentation, "Workflow commands for GitHub Actions".
_GITHUB_LEVELS = {"error": "error", "warning": "warning", "note": "notice"}


def _github_commands(reports: Iterable[tuple[str, Diagnostics]]) -> Iterator[str]:
    """Yield a workflow command for each finding, and one for each kind with findings beyond the limit."""
    for file, report in reports:
        yield from map(_github_finding, report)
        yield from (_github_more(file, more) for more in report.more)


def _github_finding(finding: Diagnostic) -> str:
    where, place = finding.where, {"title": f"{finding.code}"}
    if where is not None and where.file:
        place |= {"file": where.file, **_github_region(finding)}
    if finding.layer is not None:
        place["title"] = f"{finding.code}: {finding.layer}"
    lines = [finding.message, *map(str, finding.causes), *([finding.hint] if finding.hint else [])]
    return _github_command(finding.severity, place, *lines)


def _github_region(finding: Diagnostic) -> dict[str, str]:
    """Return the line of a finding, and the columns if it marks a part of the line."""
    excerpt, line = finding.excerpt, finding.line
    if excerpt is None or not excerpt.width:
        return {"line": str(line)} if line else {}
    start = excerpt.skipped + excerpt.column
    region = {"line": excerpt.line, "col": start, "endColumn": start + excerpt.width}
    return {name: str(number) for name, number in region.items()}


def _github_more(file: str, more: More) -> str:
    return _github_command(more.severity, {"title": more.code, "file": file}, more.text)


def _github_command(severity: str, place: dict[str, str], *lines: str) -> str:
    properties = ",".join(f"{key}={github_property(value)}" for key, value in place.items())
    return f"::{_GITHUB_LEVELS[severity]} {properties}::{github_data(*lines)}"
