"""``ir-runtime validate``: what is wrong with models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from .exits import Exit
from .models import as_json, weights
from .render import dump, finding, plural

if TYPE_CHECKING:
    from ..diagnostics import Diagnostics

__all__ = ["validate"]


@click.command()
@click.argument("models", metavar="MODEL...", nargs=-1, required=True)
@weights
@as_json
@click.pass_context
def validate(ctx: click.Context, models: Sequence[str], weights: str | None, as_json: bool) -> None:
    """Find what is wrong with each MODEL, without running it.

    A MODEL is the .xml of an IR, or a page of the specification, all of whose examples count. Findings
    say file, line, layer, code, what is wrong and what to do; a file that cannot be read is a finding.
    The exit code is 1 if there is an error; warnings alone leave it 0.
    """
    from ..api.core import validate as check

    if weights is not None and len(models) > 1:
        raise click.UsageError("--weights goes with one MODEL")
    reports = [(model, check(model, weights)) for model in models]
    if as_json:
        click.echo(dump([_record(model, report) for model, report in reports]))
    else:
        for found in (found for _, report in reports for found in report):
            click.echo(finding(found))
    click.echo(_summary([report for _, report in reports]), err=True)
    if not all(report.ok for _, report in reports):
        ctx.exit(Exit.FINDINGS)


def _record(model: str, report: Diagnostics) -> dict[str, Any]:
    return {"file": model, "ok": report.ok, "findings": [found.record() for found in report]}


def _summary(reports: Sequence[Diagnostics]) -> str:
    errors = sum(len(report.errors) for report in reports)
    warnings = sum(len(report.warnings) for report in reports)
    return f"{plural(len(reports), 'file')}, {plural(errors, 'error')}, {plural(warnings, 'warning')}"
