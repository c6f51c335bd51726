"""Read the layers and edges of a graph: a whole model, or a body."""

from __future__ import annotations

from dataclasses import replace

from ..._util import deadline
from ..._util.deadline import check_periodically
from ...codes import Code
from ...diagnostics import Location, Mark
from ...ir.graph import Layer, PortSpec
from .document import Element
from .edges import Wiring, read_edges
from .layers import LayerReader

__all__ = ["read_parts", "with_outputs"]


def read_parts(root: Element, reader: LayerReader) -> tuple[dict[int, Layer], Wiring]:
    """Return the ``<layers>`` of a graph by id, and its ``<edges>``; report errors in them.

    Raises:
        LimitError: if their number exceeds the limits.
    """
    where = Location(reader.file, root.sourceline)
    for name, path in (("layers", "layers/layer"), ("edges", "edges/edge")):
        reader.limits.check(name, sum(1 for _ in check_periodically(root.iterfind(path))), where)
    layers: dict[int, Layer] = {}
    left_out: frozenset[int] = frozenset()
    if reader.needed_only:
        from .needed import unneeded_ids

        left_out = unneeded_ids(root)
    for element in root.iterfind("layers/layer"):
        deadline.check()
        if left_out and reader.skips(element, left_out):
            continue
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
    wiring = read_edges(root, layers, reader.file, reader.report, unsure, left_out)
    layers |= {layer.id: with_outputs(layer) for layer in layers.values() if not layer.outputs}
    return layers, wiring


def with_outputs(layer: Layer) -> Layer:
    """Give a layer without ``<output>`` the outputs of its operation, as OpenVINO does; no edge starts there.

    Model Optimizer omits it in Assign, as does the example in the specification.
    """
    if layer.op is None or layer.type == "Result" or any(port.variadic for port in layer.op.outputs):
        return layer
    first = 1 + max((port.id for port in layer.inputs), default=-1)
    return replace(layer, outputs=tuple(PortSpec(first + i) for i in range(len(layer.op.outputs))))
