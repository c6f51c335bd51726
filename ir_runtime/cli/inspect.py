"""``ir-runtime inspect``: show the inputs, outputs, operations and weights of a model."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from .._util.escaping import quoted, shown, visible
from .helping import GroupedCommand
from .models import as_json, example_options, port_record, read, weights
from .options import limit_options
from .render import Record, join_conclusion, plain, plural, result, table
from .terminal import show

if TYPE_CHECKING:
    from ..compiler.fusion_report import FusionReport
    from ..ir.graph import Layer
    from ..limits import Limits
    from ..openvino.model import Model
    from ..openvino.node import Node, Output
    from ..releases.needs import Need
    from ..releases.release import Release

__all__ = ["inspect"]


@click.command(cls=GroupedCommand, group="Look")
@click.argument("model", metavar="MODEL")
@example_options
@weights
@limit_options
@click.option(
    "--fusion", is_flag=True, help="Show which layers were fused into one kernel, and why others were not."
)
@click.option("--print-after", "after", metavar="PASS", help="Show the graph after this compiler pass.")
@click.option(
    "--backend", metavar="NAME", help="Backend of --fusion and --print-after: native, numpy, reference."
)
@as_json
def inspect(
    model: str,
    example: int | None,
    values: tuple[str, ...],
    weights: str | None,
    fusion: bool,
    after: str | None,
    backend: str | None,
    as_json: bool,
    limits: Limits,
) -> None:
    """Show the inputs, outputs, operations and weights of MODEL, or its graph as compiled.

    A model with unknown operations or errors is shown nevertheless.
    """
    if fusion and after:
        raise click.UsageError("--fusion and --print-after cannot be given together")
    if backend and not (fusion or after):
        raise click.UsageError("--backend needs --fusion or --print-after")
    net = read(model, weights, example, values, checked=bool(fusion or after), limits=limits)
    if after:
        _show_after(net, after, backend, as_json)
    elif fusion:
        _show_fusions(net, backend, as_json)
    else:
        record = _record(model, net)
        result(as_json, lambda: record, lambda: _text(record))
        _remark(record)


def _record(path: str, net: Model) -> Record:
    from ..diagnostics import Severity

    constants = [node.output() for node in net._every_node() if node.type == "Constant"]
    weights = list(_weights(constants))
    return {
        "file": path,
        "name": net.name,
        "version": net._document.version,
        "inputs": [port_record(port) for port in net.inputs],
        "outputs": [port_record(port) for port in net.outputs],
        "layers": len(net._every_node()),
        "operations": list(_operations(net._every_node())),
        "parameters": sum(row["numbers"] for row in weights),
        "weights": weights,
        "dynamic": list(_dynamic(net.inputs)),
        "releases": None if net._document.is_page else _releases(net),
        "errors": net.report.count(Severity.ERROR),
        "warnings": net.report.count(Severity.WARNING),
    }


def _operations(nodes: Sequence[Node]) -> Iterator[Record]:
    """Yield each operation with its number of layers, most frequent first."""
    counts = Counter((_operation(node), _is_known(node)) for node in nodes)
    for (name, is_known), count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        yield {"operation": name, "count": count, "known": is_known}


def _is_known(node: Node) -> bool:
    return node.layer.where.operation != node.layer.type


def _operation(node: Node) -> str:
    layer = node.layer
    return layer.where.operation if _is_known(node) else f"{layer.type} ({layer.version})"


def _weights(constants: Sequence[Output]) -> Iterator[Record]:
    """Yield the totals of constants per element type, largest first."""
    tensors: Counter[str] = Counter()
    numbers: Counter[str] = Counter()
    size: Counter[str] = Counter()
    for port in constants:
        if port.partial_shape.is_dynamic:
            continue
        count, name = math.prod(port.shape), port.element_type.label
        tensors[name] += 1
        numbers[name] += count
        size[name] += port.element_type.nbytes(count)
    for name, total in size.most_common():
        yield {"type": name, "tensors": tensors[name], "numbers": numbers[name], "bytes": total}


def _dynamic(inputs: Sequence[Output]) -> Iterator[Record]:
    """Yield the dynamic dimensions of inputs; ``axis`` is null if the rank is dynamic."""
    for port in inputs:
        if port.partial_shape.rank.is_dynamic:
            yield {"input": port.label, "axis": None, "min": 0, "max": None}
            continue
        for axis, dim in enumerate(port.partial_shape):
            if dim.is_dynamic:
                yield {"input": port.label, "axis": axis, "min": dim.min, "max": dim.max}


def _releases(net: Model) -> Record:
    """Return the releases of OpenVINO that read a model, and each requirement with the first layer that has it."""
    from ..releases.needs import needs_of_file, oldest_release
    from ..releases.release import Release, releases

    first: dict[str, Need] = {}
    layers: Counter[str] = Counter()
    for need in needs_of_file(net._document, net._graph, net._values):
        first.setdefault(need.feature, need)
        layers[need.feature] += need.layer is not None
    all_releases, oldest = releases(), oldest_release(first.values())
    never = Release(all_releases[-1].year + 1, 0)
    return {
        "oldest": _name_of(oldest),
        "known": [str(all_releases[0]), str(all_releases[-1])],
        "needs": [
            {
                "need": need.text,
                "since": _name_of(need.first),
                "code": need.code,
                "layer": need.layer,
                "line": need.where and need.where.line,
                "layers": layers[need.feature],
            }
            for need in sorted(first.values(), key=lambda need: need.first or never, reverse=True)
        ],
    }


def _name_of(release: Release | None) -> str | None:
    return None if release is None else str(release)


def _text(record: Record) -> str:
    from ..io.reader.model import version_text

    name_text = f"{quoted(record['name'])}, " if record["name"] else ""
    layers = plural(record["layers"], "layer")
    title = f"{visible(record['file'])}: {name_text}{version_text(record['version'])}, {layers}"
    parts = [title, _ports("Inputs", record["inputs"]), _ports("Outputs", record["outputs"])]
    details = [_operation_table(record["operations"])]
    if record["weights"]:
        details.append(_weight_table(record))
    if record["dynamic"]:
        rows = [[r["input"], _open(r["axis"]), str(r["min"]), _open(r["max"])] for r in record["dynamic"]]
        details.append(table("Dynamic dimensions", ["input", "axis", "min", "max"], rows))
    if record["releases"]:
        details.append(_release_table(record))
    return join_conclusion(parts, details)


def _release_table(record: Record) -> str:
    """Describe which releases of OpenVINO read the model, and why older ones do not."""
    oldest, needs, (first, _) = (record["releases"][key] for key in ("oldest", "needs", "known"))
    if oldest is None:
        title = f"Read by no OpenVINO since {first}"
        if not any(row["layers"] for row in needs):
            title += "; ir-runtime upgrade OLD.xml NEW.xml writes a version that it reads"
    elif oldest == first:
        title = f"Read by every OpenVINO since {first}"
    else:
        title = f"Read by OpenVINO {oldest} and later"
    if not all(row["known"] for row in record["operations"]):
        title += ", but for the operations that are unknown"
    if not needs:
        return click.style(title, bold=True)
    rows = [
        [row["since"] or "never", row["need"], row["layer"] or "", _blank(row["line"]), _blank(row["layers"])]
        for row in needs
    ]
    header = ["since", "need", "first layer", "line", "layers"]
    right, least = ("line", "layers"), ("line", "layers", "first layer")
    return table(title, header, rows, right=right, sentences=("need",), least=least)


def _blank(value: int | None) -> str:
    return plain(value) if value else ""


def _ports(title: str, ports: Sequence[Record]) -> str:
    rows = [[port["name"], port["type"], _shape(port["shape"])] for port in ports]
    return table(title, ["name", "type", "shape"], rows)


def _shape(dims: Sequence[int | str] | None) -> str:
    return "[...]" if dims is None else f"[{','.join(map(str, dims))}]"


def _open(value: int | None) -> str:
    return "?" if value is None else str(value)


def _operation_table(operations: Sequence[Record]) -> str:
    rows = [[o["operation"], plain(o["count"]), "" if o["known"] else "unknown"] for o in operations]
    return table("Operations", ["operation", "count", ""], rows, right=("count",))


def _weight_table(record: Record) -> str:
    rows = [[r["type"], *map(plain, (r["tensors"], r["numbers"], r["bytes"]))] for r in record["weights"]]
    if len(rows) > 1:
        totals = (sum(r[key] for r in record["weights"]) for key in ("tensors", "numbers", "bytes"))
        rows.append(["total", *map(plain, totals)])
    header = ["type", "tensors", "numbers", "bytes"]
    return table("Weights", header, rows, right=header[1:], least=("tensors", "numbers"))


def _remark(record: Record) -> None:
    unknown = [o for o in record["operations"] if not o["known"]]
    if unknown:
        layers = plural(sum(o["count"] for o in unknown), "layer")
        names = ", ".join(shown(o["operation"]) for o in unknown)
        show(f"not supported: {names}, in {layers}", err=True)
    if record["errors"]:
        show(f"the model has {plural(record['errors'], 'error')}; ir-runtime validate shows them", err=True)


def _show_after(model: Model, name: str, backend: str | None, as_json: bool) -> None:
    """Print a model as it is after a compiler pass."""
    from ..openvino.compiling import program_after

    text = program_after(model, name, backend)
    result(as_json, lambda: {"pass": name, "program": text.splitlines()}, lambda: text, pager=True)


def _show_fusions(model: Model, backend: str | None, as_json: bool) -> None:
    """Print which layers were fused, and why others were not."""
    from ..openvino.compiling import fusions_of

    report = fusions_of(model, backend)
    result(as_json, lambda: _fusion_record(report), lambda: _fusion_text(report))


def _fusion_record(report: FusionReport) -> Record:
    return {
        "fused": [
            {"layers": [_layer(layer) for layer in group.layers], "pattern": group.pattern or None}
            for group in report.fused
        ],
        "unfused": [
            {
                **_layer(group.layer),
                "producer": None if group.producer is None else group.producer.name,
                "reason": group.reason,
            }
            for group in report.unfused
        ],
        "single": report.single,
    }


def _layer(layer: Layer) -> dict[str, str]:
    return {"layer": layer.name, "operation": layer.where.operation}


def _fusion_text(report: FusionReport) -> str:
    rows = [
        [
            group.layers[0].name,
            " + ".join(_operation_of_layer(layer) for layer in group.layers),
            group.pattern,
        ]
        for group in report.fused
    ]
    header = ["first layer", "layers of one kernel", "pattern"]
    details = [table("Fused", header, rows, sentences=header[1:2], least=header[2:])] if rows else []
    rows = [
        [
            group.layer.name,
            _operation_of_layer(group.layer),
            ""
            if group.producer is None
            else f"{shown(group.producer.name)} ({_operation_of_layer(group.producer)})",
            group.reason,
        ]
        for group in report.unfused
    ]
    if rows:
        header = ["layer", "operation", "reads", "not fused, because"]
        details.append(table("Not fused", header, rows, sentences=header[3:], least=("operation", "reads")))
    inside = sum(len(group.layers) for group in report.fused)
    conclusion = (
        f"{plural(len(report.fused), 'kernel')} for {plural(inside, 'layer')}, "
        f"and {plural(report.single, 'kernel')} for one layer each"
    )
    return "\n\n".join([*details, conclusion])


def _operation_of_layer(layer: Layer) -> str:
    return shown(layer.where.operation)
