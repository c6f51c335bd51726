"""What a graph demands of the open lengths of its inputs, found by asking inference, again and again.

Nothing here knows any operation: inference with given lengths is the only question, so that what is
found holds for whatever the graph is made of. A constraint is claimed only if the lengths that fulfil it
are accepted and those about its boundary that do not are refused, each wherever the other lengths were
moved to. Where that fails, or the budget ends, it is said.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from ...cached import cached_property
from ...codes import Code
from ...diagnostics import Diagnostic, Diagnostics
from ...ir.graph import Graph, Port
from ...ir.tensor import TensorType, Value
from .checking import accepted, checked
from .constraint import Constraint, Constraints, Trial
from .dependent_dims import find_couplings
from .feasible_point import find_start
from .oracle import BudgetExceededError, Dim
from .probing import Probe
from .samples import Seen
from .symbols import label, names, role

__all__ = ["check_lengths", "find_constraints"]

# Questions and seconds for finding out whether any lengths fit at all, which mostly takes one.
_FEW, _SOON = 200, 0.5


def find_constraints(
    graph: Graph,
    known: Mapping[Port, Value],
    parameters: Mapping[int, TensorType],
    questions: int = 5000,
    seconds: float = 10.0,
) -> Constraints:
    """Find out which lengths a graph accepts.

    Args:
        graph: the layers; inference must have found no errors.
        known: what was inferred with the lengths open.
        parameters: the types of the Parameters, by id.
        questions: how often inference may be asked.
        seconds: how long it may take.
    """
    started = time.monotonic()
    probe = Probe(graph, known, parameters, questions, seconds)
    found = _Finder(probe).constraints()
    return replace(found, questions=probe.asked, seconds=time.monotonic() - started)


def check_lengths(
    graph: Graph, known: Mapping[Port, Value], parameters: Mapping[int, TensorType], report: Diagnostics
) -> None:
    """Report that no lengths at all fit a graph, where that can be proved with few questions."""
    if all(type.shape.is_static for type in parameters.values()):
        return
    finder = _Finder(Probe(graph, known, parameters, _FEW, _SOON))
    if finder.probe.dims and (error := finder.contradiction()) is not None:
        report.add(error)


@dataclass
class _Finder:
    probe: Probe
    undecided: list[str] = field(default_factory=list)

    @cached_property
    def roles(self) -> dict[Dim, str]:
        """What each open length is likely to be."""
        graph, types = self.probe.graph, self.probe.parameters
        return {d: role(graph[d.layer], types[d.layer].shape, d.axis) for d in self.probe.dims}

    @cached_property
    def inputs(self) -> dict[Dim, str]:
        """Each open length by input and axis."""
        return {d: f"{label(self.probe.graph[d.layer])}[{d.axis}]" for d in self.probe.dims}

    def contradiction(self) -> Diagnostic | None:
        """Why no lengths are accepted, if that is so."""
        try:
            start = find_start(self.probe, self.roles)
        except BudgetExceededError:
            return None
        return self._without_start(start.answer.refusal, start.impossible, {}).error

    def constraints(self) -> Constraints:
        """Everything, or as much as the budget allows."""
        self._say_what_has_no_rank()
        if not self.probe.dims:
            return self._result({})
        alone = names(self.probe.graph, self.roles, [(dim,) for dim in self.probe.dims])
        try:
            start = find_start(self.probe, self.roles)
        except BudgetExceededError:
            self.undecided.append("everything: the budget ended before lengths were found that are accepted")
            return self._result(alone)
        if not start.answer.accepted:
            return self._without_start(start.answer.refusal, start.impossible, alone)
        self.probe.settle(start.lengths)
        try:
            self.probe.lenient = True  # shapes tell what goes with what; numbers may be bounded by others
            couplings = find_couplings(self.probe, start.lengths)
            self.probe.lenient = False
        except BudgetExceededError:
            self.undecided.append("everything: the budget ended before it was found what goes with what")
            return self._result(alone)
        seen = Seen(self.probe, couplings, self.roles, self.inputs, self.undecided)
        return self._result(seen.symbols, found=checked(seen), points=accepted(seen))

    def _say_what_has_no_rank(self) -> None:
        for layer, type in self.probe.parameters.items():
            if type.shape.rank is None:
                name = label(self.probe.graph[layer])
                self.undecided.append(f"{name}: not even the number of its dimensions is known")

    def _without_start(
        self, refusal: Diagnostic | None, impossible: bool, symbols: Mapping[Dim, str]
    ) -> Constraints:
        why = "" if refusal is None else f"; layer {refusal.layer!r} refuses last: {refusal.message}"
        if impossible and refusal is not None:
            message = f"no input can satisfy the model: whatever its lengths are, a layer refuses them{why}"
            hint = "the layers contradict each other; compare what each of them demands of the input"
            error = Diagnostic(Code.UNSATISFIABLE, message, refusal.where, hint=hint)
            return self._result(symbols, error)
        count = self.probe.asked
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
