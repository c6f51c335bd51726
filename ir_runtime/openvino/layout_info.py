"""The layouts of layers' outputs, stored in the rt_info of ports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ..codes import Code
from ..errors import InputError
from ..ir.graph import Layer
from ..ir.shape import PartialShape
from .layout import Layout

__all__ = ["check_layout", "layout_of", "with_layout"]

_ENTRY = "layout"


def layout_of(layer: Layer, index: int) -> Layout:
    """Return the layout of an output; empty if the file has none."""
    specs = layer.outputs[index : index + 1]
    entry = specs[0].rt_info.get(_ENTRY, "") if specs else ""
    return Layout(str(entry.get(_ENTRY, "") if isinstance(entry, Mapping) else entry))


def with_layout(layer: Layer, index: int, layout: Layout) -> Layer:
    """Return the layer with the layout of an output changed; an empty one removes it."""
    specs = list(layer.outputs)
    info = {key: entry for key, entry in specs[index].rt_info.items() if key != _ENTRY}
    if not layout.empty:
        info[_ENTRY] = {"version": "0", _ENTRY: str(layout)}
    specs[index] = replace(specs[index], rt_info=info)
    return replace(layer, outputs=tuple(specs))


def check_layout(layout: Layout, shape: PartialShape, name: str) -> None:
    """Raise if a tensor of this shape cannot have the layout.

    Raises:
        InputError: if the number of dimensions differs.
    """
    if not isinstance(layout, Layout):
        raise TypeError(f"expected a Layout, got {layout!r}; ir_runtime.Layout({str(layout)!r}) is one")
    if not layout.empty and not layout.fits(shape.rank):
        raise InputError(
            f"layout {layout} does not fit {name!r}, which has shape {shape}",
            code=Code.BAD_REQUEST,
            hint=f"a layout must name {shape.rank} dimensions, or have an ellipsis",
        )
