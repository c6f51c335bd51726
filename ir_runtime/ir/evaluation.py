"""Evaluation of a single layer with the reference implementation of its operation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .element import ElementType
from .graph import Layer
from .tensor import Array

__all__ = ["evaluate_layer", "stands_alone"]


def stands_alone(layer: Layer) -> bool:
    """Return whether a layer can be evaluated from its inputs alone: no Parameter, no variable, no body."""
    op = layer.op
    return not (op is None or layer.type == "Parameter" or layer.bodies() or op.needs("variables"))


def evaluate_layer(
    layer: Layer, inputs: Sequence[Array], elements: Sequence[ElementType] | None = None
) -> tuple[Array, ...]:
    """Compute the outputs of a layer for which `stands_alone` is true.

    Args:
        layer: the layer.
        inputs: an array for each input.
        elements: the element types of the inputs; derived from the dtypes by default.
    """
    assert layer.op is not None
    if elements is None:
        elements = [ElementType.from_dtype(array.dtype) for array in inputs]
    with np.errstate(all="ignore"):
        results = layer.op.evaluator(elements)(*inputs)
    return tuple(map(np.asarray, results)) if isinstance(results, tuple) else (np.asarray(results),)
