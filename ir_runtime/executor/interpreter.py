"""The interpreter: runs the steps of a plan one after another.

It serves the backend ``reference`` and all runs with observers or a patch; other runs use the faster `plan`. The
function that runs a step is passed in: `run_located` names the layer in errors, `watched_runner` adds observers and the patch.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from .._util import deadline
from .._util.forks import in_user_code
from ..analysis.error_context import is_placed, with_context
from ..ir.tensor import Array
from .context import Run
from .step import Patch, Slots, Step

__all__ = ["ObserverError", "RunStep", "interpret", "run_located", "watched_runner"]

RunStep: TypeAlias = Callable[[Step, Sequence[Array]], tuple[Array, ...]]
"""A function from a step and its inputs to its outputs."""


def interpret(steps: Iterable[Step], slots: Slots, run_step: RunStep) -> None:
    """Run steps in order; each reads its inputs from slots and stores its outputs there.

    Args:
        steps: the steps in topological order.
        slots: the slots of the run, initially with inputs and constants, finally with the outputs.
        run_step: runs one step: `Step.run`, or a wrapper of it.

    Raises:
        LimitError: if the deadline has passed.
    """
    for step in steps:
        deadline.check(step.layer.where)
        inputs = [slots[slot] for slot in step.reads]
        outputs = run_step(step, inputs)
        for slot, array in zip(step.writes, outputs, strict=True):
            slots[slot] = array
        for slot in step.frees:  # not read by any later step
            slots[slot] = None


class ObserverError(Exception):
    """Carries the exception of an observer or a patch past the code that names the layer.

    Args:
        reason: the exception.
    """

    def __init__(self, reason: Exception) -> None:
        super().__init__()
        self.reason = reason


def run_located(step: Step, inputs: Sequence[Array]) -> tuple[Array, ...]:
    """Run a step, and name its layer in any error.

    Raises:
        ExecutionError: if the step fails on its inputs.
        LimitError: if it exceeds a limit.
    """
    try:
        return step.run(inputs)
    except Exception as reason:
        if isinstance(reason, ObserverError) or is_placed(reason):
            raise
        raise with_context(step, inputs, reason) from reason


def watched_runner(run: Run) -> RunStep:
    """Return a function like `run_located` that also calls the observers of a run and applies its patch."""

    def run_step(step: Step, inputs: Sequence[Array]) -> tuple[Array, ...]:
        if step.is_hidden:
            return run_located(step, inputs)
        shown_inputs = step.shown_inputs(inputs)
        _notify(run, "before", step, shown_inputs)
        start = time.perf_counter()
        outputs = run_located(step, inputs)
        seconds = time.perf_counter() - start
        shown = step.shown_outputs(outputs)
        if run.patch is not None:
            patched = _apply_patch(run.patch, step, shown_inputs, shown)
            outputs, shown = step.patched(outputs, patched), patched
        _notify(run, "after", step, shown, seconds)
        return outputs

    return run_step


def _apply_patch(
    patch: Patch, step: Step, inputs: Sequence[Array], outputs: tuple[Array, ...]
) -> tuple[Array, ...]:
    try:
        with in_user_code():
            return patch(step, inputs, outputs)
    except Exception as reason:
        raise ObserverError(reason) from reason


def _notify(run: Run, event: str, *arguments: object) -> None:
    try:
        with in_user_code():
            for observer in run.observers:
                getattr(observer, event)(*arguments)
    except Exception as reason:
        raise ObserverError(reason) from reason
