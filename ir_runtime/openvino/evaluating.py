"""Compute one layer by the plain definition of its operation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..ir.array import as_booleans
from ..ir.element import ElementType
from ..ir.graph import Layer
from ..ir.tensor import Array

__all__ = ["evaluated"]


def evaluated(
    layer: Layer, inputs: Sequence[Array], elements: Sequence[ElementType]
) -> tuple[Array, ...] | None:
    """Return the outputs of a layer; None where it cannot be computed alone, as variables and bodies cannot."""
    op = layer.op
    if op is None or layer.type == "Parameter" or layer.bodies() or op.needs("variables"):
        return None
    with np.errstate(all="ignore"):
        found = op.evaluator(elements)(*map(as_booleans, inputs))
    return found if isinstance(found, tuple) else (found,)
