"""The program that passes transform: layers, the values of their ports, and the kernels chosen so far."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from ..backends import Fusion, Kernel, KernelTemplate, Refusal
from ..ir.graph import Graph, Layer, Port
from .fuse import Group
from .state import CompileState

__all__ = ["Program"]


@dataclass(slots=True)
class Program:
    """A model between reading and running.

    Args:
        state: what kernels may rely on.
        layers: those that run, as far as is known by now, in order.
        outputs: the ports to compute.
        kernels: kernels that a pass chose before patterns and backends are tried, by layer id.
        variables: what makes the kernels of layers that read or assign variables of those for f32, by layer id.
        shape_only: the layers whose results follow from shapes alone, numbered in order, by layer id.
        fusions: the fusion that a layer ends, if patterns were asked, by layer id.
        groups: the layers that each kernel computes, in the order in which they run.
        refused: what patterns refused, and why.
    """

    state: CompileState
    layers: Sequence[Layer]
    outputs: Sequence[Port]
    kernels: Mapping[int, KernelTemplate] = field(default_factory=dict)
    variables: Mapping[int, Callable[[Kernel], Kernel]] = field(default_factory=dict)
    shape_only: Mapping[int, int] = field(default_factory=dict)
    fusions: dict[int, Fusion | None] = field(default_factory=dict)
    groups: list[Group] = field(default_factory=list)
    refused: list[Refusal] = field(default_factory=list)

    @property
    def graph(self) -> Graph:
        """The graph of the layers."""
        return self.state.graph

    def reads(self, layer: Layer) -> tuple[Port, ...]:
        """Return the ports that a layer reads."""
        return self.graph.reads(layer)
