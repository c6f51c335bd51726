"""Validate a model without running it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._util.garbage import no_collection
from .._util.nearest import limited_lookups
from ..analysis.validate import validate as find_defects
from ..diagnostics import Diagnostics
from ..errors import InputError, IRError, ValidationError
from ..io.reader.model import load
from ..io.reader.source import Source, SourceLike, WeightsLike, open_source
from ..limits import DEFAULT, Limits, within
from .model import Model, PortShapes
from .shapes import ShapeLike

if TYPE_CHECKING:
    from ..io.reader.document import Document
    from ..releases.release import Release

__all__ = ["validate"]


def validate(
    model: SourceLike | Model,
    weights: WeightsLike | None = None,
    *,
    shapes: ShapeLike | PortShapes | None = None,
    limits: Limits = DEFAULT,
    for_release: str | None = None,
) -> Diagnostics:
    """Validate a model without running it.

    >>> import ir_runtime as ov
    >>> found = ov.validate(b'<net name="n" version="99"><layers/><edges/></net>')
    >>> [str(finding.code) for finding in found.errors]
    ['IR003']

    Args:
        model: a path, bytes, an open file, or a model. A page of the specification counts as all of
            its examples.
        weights: as for `read_model`.
        shapes: other shapes for the inputs, as `Model.reshape` takes them.
        limits: bounds on what the file may ask for.
        for_release: a release of OpenVINO, such as ``"2024.6"``: also find what that one does not read.

    Returns:
        A report: iterate over its findings, in the order of the file, each with ``code``, ``severity``,
        ``message``, ``layer``, ``line``, ``excerpt``, ``causes`` and ``hint``; ``report.ok`` says
        whether the model is valid.

    Raises:
        InputError: if shapes are given for a page, or for an input that does not exist, or the release is unknown.
    """
    release = None if for_release is None else _release(for_release)
    with within(limits), limited_lookups(), no_collection():
        return _find_all(model, weights, shapes, limits, release)


def _release(name: str) -> Release:
    from ..releases.release import Release

    return Release.of(name)


def _find_all(
    model: SourceLike | Model,
    weights: WeightsLike | None,
    shapes: ShapeLike | PortShapes | None,
    limits: Limits,
    release: Release | None,
) -> Diagnostics:
    from ..io.reader.excerpt import Excerpts

    report = Diagnostics(limits.findings)
    if isinstance(model, Model):
        report.extend(model.report)
        _examine(model, report, shapes, release)
        report.arrange()
        return report
    excerpt = None
    try:
        source = open_source(model, limits)
        excerpt = Excerpts(source.data).of
        for document in load(source, weights, report, limits):
            _examine(Model._read(document, report), report, shapes, release)
            report = report if report.ok else _settle(document, source, report, shapes, release)
    except InputError:
        raise
    except IRError as problem:
        report.extend(
            getattr(problem, "diagnostics", ()) or (problem.diagnostic,), getattr(problem, "more", ())
        )
    report.arrange(excerpt)
    return report


def _settle(
    document: Document,
    source: Source,
    report: Diagnostics,
    shapes: ShapeLike | PortShapes | None,
    release: Release | None,
) -> Diagnostics:
    """Return the findings, as warnings if there are none without unneeded layers."""
    from .unneeded import downgrade, read_needed

    needed = Diagnostics(report.most)
    other = read_needed(document, source, report, needed)
    if other is None:
        return report
    _examine(Model._read(other, needed), needed, shapes, release)
    if needed.ok:
        downgrade(report, needed)
    return needed if needed.ok else report


def _examine(
    model: Model, report: Diagnostics, shapes: ShapeLike | PortShapes | None, release: Release | None
) -> None:
    """Add findings beyond those of validity."""
    graph, document = model._graph, model._document
    find_defects(
        graph,
        report,
        model._values,
        parameters=model._parameter_types,
        weights=None if document.weights.data is None else (document.weights.name, len(document.weights)),
        is_page=document.is_page,
    )
    if shapes is not None and report.ok:
        try:
            model.clone().reshape(shapes)
        except ValidationError as problem:
            report.extend(problem.diagnostics, problem.more)
    if release is not None:
        from ..releases.needs import check_release, needs_of_file

        check_release(release, needs_of_file(document, graph, model._values), report)
