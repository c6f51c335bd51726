"""The text of ``ir-runtime inspect`` about a compilation: the graph after a pass, and the fusions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._util.escaping import shown
from .render import Record, plural, result, table

if TYPE_CHECKING:
    from ..compiler.fusion_report import FusionReport
    from ..ir.graph import Layer
    from ..openvino.model import Model

__all__ = ["show_after", "show_fusions"]


def show_after(model: Model, name: str, backend: str | None, as_json: bool) -> None:
    """Print the text of a model after a pass."""
    from ..openvino.compiling import program_after

    text = program_after(model, name, backend)
    result(as_json, lambda: {"pass": name, "program": text.splitlines()}, lambda: text, pager=True)


def show_fusions(model: Model, backend: str | None, as_json: bool) -> None:
    """Print which layers were fused, and which were not, with the reason."""
    from ..openvino.compiling import fusions_of

    report = fusions_of(model, backend)
    result(as_json, lambda: _record(report), lambda: _text(report))


def _record(report: FusionReport) -> Record:
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


def _text(report: FusionReport) -> str:
    rows = [
        [group.layers[0].name, " + ".join(_operation(layer) for layer in group.layers), group.pattern]
        for group in report.fused
    ]
    header = ["first layer", "layers of one kernel", "pattern"]
    details = [table("Fused", header, rows, sentences=header[1:2], least=header[2:])] if rows else []
    rows = [
        [
            group.layer.name,
            _operation(group.layer),
            "" if group.producer is None else f"{shown(group.producer.name)} ({_operation(group.producer)})",
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


def _operation(layer: Layer) -> str:
    return shown(layer.where.operation)
