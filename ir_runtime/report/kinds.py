"""Mark the layers without boxes in the initial picture: constants, their dependents, and shape arithmetic."""

from __future__ import annotations

from ..ir.graph import IO_TYPES
from .items import Item, Items

__all__ = ["mark_constants", "mark_shapes"]

_MOST = 64
"""Elements of a tensor that counts as a shape."""


def mark_constants(listing: Items) -> None:
    """Mark constants, and layers that compute from constants alone: they belong to their readers."""
    for item in listing.items:  # producers come before their readers
        above = listing.above[item.index]
        computed = bool(above) and _is_plain(item) and all(listing.items[i].is_constant for i in above)
        item.is_constant = item.layer.type == "Constant" or computed


def mark_shapes(listing: Items) -> None:
    """Mark layers that compute small tensors from nothing but shapes."""
    for item in listing.items:
        if item.layer.type == "ShapeOf" and not item.is_constant:
            item.is_shape = True
        elif not item.is_constant and _is_plain(item) and _is_small(item):
            above = [listing.items[i] for i in listing.above[item.index]]
            item.is_shape = any(a.is_shape for a in above) and all(a.is_shape or a.is_constant for a in above)


def _is_plain(item: Item) -> bool:
    op = item.layer.op
    return item.layer.type not in IO_TYPES and not item.bodies and (op is None or op.pure)


def _is_small(item: Item) -> bool:
    """Return whether every output is a list of a few numbers, or one."""
    values = [item.value(port) for port in range(len(item.layer.outputs))]
    shapes = [value.shape for value in values if value is not None]
    return len(shapes) == len(values) and all(
        shape.rank is not None and shape.rank <= 1 and all(d.is_static and d.min <= _MOST for d in shape)
        for shape in shapes
    )
