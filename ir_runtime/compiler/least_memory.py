"""Compute the minimum memory of a run of the definitions without compiling."""

from __future__ import annotations

from collections.abc import Sequence

from ..analysis.infer import Inferred, infer
from ..backends import Kernel
from ..diagnostics import Diagnostics
from ..executor.step import Step
from ..ir.graph import Body, Graph, Layer, Port
from ..ir.tensor import bytes_of
from .memory import Peak, peak, with_frees
from .needed import needed
from .program import Program

__all__ = ["least_memory"]


_NOTHING = Kernel(tuple)
"""Stands for the kernels of steps that do not run."""


def least_memory(graph: Graph, types: Inferred, outputs: Sequence[Port], patched: bool = False) -> Peak:
    """Return the peak memory if each layer runs separately, and the layer at the peak.

    Args:
        graph: the layers.
        types: the inferred values; unknown lengths count as their minimum.
        outputs: the computed ports.
        patched: count the results of a running layer twice, as a patch may copy them.
    """
    program = Program(graph, types, (), outputs)
    slots: dict[Port, int] = {}

    def slots_of(ports: Sequence[Port]) -> tuple[int, ...]:
        return tuple(slots.setdefault(port, len(slots)) for port in ports)

    slots_of([Port(layer.id, 0) for layer in graph.of_type("Parameter")])
    steps = [
        Step(layer, _NOTHING, slots_of(graph.reads(layer)), slots_of(layer.output_ports))
        for layer in needed(graph, outputs)
        if _runs(program, layer)
    ]
    steps = with_frees(steps, slots_of(outputs))
    written = {slot for step in steps for slot in step.writes}
    fixed = [port for port, slot in slots.items() if slot not in written and program.owned(port)]
    sizes = [bytes_of(program.type(port)) for port in slots]
    inside = {step.layer.id: _of_bodies(step.layer, types, patched) for step in steps if step.layer.bodies()}
    if patched:
        copies = {step.layer.id: sum(sizes[slot] for slot in step.writes) for step in steps}
        inside = {id: max(inside.get(id, 0), size) for id, size in copies.items()}
    return peak(steps, sum(sizes[slots[port]] for port in fixed), sizes, inside)


def _runs(program: Program, layer: Layer) -> bool:
    """Return whether a layer is computed; constants count only if a run unpacks them."""
    if layer.type == "Constant":
        return not program.is_fixed(Port(layer.id, 0))
    return layer.type != "Parameter"


def _of_bodies(layer: Layer, types: Inferred, patched: bool) -> int:
    return max(
        least_memory(body.graph, _infer_body(layer, body, types), list(body.results.values()), patched).bytes
        for body in layer.bodies()
    )


def _infer_body(layer: Layer, body: Body, types: Inferred) -> Inferred:
    """Return the inferred values of a body; empty for a branch that is never taken."""
    inferred = types.bodies.get((layer.id, body.name))
    return infer(body.graph, Diagnostics()) if inferred is None else inferred
