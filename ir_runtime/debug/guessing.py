"""Name a mistake that explains an error beyond rounding."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ..errors import IRError
from ..executor.guard import check_room
from ..ir.evaluation import evaluate_layer, stands_alone
from ..ir.graph import Graph, Layer, Port
from ..ir.tensor import Array
from .body_mistakes import body_mistake
from .case import Case
from .guesses import Changed, Family, guesses, number, numbers_of_layer, numbers_of_result
from .input_mistakes import input_mistake
from .likeness import Likeness
from .precision import ROUNDING
from .reference import Arrays, Reference, chained
from .report import Comparison
from .tensors import is_float, name_of, unit_of
from .terms import Terms, terms_of
from .verdict import LOCAL, Error, error_of, excess, scatter_of, with_accumulation

__all__ = ["likeness_of"]

MEMBERS = 8
"""In how many layers that lead to the tensor mistakes are tried, the last ones."""
OTHERS = 64
"""How many other tensors are tried as an input, the nearest ones before the layer."""
STEPS = 8
"""Steps of Gauss and Newton towards a number."""
NOTICED = 0.2
"""A mistake whose error is above this part of the error that it is to explain does not explain it."""
REFUSALS = (IRError, ArithmeticError, AssertionError, LookupError, TypeError, ValueError)
"""How operations refuse attributes and inputs that do not fit."""


def likeness_of(case: Case, report: Comparison) -> Likeness | None:
    """Return the mistake that explains the first error beyond rounding, or ``None``.

    Args:
        case: the judged case.
        report: its report.
    """
    graph = case.plain.graph
    if report.explained or report.partial:
        return None
    scatter = 0.0
    if (first := report.first) is not None:
        names = {name_of(graph, port): port for port in reversed(list(case.tensors))}
        port = names[first.name]
        found = case.tensors[port]
    else:
        wrong = next((output for output in report.outputs if output.verdict == "unexplained"), None)
        if wrong is None or report.first_decision is not None:
            return None
        port, found = case.plain.outputs[wrong.index]._port, case.seen.outputs[wrong.index]
        scatter = wrong.scatter
    if found.dtype.kind != "f" or not is_float(case.plain.types, port):
        return None
    likeness = _Search(case, port, found, scatter).run() or body_mistake(case, port, found)
    return likeness or (None if case.tensors else input_mistake(case, report))


@dataclass
class _Recorded:
    """Inputs and outputs of layers in one run."""

    graph: Graph
    wanted: frozenset[int]
    inputs: dict[int, list[Array]] = field(default_factory=dict)
    outputs: dict[int, Arrays] = field(default_factory=dict)

    def note(self, layer: Layer, inputs: Sequence[Array], outputs: Arrays) -> Arrays:
        """Copy inputs and outputs, as a change without effect."""
        if layer.id in self.wanted:
            check_room(sum(array.nbytes for array in (*inputs, *outputs)), outputs, layer.where)
            self.inputs[layer.id] = [np.array(array) for array in inputs]
            self.outputs[layer.id] = tuple(np.array(array) for array in outputs)
        return outputs


class _Search:
    """Tries mistakes in the layers between observed tensors.

    Args:
        case: what was judged.
        port: the tensor.
        found: the side's tensor.
        scatter: the measured relative error explained by rounding.
    """

    def __init__(self, case: Case, port: Port, found: Array, scatter: float) -> None:
        self._case, self._port, self._found, self._scatter = case, port, found, scatter
        graph = case.plain.graph
        others = {other: array for other, array in case.tensors.items() if other != port}
        self._unit = unit_of(graph, port, others, case.computed)
        layers = list(self._unit[-MEMBERS:])
        inner = [i for i, layer in enumerate(layers[:-1]) if not stands_alone(layer)]
        self._layers = layers[inner[-1] + 1 :] if inner else layers
        self._exact = self._record(case.wide)
        self._rounded = self._record(case.plain.in_f32)
        self._error = error_of(found, self._exact.outputs[port.layer][port.number])
        recorded = (
            (layer, self._exact.inputs[layer.id], self._exact.outputs[layer.id]) for layer in self._layers
        )
        self._terms = max((terms_of(layer, given, out[0]) for layer, given, out in recorded), default=Terms())

    def _record(self, reference: Reference) -> _Recorded:
        recorded = _Recorded(reference.graph, frozenset(layer.id for layer in self._layers))

        def observed(layer: Layer, _: Sequence[Array], outputs: Arrays) -> Arrays:
            return self._case.observed(layer, outputs)

        reference.run(self._case.feeds, chained(recorded.note, observed))
        return recorded

    def run(self) -> Likeness | None:
        """Try one mistake after another."""
        with np.errstate(all="ignore"):
            for layer in reversed(self._layers):
                if (found := self._guessed(layer)) is not None:
                    return found
            for solved in (self._of_layer, self._of_result):
                for layer in reversed(self._layers):
                    if (found := self._solved(layer, solved(layer))) is not None:
                        return found
        return None

    def _of_layer(self, layer: Layer) -> Iterator[Family]:
        inputs, outputs = self._exact.inputs[layer.id], self._exact.outputs[layer.id]
        return numbers_of_layer(layer, inputs, outputs[0], self._constant(layer))

    def _of_result(self, layer: Layer) -> Iterator[Family]:
        return numbers_of_result(self._exact.outputs[layer.id][0])

    def _guessed(self, layer: Layer) -> Likeness | None:
        inputs, outputs = self._exact.inputs[layer.id], self._exact.outputs[layer.id]
        for guess in guesses(
            layer, inputs, outputs[0], self._constant(layer), self._seen_at(layer), self._others(layer)
        ):
            rest = self._rest(layer, guess.change)
            if rest <= LOCAL:
                return Likeness(guess.kind, layer.name, layer.operation, guess.what, rest)
        return None

    def _constant(self, layer: Layer) -> list[bool]:
        graph, case = self._case.plain.graph, self._case
        return [
            port.layer not in case.computed and graph[port.layer].type != "Parameter"
            for port in graph.reads(layer)
        ]

    def _seen_at(self, layer: Layer) -> Array | None:
        """Return the side's first output of a layer, unless other layers follow."""
        return self._found if self._port == Port(layer.id, 0) else None

    def _others(self, layer: Layer) -> Mapping[str, Callable[[Array], Array | None]]:
        """Return functions that return earlier tensors, which may be read by mistake."""
        case, graph = self._case, self._case.plain.graph
        read, after, before = (
            set(graph.reads(layer)),
            {port.layer for port in case.tensors},
            dict[str, Array](),
        )
        for other, feed in zip(graph.of_type("Parameter"), case.feeds, strict=True):
            if Port(other.id, 0) not in read:
                before[other.name] = feed
        for other in graph:
            if other.id == layer.id:
                break
            for port in other.output_ports if other.id in after else ():
                if port in case.tensors and port not in read:
                    before[name_of(graph, port)] = case.tensors[port]
        return {name: _taking(array) for name, array in reversed(list(before.items()))}

    def _computed(self, recorded: _Recorded, target: Layer, change: Changed) -> Array | None:
        """Return the tensor for a changed layer; ``None`` if a layer refuses."""
        values: dict[Port, Array] = {}
        try:
            for layer in self._layers:
                layer = recorded.graph[layer.id]
                inputs, outputs = recorded.inputs[layer.id], recorded.outputs[layer.id]
                sources = recorded.graph.reads(layer)
                if any(source in values for source in sources):
                    inputs = [values.get(s, array) for s, array in zip(sources, inputs, strict=True)]
                    outputs = evaluate_layer(layer, inputs)
                elif layer.id != target.id:
                    continue
                if layer.id == target.id:
                    outputs = change(layer, inputs, outputs)
                values |= zip(layer.output_ports, outputs, strict=False)
        except REFUSALS:
            return None
        return values.get(self._port)

    def _rest(self, layer: Layer, change: Changed) -> float:
        """Return the excess of the error over rounding for a changed layer."""
        exact = self._computed(self._exact, layer, change)
        if exact is None or exact.shape != self._found.shape:
            return np.inf
        error = error_of(self._found, exact)
        if not error.rms <= NOTICED * self._error.rms or not np.isfinite(error.rms):
            return np.inf
        rounded = self._computed(self._rounded, layer, change)
        if rounded is None or rounded.shape != exact.shape:
            return np.inf
        return excess(error, self._explained(error_of(rounded, exact)))

    def _explained(self, error: Error) -> Error:
        """Return the error explained by rounding, from that of a run in the model's types."""
        found = with_accumulation(scatter_of([error]), ROUNDING["f32"], self._terms)
        precision = self._case.numerics.precision
        least = max(self._scatter, 0.0 if precision == "f32" else ROUNDING[precision]) * found.size
        return Error(max(found.rms, least), max(found.largest, 4 * least), found.size)

    def _solved(self, layer: Layer, families: Iterator[Family]) -> Likeness | None:
        if self._exact.outputs[self._port.layer][self._port.number].shape != self._found.shape:
            return None
        for family in families:
            numbers = self._fitted(layer, family)
            if numbers is None:
                continue
            for tried in _simpler(numbers):
                rest = self._rest(layer, family.change(tried))
                if rest <= LOCAL:
                    return Likeness(family.kind, layer.name, layer.operation, family.describe(tried), rest)
        return None

    def _fitted(self, layer: Layer, family: Family) -> Array | None:
        """Fit the parameters of a mistake to the side's tensor by Gauss-Newton steps."""
        numbers = np.asarray(family.start, np.float64)
        axes = None if family.axis is None else tuple(i for i in range(numbers.ndim) if i != family.axis)
        for _ in range(STEPS):
            step = np.maximum(1e-3 * np.abs(numbers), 1e-7)
            before = self._computed(self._exact, layer, family.change(numbers))
            after = self._computed(self._exact, layer, family.change(numbers + step))
            if before is None or after is None or before.shape != self._found.shape:
                return None
            if family.axis is not None and before.ndim != numbers.ndim:
                return None
            slope, rest = after - before, self._found - before
            squares = np.sum(slope * slope, axes, keepdims=axes is not None)
            by = np.divide(
                np.sum(slope * rest, axes, keepdims=axes is not None),
                squares,
                where=squares > 0,
                out=np.zeros_like(squares),
            )
            if by.shape != numbers.shape or not np.isfinite(by).all():
                return None
            moved = numbers + by * step
            numbers = np.maximum(moved, numbers / 16) if family.kind == "epsilon" else moved
            if np.all(np.abs(by * step) <= 1e-12 * np.abs(numbers)):
                break
        return numbers


def _taking(array: Array) -> Callable[[Array], Array | None]:
    def take(instead: Array) -> Array | None:
        fits = instead.shape == array.shape and instead.dtype.kind == array.dtype.kind
        return array.astype(instead.dtype) if fits else None

    return take


def _simpler(numbers: Array) -> Iterator[Array]:
    """Yield the nearest short number, then the fitted one."""
    if numbers.ndim == 0:
        value = float(numbers)
        for digits in range(1, 5):
            if (short := float(f"{value:.{digits - 1}e}")) != value:
                yield np.array(short)
        text = number(value)
        if text.startswith("1/"):
            yield np.array(1 / int(text[2:]))
    else:
        yield np.round(numbers, 4) + 0.0
    yield numbers
