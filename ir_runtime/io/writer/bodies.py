"""Write the port maps and back edges of bodies."""

from __future__ import annotations

from collections.abc import Iterable

from ...ir.graph import Body, Layer
from ...ir.port_map import PORT_MAPS, Cut
from .printer import Printer

__all__ = ["write_back_edges", "write_port_map"]


def write_port_map(out: Printer, layer: Layer, body: Body) -> None:
    """Write the port map of a body: Parameters by layer input, Results by layer output."""
    with out.inside(PORT_MAPS[body.name]):
        for entry in body.inputs:
            out.element("input", _entry(layer.inputs[entry.port].id, entry.parameter, entry.cut))
        for output in body.outputs:
            out.element("output", _entry(layer.outputs[output.port].id, output.result, output.cut))
        for tag, inner, purpose in (
            ("input", body.iteration, "current_iteration"),
            ("output", body.condition, "execution_condition"),
        ):
            if inner is not None:
                out.element(tag, {**_entry(-1, inner), "purpose": purpose})


def write_back_edges(out: Printer, bodies: Iterable[Body]) -> None:
    """Write the back edges from Results to Parameters."""
    edges = [edge for body in bodies for edge in body.back_edges]
    if not edges:
        return
    with out.inside("back_edges"):
        for edge in edges:
            out.element("edge", {"from-layer": str(edge.result), "to-layer": str(edge.parameter)})


def _entry(port: int, inner: int, cut: Cut | None = None) -> dict[str, str]:
    entry = {"external_port_id": str(port), "internal_layer_id": str(inner)}
    if cut is None:
        return entry
    fields = {name: str(number) for name, number in cut._asdict().items()}
    return {"axis": fields.pop("axis"), **entry, **fields}
