"""The pass ``shape-arithmetic``: find layers that depend on shapes alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from ..ir.graph import Graph, Layer, Port
from ..ir.tensor import Value
from ..ops.shape import ShapeOfBase
from .program import Options, Program

__all__ = ["MOST", "dependency_chain", "find_shape_arithmetic"]

MOST = 64
"""Maximum number of layers in one step. Layers whose results others also need are computed once for each step."""


def find_shape_arithmetic(program: Program, options: Options) -> None:
    """Find layers that depend on shapes alone, which are computed once per shape.

    Before: constants are folded.
    After: ``shape_only`` has the position of each such layer, in topological order.
    """
    if program.fold:
        program.shape_only = _shape_arithmetic(program.graph, program.layers, program.visible_value)


def _shape_arithmetic(graph: Graph, layers: Iterable[Layer], seen: Callable[[Port], Value]) -> dict[int, int]:
    """Number the layers that depend on shapes and constants alone; return the number of each by its id.

    Args:
        graph: the layers.
        layers: the layers to consider, in topological order.
        seen: returns the value of a port, with contents only if they are fixed.
    """
    numbered: dict[int, int] = {}
    for layer in layers:
        if not numbered and not isinstance(layer.op, ShapeOfBase):
            continue
        if layer.op is None or not layer.op.pure or layer.bodies():
            continue
        sources = [s for s in graph.sources(layer) if s is not None]
        open_ = [s for s in sources if seen(s).known() is None]
        if isinstance(layer.op, ShapeOfBase) or (open_ and all(s.layer in numbered for s in open_)):
            numbered[layer.id] = len(numbered)
    return numbered


def dependency_chain(graph: Graph, layer: Layer, among: Mapping[int, int]) -> tuple[Layer, ...] | None:
    """Return a layer with all layers in ``among`` that it depends on, in order; ``None`` if they are more than `MOST`."""
    members, waiting = {layer.id}, [layer]
    while waiting:
        for source in graph.sources(waiting.pop()):
            if source is not None and source.layer in among and source.layer not in members:
                members.add(source.layer)
                waiting.append(graph[source.layer])
        if len(members) > MOST:
            return None
    return tuple(graph[id] for id in sorted(members, key=among.__getitem__))
