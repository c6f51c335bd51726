"""Random inputs for any model."""

from __future__ import annotations

import numpy as np

from ..ir.blocks import filled
from ..ir.element import ElementType
from ..ir.graph import Graph, Port
from ..ir.tensor import Array

__all__ = ["random_array"]

# Input ports of operations that take axes: distinct integers, each below the rank.
_AXES = ("axes", "order")


def random_array(
    graph: Graph, port: Port, element: ElementType, shape: tuple[int, ...], seed: int = 0
) -> Array:
    """Return random numbers for an input: normal ones, zeros and ones for integers, or valid axes.

    Args:
        graph: the graph of the model.
        port: the output of the Parameter.
        element: the element type of the input.
        shape: the shape of the input, which is static.
        seed: the seed of the generator; inputs of one model get different numbers.
    """
    parameters = [layer.id for layer in graph.of_type("Parameter")]
    rng = np.random.default_rng([seed, parameters.index(port.layer)])
    if element is ElementType.string:
        return np.full(shape, "text", object)
    if element is ElementType.dynamic:
        return filled(shape, np.dtype(np.float32), rng.standard_normal)
    if element.integral and len(shape) == 1 and _are_axes(graph, port):
        return np.arange(shape[0]).astype(element.dtype)
    if element.real and not element.is_encoded:
        if element is ElementType.f8e8m0:
            return filled(shape, element.dtype, lambda count: np.abs(rng.standard_normal(count)))
        return filled(shape, element.dtype, rng.standard_normal)
    return filled(shape, element.dtype, lambda count: rng.integers(0, 2, count))


def _are_axes(graph: Graph, port: Port) -> bool:
    readers = ((graph[layer].op, number) for layer, number in graph.readers(port))
    ports = (op.port_of(number) for op, number in readers if op is not None)
    return any(found is not None and found.name in _AXES for found in ports)
