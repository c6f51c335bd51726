"""Evaluate a single layer by the definition of its operation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .element import ElementType
from .graph import Layer
from .tensor import Array

__all__ = ["evaluate_layer", "stands_alone"]


def stands_alone(layer: Layer) -> bool:
    """Return whether the outputs of a layer follow from its inputs: no input of the model, no variable, no body."""
    op = layer.op
    return not (op is None or layer.type == "Parameter" or layer.bodies() or op.needs("variables"))


def evaluate_layer(
    layer: Layer, inputs: Sequence[Array], elements: Sequence[ElementType] | None = None
) -> tuple[Array, ...]:
    """Compute the outputs of a layer, which `stands_alone`.

    Args:
        layer: the layer.
        inputs: an array for each input.
        elements: the element types of the inputs; by default those that the dtypes stand for.
    """
    assert layer.op is not None
    if elements is None:
        elements = [ElementType.from_dtype(array.dtype) for array in inputs]
    with np.errstate(all="ignore"):
        results = layer.op.evaluator(elements)(*inputs)
    return tuple(map(np.asarray, results)) if isinstance(results, tuple) else (np.asarray(results),)
