"""The pass ``mixed-inputs``: the reference computes layers with inputs of several floating-point types."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from ..ir.graph import Graph
from ..ir.operation import Operation
from .program import Options, Program

__all__ = ["hide_mixed_inputs", "plain"]


class MixedInputs:
    """The operation of a layer with mixed inputs, under a class unknown to backends.

    Kernels assume one type for all inputs with the same type variable. Other code sees the operation itself.
    """

    def __init__(self, op: Operation) -> None:
        self.plain = op

    def __getattr__(self, name: str) -> Any:
        if name == "plain":  # unset while an instance is being copied
            raise AttributeError(name)
        return getattr(self.plain, name)


def hide_mixed_inputs(program: Program, options: Options) -> None:
    """Leave layers with mixed floating-point inputs to the reference, which computes in the widest type.

    Before: element types are final.
    After: the operation of such a layer is a `MixedInputs`, so that no backend finds a kernel or a pattern for it.
    """
    if not options.backends:
        return
    mixed = {
        layer.id: replace(layer, op=cast("Operation", MixedInputs(op)))
        for layer in program.layers
        if (op := layer.op) is not None
        and op.has_mixed_inputs
        and op.is_mixed([program.values[port].element for port in program.reads(layer)])
    }
    if mixed:
        graph = program.graph
        layers = [mixed.get(layer.id, layer) for layer in graph.layers.values()]
        program.graph = Graph(layers, graph.edges, graph.severed)
        program.layers = [program.graph[layer.id] for layer in program.layers]


def plain(op: Operation) -> Operation:
    """Return the operation of the layer itself."""
    return op.plain if isinstance(op, MixedInputs) else op
