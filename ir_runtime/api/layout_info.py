"""The layouts that a graph has for its inputs and outputs, in the rt_info of their tensors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..codes import Code
from ..errors import InputError
from ..ir.graph import Graph, Port
from ..ir.shape import PartialShape
from .layout import Layout

__all__ = ["check_layout", "layout_of", "with_layout"]

_ENTRY = "layout"


def layout_of(graph: Graph, port: Port) -> Layout:
    """Return the layout of a tensor; an empty one where the file says nothing."""
    specs = graph[port.layer].outputs[port.number : port.number + 1]
    entry = specs[0].rt_info.get(_ENTRY, "") if specs else ""
    return Layout(str(entry.get(_ENTRY, "") if isinstance(entry, Mapping) else entry))


def with_layout(graph: Graph, port: Port, layout: Layout) -> Graph:
    """Return the graph with another layout of a tensor; an empty one removes what the file says."""
    layer = graph[port.layer]
    specs = list(layer.outputs)
    info: dict[str, Any] = {key: entry for key, entry in specs[port.number].rt_info.items() if key != _ENTRY}
    if not layout.empty:
        info[_ENTRY] = {"version": "0", _ENTRY: str(layout)}
    specs[port.number] = replace(specs[port.number], rt_info=info)
    changed = replace(layer, outputs=tuple(specs))
    layers = [changed if la.id == layer.id else la for la in graph.layers.values()]
    return Graph(layers, graph.edges, graph.severed)


def check_layout(layout: Layout, shape: PartialShape, name: str) -> None:
    """Raise if a tensor of that shape cannot have the layout.

    Raises:
        InputError: if it lists another number of dimensions.
    """
    if not isinstance(layout, Layout):
        raise TypeError(f"expected a Layout, got {layout!r}; ir_runtime.Layout({str(layout)!r}) is one")
    if not layout.empty and not layout.fits(shape.rank):
        raise InputError(
            f"layout {layout} does not fit {name!r}, which has shape {shape}",
            code=Code.BAD_REQUEST,
            hint=f"a layout must name {shape.rank} dimensions, or have an ellipsis",
        )
