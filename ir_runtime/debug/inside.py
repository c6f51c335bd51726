"""Decisions of the layers inside bodies (Loop, If, TensorIterator): those of one run are taken by the others.

What a side decides there cannot be observed, so they are those of the reference in the precision of the side.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

import numpy as np

from ..analysis.infer import Inferred
from ..ir.graph import Graph, Layer
from ..ir.tensor import Array
from .decisions import decides, is_selection, taken

__all__ = ["InsideDecisions"]

_Key: TypeAlias = "tuple[int, int | None, str]"


class InsideDecisions:
    """The decisions inside bodies, in the order in which a run takes them.

    Args:
        graph: the graph of the model, in its own types.
        types: what was inferred about it.
    """

    def __init__(self, graph: Graph, types: Inferred) -> None:
        self._deciding = set(_deciding(graph, types))
        self._taken: list[tuple[_Key, tuple[Array, ...]]] = []

    def record(self, layer: Layer, inputs: Sequence[Array], outputs: tuple[Array, ...]) -> tuple[Array, ...]:
        """Note what a layer of a body decides."""
        if self._deciding and (key := _key(layer)) in self._deciding:
            self._taken.append((key, tuple(map(np.array, outputs))))
        return outputs

    def replay(self) -> _Replay:
        """Return a change for the layers of bodies in another run, which decides as was recorded."""
        return _Replay(self._deciding, self._taken)


class _Replay:
    def __init__(self, deciding: set[_Key], found: Sequence[tuple[_Key, tuple[Array, ...]]]) -> None:
        self._deciding, self._waiting = deciding, iter(found)

    def __call__(
        self, layer: Layer, inputs: Sequence[Array], outputs: tuple[Array, ...]
    ) -> tuple[Array, ...]:
        if not self._deciding or (key := _key(layer)) not in self._deciding:
            return outputs
        expected, decided = next(self._waiting, (None, ()))
        if expected != key:
            return outputs
        same = [array.shape for array in decided] == [array.shape for array in outputs]
        return taken(layer, inputs, outputs, decided) if same or is_selection(layer) else outputs


def _key(layer: Layer) -> _Key:
    return layer.id, layer.where.line, layer.name


def _deciding(graph: Graph, types: Inferred) -> Iterator[_Key]:
    for layer in graph:
        for body in layer.bodies():
            if (known := types.bodies.get((layer.id, body.name))) is not None:
                yield from (_key(each) for each in body.graph if decides(body.graph, known, each))
                yield from _deciding(body.graph, known)
