"""Dequantize weights of convolutions on demand, as a kernel may use the integers instead."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

import numpy as np

from ..ir.deferred import DeferredValue
from ..ir.graph import Graph, Layer, Port
from ..ir.tensor import Array, Value
from ..limits import current
from ..ops.arithmetic.binary import Multiply, Subtract
from ..ops.convolution.forward import ForwardConvolution
from ..ops.infrastructure.ends import Constant
from ..ops.type import Convert
from .evaluate import evaluated

__all__ = ["defer_weights"]


def defer_weights(
    graph: Graph, layers: Iterable[Layer], values: dict[Port, Value], outputs: Collection[Port]
) -> list[Layer]:
    """Defer the computation of weights of convolutions, and return the layers that compute them.

    Args:
        graph: the layers.
        layers: the needed layers.
        values: the `Value` of every output; those of weights become a `DeferredValue`.
        outputs: ports that must be computed.
    """
    deferred: list[Layer] = []
    for layer in layers:
        if not isinstance(layer.op, ForwardConvolution):
            continue
        port = graph.reads(layer)[1]
        chain = _dequantizing_layers(graph, port)
        ports = [Port(step.id, 0) for step in chain]
        plain = all(p not in outputs and not values[p].is_known for p in ports)
        if chain and plain:  # the contents of small constants are known already
            values[port] = DeferredValue(values[port].type, chain, _computing(graph, chain, values))
            deferred += chain
    return deferred


def _dequantizing_layers(graph: Graph, port: Port) -> tuple[Layer, ...]:
    """Return the ``Convert``, optional ``Subtract`` and ``Multiply`` that dequantize 8-bit integers.

    The result is empty if the port is computed otherwise, or intermediate ports have other consumers.
    """
    chain: list[Layer] = []
    for op in (Multiply, Subtract, Convert):
        layer = graph[port.layer]
        if isinstance(layer.op, op):
            if chain and len(graph.readers(port)) != 1:
                return ()
            chain.append(layer)
            port, *others = graph.reads(layer)
            if not all(_is_constant(graph, other) for other in others):
                return ()
        elif op is not Subtract:
            return ()
    constant = graph[port.layer].op
    numbers = constant.value if isinstance(constant, Constant) else None
    is_stored = isinstance(numbers, np.ndarray) and numbers.dtype in (np.int8, np.uint8)
    return tuple(reversed(chain)) if is_stored else ()


def _is_constant(graph: Graph, port: Port) -> bool:
    """Return whether a port is a constant or a converted constant."""
    layer = graph[port.layer]
    if isinstance(layer.op, Convert):
        layer = graph[graph.reads(layer)[0].layer]
    return isinstance(layer.op, Constant)


def _computing(graph: Graph, chain: Sequence[Layer], values: Mapping[Port, Value]) -> Callable[[], Array]:
    """Return a function that evaluates layers in order and returns the output of the last one."""
    before = {port: values[port] for layer in chain for port in (*graph.reads(layer), *layer.output_ports)}

    def compute() -> Array:
        results = dict(before)
        for layer in chain:
            (array,) = evaluated(graph, layer, results, current().memory)
            results[Port(layer.id, 0)] = Value.constant(array, results[Port(layer.id, 0)].element)
        return array

    return compute
