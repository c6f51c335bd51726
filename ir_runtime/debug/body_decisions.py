"""Decisions of layers inside bodies (Loop, If, TensorIterator), shared by all runs.

Decisions of a side in bodies cannot be observed, so they are those of the reference in the side's precision,
or alternatives left open by rounding.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from .._util.records import Json
from ..analysis.infer import Inferred
from ..ir.graph import Graph, Layer
from ..ir.tensor import Array
from .decisions import decides, is_elementwise, is_selection, judge_decision, taken, undecided
from .precision import ROUNDING
from .results import DecisionResult
from .spilling import Kept
from .verdict import LOCAL, error_of

__all__ = ["Alternative", "BodyJudge", "Choices", "BodyDecisions"]

ALTERNATIVES = 64
"""The most alternatives: trying one takes as long as the comparison."""

_Key: TypeAlias = "tuple[int, int | None, str]"
_Arrays: TypeAlias = tuple[Array, ...]
Choices: TypeAlias = Mapping[int, Mapping[int, Array]]
"""Alternative decisions, by the number of a decision and the element."""


class Alternative(NamedTuple):
    """An alternative decision of a layer in a body, for inputs within rounding.

    Args:
        number: the number of the decision in a run.
        element: the element decided differently.
        value: its alternative value.
        outer: the name of the layer outside of bodies.
    """

    number: int
    element: int
    value: Array
    outer: str


class _Decision(NamedTuple):
    key: _Key
    inputs: Sequence[Array]
    outputs: Sequence[Array]


class _Place(NamedTuple):
    """The names of the layer outside of bodies, and of the deciding layer."""

    outer: str
    name: str
    operation: str


class BodyDecisions:
    """The decisions inside bodies, in the order of a run.

    Args:
        graph: the graph of the model, in its own types.
        types: the inferred values.
        choices: alternative decisions.
    """

    def __init__(self, graph: Graph, types: Inferred, choices: Choices | None = None) -> None:
        self._deciding = dict(_deciding(graph, types))
        self._choices = choices or {}
        self._taken: list[_Decision] = []

    def record(self, layer: Layer, inputs: Sequence[Array], outputs: _Arrays) -> _Arrays:
        """Record the decision of a layer in a body."""
        if self._deciding and (key := _key(layer)) in self._deciding:
            if choices := self._choices.get(len(self._taken)):
                changed = np.array(outputs[0])
                changed.flat[[*choices]] = [*choices.values()]
                outputs = (changed, *outputs[1:])
            read = inputs if is_elementwise(layer) else ()
            self._taken.append(_Decision(key, Kept(read, copies=True), Kept(outputs, copies=True)))
        return outputs

    def replay(self, judge: BodyJudge | None = None) -> _Replay:
        """Return a change for layers of bodies that replays the recorded decisions.

        Args:
            judge: receives each decision of an f64 run.
        """
        return _Replay(self._deciding, self._taken, judge)

    def saved(self) -> tuple[Json, list[Array]]:
        """Return the recording as a record and arrays."""
        keys: list[Json] = [[list(taken.key), len(taken.inputs), len(taken.outputs)] for taken in self._taken]
        return keys, [array for taken in self._taken for array in (*taken.inputs, *taken.outputs)]

    def restore(self, keys: Any, arrays: Iterator[Array]) -> None:
        """Restore a recording."""
        for (id, line, name), inputs, outputs in keys:
            inputs_read, written = (Kept(islice(arrays, count)) for count in (inputs, outputs))
            self._taken.append(_Decision((id, line, name), inputs_read, written))

    def judge(self, precision: str) -> BodyJudge:
        """Return a judge of these decisions, for a replay in f64."""
        return BodyJudge(self._deciding, precision)


class _Replay:
    def __init__(
        self, deciding: Mapping[_Key, _Place], decisions: Sequence[_Decision], judge: BodyJudge | None
    ) -> None:
        self._deciding, self._waiting, self._judge = deciding, enumerate(decisions), judge

    def __call__(self, layer: Layer, inputs: Sequence[Array], outputs: _Arrays) -> _Arrays:
        if not self._deciding or (key := _key(layer)) not in self._deciding:
            return outputs
        number, decision = next(self._waiting, (0, None))
        if decision is None or decision.key != key:
            return outputs
        same = [array.shape for array in decision.outputs] == [array.shape for array in outputs]
        if same and self._judge is not None:
            self._judge.record(number, decision, layer, inputs, outputs)
        return taken(layer, inputs, outputs, decision.outputs) if same or is_selection(layer) else outputs


class BodyJudge:
    """Counts the decisions inside bodies that differ in f64, and those left open by rounding.

    Args:
        deciding: the deciding layers.
        precision: the precision of the side.
    """

    def __init__(self, deciding: Mapping[_Key, _Place], precision: str) -> None:
        self._deciding, self._unit = deciding, ROUNDING[precision]
        self._results: dict[_Key, DecisionResult] = {}
        self.alternatives: list[Alternative] = []
        """The alternatives so far."""

    @property
    def decisions(self) -> list[DecisionResult]:
        """The deciding layers of bodies."""
        return list(self._results.values())

    def record(
        self, number: int, decision: _Decision, layer: Layer, inputs: Sequence[Array], outputs: _Arrays
    ) -> None:
        """Judge a decision.

        Args:
            number: its number in the order of a run.
            decision: the decision with its inputs.
            layer: the layer.
            inputs: its inputs in f64.
            outputs: the decision in f64.
        """
        rounding = LOCAL * max(self._unit, *map(_relative_error, decision.inputs, inputs), 0.0)
        differ = judge_decision(layer, inputs, decision.outputs[0], outputs[0], rounding).differ
        count = 0
        if is_elementwise(layer):
            most = ALTERNATIVES - len(self.alternatives)
            count, first = undecided(layer, inputs, decision.outputs[0], rounding, most)
            outer = self._deciding[decision.key].outer
            self.alternatives += [Alternative(number, element, value, outer) for element, value in first]
        outer, name, operation = self._deciding[decision.key]
        before = self._results.get(decision.key, DecisionResult(name, operation, 0, 0, 0, layers=(outer,)))
        judged = before.unexplained is not None and (is_elementwise(layer) or not differ)
        self._results[decision.key] = DecisionResult(
            name=name,
            operation=operation,
            differ=before.differ + differ,
            unexplained=0 if judged else None,  # these are decisions of the reference
            of=before.of + decision.outputs[0].size,
            layers=(outer,),
            undecided=before.undecided + count,
        )


def _relative_error(read: Array, exact: Array) -> float:
    """Return the f32 error of a decision's input, accumulated over the body."""
    relative = error_of(read, exact).relative if exact.dtype.kind == "f" else 0.0
    return relative if np.isfinite(relative) else 0.0


def _key(layer: Layer) -> _Key:
    return layer.id, layer.where.line, layer.name


def _deciding(graph: Graph, types: Inferred, outer: str = "") -> Iterator[tuple[_Key, _Place]]:
    for layer in graph:
        for body in layer.bodies():
            if (body_types := types.bodies.get((layer.id, body.name))) is None:
                continue
            for inner in body.graph:
                if decides(body.graph, body_types, inner):
                    yield _key(inner), _Place(outer or layer.name, inner.name, inner.operation)
            yield from _deciding(body.graph, body_types, outer or layer.name)
