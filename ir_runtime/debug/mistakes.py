"""Name a mistake that explains an error beyond rounding.

Guesses are tried in the layers between observed tensors (`_LayerSearch`), in the bodies of a Loop, TensorIterator or If, whose
tensors are not observed (`_BodySearch`), and, if only outputs were observed, in the inputs of the model (`_input_mistake`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice

import numpy as np

from ..errors import IRError
from ..executor.guard import check_room
from ..ir.evaluation import evaluate_layer, stands_alone
from ..ir.graph import IO_TYPES, Graph, Layer, Port
from ..ir.tensor import Array
from .case import Case
from .extract import cut
from .guesses import (
    Changed,
    Family,
    channel_axes,
    guesses,
    number,
    numbers_of_layer,
    numbers_of_result,
    permutations_of_axes,
    reversed_channels,
)
from .precision import ROUNDING
from .reference import Arrays, Recorder, Reference, chained
from .report import Comparison
from .results import Likeness
from .tensors import is_float, name_of, unit_of
from .terms import Terms, terms_of
from .verdict import EXPLAINED, LOCAL, Error, error_of, excess, scatter_of, with_accumulation

__all__ = ["likeness_of"]

MEMBERS = 8
"""The most layers between observed tensors in which mistakes are tried, the last ones."""
STEPS = 8
"""The most Gauss-Newton steps towards a number."""
RUNS = 400
"""The most runs of a layer with bodies."""
REMAINING = 0.2
"""The largest fraction of the error that may remain under a mistake that explains it."""
SCALES = ((1 / 255, "1/255"), (255.0, "255"))
"""Factors between pixels of bytes and of numbers up to 1."""
LEAST = 2.0**-25
"""The least error that rounding explains, relative to a tensor."""
REFUSALS = (IRError, ArithmeticError, AssertionError, LookupError, TypeError, ValueError)
"""Exceptions of operations for attributes and inputs that do not fit."""


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
        observed = case.tensors[port]
    else:
        wrong = next((output for output in report.outputs if output.verdict == "unexplained"), None)
        if wrong is None or report.first_decision is not None:
            return None
        port, observed = case.plain.outputs[wrong.index]._port, case.seen.outputs[wrong.index]
        scatter = wrong.scatter
    if observed.dtype.kind != "f" or not is_float(case.plain.types, port):
        return None
    likeness = _LayerSearch(case, port, observed, scatter).run()
    if likeness is None and graph[port.layer].bodies():
        likeness = _BodySearch(case, port, observed).run()
    return likeness or (None if case.tensors else _input_mistake(case, report))


@dataclass
class _Recording:
    """Inputs and outputs of some layers in one run."""

    graph: Graph
    layers: frozenset[int]
    inputs: dict[int, list[Array]] = field(default_factory=dict)
    outputs: dict[int, Arrays] = field(default_factory=dict)

    def note(self, layer: Layer, inputs: Sequence[Array], outputs: Arrays) -> Arrays:
        """Copy inputs and outputs, as a change without effect."""
        if layer.id in self.layers:
            check_room(sum(array.nbytes for array in (*inputs, *outputs)), outputs, layer.where)
            self.inputs[layer.id] = [np.array(array) for array in inputs]
            self.outputs[layer.id] = tuple(np.array(array) for array in outputs)
        return outputs


class _LayerSearch:
    """Tries mistakes in the layers between observed tensors.

    Args:
        case: the judged case.
        port: the tensor.
        observed: the side's tensor.
        scatter: the measured relative error explained by rounding.
    """

    def __init__(self, case: Case, port: Port, observed: Array, scatter: float) -> None:
        self._case, self._port, self._observed, self._scatter = case, port, observed, scatter
        graph = case.plain.graph
        others = {other: array for other, array in case.tensors.items() if other != port}
        self._unit = unit_of(graph, port, others, case.computed)
        layers = list(self._unit[-MEMBERS:])
        inner = [i for i, layer in enumerate(layers[:-1]) if not stands_alone(layer)]
        self._layers = layers[inner[-1] + 1 :] if inner else layers
        self._exact = self._record(case.wide)
        self._rounded = self._record(case.plain.in_f32)
        self._error = error_of(observed, self._exact.outputs[port.layer][port.number])
        recorded = (
            (layer, self._exact.inputs[layer.id], self._exact.outputs[layer.id]) for layer in self._layers
        )
        self._terms = max((terms_of(layer, read, out[0]) for layer, read, out in recorded), default=Terms())

    def _record(self, reference: Reference) -> _Recording:
        recorded = _Recording(reference.graph, frozenset(layer.id for layer in self._layers))

        def observed(layer: Layer, _: Sequence[Array], outputs: Arrays) -> Arrays:
            return self._case.observed(layer, outputs)

        reference.run(self._case.feeds, chained(recorded.note, observed))
        return recorded

    def run(self) -> Likeness | None:
        """Try one mistake after another."""
        with np.errstate(all="ignore"):
            for layer in reversed(self._layers):
                if (likeness := self._try_guesses(layer)) is not None:
                    return likeness
            for families_of in (self._numbers_of_layer, self._numbers_of_result):
                for layer in reversed(self._layers):
                    if (likeness := self._try_families(layer, families_of(layer))) is not None:
                        return likeness
        return None

    def _numbers_of_layer(self, layer: Layer) -> Iterator[Family]:
        inputs, outputs = self._exact.inputs[layer.id], self._exact.outputs[layer.id]
        return numbers_of_layer(layer, inputs, outputs[0], self._constant(layer))

    def _numbers_of_result(self, layer: Layer) -> Iterator[Family]:
        return numbers_of_result(self._exact.outputs[layer.id][0])

    def _try_guesses(self, layer: Layer) -> Likeness | None:
        inputs, outputs = self._exact.inputs[layer.id], self._exact.outputs[layer.id]
        for guess in guesses(
            layer, inputs, outputs[0], self._constant(layer), self._observed_at(layer), self._others(layer)
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

    def _observed_at(self, layer: Layer) -> Array | None:
        """Return the side's first output of a layer, unless other layers follow."""
        return self._observed if self._port == Port(layer.id, 0) else None

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

    def _computed(self, recorded: _Recording, target: Layer, change: Changed) -> Array | None:
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
        if exact is None or exact.shape != self._observed.shape:
            return np.inf
        error = error_of(self._observed, exact)
        if not error.rms <= REMAINING * self._error.rms or not np.isfinite(error.rms):
            return np.inf
        rounded = self._computed(self._rounded, layer, change)
        if rounded is None or rounded.shape != exact.shape:
            return np.inf
        return excess(error, self._explained(error_of(rounded, exact)))

    def _explained(self, error: Error) -> Error:
        """Return the error explained by rounding, from that of a run in the model's types."""
        scatter = with_accumulation(scatter_of([error]), ROUNDING["f32"], self._terms)
        precision = self._case.numerics.precision
        least = max(self._scatter, 0.0 if precision == "f32" else ROUNDING[precision]) * scatter.size
        return Error(max(scatter.rms, least), max(scatter.largest, 4 * least), scatter.size)

    def _try_families(self, layer: Layer, families: Iterator[Family]) -> Likeness | None:
        if self._exact.outputs[self._port.layer][self._port.number].shape != self._observed.shape:
            return None
        for family in families:
            numbers = self._fit(layer, family)
            if numbers is None:
                continue
            for candidate in _simplify(numbers):
                rest = self._rest(layer, family.change(candidate))
                if rest <= LOCAL:
                    what = family.describe(candidate)
                    return Likeness(family.kind, layer.name, layer.operation, what, rest)
        return None

    def _fit(self, layer: Layer, family: Family) -> Array | None:
        """Fit the parameters of a mistake to the side's tensor by Gauss-Newton steps."""
        numbers = np.asarray(family.start, np.float64)
        axes = None if family.axis is None else tuple(i for i in range(numbers.ndim) if i != family.axis)
        for _ in range(STEPS):
            step = np.maximum(1e-3 * np.abs(numbers), 1e-7)
            before = self._computed(self._exact, layer, family.change(numbers))
            after = self._computed(self._exact, layer, family.change(numbers + step))
            if before is None or after is None or before.shape != self._observed.shape:
                return None
            if family.axis is not None and before.ndim != numbers.ndim:
                return None
            slope, rest = after - before, self._observed - before
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


def _simplify(numbers: Array) -> Iterator[Array]:
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


@dataclass
class _FirstIteration:
    """The layers of bodies in the order of a run, with their inputs and outputs in the first iteration."""

    layers: dict[tuple[int, str], tuple[Layer, list[Array], Arrays]] = field(default_factory=dict)

    def note(self, layer: Layer, inputs: Sequence[Array], outputs: Arrays) -> Arrays:
        """Copy a layer of a body, as a change without effect."""
        if layer.type not in (*IO_TYPES, "Constant") and stands_alone(layer):
            copies = [np.array(array) for array in inputs], tuple(np.array(array) for array in outputs)
            self.layers.setdefault(_key(layer), (layer, *copies))
        return outputs


class _BodySearch:
    """Tries mistakes in the bodies of a layer, one body layer at a time, in all iterations.

    The layer is cut out of the model, as each try runs it again.

    Args:
        case: the judged case.
        port: a tensor of the layer.
        observed: the side's tensor.
    """

    def __init__(self, case: Case, port: Port, observed: Array) -> None:
        graph = case.plain.graph
        layer = graph[port.layer]
        constant = {other.id for other in graph.of_type("Constant")}
        starts = list(dict.fromkeys(read for read in graph.reads(layer) if read.layer not in constant))
        part = cut(case.plain.model, starts, [port])
        self._observed, self._outer = observed, layer
        self._wide, self._plain = case.wide.computing(part), case.plain.in_f32.computing(part)
        self._feeds = _observed_tensors(case, starts)

    def run(self) -> Likeness | None:
        """Try one mistake after another."""
        first = _FirstIteration()
        with np.errstate(all="ignore"):
            exact = self._wide.run(self._feeds, inside=first.note)[0]
            if exact.shape != self._observed.shape:
                return None
            limit = REMAINING * error_of(self._observed, exact).rms
            for layer, change, kind, what in islice(self._guesses(first), RUNS):
                rest = self._rest(layer, change, limit)
                if rest <= LOCAL:
                    name = f"{self._outer.name}/{layer.name}"
                    return Likeness(kind, name, layer.operation, f"{what} in the body", rest)
        return None

    def _guesses(self, first: _FirstIteration) -> Iterator[tuple[Layer, Changed, str, str]]:
        graphs = list(_bodies(self._wide.graph))
        for layer, inputs, outputs in reversed(first.layers.values()):
            graph = next(
                graph for graph in graphs if layer.id in graph.layers and graph[layer.id].name == layer.name
            )
            constant = [graph[port.layer].type == "Constant" for port in graph.reads(layer)]
            if len(constant) == len(inputs):
                for guess in guesses(layer, inputs, outputs[0], constant, None, {}):
                    yield layer, guess.change, guess.kind, guess.what

    def _rest(self, target: Layer, change: Changed, limit: float) -> float:
        """Return the excess of the error over rounding for a changed layer of a body."""

        def inside(layer: Layer, inputs: Sequence[Array], outputs: Arrays) -> Arrays:
            return change(layer, inputs, outputs) if _key(layer) == _key(target) else outputs

        try:
            exact = self._wide.run(self._feeds, inside=inside)[0]
            if exact.shape != self._observed.shape:
                return np.inf
            error = error_of(self._observed, exact)
            if not error.rms <= limit or not np.isfinite(error.rms):
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


def _observed_tensors(case: Case, starts: Sequence[Port]) -> list[Array]:
    """Return tensors as observed, or as computed from observed ones."""
    graph, recorder = case.plain.graph, Recorder(starts)

    def note(layer: Layer, inputs: Sequence[Array], outputs: Arrays) -> Arrays:
        observed = case.observed(layer, outputs)
        recorder.record(layer, observed)
        return observed

    if any(graph[port.layer].type != "Parameter" for port in starts):
        case.reference.run(case.feeds, note)
    feeds = {
        Port(layer.id, 0): feed for layer, feed in zip(graph.of_type("Parameter"), case.feeds, strict=True)
    }
    return [recorder.tensors[port] if port in recorder.tensors else feeds[port] for port in starts]


def _input_mistake(case: Case, report: Comparison) -> Likeness | None:
    """Return the mistake in one input that explains all outputs, or ``None``: BGR for RGB, another layout or range of pixels.

    Each guess is a run of the whole model.

    Args:
        case: the judged case.
        report: its report.
    """
    layers = case.plain.graph.of_type("Parameter")
    with np.errstate(all="ignore"):
        for index, layer in enumerate(layers):
            feed = case.feeds[index]
            if feed.dtype.kind != "f" or feed.ndim < 3 or not np.any(feed):
                continue
            for kind, what, change in _input_guesses(feed):
                changed = np.ascontiguousarray(change(feed)).astype(feed.dtype)
                if np.array_equal(changed, feed):
                    continue
                feeds = [*case.feeds[:index], changed, *case.feeds[index + 1 :]]
                if (rest := _worst_excess(case, report, feeds)) <= EXPLAINED:
                    return Likeness(kind, layer.name, layer.operation, what, rest)
    return None


def _input_guesses(feed: Array) -> Iterator[tuple[str, str, Callable[[Array], Array]]]:
    for axis in channel_axes(feed.shape):
        yield "channels", reversed_channels(axis), partial(np.flip, axis=axis)
    for what, permute in permutations_of_axes(feed.shape):
        yield "permuted", what, permute
    for factor, text in SCALES:
        yield "factor", f"times {text}", partial(np.multiply, factor)


def _worst_excess(case: Case, report: Comparison, feeds: Sequence[Array]) -> float:
    """Return the largest excess of the outputs over rounding for other inputs of the model."""
    exact, worst = case.wide.run(feeds), 0.0
    for output in report.outputs:
        port, observed = case.plain.outputs[output.index], case.seen.outputs[output.index]
        if observed.shape != exact[output.index].shape:
            return np.inf
        if is_float(case.plain.types, port._port):
            error = error_of(observed, exact[output.index])
            worst = max(worst, error.relative / max(output.scatter, LEAST))
    return worst
