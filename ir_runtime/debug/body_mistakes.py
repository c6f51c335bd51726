"""Mistakes inside the bodies of Loop, TensorIterator and If: what they give is seen outside only.

The layer is cut out of the model, and run with a mistake in each layer of its bodies in turn, in all iterations.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

import numpy as np

from ..errors import IRError
from ..ir.evaluation import stands_alone
from ..ir.graph import IO_TYPES, Graph, Layer, Port
from ..ir.tensor import Array
from .case import Case
from .extract import cut
from .guesses import Changed, guesses
from .likeness import Likeness
from .reference import Arrays, Recorder
from .verdict import LOCAL, error_of, excess, scatter_of

__all__ = ["body_mistake"]

RUNS = 400
"""How many runs of the layer are made at most."""
NOTICED = 0.2
"""A mistake whose error is above this part of the error that it is to explain does not explain it."""
REFUSALS = (IRError, ArithmeticError, AssertionError, LookupError, TypeError, ValueError)
"""How operations refuse attributes and inputs that do not fit."""


def body_mistake(case: Case, port: Port, found: Array) -> Likeness | None:
    """Return the mistake in a body of the layer of a tensor that explains what a side has there, or ``None``.

    Args:
        case: the judged case.
        port: the tensor.
        found: the side's tensor.
    """
    layer = case.plain.graph[port.layer]
    return _Search(case, layer, port, found).run() if layer.bodies() else None


@dataclass
class _Seen:
    """The layers of bodies that ran, in order, with their inputs and outputs in their first iteration."""

    layers: dict[tuple[int, str], tuple[Layer, list[Array], Arrays]] = field(default_factory=dict)

    def note(self, layer: Layer, inputs: Sequence[Array], outputs: Arrays) -> Arrays:
        """Copy them, as a change without effect."""
        if layer.type not in (*IO_TYPES, "Constant") and stands_alone(layer):
            copies = [np.array(array) for array in inputs], tuple(np.array(array) for array in outputs)
            self.layers.setdefault(_key(layer), (layer, *copies))
        return outputs


class _Search:
    """Tries mistakes in the bodies of a layer.

    Args:
        case: the judged case.
        layer: the layer.
        port: its tensor.
        found: the side's tensor.
    """

    def __init__(self, case: Case, layer: Layer, port: Port, found: Array) -> None:
        graph = case.plain.graph
        constant = {other.id for other in graph.of_type("Constant")}
        starts = list(dict.fromkeys(read for read in graph.reads(layer) if read.layer not in constant))
        part = cut(case.plain.model, starts, [port])
        self._found, self._outer = found, layer
        self._wide, self._plain = case.wide.computing(part), case.plain.in_f32.computing(part)
        self._feeds = _inputs(case, starts)

    def run(self) -> Likeness | None:
        """Try one mistake after the other."""
        seen = _Seen()
        with np.errstate(all="ignore"):
            exact = self._wide.run(self._feeds, inside=seen.note)[0]
            if exact.shape != self._found.shape:
                return None
            wanted = NOTICED * error_of(self._found, exact).rms
            for layer, change, kind, what in islice(self._guesses(seen), RUNS):
                rest = self._rest(layer, change, wanted)
                if rest <= LOCAL:
                    name = f"{self._outer.name}/{layer.name}"
                    return Likeness(kind, name, layer.operation, f"{what} in the body", rest)
        return None

    def _guesses(self, seen: _Seen) -> Iterator[tuple[Layer, Changed, str, str]]:
        graphs = list(_bodies(self._wide.graph))
        for layer, inputs, outputs in reversed(seen.layers.values()):
            graph = next(
                graph for graph in graphs if layer.id in graph.layers and graph[layer.id].name == layer.name
            )
            constant = [graph[port.layer].type == "Constant" for port in graph.reads(layer)]
            if len(constant) == len(inputs):
                for guess in guesses(layer, inputs, outputs[0], constant, None, {}):
                    yield layer, guess.change, guess.kind, guess.what

    def _rest(self, target: Layer, change: Changed, wanted: float) -> float:
        """Return how many times the error exceeds what rounding explains, if a layer of a body was changed."""

        def inside(layer: Layer, inputs: Sequence[Array], outputs: Arrays) -> Arrays:
            return change(layer, inputs, outputs) if _key(layer) == _key(target) else outputs

        try:
            exact = self._wide.run(self._feeds, inside=inside)[0]
            if exact.shape != self._found.shape:
                return np.inf
            error = error_of(self._found, exact)
            if not error.rms <= wanted or not np.isfinite(error.rms):
                return np.inf
            rounded = self._plain.run(self._feeds, inside=inside)[0]
        except REFUSALS:
            return np.inf
        return excess(error, scatter_of([error_of(rounded, exact)]))


def _key(layer: Layer) -> tuple[int, str]:
    return layer.id, layer.name


def _bodies(graph: Graph) -> Iterator[Graph]:
    for layer in graph:
        for body in layer.bodies():
            yield body.graph
            yield from _bodies(body.graph)


def _inputs(case: Case, starts: Sequence[Port]) -> list[Array]:
    """Return the tensors that a layer reads, as the side has them, or as they follow from what it has."""
    graph, recorder = case.plain.graph, Recorder(starts)

    def note(layer: Layer, inputs: Sequence[Array], outputs: Arrays) -> Arrays:
        seen = case.observed(layer, outputs)
        recorder.record(layer, seen)
        return seen

    if any(graph[port.layer].type != "Parameter" for port in starts):
        case.reference.run(case.feeds, note)
    given = {
        Port(layer.id, 0): feed for layer, feed in zip(graph.of_type("Parameter"), case.feeds, strict=True)
    }
    return [recorder.tensors[port] if port in recorder.tensors else given[port] for port in starts]
