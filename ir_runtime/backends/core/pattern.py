"""Patterns: groups of layers computed by one kernel, matched backwards from the last layer.

A pattern explains near misses, for ``ir-runtime inspect --fusion``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import TypeAlias

from ...ir.graph import Graph, Layer, Port
from ...ir.tensor import Value
from .kernel import KernelTemplate

__all__ = ["Fusion", "MatchContext", "Pattern", "Refusal"]


@dataclass(frozen=True)
class Fusion:
    """Layers that match a pattern, and the kernel that computes them.

    >>> from ir_runtime.backends import Kernel
    >>> fusion = Fusion(layers=(), reads=(), kernel=Kernel(abs), pattern="numpy: gelu")
    >>> fusion.pattern
    'numpy: gelu'

    Args:
        layers: those that it computes, each after what it reads; the last one gives the result. Others
            may read the rest, too: then they run as well.
        reads: the inputs of the kernel.
        kernel: the kernel.
        pattern: the name of the pattern.
    """

    layers: tuple[Layer, ...]
    reads: tuple[Port, ...]
    kernel: KernelTemplate
    pattern: str = field(default="", compare=False)


@dataclass(frozen=True)
class Refusal:
    """The reason why layers almost match a pattern.

    >>> Refusal("another layer reads the scores").reason
    'another layer reads the scores'

    Args:
        reason: a clause that completes "not fused, because".
        layer: the last layer of what would have matched.
        pattern: the name of the pattern.
    """

    reason: str
    layer: Layer | None = None
    pattern: str = ""


@dataclass(frozen=True)
class MatchContext:
    """The graph around a layer, and the values of its ports.

    >>> import numpy as np
    >>> import ir_runtime as ov
    >>> from ir_runtime import opset1
    >>> x = opset1.parameter([2], np.float32, name="x")
    >>> model = ov.Model([opset1.multiply(opset1.relu(x, name="a"), np.float32(0.5), name="y")], [x])
    >>> context = MatchContext(model._graph, model._values.__getitem__)
    >>> (layer,) = model._graph.of_type("Multiply")
    >>> left, right = context.sources(layer)
    >>> context.producer(left, "Relu", "ReLU").name, context.producer(left, "Convolution"), context.scalar(right)
    ('a', None, 0.5)
    >>> context.reads([layer], left) == context.reads([layer]) == (left, right)
    True
    """

    graph: Graph
    value: Callable[[Port], Value]
    """Return the value of a port visible to kernels; contents only if constant."""

    def sources(self, layer: Layer) -> tuple[Port, ...]:
        """Return the ports that a layer reads."""
        return self.graph.reads(layer)

    def producer(self, port: Port, *types: str) -> Layer | None:
        """Return the layer that produces a port, if it has one of these types and is not constant.

        A layer with several outputs is never returned.
        """
        layer = self.graph[port.layer]
        fits = layer.type in types and layer.op is not None and len(layer.outputs) == 1
        return layer if fits and not self.value(port).is_known else None

    def reads(self, layers: Collection[Layer], *first: Port) -> tuple[Port, ...]:
        """Return the ports read from outside of layers: all of ``first``, then each other port once."""
        inside = {layer.id for layer in layers}
        ports = [port for layer in layers for port in self.sources(layer) if port.layer not in inside]
        return (*first, *(port for port in dict.fromkeys(ports) if port not in first))

    def scalar(self, port: Port) -> float | None:
        """Return the constant real number of a port, or ``None``."""
        known = self.value(port).known()
        return (
            float(known.item()) if known is not None and known.size == 1 and known.dtype.kind == "f" else None
        )


Pattern: TypeAlias = "Callable[[MatchContext, Layer], Fusion | Refusal | None]"
"""A function from a layer to the `Fusion` that it ends, a `Refusal`, or ``None``."""
