"""Read whole models: a ``<net>`` with layers and edges."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from ...codes import Code
from ...diagnostics import Diagnostics, Location
from ...errors import ParseError
from ...ir.graph import IR_VERSION, Graph, RtInfo
from ...limits import DEFAULT, Limits
from .document import Element, integer
from .layers import FORMER_IR, NEWEST_IR, LayerReader, read_parts
from .ports import rt_info
from .source import Source, Weights
from .version_10 import convert_version_10

__all__ = ["Document", "read_graph", "read_net", "version_text"]

_SUPPORTED = (2, 3, 4, 5, 6, 7, FORMER_IR, NEWEST_IR)


@dataclass(frozen=True, slots=True)
class Document:
    """A file after reading: its graph, name, version, weights and runtime information."""

    graph: Graph
    name: str
    file: str
    version: int
    rt_info: RtInfo
    weights: Weights = field(default_factory=Weights)
    limits: Limits = DEFAULT
    """The limits it was read with, which also apply to running it."""
    size: int = 0
    """The bytes of the XML and the weights."""
    is_page: bool = False
    """Whether it is an example on a page of the specification."""
    unconverted: Graph | None = None
    """The layers of the file, where reading it added conversions at inputs and outputs (version 10 and older)."""


def version_text(version: int) -> str:
    """Describe the IR version of a file, and whether it was upgraded."""
    return f"IR version {version}{', upgraded' if 0 < version < FORMER_IR else ''}"


def read_net(
    root: Element,
    source: Source,
    weights: Weights,
    report: Diagnostics,
    limits: Limits = DEFAULT,
    needed_only: bool = False,
) -> Document:
    """Read a ``<net>``; findings go into ``report``.

    ``needed_only`` skips the layers that no output needs, as OpenVINO does.

    Raises:
        ParseError: if it is not an IR of a supported version.
    """
    version = _version(root, source.name)
    if version < FORMER_IR:
        return _read_legacy(root, source, weights, report, limits, version)
    _check_means(root, source.name, report)
    reader = LayerReader(
        source.name, report, weights, limits, read_graph, version=version, needed_only=needed_only
    )
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


def read_graph(root: Element, reader: LayerReader) -> Graph:
    """Return the ``<layers>`` and ``<edges>`` of a body."""
    layers, wiring = read_parts(root, reader)
    return Graph(layers.values(), wiring.edges, wiring.severed)


def _check_means(root: Element, file: str, report: Diagnostics) -> None:
    """Refuse mean values of old models: OpenVINO subtracts them, so ignoring them would give wrong results."""
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
