"""Layers that a kernel computes together, found by looking back from the last of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from ...ir.graph import Graph, Layer, Port
from ...ir.tensor import Value

__all__ = ["Pattern", "MatchContext", "Fusion"]


@dataclass(frozen=True)
class Fusion:
    """A layer whose result a kernel makes from other things than its inputs.

    Args:
        layers: those that it computes, each behind what it reads; the last one gives the result. Others
            may read the rest, too: then they run as well.
        reads: what the kernel takes.
        kernel: the kernel.
    """

    layers: tuple[Layer, ...]
    reads: tuple[Port, ...]
    kernel: Callable[..., Any]


@dataclass(frozen=True)
class MatchContext:
    """What there is to see around a layer."""

    graph: Graph
    value: Callable[[Port], Value]
    """What may be relied on of a port; contents only where they are fixed."""

    def sources(self, layer: Layer) -> tuple[Port, ...]:
        """What a layer reads."""
        return tuple(s for s in self.graph.sources(layer) if s is not None)

    def producer(self, port: Port, *types: str) -> Layer | None:
        """The layer of one of these types that makes a port and nothing else, unless its contents are known."""
        layer = self.graph[port.layer]
        fits = layer.type in types and layer.op is not None and len(layer.outputs) == 1
        return layer if fits and self.value(port).known() is None else None

    def scalar(self, port: Port) -> float | None:
        """The one real number that a port holds, if it is fixed."""
        known = self.value(port).known()
        return (
            float(known.item()) if known is not None and known.size == 1 and known.dtype.kind == "f" else None
        )


Pattern: TypeAlias = "Callable[[MatchContext, Layer], Fusion | None]"
