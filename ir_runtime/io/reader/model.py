"""Reading of a model: a ``<net>`` with layers and edges, or a page with examples."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from ...codes import Code
from ...diagnostics import Diagnostics, Location
from ...errors import InputError, ParseError
from ...ir.graph import IR_VERSION, Graph
from ...limits import DEFAULT, Limits
from .document import Document, Element, integer, parse
from .layers import FORMER_IR, NEWEST_IR, LayerReader, read_parts
from .ports import rt_info
from .source import Source, SourceLike, Weights, WeightsLike, open_source, open_weights
from .version_10 import convert_version_10

if TYPE_CHECKING:
    from .fragment import Values

__all__ = ["load", "read_net", "version_text"]

# A whole model starts with <net>, optionally after a declaration and comments; a page has <layer> anywhere.
_WHOLE = re.compile(rb"(?:\xef\xbb\xbf)?\s*+(?>(?:<\?.*?\?>|<!--.*?-->)\s*+)*+<(?!layer|!--|\?)", re.DOTALL)


def load(
    source: SourceLike | Source,
    weights: WeightsLike | None = None,
    report: Diagnostics | None = None,
    limits: Limits = DEFAULT,
    *,
    values: Values | None = None,
    example: int | None = None,
) -> list[Document]:
    """Read a model, or each example on a page of the specification.

    Args:
        source: a path, bytes, an open file, or the `Source` read from one.
        weights: the ``.bin``; by default, the file of the same name beside the model.
        report: collects the findings.
        limits: the resource limits.
        values: contents of input ports; for pages only.
        example: the number of the example to read, from 1; for pages only.

    Raises:
        ParseError: if the source is not an IR at all.
        LimitError: if it exceeds ``limits``.
        InputError: if ``values`` or ``example`` do not fit the source.
    """
    opened = source if isinstance(source, Source) else open_source(source, limits)
    report = Diagnostics() if report is None else report
    if _WHOLE.match(opened.data) or b"<layer" not in opened.data:
        if values or example is not None:
            raise InputError(
                f"{opened.name} is a whole model, which has no examples and no unconnected inputs",
                hint="values and examples are for pages of the specification",
            )
        root = parse(opened.data, opened.name, limits=limits)
        return [read_net(root, opened, open_weights(weights, opened.path), report, limits)]
    limits.check("page_bytes", len(opened.data), Location(opened.name))
    from .fragment import read_fragments

    text = opened.data.decode("utf-8", errors="replace")
    return read_fragments(text, report, values=values, name=opened.name, example=example, limits=limits)


_SUPPORTED = (2, 3, 4, 5, 6, 7, FORMER_IR, NEWEST_IR)


def version_text(version: int) -> str:
    """Return the text of an IR version, which also tells whether the file was upgraded."""
    return f"IR version {version}{', upgraded' if 0 < version < FORMER_IR else ''}"


def read_net(
    root: Element,
    source: Source,
    weights: Weights,
    report: Diagnostics,
    limits: Limits = DEFAULT,
    needed_only: bool = False,
) -> Document:
    """Read a ``<net>``, and add findings to ``report``.

    ``needed_only`` skips the layers that no output needs, as OpenVINO does.

    Raises:
        ParseError: if it is not an IR of a supported version.
    """
    version = _version(root, source.name)
    if version < FORMER_IR:
        return _read_legacy(root, source, weights, report, limits, version)
    _check_means(root, source.name, report)
    reader = LayerReader(source.name, report, weights, limits, version=version, needed_only=needed_only)
    layers, wiring = read_parts(root, reader)
    graph = Graph(layers.values(), wiring.edges, wiring.severed)
    name, size = root.get("name", ""), len(source.data) + len(weights)
    info = {**rt_info(root), IR_VERSION: version}
    document = Document(graph, name, source.name, version, info, weights, limits, size)
    return _convert(document) if version == FORMER_IR else document


def _read_legacy(
    root: Element, source: Source, weights: Weights, report: Diagnostics, limits: Limits, version: int
) -> Document:
    from .legacy.net import LegacyReader, read_legacy  # not needed for current files

    reader = LegacyReader(source.name, report, weights, limits, version=version)
    upgraded, wires, severed = read_legacy(root, reader, version)
    graph = Graph(upgraded.values(), wires, severed)
    info = {IR_VERSION: version}
    return _convert(Document(graph, root.get("name", ""), source.name, version, info, weights, limits))


def _convert(document: Document) -> Document:
    """Add the conversions at inputs and outputs that old versions imply."""
    graph = document.graph
    layers, edges = convert_version_10(graph.layers, graph.edges)
    return replace(document, graph=Graph(layers.values(), edges, graph.severed), unconverted=graph)


def _check_means(root: Element, file: str, report: Diagnostics) -> None:
    """Report the mean values of old models as an error: OpenVINO subtracts them, so results would be wrong without them."""
    means = next(root.iterfind("pre-process//mean"), None)
    if means is not None:
        report.error(
            Code.BAD_ELEMENT,
            "<pre-process> subtracts means from an input, which is not supported",
            Location(file, means.sourceline),
            "convert the original model again, or subtract them in the model or before it",
        )


def _version(root: Element, file: str) -> int:
    if root.tag != "net":
        raise ParseError(
            f"the root element is <{root.tag}>, not <net>: this is not an OpenVINO IR",
            code=Code.UNREADABLE,
            where=Location(file, root.sourceline),
            hint="an IR starts with <net name=... version=...>",
        )
    version = integer(root, "version", file)
    if version not in _SUPPORTED:
        older = version < NEWEST_IR
        newer = (
            "a newer OpenVINO wrote it: update ir_runtime, or save the model with OpenVINO 2026 or earlier"
        )
        raise ParseError(
            f"this is an IR of version {version}; supported are 2 to 7, 10 and 11",
            code=Code.IR_VERSION,
            where=Location(file, root.sourceline),
            hint="convert the original model again with OpenVINO 2022 or later" if older else newer,
        )
    return version
