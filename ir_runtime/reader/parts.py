"""Read the layers and edges of a graph: a whole model, or a body."""

from __future__ import annotations

from .. import deadline
from ..codes import Code
from ..deadline import check_periodically
from ..diagnostics import Location, Mark
from ..ir.graph import Layer
from .document import Element
from .edges import Wiring, read_edges
from .layers import LayerReader

__all__ = ["read_parts"]


def read_parts(root: Element, reader: LayerReader) -> tuple[dict[int, Layer], Wiring]:
    """Return the ``<layers>`` of a graph by id, and its ``<edges>``; report what is wrong with them.

    Raises:
        LimitError: if there are more than the limits allow.
    """
    where = Location(reader.file, root.sourceline)
    for name, path in (("layers", "layers/layer"), ("edges", "edges/edge")):
        reader.limits.check(name, sum(1 for _ in check_periodically(root.iterfind(path))), where)
    layers: dict[int, Layer] = {}
    for element in root.iterfind("layers/layer"):
        deadline.check()
        layer = reader.read(element)
        if layer is None:
            continue
        if layer.id not in layers:
            layers[layer.id] = layer
            continue
        first = layers[layer.id]
        message = f"duplicate layer id {layer.id}: layer {first.name!r} at line {first.where.line} has it"
        reader.report.error(Code.DUPLICATE_ID, message, layer.where, mark=Mark(attribute="id"))
        reader.nameless = True
    unsure = None if reader.nameless else frozenset(reader.unsure)
    return layers, read_edges(root, layers, reader.file, reader.report, unsure)
