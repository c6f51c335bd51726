"""Check the structure of a graph: connected inputs, no cycles, known outputs."""

from __future__ import annotations

from collections.abc import Sequence

from ..._util.deadline import check_periodically
from ...codes import Code
from ...diagnostics import Diagnostics, Mark
from ...ir.graph import Body, Graph, Layer, Port

__all__ = ["check_structure"]


def check_structure(graph: Graph, report: Diagnostics) -> None:
    """Report inputs without an edge, cycles, and unknown output ports."""
    for layer in check_periodically(graph.layers.values()):
        _check_inputs(graph, layer, report)
        bodies = layer.bodies()
        _check_outputs(layer, bodies, report)
        for body in bodies:
            check_structure(body.graph, report)
    for cycle in graph.cycles():
        path = " → ".join(repr(layer.name) for layer in [*cycle[:6], cycle[0]])
        report.error(
            Code.CYCLE,
            f"the graph has a cycle: {path}",
            cycle[0].where,
            "one of the edges between them is wrong",
        )


def _check_inputs(graph: Graph, layer: Layer, report: Diagnostics) -> None:
    sources = graph.sources(layer)
    for index, source in enumerate(sources) if None in sources else ():
        if source is not None or Port(layer.id, index) in graph.severed:
            continue
        port = layer.op.port_of(index) if layer.op else None
        name = f" ({port.name})" if port else ""
        report.error(
            Code.UNCONNECTED,
            f"input port {layer.inputs[index].id}{name} has no edge",
            layer.where,
            "connect it, or remove the port if the input is optional",
            mark=Mark(port=layer.inputs[index].id),
        )


def _check_outputs(layer: Layer, bodies: Sequence[Body], report: Diagnostics) -> None:
    op = layer.op
    if bodies:
        _check_port_map(layer, bodies, report)
    if op is None or op.name == "Result" or 0 < len(layer.outputs) <= len(op.outputs):
        return
    if not any(port.variadic for port in op.outputs):
        report.error(
            Code.PORT_COUNT,
            f"declares {len(layer.outputs)} outputs; {op.versioned_name()} has {len(op.outputs)}",
            layer.where,
        )


def _check_port_map(layer: Layer, bodies: Sequence[Body], report: Diagnostics) -> None:
    """Report outputs beyond the last one in the port map; inference reports missing ones before it."""
    mapped = max((output.port for body in bodies for output in body.outputs), default=-1) + 1
    for spec in layer.outputs[mapped:]:
        report.error(
            Code.PORT_COUNT,
            f"output port {spec.id} of the layer has no value: the port map of {bodies[0].name} has no <output> "
            f"for it",
            layer.where,
            mark=Mark(port=spec.id, output=True),
        )
