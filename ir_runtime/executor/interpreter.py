"""The interpreter: runs the steps of a plan one after another.

It runs the backend ``reference`` and all watched runs. Deadlines, the layer in error messages, observers and
patches wrap the function that runs a step. Other runs use the faster `plan`.
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

__all__ = ["ObserverError", "RunStep", "interpret", "located", "watched"]

RunStep: TypeAlias = Callable[[Step, Sequence[Array]], tuple[Array, ...]]
"""A function from a step and its inputs to its outputs."""


def interpret(steps: Iterable[Step], slots: Slots, run_step: RunStep) -> None:
    """Run steps in order: each takes its inputs from slots and stores its outputs.

    Args:
        steps: in topological order.
        slots: an array for each slot; initially inputs and constants, finally outputs.
        run_step: computes a step: `Step.run`, or a function around it.

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


def located(step: Step, inputs: Sequence[Array]) -> tuple[Array, ...]:
    """Run a step; an error names its layer.

    Raises:
        ExecutionError: if it fails on its data.
        LimitError: if it exceeds a limit.
    """
    try:
        return step.run(inputs)
    except Exception as reason:
        if isinstance(reason, ObserverError) or is_placed(reason):
            raise
        raise with_context(step, inputs, reason) from reason


def watched(run: Run) -> RunStep:
    """Return `located` with the observers and the patch of a run around it."""

    def run_step(step: Step, inputs: Sequence[Array]) -> tuple[Array, ...]:
        if step.is_hidden:
            return located(step, inputs)
        seen = step.shown_inputs(inputs)
        _notify(run, "before", step, seen)
        start = time.perf_counter()
        outputs = located(step, inputs)
        seconds = time.perf_counter() - start
        shown = step.shown_outputs(outputs)
        if run.patch is not None:
            patched = _apply_patch(run.patch, step, seen, shown)
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


def _notify(run: Run, event: str, *what: object) -> None:
    try:
        with in_user_code():
            for observer in run.observers:
                getattr(observer, event)(*what)
    except Exception as reason:
        raise ObserverError(reason) from reason
