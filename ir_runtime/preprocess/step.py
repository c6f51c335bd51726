"""The type of steps: a name, and a function from nodes to nodes that receives the results of the steps before."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from ..ir.element import ElementType
from ..ir.shape import PartialShape
from ..openvino.layout import Layout
from ..openvino.node import Output
from .options import ColorFormat
from .permutations import refusal

__all__ = ["Context", "Planes", "Step", "only"]

Planes: TypeAlias = "tuple[Output, ...]"
"""The tensors of an image: one, or one per plane."""


@dataclass
class Context:
    """The state of the steps: the current tensor, and the target that they lead to."""

    layout: Layout
    target_layout: Layout = field(default_factory=Layout)
    target_type: ElementType = ElementType.dynamic
    model_shape: PartialShape = field(default_factory=PartialShape.dynamic)
    color: ColorFormat = ColorFormat.UNDEFINED


@dataclass(frozen=True)
class Step:
    """One step; ``name`` is what ``print(ppp)`` shows."""

    name: str
    apply: Callable[[Planes, Context], Planes]


def only(planes: Planes, what: str) -> Output:
    """Return the only plane.

    Raises:
        InputError: if there are several.
    """
    if len(planes) > 1:
        raise refusal(
            f"{what} does not apply to images of several planes", "convert_color to RGB or BGR first"
        )
    return planes[0]
