"""Judge each layer by its results for the side's own tensors, so that inherited errors do not count."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, starmap
from typing import Any

import numpy as np

from .._util.records import Json, Record
from ..ir.blocks import blocks, by_blocks
from ..ir.element import ElementType
from ..ir.evaluation import evaluate_layer
from ..ir.graph import Layer, Port
from ..ir.tensor import Array
from ..ops.elementwise import Binary, Unary
from .caching import Entry, resumed
from .case import Case
from .decisions import Judged, is_elementwise, judge, keeps_numbers, pinned, undecided
from .emulation import nodes_in
from .functions import floor_of
from .inside import Alternative, Choices, InsideDecisions
from .numerics import Numerics
from .overflow import Overflow, limit_of, overflows_of
from .precision import COPIES, LIMITS, ROUNDING, is_move, rounding_to
from .progress import stage
from .reference import chained
from .results import DecisionResult, UnitResult
from .saved import decision_of, saved_decision
from .spilling import tensors as stored
from .tensors import is_float, name_of, unit_of
from .terms import Terms, terms_of
from .verdict import (
    LOCAL,
    difference,
    error_of,
    excess,
    scatter_of,
    with_accumulation,
    with_floor,
    with_steps,
)

__all__ = ["LocalErrors"]


class LocalErrors:
    """The errors added by each layer.

    Args:
        case: the judged case.
        chosen: alternative decisions inside bodies, by number.
        entry: the cache entry of finished runs, or ``None``.
    """

    def __init__(self, case: Case, chosen: Choices, entry: Entry | None = None) -> None:
        self._case, self._entry = case, entry
        self._rounded = _Rounded(case, InsideDecisions(case.plain.graph, case.plain.types, chosen))
        self._exact = _Exact(case, self._rounded)

    @property
    def inside(self) -> InsideDecisions:
        """The decisions inside bodies."""
        return self._rounded.inside

    @property
    def alternatives(self) -> list[Alternative]:
        """The alternatives left open by rounding."""
        return self._exact.alternatives

    @property
    def decisions(self) -> list[DecisionResult]:
        """The observed deciding layers, and those inside bodies."""
        return self._exact.decisions

    @property
    def overflows(self) -> list[Overflow]:
        """The layers whose results overflow their type, in topological order."""
        return self._exact.overflows

    @property
    def exact(self) -> Mapping[Port, Array]:
        """The f64 results for the side's tensors."""
        return self._exact.tensors

    def run(self) -> None:
        """Compute every layer from the side's tensors, in the side's precision and in f64."""
        with stage(0, 0.5):
            resumed(self._entry, "rounded", self._rounded)
        with stage(0.5, 1):
            resumed(self._entry, "exact", self._exact)

    def units(self, inherited: Mapping[Port, float]) -> list[UnitResult]:
        """Return the observed numeric tensors in topological order.

        Args:
            inherited: the relative errors of the inputs of layers.
        """
        case = self._case
        return [
            self._unit(layer, port, inherited.get(port, 0.0))
            for layer in case.layers
            if layer.id not in case.deciding or keeps_numbers(layer)
            for port in layer.output_ports
            if is_float(case.plain.types, port)
            and port in self._exact.tensors
            and port in self._rounded.tensors
        ]

    def _unit(self, layer: Layer, port: Port, inherited: float) -> UnitResult:
        case, members = self._case, _members(self._case, port)
        numerics = case.numerics
        found, rounded, exact = (
            tensors[port] for tensors in (case.tensors, self._rounded.tensors, self._exact.tensors)
        )
        limit = limit_of(numerics, found)
        error = error_of(found, exact, limit, self._lost(rounded, exact))
        terms = max(self._exact.terms.get(member, Terms()) for member in members)
        unit = ROUNDING["f32"]  # sums are added in f32, whatever is multiplied
        own = error_of(rounded, exact, limit, self._lost(rounded, exact))
        scatter = with_accumulation(scatter_of([own]), unit, terms)
        scatter = with_floor(scatter, max(self._exact.floors.get(member, 0.0) for member in members))
        scatter = with_steps(scatter, case.seen.steps.get(port, 0.0))
        found_excess = excess(error, scatter)
        moved = found_excess > LOCAL and all(is_move(case.plain.graph[id]) for id in self._ids(port))
        reason = error.reason or (difference(found, exact) if moved or found_excess == np.inf else "")
        return UnitResult(
            name=name_of(case.plain.graph, port),
            operation=layer.operation,
            layers=members,
            excess=found_excess,
            relative=error.relative,
            inherited=inherited,
            equal=_equal(found, rounded, numerics),
            scatter=scatter.relative,
            precision=numerics.label,
            reason=reason,
        )

    def _ids(self, port: Port) -> list[int]:
        graph, case = self._case.plain.graph, self._case
        return [layer.id for layer in unit_of(graph, port, case.tensors, case.computed)]

    def _lost(self, rounded: Array, exact: Array) -> Array | None:
        """Return a mask of elements that are infinite or NaN in any bounded type.

        Consequences of an overflow are not judged either: runtimes turn it into 0, NaN or infinity.
        """
        if not self._exact.overflows or not self._case.numerics.bounded or rounded.shape != exact.shape:
            return None
        lost = np.asarray(~np.isfinite(rounded.astype(exact.dtype, copy=False)))
        return lost if lost.any() else None


class _Rounded:
    """The reference's results for the side's tensors, in the side's precision."""

    def __init__(self, case: Case, inside: InsideDecisions) -> None:
        self._case, self.inside = case, inside
        self.tensors, self.own, self.held = stored(), stored(), stored()
        """The observed tensors, unobserved decisions, and f32 tensors behind observed roundings."""

    def run(self) -> None:
        """Compute the results."""
        case = self._case

        def exchange(layer: Layer, _: Sequence[Array], outputs: tuple[Array, ...]) -> tuple[Array, ...]:
            for port, array in zip(layer.output_ports, outputs, strict=False):
                if port in case.tensors:
                    self.tensors[port] = array if rounded is None else rounded(array)
                elif layer.id in case.deciding:
                    self.own[port] = array
            seen = case.observed(layer, outputs)
            if rounded is None or layer.id not in held:
                return seen
            seen = _before_rounding(seen, outputs, rounded)
            self.held.update(
                (p, a) for p, a in zip(layer.output_ports, seen, strict=False) if p in case.tensors
            )
            return seen

        numerics = case.numerics
        is_f32 = numerics.precision == "f32"
        rounded = None if is_f32 else rounding_to(numerics.precision, numerics.bounded)
        held = frozenset({*numerics.wide, *numerics.held})
        emulate = nodes_in(replace(numerics, held=held), case.plain.graph, case.tensors)
        change = chained(emulate, exchange)
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
    seen: Sequence[Array], outputs: Sequence[Array], rounded: Callable[[Array], Array]
) -> tuple[Array, ...]:
    """Return the observed tensors, or the f32 numbers that they round, for layers in f32."""

    def choose(array: Array, output: Array) -> Array:
        return np.where(rounded(output) == array, output, array)

    return tuple(
        by_blocks(choose, output.dtype, array, output) if output.dtype.kind == "f" else array
        for array, output in zip(seen, outputs, strict=True)
    )


class _Exact:
    """The f64 results for the side's tensors, and the judged decisions."""

    def __init__(self, case: Case, rounded: _Rounded) -> None:
        self._case, self._rounded = case, rounded
        self.tensors = stored()
        self.terms: dict[str, Terms] = {}
        """How many numbers each layer adds for an element."""
        self.floors: dict[str, float] = {}
        """How far runtimes are off in the functions of layers."""
        self.overflows: list[Overflow] = []
        """The layers whose results exceed the type, in topological order: it begins with the first one."""
        self.decisions: list[DecisionResult] = []
        self.alternatives: list[Alternative] = []
        self._others: dict[Port, Array] = {}
        """What layers give if decisions before them that were not observed, and are open, come out otherwise."""

    def run(self) -> None:
        """Compute and judge."""
        case, inside = self._case, self._rounded.inside
        take, follow = pinned(self._rounded.own), pinned(case.tensors)
        leading = self._leading()

        def judge(layer: Layer, inputs: Sequence[Array], outputs: tuple[Array, ...]) -> tuple[Array, ...]:
            self.terms[layer.name] = terms_of(layer, inputs, outputs[0])
            if (floor := floor_of(layer, inputs, outputs[0])) > 0:
                self.floors[layer.name] = floor
            if layer.id in case.computed:
                self.overflows += overflows_of(layer, inputs, outputs, self._limits(layer))
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
            seen = case.observed(layer, outputs)
            held = zip(layer.output_ports, seen, strict=False)  # the observed tensor is rounded once more
            return tuple(
                self._rounded.held.get(port, array).astype(array.dtype, copy=False) for port, array in held
            )

        judged = inside.judge(case.numerics.precision)
        case.wide.run(case.feeds, chained(case.rounding, judge), inside.replay(judged))
        self.decisions += judged.decisions
        self.alternatives = judged.alternatives

    def saved(self) -> tuple[Json, Iterable[Array]]:
        """Return the results as a record and arrays."""
        record: Record = {
            "tensors": list(self.tensors),
            "terms": {name: list(terms) for name, terms in self.terms.items()},
            "floors": self.floors,
            "overflows": [each.record() for each in self.overflows],
            "decisions": list(map(saved_decision, self.decisions)),
            "alternatives": [[each.number, each.element, each.outer] for each in self.alternatives],
        }
        return record, chain(self.tensors.values(), (each.value for each in self.alternatives))

    def restore(self, record: Any, arrays: Iterator[Array]) -> None:
        """Restore the results."""
        self.tensors.update(zip(starmap(Port, record["tensors"]), arrays, strict=False))
        self.terms = {name: Terms(*terms) for name, terms in record["terms"].items()}
        self.floors = record["floors"]
        self.overflows = [Overflow(**each) for each in record["overflows"]]
        self.decisions = list(map(decision_of, record["decisions"]))
        others = zip(record["alternatives"], arrays, strict=False)
        self.alternatives = [
            Alternative(number, element, value, outer) for (number, element, outer), value in others
        ]

    def _limits(self, layer: Layer) -> list[float]:
        """Return the largest numbers of the output types of a layer."""
        numerics, types = self._case.numerics, self._case.plain.types
        is_half = [
            numerics.declared and types[port].element is ElementType.f16 for port in layer.output_ports
        ]
        most = LIMITS["f32"] if layer.id in numerics.wide else numerics.limit
        return [min(most, LIMITS["f16"]) if half else most for half in is_half]

    def _leading(self) -> set[int]:
        """Return the ids of layers between observed decisions and others before them, element by element, that were not observed."""
        case, graph, found = self._case, self._case.plain.graph, set[int]()
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
                    and layer.id not in found
                ):
                    found.add(layer.id)
                    waiting.append(layer.id)
        return found

    def _decide_otherwise(self, layer: Layer, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Note what a layer gives if decisions that were not observed, and that rounding leaves open, come out otherwise."""
        others = self._others_of(layer, inputs)
        found = np.array(outputs[0] if others is None else evaluate_layer(layer, others)[0])
        count = 0
        if layer.id in self._case.deciding and is_elementwise(layer):
            rounding = 8 * ROUNDING[self._case.numerics.precision]
            count, first = undecided(layer, inputs, outputs[0], rounding, outputs[0].size)
            for place, value in first:
                found.reshape(-1)[place] = value
        if count or others is not None:
            self._others[Port(layer.id, 0)] = found

    def _others_of(self, layer: Layer, inputs: Sequence[Array]) -> list[Array] | None:
        """Return the inputs of a layer if open decisions before it come out otherwise; ``None`` if none is open."""
        ports = self._case.plain.graph.reads(layer)
        if len(ports) != len(inputs) or not any(port in self._others for port in ports):
            return None
        pairs = zip(ports, inputs, strict=True)
        return [self._others.get(port, array).astype(array.dtype, copy=False) for port, array in pairs]

    def _judge_by_either(
        self, layer: Layer, inputs: Sequence[Array], taken: Array, output: Array, judged: Judged
    ) -> Judged:
        """Judge a decision again where other decisions in its unit, which were not observed, may have come out otherwise."""
        others = self._others_of(layer, inputs)
        if others is None or taken.shape != output.shape:
            return judged
        other = evaluate_layer(layer, others)[0]
        if other.shape != output.shape:
            return judged
        wide = taken.astype(np.float64)
        is_other = np.abs(wide - other.astype(np.float64)) < np.abs(wide - output.astype(np.float64))
        mixed = [
            np.where(is_other, *np.broadcast_arrays(b, a, is_other)[:2]) if a is not b else a
            for a, b in zip(inputs, others, strict=True)
        ]
        rounding = 8 * ROUNDING[self._case.numerics.precision]
        again = judge(layer, mixed, taken, np.where(is_other, other, output), rounding)
        return again._replace(differ=judged.differ)

    def _judge_decision(self, layer: Layer, inputs: Sequence[Array], output: Array) -> None:
        case, port = self._case, Port(layer.id, 0)
        if port not in case.tensors:
            return
        taken = case.tensors[port]
        judged = judge(layer, inputs, taken, output, 8 * ROUNDING[case.numerics.precision])
        if judged.unexplained:
            judged = self._judge_by_either(layer, inputs, taken, output, judged)
        self.decisions.append(
            DecisionResult(
                name=layer.name,
                operation=layer.operation,
                differ=judged.differ,
                unexplained=judged.unexplained,
                of=taken.size,
                levels=judged.levels,
                layers=_members(case, port),
            )
        )


def _members(case: Case, port: Port) -> tuple[str, ...]:
    return tuple(layer.name for layer in unit_of(case.plain.graph, port, case.tensors, case.computed))


def _equal(found: Array, rounded: Array, numerics: Numerics) -> float:
    """Return the fraction of equal elements in a precision; 1 if there are no elements."""
    if found.shape != rounded.shape:
        return 0.0
    # After the last product, a runtime may compute in f32.
    narrowed = (lambda numbers: numbers) if numerics.precision == "f32" else rounding_to(numerics.precision)
    with np.errstate(over="ignore"):
        equal = sum(
            int(np.count_nonzero(narrowed(ours) == theirs.astype(ours.dtype, copy=False)))
            for ours, theirs in blocks(found, rounded)
        )
    return equal / found.size if found.size else 1.0
