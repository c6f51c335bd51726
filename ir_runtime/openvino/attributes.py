"""The attributes of layers, as `Node.get_attributes` returns them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from ..ir import shape
from ..ir.element import ElementType
from ..ir.graph import Layer
from ..ops import Op

__all__ = ["attributes_of"]


Shapes: TypeAlias = "tuple[Sequence[shape.PartialShape], shape.PartialShape]"
"""Those of the inputs of a layer, and of its first output."""


def attributes_of(layer: Layer, shapes: Callable[[], Shapes]) -> dict[str, Any]:
    """Return the attributes of a layer, with defaults, as numbers, strings and lists by their names in files.

    Args:
        layer: the layer.
        shapes: returns the shapes of the inputs and of the first output, for attributes that depend on them.
    """
    if layer.op is None:
        return dict(layer.attributes)
    fields = layer.op.attributes()
    if not isinstance(layer.op, Op):
        return {name: _plain(value) for name, value in fields.items()}
    if type(layer.op).shown is not Op.shown and len(layer.inputs) >= _count_required(layer.op):
        fields |= layer.op.shown(*shapes())
    schema = layer.op.schema()
    stored = ("offset", "size") if layer.type == "Constant" else ()
    return {schema[name].xml: _plain(value) for name, value in fields.items() if name not in stored}


def _count_required(op: Op) -> int:
    """Return the number of inputs that are not optional."""
    return sum(not port.optional for port in op.inputs)


def _plain(value: object) -> object:
    if isinstance(value, shape.PartialShape):
        return [-1] if value.rank is None else [d.min if d.is_static else -1 for d in value]
    if isinstance(value, tuple):
        return list(value)
    return value.label if isinstance(value, ElementType) else value
