"""Judge each layer alone (`LayerErrors`), then the outputs of the whole model (`OutputErrors`).

A layer is judged by its results for the side's own inputs, so inherited errors do not count. To that end the reference
runs twice on the observed tensors: in the side's precision (`_RoundedRun`) and in f64 (`_ExactRun`).

For the outputs, the model runs in f64, and several times in the side's precision with random rounding; rounding explains
an error up to a multiple of the largest of these errors.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import chain, islice, starmap
from typing import Any

import numpy as np

from .._util.records import Json, Record
from ..ir.blocks import blocks, by_blocks
from ..ir.element import ElementType
from ..ir.evaluation import evaluate_layer
from ..ir.graph import Layer, Port
from ..ir.tensor import Array
from ..ops.elementwise import Binary, Unary
from .caching import Entry, load_or_compute, restore_or_run
from .case import Case, Numerics, emulate_nodes
from .decisions import (
    Alternative,
    BodyDecisions,
    Choices,
    Judged,
    is_elementwise,
    judge_decision,
    keeps_numbers,
    open_decisions,
    pin_decisions,
)
from .precision import COPIES, LIMITS, ROUNDING, floor_of, is_move, perturb, rounding_to
from .progress import stage
from .reference import Change, chain_changes
from .results import DecisionResult, OutputResult, Overflow, UnitResult, restore
from .spilling import Kept
from .spilling import tensors as stored
from .tensors import is_float, name_of, unit_of
from .terms import Terms, terms_of
from .verdict import (
    LOCAL,
    Error,
    allow_accumulation,
    allow_floor,
    allow_steps,
    difference,
    error_of,
    excess,
    scatter_of,
)

__all__ = ["LayerErrors", "OutputErrors"]


class LayerErrors:
    """Judges each layer by the error that it adds.

    Args:
        case: the judged case.
        choices: alternative decisions inside bodies, by number.
        entry: the cache entry of finished runs, or ``None``.
    """

    def __init__(self, case: Case, choices: Choices, entry: Entry | None = None) -> None:
        self._case, self._entry = case, entry
        self.rounded = _RoundedRun(case, BodyDecisions(case.plain.graph, case.plain.types, choices))
        """The run in the side's precision."""
        self.exact = _ExactRun(case, self.rounded)
        """The run in f64, with the judged decisions."""

    def run(self) -> None:
        """Compute each layer from the side's tensors, in the side's precision and in f64."""
        with stage(0, 0.5):
            restore_or_run(self._entry, "rounded", self.rounded)
        with stage(0.5, 1):
            restore_or_run(self._entry, "exact", self.exact)

    def units(self, inherited: Mapping[Port, float]) -> list[UnitResult]:
        """Return the judgement of each observed floating-point tensor, in topological order.

        Args:
            inherited: the relative error that each tensor inherits from the inputs of its unit.
        """
        case = self._case
        return [
            self._unit(layer, port, inherited.get(port, 0.0))
            for layer in case.layers
            if layer.id not in case.deciding or keeps_numbers(layer)
            for port in layer.output_ports
            if is_float(case.plain.types, port)
            and port in self.exact.tensors
            and port in self.rounded.tensors
        ]

    def _unit(self, layer: Layer, port: Port, inherited: float) -> UnitResult:
        case, members = self._case, _members(self._case, port)
        numerics = case.numerics
        observed, rounded, exact = (
            tensors[port] for tensors in (case.tensors, self.rounded.tensors, self.exact.tensors)
        )
        limit = numerics.limit_of(observed)
        error = error_of(observed, exact, limit, self._lost(rounded, exact))
        terms = max(self.exact.terms.get(member, Terms()) for member in members)
        unit = ROUNDING["f32"]  # sums are added in f32, whatever is multiplied
        own = error_of(rounded, exact, limit, self._lost(rounded, exact))
        scatter = allow_accumulation(scatter_of([own]), unit, terms)
        scatter = allow_floor(scatter, max(self.exact.floors.get(member, 0.0) for member in members))
        scatter = allow_steps(scatter, case.seen.steps.get(port, 0.0))
        unit_excess = excess(error, scatter)
        moved = unit_excess > LOCAL and all(is_move(case.plain.graph[id]) for id in self._ids(port))
        reason = error.reason or (difference(observed, exact) if moved or unit_excess == np.inf else "")
        return UnitResult(
            name=name_of(case.plain.graph, port),
            operation=layer.operation,
            layers=members,
            excess=unit_excess,
            relative=error.relative,
            inherited=inherited,
            equal=_equal(observed, rounded, numerics),
            scatter=scatter.relative,
            precision=numerics.label,
            reason=reason,
        )

    def _ids(self, port: Port) -> list[int]:
        graph, case = self._case.plain.graph, self._case
        return [layer.id for layer in unit_of(graph, port, case.tensors, case.computed)]

    def _lost(self, rounded: Array, exact: Array) -> Array | None:
        """Return a mask of elements that overflow in the side's precision, or follow from an overflow; ``None`` if none do.

        These are not judged, as runtimes turn an overflow into 0, NaN or infinity.
        """
        if not self.exact.overflows or not self._case.numerics.bounded or rounded.shape != exact.shape:
            return None
        lost = np.asarray(~np.isfinite(rounded.astype(exact.dtype, copy=False)))
        return lost if lost.any() else None


class _RoundedRun:
    """A run of the reference on the side's tensors, in the side's precision."""

    def __init__(self, case: Case, inside: BodyDecisions) -> None:
        self._case, self.inside = case, inside
        self.tensors, self.own, self.held = stored(), stored(), stored()
        """The observed tensors, unobserved decisions, and f32 tensors behind observed roundings."""

    def run(self) -> None:
        """Run the reference."""
        case = self._case

        def exchange(layer: Layer, _: Sequence[Array], outputs: tuple[Array, ...]) -> tuple[Array, ...]:
            for port, array in zip(layer.output_ports, outputs, strict=False):
                if port in case.tensors:
                    self.tensors[port] = array if rounded is None else rounded(array)
                elif layer.id in case.deciding:
                    self.own[port] = array
            observed = case.observed(layer, outputs)
            if rounded is None or layer.id not in held:
                return observed
            observed = _before_rounding(observed, outputs, rounded)
            self.held.update(
                (p, a) for p, a in zip(layer.output_ports, observed, strict=False) if p in case.tensors
            )
            return observed

        numerics = case.numerics
        is_f32 = numerics.precision == "f32"
        rounded = None if is_f32 else rounding_to(numerics.precision, numerics.bounded)
        held = frozenset({*numerics.wide, *numerics.held})
        emulate = emulate_nodes(replace(numerics, held=held), case.plain.graph, case.tensors)
        change = chain_changes(emulate, exchange)
        case.reference.run(case.feeds, change, self.inside.record, COPIES[numerics.precision])

    def saved(self) -> tuple[Json, Iterable[Array]]:
        """Return the results as a record and arrays."""
        keys, arrays = self.inside.saved()
        record: Record = {"tensors": list(self.tensors), "inside": keys}
        record |= {"own": list(self.own), "held": list(self.held)}
        return record, chain(self.tensors.values(), self.own.values(), self.held.values(), arrays)

    def restore(self, record: Any, arrays: Iterator[Array]) -> None:
        """Restore the results."""
        for port, array in zip(starmap(Port, record["tensors"]), arrays, strict=False):
            self.tensors[port] = array
            self._case.shape(port, array.shape)
        self.own.update(zip(starmap(Port, record["own"]), arrays, strict=False))
        self.held.update(zip(starmap(Port, record["held"]), arrays, strict=False))
        self.inside.restore(record["inside"], arrays)


def _before_rounding(
    observed: Sequence[Array], outputs: Sequence[Array], rounded: Callable[[Array], Array]
) -> tuple[Array, ...]:
    """Undo the rounding of observed elements that are the rounded results of the reference; return other elements unchanged.

    Args:
        observed: the observed outputs of a layer that computes in f32.
        outputs: the outputs of the reference in f32.
        rounded: rounds an array to the side's precision.
    """

    def choose(array: Array, output: Array) -> Array:
        return np.where(rounded(output) == array, output, array)

    return tuple(
        by_blocks(choose, output.dtype, array, output) if output.dtype.kind == "f" else array
        for array, output in zip(observed, outputs, strict=True)
    )


class _ExactRun:
    """A run of the reference on the side's tensors in f64, which also judges decisions."""

    def __init__(self, case: Case, rounded: _RoundedRun) -> None:
        self._case, self._rounded = case, rounded
        self.tensors = stored()
        self.terms: dict[str, Terms] = {}
        """The sums of each layer, by name."""
        self.floors: dict[str, float] = {}
        """The errors of runtimes in the functions of layers, by name."""
        self.overflows: list[Overflow] = []
        """The layers whose results overflow their type, in topological order."""
        self.decisions: list[DecisionResult] = []
        self.alternatives: list[Alternative] = []
        self._others: dict[Port, Array] = {}
        """Alternative results of layers, where rounding leaves unobserved decisions open."""

    def run(self) -> None:
        """Run the reference, and judge decisions."""
        case, inside = self._case, self._rounded.inside
        take, follow = pin_decisions(self._rounded.own), pin_decisions(case.tensors)
        leading = self._find_leading()

        def judge(layer: Layer, inputs: Sequence[Array], outputs: tuple[Array, ...]) -> tuple[Array, ...]:
            self.terms[layer.name] = terms_of(layer, inputs, outputs[0])
            if (floor := floor_of(layer, inputs, outputs[0])) > 0:
                self.floors[layer.name] = floor
            if layer.id in case.computed:
                self.overflows += _overflows(layer, inputs, outputs, self._limits(layer))
            if layer.id in case.deciding:
                self._judge_decision(layer, inputs, outputs[0])
                outputs = take(layer, inputs, outputs)
            if layer.id in leading:
                self._decide_otherwise(layer, inputs, outputs)
            if layer.id in case.deciding and keeps_numbers(layer):
                outputs = follow(layer, inputs, outputs)
            for port, array in zip(layer.output_ports, outputs, strict=False):
                if port in case.tensors:
                    self.tensors[port] = array
            observed = case.observed(layer, outputs)
            held = zip(layer.output_ports, observed, strict=False)  # the observed tensor is rounded once more
            return tuple(
                self._rounded.held.get(port, array).astype(array.dtype, copy=False) for port, array in held
            )

        body_judge = inside.judge(case.numerics.precision)
        case.wide.run(case.feeds, chain_changes(case.rounding, judge), inside.replay(body_judge))
        self.decisions += body_judge.decisions
        self.alternatives = body_judge.alternatives

    def saved(self) -> tuple[Json, Iterable[Array]]:
        """Return the results as a record and arrays."""
        record: Record = {
            "tensors": list(self.tensors),
            "terms": {name: list(terms) for name, terms in self.terms.items()},
            "floors": self.floors,
            "overflows": [overflow.record() for overflow in self.overflows],
            "decisions": list(map(asdict, self.decisions)),
            "alternatives": [[other.number, other.element, other.outer] for other in self.alternatives],
        }
        return record, chain(self.tensors.values(), (other.value for other in self.alternatives))

    def restore(self, record: Any, arrays: Iterator[Array]) -> None:
        """Restore the results."""
        self.tensors.update(zip(starmap(Port, record["tensors"]), arrays, strict=False))
        self.terms = {name: Terms(*terms) for name, terms in record["terms"].items()}
        self.floors = record["floors"]
        self.overflows = [Overflow(**fields) for fields in record["overflows"]]
        self.decisions = [restore(DecisionResult, fields) for fields in record["decisions"]]
        others = zip(record["alternatives"], arrays, strict=False)
        self.alternatives = [
            Alternative(number, element, value, outer) for (number, element, outer), value in others
        ]

    def _limits(self, layer: Layer) -> list[float]:
        """Return the largest finite number of each output type of a layer."""
        numerics, types = self._case.numerics, self._case.plain.types
        is_half = [
            numerics.declared and types[port].element is ElementType.f16 for port in layer.output_ports
        ]
        most = LIMITS["f32"] if layer.id in numerics.wide else numerics.limit
        return [min(most, LIMITS["f16"]) if half else most for half in is_half]

    def _find_leading(self) -> set[int]:
        """Return the ids of unobserved elementwise layers on paths to observed decisions."""
        case, graph, leading = self._case, self._case.plain.graph, set[int]()
        waiting = [
            port.layer
            for port in case.tensors
            if port.layer in case.deciding and is_elementwise(graph[port.layer])
        ]
        while waiting:
            for port in graph.reads(graph[waiting.pop()]):
                layer = graph[port.layer]
                by_element = is_elementwise(layer) or isinstance(layer.op, Unary | Binary)
                if (
                    by_element
                    and port not in case.tensors
                    and layer.id in case.computed
                    and layer.id not in leading
                ):
                    leading.add(layer.id)
                    waiting.append(layer.id)
        return leading

    def _decide_otherwise(self, layer: Layer, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Record the alternative output of a layer that follows from unobserved decisions that rounding leaves open."""
        alternatives = self._alternatives_of(layer, inputs)
        alternative = np.array(outputs[0] if alternatives is None else evaluate_layer(layer, alternatives)[0])
        count = 0
        if layer.id in self._case.deciding and is_elementwise(layer):
            rounding = 8 * ROUNDING[self._case.numerics.precision]
            count, first = open_decisions(layer, inputs, outputs[0], rounding, outputs[0].size)
            for place, value in first:
                alternative.reshape(-1)[place] = value
        if count or alternatives is not None:
            self._others[Port(layer.id, 0)] = alternative

    def _alternatives_of(self, layer: Layer, inputs: Sequence[Array]) -> list[Array] | None:
        """Return the inputs of a layer with recorded alternatives; ``None`` if it reads none."""
        ports = self._case.plain.graph.reads(layer)
        if len(ports) != len(inputs) or not any(port in self._others for port in ports):
            return None
        pairs = zip(ports, inputs, strict=True)
        return [self._others.get(port, array).astype(array.dtype, copy=False) for port, array in pairs]

    def _judge_by_either(
        self, layer: Layer, inputs: Sequence[Array], decided: Array, output: Array, judged: Judged
    ) -> Judged:
        """Judge a decision again, allowing for alternatives of unobserved decisions that lead to it.

        Args:
            layer: the deciding layer.
            inputs: its inputs, in f64.
            decided: its first output, from the side.
            output: its first output in f64.
            judged: the first judgement, which is returned if no alternative leads to the layer.
        """
        alternatives = self._alternatives_of(layer, inputs)
        if alternatives is None or decided.shape != output.shape:
            return judged
        alternative = evaluate_layer(layer, alternatives)[0]
        if alternative.shape != output.shape:
            return judged
        wide = decided.astype(np.float64)
        is_other = np.abs(wide - alternative.astype(np.float64)) < np.abs(wide - output.astype(np.float64))
        mixed = [
            np.where(is_other, *np.broadcast_arrays(b, a, is_other)[:2]) if a is not b else a
            for a, b in zip(inputs, alternatives, strict=True)
        ]
        rounding = 8 * ROUNDING[self._case.numerics.precision]
        again = judge_decision(layer, mixed, decided, np.where(is_other, alternative, output), rounding)
        return again._replace(differ=judged.differ)

    def _judge_decision(self, layer: Layer, inputs: Sequence[Array], output: Array) -> None:
        case, port = self._case, Port(layer.id, 0)
        if port not in case.tensors:
            return
        decided = case.tensors[port]
        judged = judge_decision(layer, inputs, decided, output, 8 * ROUNDING[case.numerics.precision])
        if judged.unexplained:
            judged = self._judge_by_either(layer, inputs, decided, output, judged)
        self.decisions.append(
            DecisionResult(
                name=layer.name,
                operation=layer.operation,
                differ=judged.differ,
                unexplained=judged.unexplained,
                of=decided.size,
                levels=judged.levels,
                layers=_members(case, port),
            )
        )


def _members(case: Case, port: Port) -> tuple[str, ...]:
    return tuple(layer.name for layer in unit_of(case.plain.graph, port, case.tensors, case.computed))


def _equal(observed: Array, rounded: Array, numerics: Numerics) -> float:
    """Return the fraction of observed elements equal to the reference in the side's precision; 1 for empty tensors."""
    if observed.shape != rounded.shape:
        return 0.0
    # After the last product, a runtime may compute in f32.
    narrowed = (lambda numbers: numbers) if numerics.precision == "f32" else rounding_to(numerics.precision)
    with np.errstate(over="ignore"):
        equal = sum(
            int(np.count_nonzero(narrowed(ours) == theirs.astype(ours.dtype, copy=False)))
            for ours, theirs in blocks(observed, rounded)
        )
    return equal / observed.size if observed.size else 1.0


def _overflows(
    layer: Layer, inputs: Sequence[Array], outputs: Sequence[Array], limits: Sequence[float]
) -> Iterator[Overflow]:
    """Yield the first overflow of a layer, if any.

    Args:
        layer: the layer.
        inputs: its inputs, in f64.
        outputs: its outputs, in f64.
        limits: the largest finite number of each output's type.
    """
    if is_move(layer):
        return
    for output, limit in zip(outputs, limits, strict=False):
        if output.dtype.kind != "f" or (largest := _largest(output)) <= limit:
            continue
        read = [_largest(array) for array in inputs if array.dtype.kind == "f"]
        type = next(name for name in ("f16", "bf16", "f32") if LIMITS[name] >= limit)
        yield Overflow(layer.name, layer.operation, type, largest, tuple(read))
        return


def _largest(array: Array) -> float:
    """Return the largest finite magnitude of an array."""
    sizes = (np.abs(block[np.isfinite(block)]).max(initial=0) for (block,) in blocks(array))
    return float(max(sizes, default=0.0))


RUNS = 3
"""The number of runs with random rounding, in addition to the plain one."""


class OutputErrors:
    """Judges the outputs of the whole model.

    Args:
        case: the judged case.
        exact: the f64 results for the side's own tensors.
        inside: the decisions inside bodies.
        entry: the cache entry of finished runs, or ``None``.
    """

    def __init__(
        self,
        case: Case,
        exact: Mapping[Port, Array],
        inside: BodyDecisions,
        entry: Entry | None = None,
    ) -> None:
        self._case, self._exact, self._inside, self._entry = case, exact, inside, entry
        self.inherited: dict[Port, float] = {}
        """The relative errors of the inputs of layers."""
        self.outputs: list[OutputResult] = []
        """The outputs of the model, in order."""

    def run(self) -> Sequence[Array]:
        """Run the model in f64, and several times in the side's precision, always with the side's decisions.

        Returns:
            the outputs in f64.
        """
        case, first = self._case, _FirstRun(self._case, self._inside)
        with stage(0, 0.125):
            restore_or_run(self._entry, "first", first)
        take, emulate = first.take, case.numerics.emulate()
        with stage(0.125, 0.625):
            truth = self._truth(take)
        lost = self._lost(first.outputs, truth)
        errors = [self._errors(first.outputs, truth, lost)]
        with stage(0.625, 0.75):
            ours = errors[0] if emulate is None else self._errors(self._plain("ours", take), truth, lost)
        for seed in range(RUNS):
            change = chain_changes(emulate, perturb(case.numerics.precision, seed), take)
            with stage(0.75 + 0.25 * seed / RUNS, 0.75 + 0.25 * (seed + 1) / RUNS):
                errors.append(self._errors(self._plain(f"run-{seed}", change), truth, lost))
        self.outputs = [
            self._judge(index, exact, [run[index] for run in errors], ours[index], lost[index])
            for index, exact in enumerate(truth)
            if index not in self._case.seen.absent
        ]
        return truth

    def _plain(self, name: str, change: Change) -> Sequence[Array]:
        """Run the model in the side's precision with a `Change`, and return the outputs."""

        def compute() -> tuple[Json, list[Array]]:
            case = self._case
            copies = COPIES[case.numerics.precision]
            return None, case.reference.run(case.feeds, change, self._inside.replay(), copies)

        return load_or_compute(self._entry, name, compute)[1]

    def _truth(self, take: Change) -> Sequence[Array]:
        """Run the model in f64, and return the outputs; record the errors that tensors inherit from the inputs of their units."""
        case = self._case

        def compute() -> tuple[Json, list[Array]]:
            change = chain_changes(take, case.rounding, self._inherit)
            outputs = case.wide.run(case.feeds, change, self._inside.replay())
            return [[port, error] for port, error in self.inherited.items()], outputs

        inherited, outputs = load_or_compute(self._entry, "truth", compute)
        self.inherited = {Port(*port): error for port, error in inherited}
        return Kept(outputs)

    def _inherit(self, layer: Layer, _: Sequence[Array], outputs: tuple[Array, ...]) -> tuple[Array, ...]:
        for port, array in zip(layer.output_ports, outputs, strict=False):
            if port in self._exact and is_float(self._case.plain.types, port):
                self.inherited[port] = error_of(self._exact[port], array).relative
        return outputs

    def _lost(self, outputs: Sequence[Array], truth: Sequence[Array]) -> list[Array | None]:
        """Return a mask per output of elements that become infinite or NaN only in the side's precision; ``None`` if none do."""
        return [
            _lost_elements(output, exact) if is_float(self._case.plain.types, port._port) else None
            for port, output, exact in zip(self._case.plain.outputs, outputs, truth, strict=True)
        ]

    def _errors(
        self, outputs: Sequence[Array], truth: Sequence[Array], lost: Sequence[Array | None]
    ) -> list[Error]:
        """Return the error of each output of a run; 0 for integers."""
        ports, numerics = self._case.plain.outputs, self._case.numerics
        return [
            error_of(output, exact, numerics.limit_of(output), mask)
            if is_float(self._case.plain.types, port._port)
            else Error(0.0, 0.0, 0.0)
            for port, output, exact, mask in zip(ports, outputs, truth, lost, strict=True)
        ]

    def _judge(
        self, index: int, exact: Array, runs: Sequence[Error], ours: Error, lost: Array | None
    ) -> OutputResult:
        port, output = self._case.plain.outputs[index], self._case.seen.outputs[index]
        precision = self._case.numerics.label
        if not is_float(self._case.plain.types, port._port):
            wrong = output.shape != exact.shape or any((a != b).any() for a, b in blocks(output, exact))
            off, reason = (np.inf, difference(output, exact)) if wrong else (0.0, "")
            return OutputResult(
                port.label, off, 0.0, off, 0.0, reason=reason, precision=precision, index=index
            )
        error = error_of(output, exact, self._case.numerics.limit_of(output), lost)
        scatter = allow_steps(scatter_of(runs), self._case.seen.steps.get(port._port, 0.0))
        output_excess = excess(error, scatter)
        reason = error.reason or (difference(output, exact) if output_excess == np.inf else "")
        return OutputResult(
            name=port.label,
            relative=error.relative,
            scatter=scatter.relative,
            excess=output_excess,
            ours=ours.relative,
            beyond=error.beyond,
            of=exact.size,
            reason=reason,
            precision=precision,
            index=index,
        )


def _lost_elements(output: Array, exact: Array) -> Array | None:
    if output.shape != exact.shape or all(np.isfinite(block).all() for (block,) in blocks(output)):
        return None
    lost = ~np.isfinite(output) & np.isfinite(exact)
    return lost if lost.any() else None


class _FirstRun:
    """The first run in the side's precision, which makes the decisions that could not be observed; later runs take them."""

    def __init__(self, case: Case, inside: BodyDecisions) -> None:
        self._case, self._inside, self._own = case, inside, stored()
        self._seen = {port: array for port, array in case.tensors.items() if port.layer in case.deciding}
        self.take = pin_decisions(ChainMap(self._seen, self._own))
        """A `Change` that applies the decisions of the side, or else those of this run."""
        self.outputs: Sequence[Array] = ()
        """The outputs of this run."""

    def run(self) -> None:
        """Run the model."""
        case = self._case
        change = chain_changes(case.numerics.emulate(), self._decide)
        copies = COPIES[case.numerics.precision]
        outputs = case.reference.run(case.feeds, change, self._inside.replay(), copies)
        self.outputs = Kept(outputs)

    def _decide(self, layer: Layer, inputs: Sequence[Array], outputs: tuple[Array, ...]) -> tuple[Array, ...]:
        if layer.id in self._case.deciding:
            for port, array in zip(layer.output_ports, outputs, strict=False):
                if port not in self._seen:
                    self._own[port] = array
        return self.take(layer, inputs, outputs)

    def saved(self) -> tuple[Json, Iterable[Array]]:
        """Return outputs and decisions as a record and arrays."""
        return list(self._own), chain(self.outputs, self._own.values())

    def restore(self, record: Any, arrays: Iterator[Array]) -> None:
        """Restore outputs and decisions."""
        self.outputs = Kept(islice(arrays, len(self._case.plain.outputs)))
        self._own.update(zip(starmap(Port, record), arrays, strict=False))
