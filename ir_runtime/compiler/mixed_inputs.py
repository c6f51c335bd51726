"""Layers whose inputs have several floating-point types: the reference computes them, in the widest of these."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from ..ir.graph import Graph
from ..ir.operation import Operation
from .program import Program

__all__ = ["hide_mixed_inputs", "plain"]


class MixedInputs:
    """The operation of a layer with mixed inputs, under a class that no backend has kernels or patterns for.

    These read all inputs that share a type variable as if they had one type. All else finds the operation itself.
    """

    def __init__(self, op: Operation) -> None:
        self.plain = op

    def __getattr__(self, name: str) -> Any:
        if name == "plain":  # unset while an instance is being copied
            raise AttributeError(name)
        return getattr(self.plain, name)


def hide_mixed_inputs(program: Program) -> None:
    """Hide layers with mixed inputs from the kernels and patterns of all backends."""
    state = program.state
    mixed = {
        layer.id: replace(layer, op=cast("Operation", MixedInputs(op)))
        for layer in program.layers
        if (op := layer.op) is not None
        and op.has_mixed_inputs
        and op.is_mixed([state.values[port].element for port in program.reads(layer)])
    }
    if mixed:
        layers = [mixed.get(layer.id, layer) for layer in state.graph.layers.values()]
        graph = Graph(layers, state.graph.edges, state.graph.severed)
        program.state = replace(state, graph=graph)
        program.layers = [graph[layer.id] for layer in program.layers]


def plain(op: Operation) -> Operation:
    """Return an operation as its layer has it."""
    return op.plain if isinstance(op, MixedInputs) else op
