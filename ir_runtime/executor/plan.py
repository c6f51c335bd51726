"""Execution plans: a sequence of steps over numbered slots."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from operator import length_hint
from typing import Any

import numpy as np

from .. import deadline
from ..analysis.error_context import blame, is_placed
from ..backends.core.threads import set_most
from ..forks import SAFEPOINT, computing, in_user_code
from ..ir.tensor import Array
from ..limits import DEFAULT, Limits, set_limits
from ..scoped import Scope, inside
from .base_buffers import root_of
from .context import RUN, Run, State
from .instructions import Move, Slots, moves_of
from .output_contract import OutputContract
from .step import Observer, Patch, Step

__all__ = ["ExecutionPlan"]


def _settings(function: Callable[[], object]) -> tuple[tuple[ContextVar[Any], Any], ...]:
    """Return the context variables that a function sets, with their values."""
    context = copy_context()
    before = dict(context.items())
    context.run(function)
    return tuple(
        (variable, value) for variable, value in context.items() if before.get(variable) is not value
    )


_IGNORING = _settings(partial(np.seterr, all="ignore"))
"""What lets NumPy compute NaN and infinity without warnings. A run sets it in its own context, where
`numpy.errstate`, which also restores it, would take a microsecond."""

# This many steps run between two looks at the clock.
CLOCKED = 8


@dataclass(frozen=True, slots=True)
class ExecutionPlan:
    """Steps in order. A plan holds no activations, so any number of runs may share it.

    Nine fields: the last two are computed from the others, once, for the run loop.
    """

    steps: tuple[Step, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    slots: tuple[Array | None, ...]
    """Constants in place, the rest empty."""
    around: tuple[Scope, ...] = (computing,)
    """What a run needs around it: that a fork waits for it, and what the backends want."""
    contracts: tuple[OutputContract, ...] = ()
    """What was inferred about the outputs."""
    peak: int = 0
    """Bytes that a run needs at once, as far as they are known when compiling."""
    moves: tuple[Move, ...] = field(init=False, repr=False)
    """What the steps do to the slots."""
    roots: frozenset[int] = field(init=False, repr=False)
    """The memory of the constants, as `root_of` has it."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "moves", moves_of(self.steps))
        constants = (array for array in self.slots if array is not None)
        object.__setattr__(self, "roots", frozenset(map(root_of, constants)))

    def run(
        self,
        feeds: Sequence[Array],
        observers: Sequence[Observer] = (),
        state: State | None = None,
        limits: Limits = DEFAULT,
        patch: Patch | None = None,
        threads: int | None = None,
    ) -> list[Array]:
        """Run every step on arrays for the inputs; return arrays for the outputs.

        Args:
            feeds: an array for each input.
            observers: told of every step.
            state: the variables. What is assigned waits in it to be committed.
            limits: bounds on memory, time and iterations.
            patch: changes results of steps.
            threads: how many threads it may use; by default as many as its backends like.

        Raises:
            ExecutionError: if a layer fails on its data; it names the layer.
            LimitError: if it asks for more than ``limits`` allow; it names the layer.
        """
        # In a new context, no variable of the caller's is changed, wherever an interrupt comes.
        return copy_context().run(self._run, feeds, observers, state or State(), limits, patch, threads)

    def _run(
        self,
        feeds: Sequence[Array],
        observers: Sequence[Observer],
        state: State,
        limits: Limits,
        patch: Patch | None,
        threads: int | None,
    ) -> list[Array]:
        for variable, value in _IGNORING:
            variable.set(value)
        if threads is not None:
            set_most(threads)
        run = self.begin(feeds, observers, state, limits, patch)
        try:
            return inside(self.around, self.execute, feeds, run)
        except _ObserverError as caught:
            raise caught.reason from None

    def begin(
        self,
        feeds: Sequence[Array],
        observers: Sequence[Observer],
        state: State,
        limits: Limits,
        patch: Patch | None = None,
    ) -> Run:
        """Begin a run in the current context, on which its limits are imposed."""
        ends = set_limits(limits)
        left = limits.memory - self.peak
        for feed in feeds:
            left -= feed.nbytes
        run = Run(observers, state, limits, ends, left, [], patch)
        RUN.set(run)
        return run

    def filled(self, feeds: Sequence[Array]) -> Slots:
        """Return the slots with which a run begins: constants and inputs are in place."""
        env: Slots = [*self.slots]
        for slot, array in zip(self.inputs, feeds, strict=True):
            env[slot] = array
        return env

    def execute(self, feeds: Sequence[Array], run: Run) -> list[Array]:
        """The steps themselves, of a model or of a body inside a run."""
        env = self.filled(feeds)
        run.envs.append((env, self.slots))
        try:
            if run.observers or run.patch:
                self._watch(env, run)
            else:
                self._advance(env, run.ends)
        finally:
            run.envs.pop()
        outputs = [env[slot] for slot in self.outputs]
        for contract, array in zip(self.contracts, outputs, strict=False):
            if array.shape != contract.shape or array.dtype is not contract.dtype:
                contract.check(array)
        return outputs

    def _advance(self, env: Slots, ends: float) -> None:
        """The run loop. It calls functions of the slots only; steps are looked at where one fails."""
        clock, moves = time.monotonic, self.moves
        going = iter(moves)
        try:
            for start in range(0, len(moves), CLOCKED):
                if clock() > ends:
                    raise deadline.deadline_error(self.steps[start].layer.where)
                if SAFEPOINT.forking is not None:
                    SAFEPOINT.halt()
                for move in islice(going, CLOCKED):
                    move(env)
        except Exception as reason:
            if is_placed(reason) or not moves:
                raise
            step = self.steps[max(len(moves) - 1 - length_hint(going), 0)]
            raise blame(step, [env[slot] for slot in step.reads], reason) from reason

    def _watch(self, env: Slots, run: Run) -> None:
        """The run loop of a run with observers."""
        for step in self.steps:
            deadline.check(step.layer.where)
            args = [env[slot] for slot in step.reads]
            try:
                results = _watched(step, args, run)
            except Exception as reason:
                if isinstance(reason, _ObserverError) or is_placed(reason):
                    raise
                raise blame(step, args, reason) from reason
            step.store(env, results)


class _ObserverError(Exception):
    """Carries an observer's own exception past the handler that blames the layer."""

    def __init__(self, reason: Exception) -> None:
        super().__init__()
        self.reason = reason


def _watched(step: Step, args: Sequence[Array], run: Run) -> tuple[Array, ...]:
    _tell(run.observers, "before", step, args)
    start = time.perf_counter()
    results = step.run(args)
    seconds = time.perf_counter() - start
    if run.patch is not None:
        results = _patched(run.patch, step, args, results)
    _tell(run.observers, "after", step, results, seconds)
    return results


def _patched(
    patch: Patch, step: Step, args: Sequence[Array], results: tuple[Array, ...]
) -> tuple[Array, ...]:
    try:
        with in_user_code():
            return patch(step, args, results)
    except Exception as reason:
        raise _ObserverError(reason) from reason


def _tell(observers: Sequence[Observer], event: str, *what: object) -> None:
    try:
        with in_user_code():
            for observer in observers:
                getattr(observer, event)(*what)
    except Exception as reason:
        raise _ObserverError(reason) from reason
