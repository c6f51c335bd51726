"""Find a typical mistake that explains an error beyond rounding.

Each guess changes one layer (`_guesses`). Guesses are tried in the layers between observed tensors (`_LayerSearch`), in
the unobserved bodies of a Loop, TensorIterator or If (`_BodySearch`), and, if only outputs were observed, in the inputs
of the model (`_input_mistake`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from itertools import combinations, islice, permutations, product
from typing import Any, TypeAlias

import numpy as np

from .._util.escaping import quoted
from ..errors import IRError
from ..executor.guard import check_room
from ..ir.evaluation import evaluate_layer, stands_alone
from ..ir.graph import IO_TYPES, Graph, Layer, Port
from ..ir.tensor import Array
from ..ops import registry
from ..ops._define.describe import group
from ..ops.elementwise import Binary, Unary
from .case import Case
from .extract import cut
from .precision import ROUNDING
from .reference import Arrays, Recorder, Reference, chain_changes
from .results import Comparison, Likeness
from .tensors import is_float, name_of, unit_of
from .terms import RECURRENT, Terms, terms_of
from .verdict import EXPLAINED, LOCAL, Error, allow_accumulation, error_of, excess, scatter_of

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
    """Return the mistake that explains the first error beyond rounding; ``None`` if none of those tried does.

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
    """The inputs and outputs of selected layers in one run."""

    graph: Graph
    layers: frozenset[int]
    inputs: dict[int, list[Array]] = field(default_factory=dict)
    outputs: dict[int, Arrays] = field(default_factory=dict)

    def note(self, layer: Layer, inputs: Sequence[Array], outputs: Arrays) -> Arrays:
        """Copy the inputs and outputs of a selected layer; a `Change` that changes nothing."""
        if layer.id in self.layers:
            check_room(sum(array.nbytes for array in (*inputs, *outputs)), outputs, layer.where)
            self.inputs[layer.id] = [np.array(array) for array in inputs]
            self.outputs[layer.id] = tuple(np.array(array) for array in outputs)
        return outputs


class _LayerSearch:
    """Tries mistakes in the layers that lead from other observed tensors to a wrong one.

    Args:
        case: the judged case.
        port: the wrong tensor.
        observed: its value on the side.
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

        reference.run(self._case.feeds, chain_changes(recorded.note, observed))
        return recorded

    def run(self) -> Likeness | None:
        """Try mistakes until one explains the error; ``None`` if none does."""
        with np.errstate(all="ignore"):
            for layer in reversed(self._layers):
                if (likeness := self._try_guesses(layer)) is not None:
                    return likeness
            for families_of in (self._numbers_of_layer, self._numbers_of_result):
                for layer in reversed(self._layers):
                    if (likeness := self._try_families(layer, families_of(layer))) is not None:
                        return likeness
        return None

    def _numbers_of_layer(self, layer: Layer) -> Iterator[_Family]:
        inputs, outputs = self._exact.inputs[layer.id], self._exact.outputs[layer.id]
        return _numbers_of_layer(layer, inputs, outputs[0], self._constant(layer))

    def _numbers_of_result(self, layer: Layer) -> Iterator[_Family]:
        return _numbers_of_result(self._exact.outputs[layer.id][0])

    def _try_guesses(self, layer: Layer) -> Likeness | None:
        inputs, outputs = self._exact.inputs[layer.id], self._exact.outputs[layer.id]
        for guess in _guesses(
            layer, inputs, outputs[0], self._constant(layer), self._observed_at(layer), self._others(layer)
        ):
            rest = self._remaining_excess(layer, guess.change)
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
        """Return the side's first output of a layer if it is the wrong tensor, else ``None``."""
        return self._observed if self._port == Port(layer.id, 0) else None

    def _others(self, layer: Layer) -> Mapping[str, Callable[[Array], Array | None]]:
        """Return tensors that the layer may read by mistake: by name, functions that take the right array and return the other one."""
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
        return {name: _replace_by(array) for name, array in reversed(list(before.items()))}

    def _compute(self, recorded: _Recording, target: Layer, change: Changed) -> Array | None:
        """Recompute the wrong tensor with a changed layer; ``None`` if a layer refuses its inputs."""
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

    def _remaining_excess(self, layer: Layer, change: Changed) -> float:
        """Return the ratio (R) of the error that remains with a changed layer to the error that rounding explains.

        It is infinite if the change does not reduce the error enough, or the layers refuse it.
        """
        exact = self._compute(self._exact, layer, change)
        if exact is None or exact.shape != self._observed.shape:
            return np.inf
        error = error_of(self._observed, exact)
        if not error.rms <= REMAINING * self._error.rms or not np.isfinite(error.rms):
            return np.inf
        rounded = self._compute(self._rounded, layer, change)
        if rounded is None or rounded.shape != exact.shape:
            return np.inf
        return excess(error, self._explained_error(error_of(rounded, exact)))

    def _explained_error(self, error: Error) -> Error:
        """Return the error that rounding explains, given the error of a run in the model's types."""
        scatter = allow_accumulation(scatter_of([error]), ROUNDING["f32"], self._terms)
        precision = self._case.numerics.precision
        least = max(self._scatter, 0.0 if precision == "f32" else ROUNDING[precision]) * scatter.size
        return Error(max(scatter.rms, least), max(scatter.largest, 4 * least), scatter.size)

    def _try_families(self, layer: Layer, families: Iterator[_Family]) -> Likeness | None:
        if self._exact.outputs[self._port.layer][self._port.number].shape != self._observed.shape:
            return None
        for family in families:
            numbers = self._fit(layer, family)
            if numbers is None:
                continue
            for candidate in _simplify(numbers):
                rest = self._remaining_excess(layer, family.change(candidate))
                if rest <= LOCAL:
                    what = family.describe(candidate)
                    return Likeness(family.kind, layer.name, layer.operation, what, rest)
        return None

    def _fit(self, layer: Layer, family: _Family) -> Array | None:
        """Fit the parameters of a mistake to the side's tensor by Gauss-Newton steps; ``None`` if impossible."""
        numbers = np.asarray(family.start, np.float64)
        axes = None if family.axis is None else tuple(i for i in range(numbers.ndim) if i != family.axis)
        for _ in range(STEPS):
            step = np.maximum(1e-3 * np.abs(numbers), 1e-7)
            before = self._compute(self._exact, layer, family.change(numbers))
            after = self._compute(self._exact, layer, family.change(numbers + step))
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


def _replace_by(array: Array) -> Callable[[Array], Array | None]:
    def take(instead: Array) -> Array | None:
        fits = instead.shape == array.shape and instead.dtype.kind == array.dtype.kind
        return array.astype(instead.dtype) if fits else None

    return take


def _simplify(numbers: Array) -> Iterator[Array]:
    """Yield short decimals near the fitted parameters, then the parameters themselves."""
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
    """The layers in bodies, in execution order, with their inputs and outputs in the first iteration."""

    layers: dict[tuple[int, str], tuple[Layer, list[Array], Arrays]] = field(default_factory=dict)

    def note(self, layer: Layer, inputs: Sequence[Array], outputs: Arrays) -> Arrays:
        """Copy the first inputs and outputs of a layer in a body; a `Change` that changes nothing."""
        if layer.type not in (*IO_TYPES, "Constant") and stands_alone(layer):
            copies = [np.array(array) for array in inputs], tuple(np.array(array) for array in outputs)
            self.layers.setdefault(_key(layer), (layer, *copies))
        return outputs


class _BodySearch:
    """Tries mistakes in the bodies of a layer, changing one body layer at a time in all iterations.

    The layer is cut out of the model, as every try runs it again.

    Args:
        case: the judged case.
        port: a wrong output of the layer.
        observed: its value on the side.
    """

    def __init__(self, case: Case, port: Port, observed: Array) -> None:
        graph = case.plain.graph
        layer = graph[port.layer]
        constant = {other.id for other in graph.of_type("Constant")}
        starts = list(dict.fromkeys(read for read in graph.reads(layer) if read.layer not in constant))
        part = cut(case.plain.model, starts, [port])
        self._observed, self._outer = observed, layer
        self._wide, self._plain = case.wide.computing(part), case.plain.in_f32.computing(part)
        self._feeds = _observe_tensors(case, starts)

    def run(self) -> Likeness | None:
        """Try mistakes until one explains the error; ``None`` if none does."""
        first = _FirstIteration()
        with np.errstate(all="ignore"):
            exact = self._wide.run(self._feeds, inside=first.note)[0]
            if exact.shape != self._observed.shape:
                return None
            limit = REMAINING * error_of(self._observed, exact).rms
            for layer, change, kind, what in islice(self._guesses(first), RUNS):
                rest = self._remaining_excess(layer, change, limit)
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
                for guess in _guesses(layer, inputs, outputs[0], constant, None, {}):
                    yield layer, guess.change, guess.kind, guess.what

    def _remaining_excess(self, target: Layer, change: Changed, limit: float) -> float:
        """Return the ratio (R) of the error that remains with a changed body layer to the error that rounding explains.

        It is infinite if the layers refuse the change, or the RMS of the remaining error exceeds ``limit``.
        """

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


def _observe_tensors(case: Case, starts: Sequence[Port]) -> list[Array]:
    """Return the values of tensors: observed, or else computed from observed ones."""
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
    """Return the mistake in one input that explains all outputs, such as BGR for RGB, or another layout or pixel range.

    Returns ``None`` if there is none. Each guess takes a run of the whole model.

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
    for axis in _channel_axes(feed.shape):
        yield "channels", _describe_reversal(axis), partial(np.flip, axis=axis)
    for what, permute in _permutations(feed.shape, None):
        yield "permuted", what, permute
    for factor, text in SCALES:
        yield "factor", f"times {text}", partial(np.multiply, factor)


def _worst_excess(case: Case, report: Comparison, feeds: Sequence[Array]) -> float:
    """Return the largest excess (R) of an output when the model runs on changed inputs."""
    exact, worst = case.wide.run(feeds), 0.0
    for output in report.outputs:
        port, observed = case.plain.outputs[output.index], case.seen.outputs[output.index]
        if observed.shape != exact[output.index].shape:
            return np.inf
        if is_float(case.plain.types, port._port):
            error = error_of(observed, exact[output.index])
            worst = max(worst, error.relative / max(output.scatter, LEAST))
    return worst


Changed: TypeAlias = Callable[[Layer, Sequence[Array], Arrays], Arrays]
"""A function from a layer, its inputs and its outputs to the outputs under the mistake."""

EPSILON = 1e-2
"""The largest constant regarded as an epsilon, which keeps a division defined."""
EPSILONS = tuple(float(f"1e-{power}") for power in range(1, 16))
RANK = 5
"""The largest rank whose axes are permuted."""
SMALL = 1 << 16
"""The most elements of constants for which permutations other than image layouts are tried."""
COMBINED = 64
"""The most combinations of enumeration values that are tried."""
ELEMENTS = 4
"""The fewest elements that must share a fitted number."""

_LAYOUTS = ((0, 2, 3, 1), (0, 3, 1, 2), (2, 3, 1, 0), (3, 2, 0, 1), (1, 0, 2, 3))
"""From NCHW to NHWC and back; from OIHW to HWIO and back; in and out."""
_LAYOUT_NAMES: Mapping[tuple[int, ...], str] = {
    (0, 2, 3, 1): " (NHWC)",
    (0, 3, 1, 2): " (NHWC taken for NCHW)",
}
_GATES = {"LSTM": "fico", "GRU": "zrh"}
_ARITHMETIC = ("Add", "Subtract", "Multiply", "Divide", "Maximum", "Minimum")
_REDUCTIONS = ("ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceL2")


@dataclass(frozen=True)
class _Guess:
    """A mistake without parameters to fit.

    Args:
        kind: the kind of mistake in reports.
        what: the mistake as a clause: ``axes 2 and 3 swapped``.
        change: computes the outputs of the layer with the mistake.
    """

    kind: str
    what: str
    change: Changed


@dataclass(frozen=True)
class _Family:
    """A mistake with a parameter to fit, or one per channel.

    Args:
        kind: the kind of mistake in reports.
        start: the initial parameters.
        change: returns the function that computes the outputs of the layer for given parameters.
        describe: describes the mistake for given parameters.
        axis: the axis that has one parameter per index; ``None`` for a single parameter.
    """

    kind: str
    start: Array
    change: Callable[[Array], Changed]
    describe: Callable[[Array], str]
    axis: int | None = None


def number(value: float) -> str:
    """Format a number in its most plausible form: ``0.5``, ``1/255``, ``0.1768``."""
    short = f"{float(f'{value:.4g}') + 0.0:g}"
    if value and abs(float(short) / value - 1) > 1e-6:
        for divisor in range(3, 1025):
            if abs(value * divisor - 1) < 1e-5:
                return f"1/{divisor}"
    return short


def _output(change: Callable[[Array], Array]) -> Changed:
    """Lift a function of an array to a mistake in the first output of a layer."""
    return lambda layer, inputs, outputs: (change(outputs[0]), *outputs[1:])


def _change_input(index: int, change: Callable[[Array], Array]) -> Changed:
    """Lift a function of an array to a mistake in one input, from which the layer is recomputed."""

    def changed(layer: Layer, inputs: Sequence[Array], outputs: Arrays) -> Arrays:
        arrays = list(inputs)
        arrays[index] = change(inputs[index]).astype(inputs[index].dtype, copy=False)
        return evaluate_layer(layer, arrays)

    return changed


def _change_op(op: Any) -> Changed:
    """Return the mistake of computing another operation from the layer's inputs."""

    def changed(layer: Layer, inputs: Sequence[Array], outputs: Arrays) -> Arrays:
        return evaluate_layer(replace(layer, op=op), inputs)

    return changed


def _guesses(
    layer: Layer,
    inputs: Sequence[Array],
    output: Array,
    constant: Sequence[bool],
    found: Array | None,
    others: Mapping[str, Callable[[Array], Array | None]],
) -> Iterator[_Guess]:
    """Yield possible mistakes in a layer, most specific first.

    Args:
        layer: the layer.
        inputs: its inputs, in f64.
        output: its first output.
        constant: whether each input is constant.
        found: the side's output; ``None`` if it is only observed through later layers.
        others: tensors that the layer may read by mistake, by name, as functions of the array to replace.
    """
    if output.dtype.kind != "f" or layer.op is None:
        return
    if found is not None and found.size and not np.any(found):
        yield _Guess("all zero", "all zero", _output(np.zeros_like))
    yield from _other_attributes(layer)
    yield from _other_functions(layer, inputs, output)
    yield from _omissions(layer, inputs, output, constant)
    yield from _other_gates(layer)
    yield from _output_movements(output, None if found is None else found.shape)
    yield from _input_movements(inputs, constant)
    yield from _exchanges(inputs, constant)
    for index, array in enumerate(inputs):
        if not constant[index]:
            for name, other in others.items():
                if other(array) is not None:
                    yield _Guess(
                        "another input", f"reads {quoted(name)} as input {index}", _read_other(index, other)
                    )
    yield from _append_activations(output)
    if found is not None:
        yield from _clips(output, found)


def _read_other(index: int, other: Callable[[Array], Array | None]) -> Changed:
    def read(array: Array) -> Array:
        value = other(array)
        return array if value is None else value

    return _change_input(index, read)


def _other_attributes(layer: Layer) -> Iterator[_Guess]:
    """Yield the operation with other values of enumerations, flags, axes and pads, and with common epsilons."""
    op: Any = layer.op
    values: Mapping[str, Any] = op.attributes()
    enumerated = {
        name: others for name, value in values.items() if (others := _alternatives(op, name, value))
    }
    for name in ("eps", "epsilon"):
        for other in EPSILONS if name in values else ():
            if other != values[name]:
                text = f"{name} {number(other)} instead of {number(values[name])}"
                yield from _valid(op, "epsilon", text, {name: other})
    kind = "resize" if layer.type == "Interpolate" else "attribute"
    for changes in islice(_combinations(enumerated), COMBINED):
        text = ", ".join(
            f"{name} {_text(new)} instead of {_text(values[name])}" for name, new in changes.items()
        )
        yield from _valid(op, kind, text, changes)
    yield from _other_pads(op, values)


def _alternatives(op: Any, name: str, value: object) -> list[object]:
    """Return the possible other values of a flag, an enumeration or an axis."""
    if isinstance(value, bool):
        return [not value]
    if name in ("axis", "seq_axis", "batch_axis"):
        return [axis for axis in range(-RANK, RANK) if axis != value]
    return (
        []
        if isinstance(value, tuple)
        else [choice for choice in op.schema()[name].choices if choice != value]
    )


def _combinations(enumerated: Mapping[str, Sequence[object]]) -> Iterator[dict[str, object]]:
    """Yield combinations of other attribute values: of one attribute, then of two, and so on."""
    for count in range(1, len(enumerated) + 1):
        for names in combinations(enumerated, count):
            for values in product(*(enumerated[name] for name in names)):
                yield dict(zip(names, values, strict=True))


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _other_pads(op: Any, values: Mapping[str, Any]) -> Iterator[_Guess]:
    begin, end = values.get("pads_begin"), values.get("pads_end")
    if isinstance(begin, tuple) and isinstance(end, tuple) and len(begin) == len(end):
        shifts = [s for s in product((-1, 0, 1), repeat=len(begin)) if any(s)] if len(begin) <= 3 else []
        for shift in shifts:
            first = tuple(b + s for b, s in zip(begin, shift, strict=True))
            last = tuple(e - s for e, s in zip(end, shift, strict=True))
            if min((*first, *last)) >= 0:
                text = f"pads {list(first)} and {list(last)} instead of {list(begin)} and {list(end)}"
                yield from _valid(op, "attribute", text, {"pads_begin": first, "pads_end": last})


def _valid(op: Any, kind: str, what: str, changes: Mapping[str, object]) -> Iterator[_Guess]:
    """Yield the operation with changed attributes, unless these are invalid."""
    try:
        for name, value in changes.items():
            op.schema()[name].check(value)
        changed = op.replace(**changes)
    except (IRError, ValueError, TypeError):
        return
    yield _Guess(kind, what, _change_op(changed))


@cache
def _activations() -> tuple[Any, ...]:
    """Return unary activation functions with default attributes."""
    functions: list[Any] = []
    names = dict.fromkeys(cls.name for cls in registry if group(cls) == "activation")
    for name in (*names, "Tanh", "Erf", "Abs"):
        cls = registry.require(name, 16)
        if sum(not port.optional for port in cls.inputs) == 1 and cls.name not in ("Clamp", "Identity"):
            required = {name: 1.0 for name, attribute in cls.schema().items() if attribute.required}
            functions.append(cls(**required))
    clamp = registry.require("Clamp")
    return (*functions, clamp(min=0.0, max=6.0), clamp(min=0.0, max=1.0), clamp(min=-1.0, max=1.0))


def _describe_operation(op: Any) -> str:
    attributes = op.attributes()
    return (
        f"{op.name}({', '.join(f'{n}={_text(v)}' for n, v in attributes.items())})" if attributes else op.name
    )


def _is_function(layer: Layer, inputs: Sequence[Array], output: Array) -> bool:
    """Return whether a layer is an elementwise function of one input."""
    return isinstance(layer.op, Unary) or (
        group(type(layer.op)) == "activation" and inputs[0].shape == output.shape
    )


def _other_functions(layer: Layer, inputs: Sequence[Array], output: Array) -> Iterator[_Guess]:
    """Yield the replacement of the layer by other activation functions or arithmetic operations."""
    if _is_function(layer, inputs, output) and inputs[0].dtype.kind == "f":
        for op in _activations():
            if op.versioned_name() != layer.operation or op.attributes() != layer.op.attributes():  # type: ignore[union-attr]

                def function(_: Layer, arrays: Sequence[Array], __: Arrays, op: Any = op) -> Arrays:
                    return (np.asarray(op.evaluate(arrays[0])),)

                yield _Guess("activation", f"{_describe_operation(op)} instead of {layer.type}", function)
    families = (_ARITHMETIC, _REDUCTIONS) if isinstance(layer.op, Binary) or layer.type in _REDUCTIONS else ()
    for names in families:
        for name in names if layer.type in names else ():
            if name != layer.type:
                cls = registry.require(name, 16)
                shared = {n: v for n, v in layer.op.attributes().items() if n in cls.schema()}  # type: ignore[union-attr]
                yield _Guess("operation", f"{name} instead of {layer.type}", _change_op(cls(**shared)))


def _omissions(
    layer: Layer, inputs: Sequence[Array], output: Array, constant: Sequence[bool]
) -> Iterator[_Guess]:
    """Yield the omission of the layer, so that its output is one of its inputs."""
    for index, array in enumerate(inputs):
        if array.shape == output.shape and array.dtype.kind == "f" and not constant[index]:

            def passed(_: Layer, arrays: Sequence[Array], __: Arrays, index: int = index) -> Arrays:
                return (arrays[index],)

            added = layer.type in ("Add", "Subtract") and len(inputs) == 2 and constant[1 - index]
            what = "bias left out" if added else f"{layer.type} left out"
            if len(inputs) > 1 and not any(constant):
                what = f"only input {index} is returned"
            yield _Guess("bias" if added else "left out", what, passed)


def _other_gates(layer: Layer) -> Iterator[_Guess]:
    """Yield a recurrent layer with its gates in another order in weights and biases."""
    if layer.type not in RECURRENT or layer.type.startswith("RNN"):
        return
    gates, op = _GATES[layer.type[: 4 if layer.type.startswith("LSTM") else 3]], layer.op
    size = vars(op)["hidden_size"]
    for order in permutations(range(len(gates))):
        if order == tuple(range(len(gates))):
            continue

        def exchange(layer: Layer, inputs: Sequence[Array], outputs: Arrays, order: Any = order) -> Arrays:
            arrays = list(inputs)
            for index, array in enumerate(inputs):
                port = type(layer.op).port_of(index)  # type: ignore[union-attr]
                if port is not None and port.name.lower() in ("w", "r", "b"):
                    axis = array.ndim - (1 if port.name.lower() == "b" else 2)
                    rows = [gate * size + row for gate in order for row in range(size)]
                    rows += range(len(rows), array.shape[axis])
                    arrays[index] = np.take(array, rows, axis)
            return evaluate_layer(layer, arrays)

        text = "".join(gates[gate] for gate in order)
        yield _Guess("gates", f"gates in the order {text} instead of {gates}", exchange)


def _permutations(
    shape: tuple[int, ...], target_shape: tuple[int, ...] | None
) -> Iterator[tuple[str, Callable[[Array], Array]]]:
    """Yield permutations of axes that result in the target shape, or else preserve the shape."""
    if not 2 <= len(shape) <= RANK:
        return
    target = target_shape if target_shape is not None and sorted(target_shape) == sorted(shape) else shape
    large = len(shape) > 4
    for order in permutations(range(len(shape))):
        moving = [
            axis for axis, other in enumerate(order) if axis != other and max(shape[axis], shape[other]) > 1
        ]
        if not moving or (large and len(moving) > 2):
            continue
        transposed = tuple(shape[axis] for axis in order)
        axes = (
            f"axes {moving[0]} and {moving[1]} swapped"
            if len(moving) == 2
            else f"axes in the order {list(order)}"
        )
        axes += _LAYOUT_NAMES.get(order, "")
        if transposed == target:
            yield axes, partial(_transpose, order)
        if (target == shape and transposed != shape) or order in _LAYOUTS:
            yield f"laid out in memory with {axes}", partial(_laid_out, order)


def _transpose(order: tuple[int, ...], array: Array) -> Array:
    return np.ascontiguousarray(array.transpose(order))


def _laid_out(order: tuple[int, ...], array: Array) -> Array:
    return _transpose(order, array).reshape(array.shape)


def _shift(axis: int, by: int, fill: str, array: Array) -> Array:
    """Shift an array along an axis by one element.

    Args:
        axis: the axis.
        by: 1 to shift towards higher indices, -1 towards lower ones.
        fill: the new element at the end: ``zero``, ``edge`` for the nearest element before the shift, or ``wrap`` for the one shifted out.
        array: the array.
    """
    moved = np.roll(array, by, axis)
    if fill == "zero":
        place: list[Any] = [slice(None)] * array.ndim
        place[axis] = 0 if by > 0 else -1
        moved[tuple(place)] = 0
    elif fill == "edge":
        place = [slice(None)] * array.ndim
        place[axis] = 0 if by > 0 else -1
        moved[tuple(place)] = array[tuple(place)]
    return moved


def _movements(
    shape: tuple[int, ...], channels: Sequence[int] = ()
) -> Iterator[tuple[str, str, Callable[[Array], Array]]]:
    """Yield the kind, the description and the function of each reversal along an axis, and of each shift by one element.

    Args:
        shape: the shape of the array to change.
        channels: the axes of image channels, whose reversal has a kind of its own.
    """
    for axis, length in enumerate(shape):
        if length > 1:
            for by, fill in product((1, -1), ("zero", "wrap", "edge")):
                what = f"one {'late' if by > 0 else 'early'} along axis {axis}"
                yield "shift", what, partial(_shift, axis, by, fill)
            if axis in channels:
                yield "channels", _describe_reversal(axis), partial(np.flip, axis=axis)
            else:
                yield "reversed", f"reversed along axis {axis}", partial(np.flip, axis=axis)


def _channel_axes(shape: tuple[int, ...]) -> list[int]:
    """Return the axes that may be RGB channels of images."""
    axes = dict.fromkeys([len(shape) - 3, len(shape) - 1]) if len(shape) in (3, 4) else {}
    return [axis for axis in axes if shape[axis] == 3]


def _describe_reversal(axis: int) -> str:
    """Describe the reversal of image channels."""
    return f"channels in reverse order along axis {axis} (BGR for RGB)"


def _output_movements(output: Array, wanted: tuple[int, ...] | None) -> Iterator[_Guess]:
    for what, permute in _permutations(output.shape, wanted):
        yield _Guess("permuted", what, _output(permute))
    for kind, what, move in _movements(output.shape):
        yield _Guess(kind, what, _output(move))


def _input_movements(inputs: Sequence[Array], constant: Sequence[bool]) -> Iterator[_Guess]:
    for index, array in enumerate(inputs):
        if array.dtype.kind in "iu" and not constant[index] and array.size:
            for by in (1, -1):

                def shift(numbers: Array, by: int = by) -> Array:
                    return np.clip(numbers.astype(np.int64) + by, 0, None)

                yield _Guess("shift", f"input {index} off by {-by}", _change_input(index, shift))
        if array.dtype.kind != "f" or array.size < 2:
            continue
        for what, permute in _permutations(array.shape, None):
            yield _Guess("permuted", f"input {index} with {what}", _change_input(index, permute))
        for kind, what, move in _movements(array.shape, _channel_axes(array.shape)):
            yield _Guess(kind, f"input {index} {what}", _change_input(index, move))


def _exchanges(inputs: Sequence[Array], constant: Sequence[bool]) -> Iterator[_Guess]:
    for first, second in combinations(range(len(inputs)), 2):
        if inputs[first].dtype == inputs[second].dtype and not (constant[first] and constant[second]):

            def exchange(
                layer: Layer, arrays: Sequence[Array], _: Arrays, a: int = first, b: int = second
            ) -> Arrays:
                swapped = list(arrays)
                swapped[a], swapped[b] = arrays[b], arrays[a]
                return evaluate_layer(layer, swapped)

            yield _Guess("another input", f"inputs {first} and {second} exchanged", exchange)


def _clips(output: Array, observed: Array) -> Iterator[_Guess]:
    """Yield clipping to the range of the side's output, if the exact output exceeds that range."""
    if not observed.size or not np.isfinite(observed).all():
        return
    low, high = float(observed.min()), float(observed.max())
    below, above = int((output < low).sum()), int((output > high).sum())
    for is_low, is_high in ((False, True), (True, False), (True, True)):
        if below * is_low + above * is_high < 2 or (is_low and not below) or (is_high and not above):
            continue
        bounds = (low if is_low else -np.inf, high if is_high else np.inf)
        text = [
            *([f"below {number(low)}"] if is_low else []),
            *([f"above {number(high)}"] if is_high else []),
        ]
        yield _Guess(
            "clipped",
            f"clipped {' and '.join(text)}",
            _output(partial(np.clip, a_min=bounds[0], a_max=bounds[1])),
        )


def _append_activations(output: Array) -> Iterator[_Guess]:
    for op in _activations():
        yield _Guess(
            "activation",
            f"{_describe_operation(op)} applied to the result",
            _output(partial(_evaluate, op)),
        )


def _evaluate(op: Any, array: Array) -> Array:
    return np.asarray(op.evaluate(array)).astype(array.dtype)


def _numbers_of_layer(
    layer: Layer, inputs: Sequence[Array], output: Array, constant: Sequence[bool]
) -> Iterator[_Family]:
    """Yield mistakes in numeric parameters of a layer: attributes, constant operands, the slope of an activation."""
    if output.dtype.kind != "f" or layer.op is None:
        return
    yield from _other_numbers(layer)
    yield from _other_scalars(layer, inputs, constant)
    if _is_function(layer, inputs, output) and layer.type != "PReLU":

        def leak(slope: Array) -> Changed:
            return lambda _, arrays, __: (np.where(arrays[0] < 0, arrays[0] * slope, arrays[0]),)

        def leaky(slope: Array) -> str:
            return f"ReLU of slope {number(float(slope))} instead of {layer.type}"

        yield _Family("activation", np.array(0.01), leak, leaky)


def _numbers_of_result(output: Array) -> Iterator[_Family]:
    """Yield wrong factors and offsets of a result: first for all elements, then per channel."""
    if output.dtype.kind != "f":
        return

    def scaled(factor: Array) -> Changed:
        return _output(lambda array: array * factor)

    def moved(by: Array) -> Changed:
        return _output(lambda array: array + by)

    yield _Family("factor", np.array(1.0), scaled, lambda f: f"times {number(float(f))}")
    if output.size >= ELEMENTS:
        yield _Family("constant", np.array(0.0), moved, lambda c: f"plus {number(float(c))}")
    for axis in dict.fromkeys([1, output.ndim - 1, 0]):
        if not 0 <= axis < output.ndim or output.shape[axis] < 2:
            continue
        if output.size // output.shape[axis] >= ELEMENTS:
            shape = [1] * output.ndim
            shape[axis] = output.shape[axis]
            yield _Family(
                "bias",
                np.zeros(shape),
                moved,
                partial(_for_each, "a constant added", axis),
                axis,
            )
            yield _Family(
                "factor",
                np.ones(shape),
                scaled,
                partial(_for_each, "multiplied by a factor", axis),
                axis,
            )


def _for_each(what: str, axis: int, numbers: Array) -> str:
    span = f"{number(float(numbers.min()))} to {number(float(numbers.max()))}"
    return f"{what} for each index of axis {axis} ({span})"


def _other_numbers(layer: Layer) -> Iterator[_Family]:
    """Yield the operation with another value of a real attribute."""
    assert layer.op is not None
    for name, value in layer.op.attributes().items():
        if not isinstance(value, float):
            continue

        def change(by: Array, name: str = name) -> Changed:
            def changed(layer: Layer, inputs: Sequence[Array], _: Arrays) -> Arrays:
                op: Any = layer.op
                return evaluate_layer(replace(layer, op=op.replace(**{name: float(by)})), inputs)

            return changed

        kind = "epsilon" if name in ("eps", "epsilon") else "attribute"
        yield _Family(kind, np.array(value), change, _instead(name, value))


def _instead(name: str, value: float) -> Callable[[Array], str]:
    return lambda other: f"{name} {number(float(other))} instead of {number(value)}"


def _other_scalars(layer: Layer, inputs: Sequence[Array], constant: Sequence[bool]) -> Iterator[_Family]:
    """Yield the operation with another constant scalar operand."""
    for index, array in enumerate(inputs):
        if not (constant[index] and array.size == 1 and array.dtype.kind == "f"):
            continue
        value = float(array.reshape(-1)[0])

        def change(by: Array, index: int = index) -> Changed:
            return _change_input(index, partial(np.full_like, fill_value=float(by)))

        is_epsilon = 0 < value <= EPSILON and layer.type in ("Add", "Maximum")
        yield _Family(
            "epsilon" if is_epsilon else "factor" if layer.type in ("Multiply", "Divide") else "constant",
            np.array(value),
            change,
            _instead("epsilon" if is_epsilon else f"the constant input {index}", value),
        )
