"""Write the inputs, outputs, constraints, operations and weights of a model as HTML."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from .._util.markup import element, table
from .._util.text import bytes_text
from ..analysis.shapes import PortShape, Shapes
from ..diagnostics import Diagnostic, Diagnostics, Severity, fold
from ..io.reader.model import version_text
from ..ir.graph import Layer, Port
from .records import Records
from .source import Source
from .text import count_text, dims, tensor_name

__all__ = ["End", "ends", "findings_html", "subtitle", "summary_html"]

_MOST = 15


def subtitle(source: Source) -> str:
    """Return file name and version of a model in one line."""
    version = version_text(source.version) if source.version else ""
    return " · ".join(filter(None, (Path(source.file).name, version)))


class End(NamedTuple):
    """An input or output of a model: its layer, name, element type and shape."""

    layer: Layer
    name: str
    type: str
    shape: str


def ends(source: Source, shapes: Shapes, type: str) -> list[End]:
    """Return the inputs (``Parameter``) or outputs (``Result``) of a model, with names for their dynamic lengths."""
    rows = {(row.line, row.layer): row for row in shapes.ports if not row.is_input}
    return [_end(source, layer, rows) for layer in source.graph.of_type(type)]


def summary_html(source: Source, shapes: Shapes, records: Records) -> str:
    """Return the inputs, outputs, constraints, operations and weights of a model as HTML tables."""
    graph = source.graph
    header = ("name", "type", "shape")
    takes, gives = ([end[1:] for end in ends(source, shapes, type)] for type in ("Parameter", "Result"))
    parts = [element("h2", text="What the model takes and gives"), table("Inputs", header, takes)]
    parts += [*_demands(source), table("Outputs", header, gives)]
    parts.append(_state(source.report))
    parts.append(element("h2", text="What it is made of"))
    counts = Counter(
        layer.where.operation or layer.type for layer in graph.everywhere() if layer.type != "Constant"
    )
    parts.append(
        table(
            "Operations",
            ("operation", "layers"),
            [(name, f"{n:,}") for name, n in counts.most_common()],
            _MOST,
        )
    )
    parts.append(table("Weights", ("type", "tensors", "numbers", "size"), _weights(records)))
    return "".join(parts)


def _end(source: Source, layer: Layer, rows: Mapping[tuple[int | None, str], PortShape]) -> End:
    port, spec = Port(layer.id, 0), layer.outputs[0] if layer.outputs else None
    if layer.type == "Result":
        port = next(iter(source.graph.reads(layer)), port)
        producer = source.graph.layers.get(port.layer)
        spec = (
            producer.outputs[port.number]
            if producer is not None and port.number < len(producer.outputs)
            else None
        )
    owner = source.graph.layers.get(port.layer, layer)
    name = tensor_name(spec.names if spec is not None else (), owner.name)
    value = source.values.get(port)
    if value is None:
        return End(layer, name, "not inferred", "")
    row = rows.get(((spec.line if spec is not None else None) or owner.where.line, owner.name))
    shape = row.shape if row is not None and len(owner.outputs) == 1 else None
    return End(layer, name, value.element.label, dims(shape or value.shape))


def _demands(source: Source) -> Iterator[str]:
    """Yield the constraints on the inputs."""
    constraints = source.constraints
    if constraints is None:
        return
    if constraints.error is not None:
        yield element("p", text=str(constraints.error), class_="bad")
    rows = [element("li", text=str(constraint)) for constraint in constraints]
    rows += [
        element("li", text=f"undecided: {constraint}", class_="soft") for constraint in constraints.undecided
    ]
    if rows:
        yield element("h3", text="Constraints on the inputs") + element("ul", *rows)
    elif any(type.shape.is_dynamic for type in source.types.values()):
        yield element("p", text="No constraints: every length is accepted.", class_="soft")


def _state(report: Diagnostics) -> str:
    errors, warnings = report.count(Severity.ERROR), report.count(Severity.WARNING)
    if not errors + warnings:
        return element("p", text="The model is valid: nothing was found wrong.", class_="soft")
    counts = [count_text(count, noun) for count, noun in ((errors, "error"), (warnings, "warning")) if count]
    return element(
        "p",
        text=f"{' and '.join(counts)}: see Findings.",
        class_="bad" if errors else "warn",
    )


def _weights(records: Records) -> list[tuple[str, ...]]:
    tensors: Counter[str] = Counter()
    numbers: Counter[str] = Counter()
    sizes: Counter[str] = Counter()
    for item, size in zip(records.constants.items, records.constants.sizes(), strict=True):
        value = item.value(0)
        if value is not None and size:
            name = value.element.label
            tensors[name] += 1
            numbers[name] += value.count.min
            sizes[name] += size
    return [
        (name, f"{tensors[name]:,}", f"{numbers[name]:,}", bytes_text(size))
        for name, size in sizes.most_common()
    ]


def findings_html(report: Diagnostics, nodes: Mapping[str, int]) -> str:
    """Return all findings as HTML, with links to the graph.

    Args:
        report: the findings.
        nodes: the number of each layer in the graph, by name.
    """
    parts = [_finding_html(found, nodes) for found in fold(report)]
    parts += [element("p", text=str(more), class_="soft") for more in report.more]
    return "".join(parts) or element("p", text="Nothing was found wrong or noteworthy.")


def _finding_html(finding: Diagnostic, nodes: Mapping[str, int]) -> str:
    parts = [
        element("strong", text=f"{finding.severity}[{finding.code}] "),
        element("span", text=finding.message),
    ]
    if finding.where is not None:
        node = nodes.get(finding.layer) if finding.layer is not None else None
        place = str(finding.where)
        link = (
            element("button", text=place, class_="link", data_node=node)
            if node is not None
            else element("span", text=place)
        )
        parts.append(element("p", link))
    if finding.excerpt is not None:
        parts.append(
            element("pre", *(element("span", text=line) + "\n" for line in str(finding.excerpt).split("\n")))
        )
    parts += [element("p", text=f"because {cause}", class_="soft") for cause in finding.causes]
    if finding.hint:
        parts.append(element("p", text=f"hint: {finding.hint}"))
    return element("div", *parts, class_=f"finding {finding.severity}")
