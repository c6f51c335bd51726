"""Judge each layer by what it makes of the side's own tensors, so that errors that it inherits do not count."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..ir.graph import Layer, Port
from ..ir.tensor import Array
from .case import Case
from .decisions import explained_decisions, is_elementwise, jumps, pinned
from .inside import Alternative, InsideDecisions
from .precision import ROUNDING, emulated
from .progress import stage
from .reference import chained
from .results import DecisionResult, UnitResult
from .spilling import tensors as stored
from .tensors import is_float, name_of, unit_of
from .terms import Terms, terms_of
from .verdict import Error, error_of, excess, scatter_of, with_accumulation

__all__ = ["LocalErrors"]


class LocalErrors:
    """The errors that each layer adds.

    Args:
        case: what is judged.
        chosen: what is decided inside bodies instead of what the reference decides, by number.
    """

    def __init__(self, case: Case, chosen: Mapping[int, tuple[Array, ...]]) -> None:
        self._case = case
        self.inside = InsideDecisions(case.plain.graph, case.plain.types, chosen)
        """The decisions inside bodies."""
        self.alternatives: list[Alternative] = []
        """What rounding leaves open of them."""
        self.exact = stored()
        """What f64 makes of the side's tensors."""
        self._rounded = stored()
        """What the reference, in the precision of the side, makes of them."""
        self._terms: dict[str, Terms] = {}
        """How many numbers each layer adds for an element."""
        self.decisions: list[DecisionResult] = []
        """The observed layers that decide, and those inside bodies."""

    def run(self) -> None:
        """Compute every layer from the side's own tensors, in the side's precision and in f64."""
        case, own = self._case, stored()

        def exchange(layer: Layer, _: Sequence[Array], outputs: tuple[Array, ...]) -> tuple[Array, ...]:
            for port, array in zip(layer.output_ports, outputs, strict=False):
                if port in case.tensors:
                    self._rounded[port] = array
                elif layer.id in case.deciding:
                    own[port] = array
            return case.observed(layer, outputs)

        with stage(0, 0.5):
            change = chained(emulated(case.precision, case.tensors), exchange)
            case.plain.run(case.feeds, change, self.inside.record)
        take = pinned(own)

        def judge(layer: Layer, inputs: Sequence[Array], outputs: tuple[Array, ...]) -> tuple[Array, ...]:
            self._terms[layer.name] = terms_of(layer, inputs, outputs[0])
            if layer.id in case.deciding:
                self._judge_decision(layer, inputs, outputs[0])
                outputs = take(layer, inputs, outputs)
            for port, array in zip(layer.output_ports, outputs, strict=False):
                if port in case.tensors:
                    self.exact[port] = array
            return case.observed(layer, outputs)

        with stage(0.5, 1):
            judged = self.inside.judge(case.precision)
            case.wide.run(case.feeds, chained(case.rounding, judge), self.inside.replay(judged))
        self.decisions += judged.decisions
        self.alternatives = judged.alternatives

    def _judge_decision(self, layer: Layer, inputs: Sequence[Array], output: Array) -> None:
        case, port = self._case, Port(layer.id, 0)
        if port not in case.tensors:
            return
        taken = case.tensors[port]
        judged = _judged(layer, inputs, taken, output, 8 * ROUNDING[case.precision])
        self.decisions.append(
            DecisionResult(
                name=layer.name,
                operation=layer.operation,
                differ=judged.differ,
                unexplained=judged.unexplained,
                of=taken.size,
                levels=judged.levels,
                layers=self._members(port),
            )
        )

    def _members(self, port: Port) -> tuple[str, ...]:
        case = self._case
        return tuple(layer.name for layer in unit_of(case.plain.graph, port, case.tensors, case.computed))

    def units(self, inherited: Mapping[Port, float]) -> list[UnitResult]:
        """Return the observed tensors that are numbers, in topological order.

        Args:
            inherited: the relative errors that the inputs of layers bring.
        """
        case = self._case
        return [
            self._unit(layer, port, inherited.get(port, 0.0))
            for layer in case.layers
            if layer.id not in case.deciding
            for port in layer.output_ports
            if is_float(case.plain.types, port) and port in self.exact and port in self._rounded
        ]

    def _unit(self, layer: Layer, port: Port, inherited: float) -> UnitResult:
        found, exact, rounded = self._case.tensors[port], self.exact[port], self._rounded[port]
        error, members = error_of(found, exact), self._members(port)
        terms = max(self._terms.get(member, Terms()) for member in members)
        unit = ROUNDING["f32"]  # sums are added in f32, whatever is multiplied
        scatter: Error = with_accumulation(scatter_of([error_of(rounded, exact)]), unit, terms)
        return UnitResult(
            name=name_of(self._case.plain.graph, port),
            operation=layer.operation,
            layers=members,
            excess=excess(error, scatter),
            relative=error.relative,
            inherited=inherited,
            equal=_equal(found, rounded),
        )


def _equal(found: Array, rounded: Array) -> float:
    """Return which part of the elements is equal; all of them where there are none."""
    if found.shape != rounded.shape:
        return 0.0
    return float((found == rounded.astype(found.dtype)).mean()) if found.size else 1.0


@dataclass(frozen=True)
class _Judged:
    """How many elements are decided otherwise; how many of these rounding does not explain, and by how many levels."""

    differ: int
    unexplained: int | None
    levels: float | None = None


def _judged(layer: Layer, inputs: Sequence[Array], taken: Array, output: Array, rounding: float) -> _Judged:
    if taken.shape != output.shape:
        differ = max(taken.size, output.size)
        return _Judged(differ, differ)
    off = jumps(layer, inputs, taken, output, rounding)
    differ = int((off != 0).sum())
    if not is_elementwise(layer):
        return _Judged(differ, None if differ else 0)
    wrong = (off != 0) & ~explained_decisions(layer, inputs, taken, rounding)
    by_levels = layer.type == "FakeQuantize" and wrong.any()
    return _Judged(differ, int(wrong.sum()), float(off[wrong].max()) if by_levels else None)
