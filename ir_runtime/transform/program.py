"""What the passes of a compilation work on: layers, what is known of them, and the kernels chosen so far."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from ..backends import Kernel, Refusal
from ..ir.graph import Graph, Layer, Port
from .fuse import Group
from .state import CompileState

__all__ = ["Program"]


@dataclass(slots=True)
class Program:
    """A model between reading and running.

    Args:
        state: what kernels may rely on.
        layers: those that the outputs need, in order.
        outputs: the ports to compute.
        kernels: kernels that a pass chose before patterns and backends are asked, by layer id.
        shape_only: the layers whose results follow from shapes alone, numbered in order, by layer id.
        groups: the layers that each kernel computes, in the order in which they run.
        refused: what patterns refused, and why.
    """

    state: CompileState
    layers: Sequence[Layer]
    outputs: Sequence[Port]
    kernels: Mapping[int, Kernel] = field(default_factory=dict)
    shape_only: Mapping[int, int] = field(default_factory=dict)
    groups: list[Group] = field(default_factory=list)
    refused: list[Refusal] = field(default_factory=list)

    @property
    def graph(self) -> Graph:
        """The graph of the layers."""
        return self.state.graph

    def reads(self, layer: Layer) -> tuple[Port, ...]:
        """Return the ports that a layer reads."""
        return tuple(s for s in self.graph.sources(layer) if s is not None)

    def read(self) -> Collection[Port]:
        """Return every port that some group reads, or that is an output."""
        return {port for group in self.groups for port in group.reads} | set(self.outputs)
