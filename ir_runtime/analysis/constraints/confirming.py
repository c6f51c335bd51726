"""Confirmation of constraints by running the model at accepted and at refused lengths."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from ..._util.deadline import check
from ...diagnostics import Severity
from ...errors import IRError, LimitError
from ...ir.graph import Graph, Port
from ...ir.tensor import Array, TensorType
from ..random_inputs import random_array
from .constraint import Constraint, Constraints, Dim, Trial
from .symbols import label

__all__ = ["Run", "confirm_by_running"]

Run: TypeAlias = Callable[[Sequence[Array]], object]
"""Runs a model on one array for each Parameter, in the order of the file, or raises `IRError`."""

# Maximum number of elements that a run may compute: to confirm a constraint, and at the larger of two accepted points.
LARGEST, LARGE = 1 << 28, 1 << 22

# Initial estimate of the seconds per element; runs of at most MIN_MEASURED elements do not correct it.
DEFAULT_RATE, MIN_MEASURED = 3e-8, 1 << 24

# Upper bound of the seconds to compile and run a layer once, apart from its arithmetic.
PER_LAYER = 5e-4

_NOT_RUN = "not run"
_TOO_LONG = "that takes too long here"


def confirm_by_running(
    constraints: Constraints,
    graph: Graph,
    parameters: Mapping[int, TensorType],
    compile: Callable[[], Run],
    seconds: float,
) -> Constraints:
    """Run the model to confirm constraints; return them with the results.

    Args:
        constraints: the constraints according to inference.
        graph: the graph of the model.
        parameters: the type of each Parameter, by layer id, with dynamic lengths, so that refused lengths reach the layers.
        compile: compiles the model; called only if there is something to run.
        seconds: the CPU time allowed for all runs together.
    """
    if not constraints.accepted:
        return constraints
    if PER_LAYER * sum(1 for _ in graph.everywhere()) > seconds:
        remark = f"{_NOT_RUN}: {_TOO_LONG}"
        return replace(
            constraints,
            found=tuple(replace(constraint, remark=remark) for constraint in constraints),
            undecided=(*constraints.undecided, f"whether it runs: {remark}"),
        )
    try:
        runs = _Runs(graph, parameters, compile(), seconds)
    except IRError as reason:
        check()
        return replace(
            constraints, found=tuple(replace(c, remark=f"not run: {reason.message}") for c in constraints)
        )
    undecided = (*constraints.undecided, *_run_accepted(runs, constraints))
    if runs.never:
        return replace(constraints, undecided=undecided)
    return replace(
        constraints,
        found=tuple(_confirm(runs, constraint, constraints) for constraint in constraints),
        undecided=undecided,
    )


def _run_accepted(runs: _Runs, constraints: Constraints) -> Iterator[str]:
    """Run the model at a small and a large feasible point, and yield failures; with variables, one failure at most."""
    first, *others = sorted(constraints.accepted, key=lambda trial: trial.size)
    if first_fails := runs.failure_of(first, constraints):
        yield f"whether it runs: {first_fails}" if runs.is_skipped(first_fails) else first_fails
    large = [trial for trial in others if trial.size <= LARGE][-1:]
    whys = [
        why for trial in large if (why := runs.failure_of(trial, constraints)) and not runs.is_skipped(why)
    ]
    if not (first_fails and runs.has_variables):
        yield from whys


def _confirm(runs: _Runs, constraint: Constraint, constraints: Constraints) -> Constraint:
    whys = [runs.failure_of(trial, constraints) for trial in constraint.trials]
    wrong = next((why for why in whys if why), "")
    decided = bool(whys) and not runs.is_skipped(wrong)
    if not wrong and constraint.reason is not None and constraint.reason.severity is Severity.WARNING:
        # layers with suspicious values may run, so no run can confirm the constraint
        return replace(constraint, remark=f"other lengths may run: {constraint.reason.message}")
    return replace(constraint, confirmed=not wrong if decided else None, remark=wrong)


@dataclass
class _Runs:
    """Runs of one compiled model, within a budget."""

    graph: Graph
    parameters: Mapping[int, TensorType]
    run: Run
    seconds: float
    _rate: float = DEFAULT_RATE
    """Largest measured seconds per element."""
    _least: float = 0.0
    """Seconds of the fastest run: small runs still process all weights."""
    _done: dict[tuple[tuple[Dim, int], ...], str] = field(default_factory=dict)

    def failure_of(self, trial: Trial, constraints: Constraints) -> str:
        """Return why a run failed or was skipped; empty if it agrees with inference."""
        key = tuple(sorted(trial.lengths.items()))
        if key not in self._done:
            self._done[key] = self._try(trial, _text(trial, constraints))
        return self._done[key]

    @property
    def never(self) -> bool:
        """Whether no run was possible."""
        return all(map(self.is_skipped, self._done.values()))

    @staticmethod
    def is_skipped(why: str) -> bool:
        """Return whether an explanation says that the model was not run."""
        return why.startswith(_NOT_RUN)

    def _try(self, trial: Trial, where: str) -> str:
        if trial.size > LARGEST or self._least + trial.size * self._rate > self.seconds:
            return f"not run with {where}: {_TOO_LONG}"
        try:
            arrays = self._arrays(trial.lengths)
        except IRError as reason:
            return f"not run with {where}: {reason.message}"
        started = time.process_time()
        failure = self._failure(arrays, where)
        took = time.process_time() - started
        self.seconds -= took
        self._least = min(self._least or took, took)
        if trial.size > MIN_MEASURED:
            self._rate = max(self._rate, took / trial.size)
        if self.is_skipped(failure):
            return failure
        if not trial.accepted:
            return "" if failure else f"inference refuses {where}, but it runs"
        if failure and self.has_variables:
            return f"which lengths run depends on the variables, too: with empty ones, {where} fails in {failure}"
        return f"inference accepts {where}, but running fails in {failure}" if failure else ""

    @property
    def has_variables(self) -> bool:
        """Whether the model has variables, so that results depend on earlier runs."""
        return bool(self.graph.of_type("ReadValue"))

    def _failure(self, arrays: Sequence[Array], where: str) -> str:
        """Return the layer that failed and, unless variables may be the reason, why; or the limit that ended the run."""
        try:
            self.run(arrays)
        except LimitError as reason:
            check()  # the caller's deadline may have passed, too
            return f"{_NOT_RUN} with {where}: {reason.message}"
        except IRError as reason:
            layer = f"layer {reason.where.layer!r}" if reason.where and reason.where.layer else "the model"
            return layer if self.has_variables else f"{layer}: {reason.message}"
        except MemoryError:
            return f"{_NOT_RUN} with {where}: not enough memory"
        return ""

    def _arrays(self, lengths: Mapping[Dim, int]) -> list[Array]:
        return [self._array(layer, type, lengths) for layer, type in self.parameters.items()]

    def _array(self, layer: int, type: TensorType, lengths: Mapping[Dim, int]) -> Array:
        if type.shape.rank is None:
            raise IRError(f"input {label(self.graph[layer])!r} has no rank")
        dims = enumerate(type.shape)
        shape = tuple(d.min if d.is_static else lengths[Dim(layer, axis)] for axis, d in dims)
        return random_array(self.graph, Port(layer, 0), type.element, shape)


def _text(trial: Trial, constraints: Constraints) -> str:
    """Return lengths as text: by symbol if all dims of each symbol have the same length, else by input and axis."""
    lengths_by_name = dict.fromkeys((constraints.symbols[dim], n) for dim, n in trial.lengths.items())
    single = len(dict(lengths_by_name)) == len(lengths_by_name)
    lengths = (
        lengths_by_name if single else ((constraints.inputs[dim], n) for dim, n in trial.lengths.items())
    )
    return ", ".join(f"{name} = {n}" for name, n in lengths)
