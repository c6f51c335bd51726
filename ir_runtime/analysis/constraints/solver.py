"""Find constraints on the dynamic lengths of a graph's inputs, with inference as an oracle.

The solver does not depend on operations: it only queries whether inference accepts given lengths. A
constraint is reported only if lengths that satisfy it are accepted and lengths that violate it near its
boundary are refused, at every sample point. Otherwise, or if the budget runs out, the result says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from ..._util.forks import cached_property
from ...codes import Code
from ...diagnostics import Diagnostic, Diagnostics
from ...ir.graph import Graph, Port
from ...ir.tensor import TensorType, Value
from .checking import accepted, check_candidates
from .constraint import Constraint, Constraints, Trial
from .dependent_dims import find_dependent_dims
from .dynamic_layers import DynamicLayers
from .feasible_point import find_feasible_point
from .oracle import BudgetExceededError, Dim
from .probing import Budget, Probe
from .samples import Samples
from .symbols import label, names, role

__all__ = ["check_lengths", "find_constraints"]

# Budget to decide whether any lengths are feasible, which mostly takes one query.
_MAX_QUESTIONS, _MAX_EVALUATIONS = 200, 5000


def find_constraints(
    graph: Graph,
    values: Mapping[Port, Value],
    parameters: Mapping[int, TensorType],
    budget: Budget | None = None,
) -> Constraints:
    """Find the constraints on the dynamic lengths of a graph's inputs.

    Args:
        graph: the layers; inference must have found no errors.
        values: the values inferred with dynamic lengths.
        parameters: the types of the Parameters, by id.
        budget: how much inference may be used; open questions are listed in ``undecided``.
    """
    probe = Probe(DynamicLayers(graph, values, parameters), budget or Budget())
    constraints = _Finder(probe).constraints()
    return replace(constraints, questions=probe.budget.asked)


def check_lengths(
    graph: Graph, values: Mapping[Port, Value], parameters: Mapping[int, TensorType], report: Diagnostics
) -> None:
    """Report that no lengths are feasible, if a few queries can prove it."""
    if all(type.shape.is_static for type in parameters.values()):
        return
    finder = _Finder(
        Probe(DynamicLayers(graph, values, parameters), Budget(_MAX_QUESTIONS, _MAX_EVALUATIONS))
    )
    if finder.probe.dims and (error := finder.contradiction()) is not None:
        report.add(error)


@dataclass
class _Finder:
    probe: Probe
    undecided: list[str] = field(default_factory=list)

    @cached_property
    def roles(self) -> dict[Dim, str]:
        """The likely meaning of each dynamic dim."""
        graph, types = self.probe.graph, self.probe.layers.parameters
        return {d: role(graph[d.layer], types[d.layer].shape, d.axis) for d in self.probe.dims}

    @cached_property
    def inputs(self) -> dict[Dim, str]:
        """Each dynamic dim by input and axis."""
        return {d: f"{label(self.probe.graph[d.layer])}[{d.axis}]" for d in self.probe.dims}

    def contradiction(self) -> Diagnostic | None:
        """Return why no lengths are feasible, if that is proved."""
        try:
            start = find_feasible_point(self.probe, self.roles)
        except BudgetExceededError:
            return None
        return self._no_feasible_point(start.answer.refusal, start.infeasible, {}).error

    def constraints(self) -> Constraints:
        """Return all constraints that can be found within the budget."""
        self._report_unknown_ranks()
        if not self.probe.dims:
            return self._result({})
        alone = names(self.probe.graph, self.roles, [(dim,) for dim in self.probe.dims])
        try:
            start = find_feasible_point(self.probe, self.roles)
        except BudgetExceededError:
            self.undecided.append("all lengths: the search ended before it found any that the model accepts")
            return self._result(alone)
        if not start.answer.accepted:
            return self._no_feasible_point(start.answer.refusal, start.infeasible, alone)
        self.probe.set_reference(start.lengths)
        try:
            self.probe.lenient = (
                True  # dims depend on each other by their shapes; values may be bounded by other dims
            )
            dependent_dims = find_dependent_dims(self.probe, start.lengths, self.roles)
            self.probe.lenient = False
        except BudgetExceededError:
            self.undecided.append(
                "all lengths: the search ended before it found which of them depend on each other"
            )
            return self._result(alone)
        samples = Samples(self.probe, dependent_dims, self.roles, self.inputs, self.undecided)
        return self._result(samples.symbols, found=check_candidates(samples), points=accepted(samples))

    def _report_unknown_ranks(self) -> None:
        for layer, type in self.probe.layers.parameters.items():
            if type.shape.rank is None:
                name = label(self.probe.graph[layer])
                self.undecided.append(f"{name}: not even the number of its dimensions is known")

    def _no_feasible_point(
        self, refusal: Diagnostic | None, infeasible: bool, symbols: Mapping[Dim, str]
    ) -> Constraints:
        why = "" if refusal is None else f"; layer {refusal.layer!r} refuses last: {refusal.message}"
        if infeasible and refusal is not None:
            message = f"no input can satisfy the model: whatever its lengths are, a layer refuses them{why}"
            hint = "the layers contradict each other; compare what each of them demands of the input"
            error = Diagnostic(Code.UNSATISFIABLE, message, refusal.where, hint=hint)
            return self._result(symbols, error)
        count = self.probe.budget.asked
        self.undecided.append(f"everything: none of {count} combinations of lengths was accepted{why}")
        return self._result(symbols)

    def _result(
        self,
        symbols: Mapping[Dim, str],
        error: Diagnostic | None = None,
        found: Sequence[Constraint] = (),
        points: Sequence[Trial] = (),
    ) -> Constraints:
        undecided = tuple(dict.fromkeys(self.undecided))
        return Constraints(tuple(found), symbols, self.inputs, undecided, error, tuple(points))
