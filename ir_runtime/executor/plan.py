"""Execution plans: a sequence of steps over numbered slots."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from operator import length_hint
from typing import Any, NoReturn

import numpy as np

from .._util import deadline
from .._util.forks import SAFEPOINT, computing
from .._util.scoped import Scope, inside
from ..analysis.error_context import is_placed, with_context
from ..backends.core.replay import Instruction, Program, StepError
from ..backends.core.threads import set_most
from ..ir.element import ElementType
from ..ir.shape import PartialShape
from ..ir.tensor import Array, TensorType, check_lengths
from ..limits import DEFAULT, Limits, set_limits
from .base_buffers import base_buffer_of
from .context import RUN, Run, State
from .instructions import instructions_of
from .interpreter import ObserverError, interpret, located, watched
from .output_contract import OutputContract
from .replays import Programs
from .step import Observer, Patch, Slots, Step

__all__ = ["ExecutionPlan"]


def _settings(function: Callable[[], object]) -> tuple[tuple[ContextVar[Any], Any], ...]:
    """Return the context variables set by a function, with their values."""
    context = copy_context()
    before = dict(context.items())
    context.run(function)
    return tuple(
        (variable, value) for variable, value in context.items() if before.get(variable) is not value
    )


_IGNORING = _settings(partial(np.seterr, all="ignore"))
"""NumPy's settings for computing NaN and infinity without warnings. A run sets them in its own context;
`numpy.errstate`, which also restores them, would take a microsecond."""

_COMPUTING = (computing,)

CLOCKED = 8
"""Steps between two checks of the deadline."""


@dataclass(frozen=True, slots=True)
class ExecutionPlan:
    """Steps in order. A plan holds no activations, so any number of runs may share it."""

    steps: tuple[Step, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    slots: tuple[Array | None, ...]
    """The slots before a run: constants, and ``None`` for the rest."""
    around: tuple[Scope, ...] = (computing,)
    """Scopes around a run: forks wait for it, and backends set up their threads."""
    contracts: tuple[OutputContract, ...] = ()
    """The contracts of the outputs: their inferred types."""
    peak: int = 0
    """Peak memory of a run in bytes, as far as sizes are known when compiling."""
    interpreted: bool = False
    """Whether runs go step by step, through `interpreter`, even if nothing watches them: those of the reference."""
    instructions: tuple[Instruction, ...] = field(init=False, repr=False)
    """The instruction of each step; none where runs are interpreted."""
    base_buffers: frozenset[int] = field(init=False, repr=False)
    """The base buffers of the constants."""
    programs: Programs = field(init=False, repr=False, compare=False)
    """The executable programs of runs."""

    def __post_init__(self) -> None:
        steps = () if self.interpreted else self.steps
        object.__setattr__(self, "instructions", instructions_of(steps))
        constants = {slot: array for slot, array in enumerate(self.slots) if array is not None}
        object.__setattr__(self, "base_buffers", frozenset(map(base_buffer_of, constants.values())))
        programs = Programs(steps, self.instructions, self.inputs, self.outputs, frozenset(constants))
        object.__setattr__(self, "programs", programs)

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
            observers: called before and after every step.
            state: the variables. Assigned values stay in it until they are committed.
            limits: limits on memory, time and iterations.
            patch: changes results of steps.
            threads: the most threads to use; by default, chosen by backends.

        Raises:
            ExecutionError: if a layer fails on its data; it names the layer.
            LimitError: if it exceeds ``limits``; it names the layer.
        """
        is_plain = not observers and patch is None and not self.interpreted
        if threads is not None and is_plain and deadline.is_far(limits.seconds):
            direct = self.programs.direct(feeds, threads)
            if direct is not None and (replayed := inside(_COMPUTING, direct, feeds)) is not None:
                return replayed
        # A new context leaves the caller's variables unchanged, even after an interrupt.
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
        except ObserverError as caught:
            raise caught.reason from None

    def begin(
        self,
        feeds: Sequence[Array],
        observers: Sequence[Observer],
        state: State,
        limits: Limits,
        patch: Patch | None = None,
    ) -> Run:
        """Start a run, and set its limits in the current context."""
        ends = set_limits(limits)
        left = limits.memory - self.peak
        for feed in feeds:
            left -= feed.nbytes or _need_of_empty(feed, limits)
        run = Run(observers, state, limits, ends, left, [], patch)
        RUN.set(run)
        return run

    def fill_slots(self, feeds: Sequence[Array]) -> Slots:
        """Return the initial slots of a run with constants and inputs."""
        env: Slots = [*self.slots]
        for slot, array in zip(self.inputs, feeds, strict=True):
            env[slot] = array
        return env

    def execute(self, feeds: Sequence[Array], run: Run) -> list[Array]:
        """Execute the steps of a model, or of a body inside a run."""
        env = self.fill_slots(feeds)
        run.envs.append((env, self.slots))
        on_complete = None
        try:
            if run.observers or run.patch:
                interpret(self.steps, env, watched(run))
            elif self.interpreted:
                interpret(self.steps, env, located)
            else:
                on_complete = self._execute(env, run.ends)
        finally:
            run.envs.pop()
        outputs = [env[slot] for slot in self.outputs]
        for contract, array in zip(self.contracts, outputs, strict=False):
            if array.shape != contract.shape or array.dtype is not contract.dtype:
                contract.check(array)
        if on_complete is not None:
            on_complete()
        return outputs

    def _execute(self, env: Slots, ends: float) -> Callable[[], None] | None:
        """Run the instructions; on failure, look up the step. Return the function to call after the run."""
        clock, program = time.monotonic, self.programs.next(env)
        instructions = program.instructions
        remaining = iter(instructions)
        try:
            for start in range(0, len(instructions), CLOCKED):
                if clock() > ends:
                    raise deadline.deadline_error(self.steps[program.starts[start]].layer.where)
                if SAFEPOINT.forking is not None:
                    SAFEPOINT.halt()
                for instruction in islice(remaining, CLOCKED):
                    instruction(env)
        except Exception as reason:
            if is_placed(reason) or not instructions:
                raise
            self._place(env, program, max(len(instructions) - 1 - length_hint(remaining), 0), reason)
        return program.on_complete

    def _place(self, env: Slots, program: Program, index: int, reason: Exception) -> NoReturn:
        """Raise the exception of an instruction with its step."""
        number = program.starts[index]
        if isinstance(reason, StepError) and isinstance(reason.__cause__, Exception):
            number, reason = number + reason.number, reason.__cause__
            if is_placed(reason):
                raise reason
        step = self.steps[number]
        raise with_context(step, [env[slot] for slot in step.reads], reason) from reason


def _need_of_empty(feed: Array, limits: Limits) -> int:
    """Return 0, the bytes of an empty input, after checking its other lengths."""
    check_lengths(TensorType(ElementType.from_dtype(feed.dtype), PartialShape(feed.shape)), limits)
    return 0
