"""The oldest release that reads a model, and the layers that require it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from .._util.command_line import on_command_line
from ..analysis.infer import Inferred
from ..codes import Code
from ..diagnostics import Diagnostics, Location, Mark
from ..io.reader.document import Document
from ..ir.graph import Graph
from .features import features_of
from .release import Release, first_to_read, releases

__all__ = ["Need", "check_release", "needs_of", "needs_of_file", "oldest_release"]


class Need(NamedTuple):
    """A feature that not every known release reads."""

    feature: str
    first: Release | None
    """The first release that reads it; ``None`` if none does."""
    where: Location | None = None
    """The layer that has it; ``None`` for the version of the IR."""

    @property
    def code(self) -> Code:
        """Code of the finding for a release that does not read it."""
        return _kind(self.feature)[0]

    @property
    def text(self) -> str:
        """The feature in words: ``Identity-16``, ``element type nf4``."""
        return _kind(self.feature)[1]

    @property
    def layer(self) -> str | None:
        """The name of the layer."""
        return self.where.layer if self.where else None

    @property
    def mark(self) -> Mark | None:
        """The attribute concerned, if any."""
        found = re.fullmatch(r"[^/:]*/([^=]*).*", self.feature)
        return Mark(attribute=found[1]) if found else None

    def is_met(self, release: Release) -> bool:
        """Return whether a release reads it."""
        return self.first is not None and self.first <= release


def _kind(feature: str) -> tuple[Code, str]:
    """Return the code of a feature, and the feature in words."""
    name, _, rest = feature.partition(":")
    if name == "version":
        return Code.RELEASE_VERSION, f"IR version {rest}"
    if name == "opset":
        return Code.RELEASE_OPERATION, f"opset{rest}"
    if name == "type":
        return Code.RELEASE_TYPE, f"element type {rest}"
    if name == "shape":
        return Code.RELEASE_SHAPE, _SHAPES[rest]
    if rest:
        port, _, element = rest.partition("=")
        return Code.RELEASE_TYPE, f"{element} for {port!r} of {name}"
    operation, _, attribute = feature.partition("/")
    if attribute:
        key, equals, value = attribute.partition("=")
        what = f"{value!r} for attribute {key!r}" if equals else f"attribute {key!r}"
        return Code.RELEASE_ATTRIBUTE, f"{what} of {operation}"
    operation, _, opset = feature.partition("@")
    return Code.RELEASE_OPERATION, f"{operation} in opset{opset}" if opset else operation


_SHAPES = {"0": "dims of 0", "?": "dynamic dims", "...": "a dynamic rank"}


def needs_of_file(document: Document, graph: Graph, known: Inferred) -> Iterator[Need]:
    """Yield the needs of the version of the IR, if the model is read from a file, and of all layers.

    If no known release reads that version, layers are left out.
    """
    oldest = releases()[0]
    if document.file and not document.is_page:
        feature = f"version:{document.version}"
        if (first := first_to_read(feature)) != oldest:
            yield Need(feature, first, Location(document.file))
        if first is None:
            return
    yield from needs_of(graph, known)


def needs_of(graph: Graph, known: Inferred) -> Iterator[Need]:
    """Yield the needs of all layers, in the order of the file."""
    oldest = releases()[0]
    for layer, _, own in features_of(graph, known):
        for name in own:
            if (first := first_to_read(name)) != oldest:
                yield Need(name, first, layer.where)


def oldest_release(needs: Iterable[Need]) -> Release | None:
    """Return the oldest known release that meets all needs; ``None`` if none does."""
    first = [need.first for need in needs]
    return None if None in first else max(filter(None, first), default=releases()[0])


def check_release(release: Release, needs: Iterable[Need], report: Diagnostics) -> None:
    """Report the needs that a release does not meet."""
    for need in needs:
        if not need.is_met(release):
            since = "no release does" if need.first is None else f"{need.first} is the first that does"
            message = f"OpenVINO {release} does not read {need.text}; {since}"
            report.error(need.code, message, need.where, _hint(release), mark=need.mark)


def _hint(release: Release) -> str:
    return (
        f"ir-runtime upgrade MODEL.xml NEW.xml --for {release} writes a file that it reads, if there is one of equal results"
        if on_command_line()
        else f"save_model(..., for_release='{release}') writes a file that it reads, if there is one of equal results"
    )
