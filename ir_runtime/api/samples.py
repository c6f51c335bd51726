"""Inputs made up for a model, such as any model can take."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..ir.element import ElementType
from ..ir.tensor import Array
from .ports import Output

if TYPE_CHECKING:
    from .model import Model

__all__ = ["random_array"]

# Input ports of operations that want axes: distinct numbers, each below the rank.
_AXES = ("axes", "order")


def random_array(model: Model, port: Output, shape: tuple[int, ...], seed: int = 0) -> Array:
    """Normal numbers, zeros and ones for integers, or axes, where an input of a model wants these.

    Args:
        model: whose input it is.
        port: the input.
        shape: all of its lengths.
        seed: for the generator; inputs of one model get different numbers.
    """
    element = port.element_type
    rng = np.random.default_rng([seed, model.inputs.index(port)])
    if element is ElementType.string:
        return np.full(shape, "text", object)
    if element is ElementType.dynamic:
        return rng.standard_normal(shape).astype(np.float32)
    if element.integral and len(shape) == 1 and _are_axes(model, port):
        return np.arange(shape[0]).astype(element.dtype)
    if element.real and not element.is_carried:
        numbers = rng.standard_normal(shape)
        return (np.abs(numbers) if element is ElementType.f8e8m0 else numbers).astype(element.dtype)
    return rng.integers(0, 2, shape).astype(element.dtype)


def _are_axes(model: Model, port: Output) -> bool:
    graph = model._graph
    readers = ((graph[layer].op, number) for layer, number in graph.readers(port._port))
    ports = (op.port_of(number) for op, number in readers if op is not None)
    return any(found is not None and found.name in _AXES for found in ports)
