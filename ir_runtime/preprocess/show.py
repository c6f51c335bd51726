"""The text of ``print(ppp)``: tensors and steps."""

from __future__ import annotations

from collections.abc import Generator, Sequence

from ..openvino.layout import Layout
from ..openvino.node import Output
from .options import ColorFormat
from .step import Context, Planes, Step

__all__ = ["shown_steps", "tensor_text"]


def tensor_text(tensor: Output, layout: Layout, color: ColorFormat = ColorFormat.UNDEFINED) -> str:
    """Return shape, layout, type and colour format of a tensor."""
    known = "" if color is ColorFormat.UNDEFINED else f", {color.label}"
    shown = "<no layout>" if layout.empty else str(layout)
    return f"{tensor.partial_shape}, {shown}, {tensor.element_type.label}{known}"


def shown_steps(planes: Planes, steps: Sequence[Step], context: Context) -> Generator[str, None, Planes]:
    """Apply steps, yield the tensor before and after each, and return the last."""
    for step in steps:
        yield f"      {step.name}: ({tensor_text(planes[0], context.layout, context.color)}"
        planes = step.apply(planes, context)
        yield f") -> ({tensor_text(planes[0], context.layout, context.color)})\n"
    return planes
