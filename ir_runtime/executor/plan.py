"""Execution plans: a sequence of steps over numbered slots."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from operator import length_hint
from typing import Any, NoReturn, TypeAlias

import numpy as np
from numpy import ndarray

from .._util import deadline
from .._util.forks import SAFEPOINT, computing
from .._util.scoped import Scope, inside
from ..analysis.error_context import is_placed, with_context
from ..backends import Compute
from ..backends.core.replay import Direct, Instruction, Program, Replayer, Slots, StepError, run_steps
from ..backends.core.threads import set_most
from ..ir.element import ElementType
from ..ir.shape import PartialShape
from ..ir.tensor import Array, TensorType, check_lengths
from ..limits import DEFAULT, Limits, set_limits
from .context import RUN, Run, State
from .interpreter import ObserverError, interpret, run_located, watched_runner
from .step import Observer, OutputContract, Patch, Step, as_array, as_outputs, base_buffer_of

__all__ = ["ExecutionPlan", "Programs", "instructions_of"]


def _settings(function: Callable[[], object]) -> tuple[tuple[ContextVar[Any], Any], ...]:
    """Return the context variables set by a function, with their values."""
    context = copy_context()
    before = dict(context.items())
    context.run(function)
    return tuple(
        (variable, value) for variable, value in context.items() if before.get(variable) is not value
    )


_IGNORE_FP_ERRORS = _settings(partial(np.seterr, all="ignore"))
"""NumPy's settings for computing NaN and infinity without warnings. A run sets them in its own context:
`numpy.errstate`, which also restores them, would cost a microsecond."""

_COMPUTING = (computing,)

CLOCKED = 8
"""Steps between two checks of the deadline."""


@dataclass(frozen=True, slots=True)
class ExecutionPlan:
    """A sequence of steps over numbered slots. It holds no activations, so concurrent runs may share it."""

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
    """Peak memory of a run in bytes; lengths unknown at compile time count as their minimum."""
    interpreted: bool = False
    """Whether all runs use the `interpreter`, as those of the reference do, and not only runs with observers or a patch."""
    instructions: tuple[Instruction, ...] = field(init=False, repr=False)
    """The instruction of each step; empty if runs are interpreted."""
    base_buffers: frozenset[int] = field(init=False, repr=False)
    """The base buffers of the constants, as `base_buffer_of` identifies them."""
    programs: Programs = field(init=False, repr=False, compare=False)
    """The programs that runs execute unless they are interpreted."""

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
        """Run all steps, and return an array for each output.

        Args:
            feeds: an array for each input.
            observers: called before and after every step.
            state: the variables. Assigned values are pending until `State.commit`.
            limits: limits on memory, time and iterations.
            patch: changes the results of steps.
            threads: the maximum number of threads; by default, backends choose it.

        Raises:
            ExecutionError: if a layer fails on its inputs; it names the layer.
            LimitError: if the run exceeds ``limits``; it names the layer.
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
        for variable, value in _IGNORE_FP_ERRORS:
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
        """Return the initial slots of a run: constants and inputs, the others empty."""
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
                interpret(self.steps, env, watched_runner(run))
            elif self.interpreted:
                interpret(self.steps, env, run_located)
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
        """Run the instructions of a program; return the function to call after the run, or ``None``.

        Args:
            env: the slots of the run, with inputs and constants.
            ends: the deadline, on the clock of `time.monotonic`.
        """
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
            self._raise_located(env, program, max(len(instructions) - 1 - length_hint(remaining), 0), reason)
        return program.on_complete

    def _raise_located(self, env: Slots, program: Program, index: int, reason: Exception) -> NoReturn:
        """Raise ``reason``, the exception of instruction ``index``, again, naming the layer of the step that failed."""
        number = program.starts[index]
        if isinstance(reason, StepError) and isinstance(reason.__cause__, Exception):
            number, reason = number + reason.number, reason.__cause__
            if is_placed(reason):
                raise reason
        step = self.steps[number]
        raise with_context(step, [env[slot] for slot in step.reads], reason) from reason


def _need_of_empty(feed: Array, limits: Limits) -> int:
    """Return 0, the bytes of an empty input, after checking its other lengths against the limits."""
    check_lengths(TensorType(ElementType.from_dtype(feed.dtype), PartialShape(feed.shape)), limits)
    return 0


# Recording takes as long as some ten runs. The first FEW shapes are recorded on their second run, further ones only after
# OFTEN runs, as caches that grow with each token have many shapes. KEPT_STEPS limits the steps in all recordings of a plan,
# of some 2 KiB each, and REMEMBERED the shapes whose runs are counted.
FEW, OFTEN, KEPT_STEPS, REMEMBERED = 16, 16, 1 << 14, 1024
_VIEWS = {"Reshape", "Squeeze", "Transpose", "Unsqueeze"}


@dataclass(frozen=True, slots=True, eq=False)
class Programs:
    """The programs of a plan, by input shapes: the first shapes are recorded in their second run, and replayed by later ones.

    Once there are `FEW` recordings, shapes are recorded only if they recur more often.

    Args:
        steps: the steps of the plan.
        instructions: the instruction of each step.
        inputs: the slots of the inputs.
        outputs: the slots of the outputs.
        constants: the slots of the constants.
    """

    steps: Sequence[Step]
    instructions: tuple[Instruction, ...]
    inputs: Sequence[int]
    outputs: Sequence[int]
    constants: Collection[int]
    plain: Program = field(init=False)
    """One instruction for each step."""
    replayer: Replayer | None = field(init=False)
    """Records runs; ``None`` if replaying would not be faster."""
    recorded: dict[Hashable, Program] = field(default_factory=dict)
    run_counts: dict[Hashable, int] = field(default_factory=dict)
    """The number of runs on shapes that are not recorded."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "plain", Program(self.instructions, range(len(self.steps))))
        replays = [step.kernel.replay for step in self.steps if step.kernel.replay is not None]
        worth = len(replays) > 1 or any(replay.alone for replay in replays)
        worth = worth or len(replays) == len(self.steps) == 1  # one replay is then the whole run
        object.__setattr__(self, "replayer", replays[0].replayer if worth else None)

    def next(self, env: Slots) -> Program:
        """Return the program for a run whose slots hold inputs and constants."""
        if (replayer := self.replayer) is None:
            return self.plain
        key = (replayer.key(), *[env[slot].shape for slot in self.inputs])
        return self.recorded.get(key) or self._count_run(replayer, key)

    def direct(self, feeds: Sequence[Array], threads: int) -> Direct | None:
        """Return the recorded function that computes a whole run on these inputs with ``threads`` threads, or ``None`` without one."""
        if not self.recorded or (replayer := self.replayer) is None:
            return None
        program = self.recorded.get((replayer.key(threads), *[feed.shape for feed in feeds]))
        return None if program is None else program.direct

    def _count_run(self, replayer: Replayer, key: Hashable) -> Program:
        """Count a run on shapes that are not recorded; return a program that records it if they recur, else the plain one."""
        runs = self.run_counts.get(key, 0)
        if runs >= (1 if len(self.recorded) < FEW else OFTEN):
            return self._record(replayer, key)
        if len(self.run_counts) >= REMEMBERED:
            self.run_counts.clear()
        self.run_counts[key] = runs + 1
        return self.plain

    def _content_slots(self, replayer: Replayer, step: Step) -> Collection[int] | None:
        """Return the slots whose contents a replayed step depends on; ``None`` if it cannot be replayed."""
        kernel, replay = step.kernel, step.kernel.replay
        if replay is not None and replay.replayer is replayer:
            return [step.reads[index] for index in replay.contents if index < len(step.reads)]
        if kernel.has_host_calls or kernel.view:
            return ()
        is_view = not step.also and step.layer.type in _VIEWS
        return step.reads[1:] if is_view else None

    def _record(self, replayer: Replayer, key: Hashable) -> Program:
        """Return a program that runs the steps and records them."""
        numbers = range(len(self.steps))
        replayed = {
            i: contents
            for i in numbers
            if (contents := self._content_slots(replayer, self.steps[i])) is not None
        }
        of_shapes = {i for i in numbers if self.steps[i].kernel.of_shapes}
        recorder = replayer.recorder(self.steps, self.instructions, replayed, of_shapes, self.constants)
        memory = [0.0] * len(self.steps)

        def keep() -> None:
            if len(self.recorded) >= max(FEW, KEPT_STEPS // len(self.steps)):
                oldest, *_ = self.recorded
                self.recorded.pop(oldest, None)
            self.run_counts.pop(key, None)
            program = recorder.program(self.inputs, self.outputs)
            ends = [*program.starts[1:], len(memory)]
            parts = zip(program.instructions, program.starts, ends, strict=True)
            instructions = (
                self._limit_memory(instruction, start, memory[start:end]) for instruction, start, end in parts
            )
            direct = None if any(memory) else program.direct  # a direct run reserves no memory
            self.recorded[key] = Program(tuple(instructions), program.starts, direct=direct)

        instructions = (_measure_memory(recorder.instruction(index), memory, index) for index in numbers)
        return Program(tuple(instructions), self.plain.starts, keep)

    def _limit_memory(self, instruction: Instruction, start: int, memory: Sequence[float]) -> Instruction:
        """Return a recorded instruction that also reserves the memory that its steps reserved when recorded.

        If that exceeds what is left, or a step came near the limit when recorded, the steps run unrecorded.

        Args:
            instruction: the recorded instruction.
            start: the index of its first step.
            memory: the bytes that each of its steps reserved.
        """
        plain, total = self.instructions[start : start + len(memory)], sum(memory)
        if len(memory) == 1 and instruction is plain[0]:
            return instruction
        if min(memory) < 0:  # the recorded run came near its limit, and live memory was counted again
            return plain[0] if len(memory) == 1 else lambda slots: run_steps(plain, slots)
        if not total:
            return instruction

        def run_limited(slots: Slots) -> None:
            if (run := RUN.get(None)) is not None and total > run.left:
                run_steps(plain, slots)
                return
            if run is not None:
                run.left -= total
            instruction(slots)

        return run_limited


def _measure_memory(instruction: Instruction, memory: list[float], index: int) -> Instruction:
    """Return an instruction that also stores the bytes that it reserved in ``memory[index]``."""

    def run_measured(slots: Slots) -> None:
        run = RUN.get(None)
        before = 0.0 if run is None else run.left
        instruction(slots)
        memory[index] = 0.0 if run is None else before - run.left

    return run_measured


_Indices: TypeAlias = tuple[int, ...]


def instructions_of(steps: Iterable[Step]) -> tuple[Instruction, ...]:
    """Return the instruction of each step; steps with equal kernels and slots share one."""
    shared: dict[tuple[int, _Indices, _Indices, _Indices], Instruction] = {}
    instructions = []
    for step in steps:
        reads, writes, frees = _access(step)
        key = (id(step.kernel.run), reads, writes, frees)
        if key not in shared:
            shared[key] = _instruction(step.kernel.run, reads, writes, frees)
        instructions.append(shared[key])
    return tuple(instructions)


def _access(step: Step) -> tuple[_Indices, _Indices, _Indices]:
    """Return the slots that the kernel of a step reads, writes and frees, without inputs and outputs that it does not use."""
    kernel, reads, writes, frees = step.kernel, step.reads, step.writes, step.frees
    if kernel.operands is not None:
        reads = tuple(reads[place] for place in kernel.operands)
    if kernel.only is None:
        return reads, writes, frees
    unread = {*writes} - {(out := writes[kernel.only[0]]), *step.reads}
    return reads, (out,), tuple(slot for slot in frees if slot not in unread)


def _instruction(run: Compute, reads: _Indices, writes: _Indices, frees: _Indices) -> Instruction:
    if len(writes) == 1 and len(reads) in _BY_ARITY:
        if len(reads) == 1 and not frees:
            return _unary_in_place(run, *reads, *writes)
        return _BY_ARITY[len(reads)](run, *reads, *writes, frees)
    if len(writes) > 1 and len(reads) == 1:
        return _unary_many_outputs(run, *reads, writes, frees)
    return _any_arity(run, reads, writes, frees)


def _unary_in_place(run: Compute, a: int, out: int) -> Instruction:
    """Return an instruction with one input, whose slot may be reused, and no slots to free: the most common kind."""

    def instruction(slots: Slots) -> None:
        result = run(slots[a])
        slots[out] = result if result.__class__ is ndarray else _only(result)

    return instruction


def _unary(run: Compute, a: int, out: int, frees: _Indices) -> Instruction:
    def instruction(slots: Slots) -> None:
        result = run(slots[a])
        slots[out] = result if result.__class__ is ndarray else _only(result)
        for slot in frees:
            slots[slot] = None

    return instruction


def _binary(run: Compute, a: int, b: int, out: int, frees: _Indices) -> Instruction:
    def instruction(slots: Slots) -> None:
        result = run(slots[a], slots[b])
        slots[out] = result if result.__class__ is ndarray else _only(result)
        for slot in frees:
            slots[slot] = None

    return instruction


def _ternary(run: Compute, a: int, b: int, c: int, out: int, frees: _Indices) -> Instruction:
    def instruction(slots: Slots) -> None:
        result = run(slots[a], slots[b], slots[c])
        slots[out] = result if result.__class__ is ndarray else _only(result)
        for slot in frees:
            slots[slot] = None

    return instruction


def _unary_many_outputs(run: Compute, a: int, writes: _Indices, frees: _Indices) -> Instruction:
    """Return an instruction with one input and several outputs."""

    def instruction(slots: Slots) -> None:
        for slot, array in _pairs(writes, run(slots[a])):
            slots[slot] = array
        for slot in frees:
            slots[slot] = None

    return instruction


def _any_arity(run: Compute, reads: _Indices, writes: _Indices, frees: _Indices) -> Instruction:
    def instruction(slots: Slots) -> None:
        for slot, array in _pairs(writes, run(*[slots[slot] for slot in reads])):
            slots[slot] = array
        for slot in frees:
            slots[slot] = None

    return instruction


def _only(result: Any) -> Any:
    """Return the first result of a kernel as an array."""
    return as_array(result[0] if isinstance(result, tuple) else result)


def _pairs(writes: _Indices, results: Any) -> Iterable[tuple[int, Any]]:
    return zip(writes, as_outputs(results, len(writes)))  # noqa: B905 - `as_outputs` checks the lengths


_BY_ARITY: dict[int, Callable[..., Instruction]] = {1: _unary, 2: _binary, 3: _ternary}
