"""The attributes of layers as OpenVINO's API returns them."""

from __future__ import annotations

from typing import Any

from ..ir import shape
from ..ir.element import ElementType
from ..ir.graph import Layer
from ..ops import Op

__all__ = ["attributes_of"]


def attributes_of(layer: Layer) -> dict[str, Any]:
    """Return the attributes by their names in files, with their defaults, as numbers, texts and lists."""
    if layer.op is None:
        return dict(layer.attributes)
    known = layer.op.schema() if isinstance(layer.op, Op) else {}
    xml_names = {name: attribute.xml for name, attribute in known.items()}
    stored = ("offset", "size") if layer.type == "Constant" else ()
    found = layer.op.attributes().items()
    return {xml_names.get(name, name): _plain(value) for name, value in found if name not in stored}


def _plain(value: object) -> object:
    if isinstance(value, shape.PartialShape):
        return [-1] if value.rank is None else [d.min if d.is_static else -1 for d in value]
    if isinstance(value, tuple):
        return list(value)
    return value.label if isinstance(value, ElementType) else value
