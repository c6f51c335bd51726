"""Replay: record the kernel calls of one run of a plan, and repeat them in later runs without Python (as CUDA graphs do).

A kernel whose calls depend only on the shapes of its inputs and the number of threads may be `Replayable`. Its backend
records a run, and returns a program in which one instruction stands for several steps.

Recorded calls cannot refer to variables, which belong to a run, or to cache buffers, which differ from run to run. Kernels
of such layers register Python calls instead (`HostCalls`), so that a replay need not stop at them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar

from ..._util.scoped import Scope
from ...ir.tensor import Array

__all__ = [
    "After",
    "Before",
    "call_after",
    "Direct",
    "HOST_CALLS",
    "HostCalls",
    "Instruction",
    "compute_before",
    "Program",
    "Recorder",
    "Replayable",
    "Replayer",
    "run_steps",
    "Slots",
    "StepError",
]

Slots: TypeAlias = list[Any]
"""The array in each slot, or ``None`` if the slot is empty."""

Instruction: TypeAlias = Callable[[Slots], None]
"""A function that calls a kernel on slots, stores its results, and clears the slots that have no further reader.

If the kernel raises an exception, no slot is changed."""

Direct: TypeAlias = Callable[[Sequence[Array]], "list[Array] | None"]
"""A function that performs a whole run: it takes the inputs of the plan, in the recorded shapes, and returns its outputs, or
``None`` if the instructions must run instead. It sets no context variable, and needs none of the scopes around a run."""


class RecordedStep(Protocol):
    """The slots that a step reads, writes and frees."""

    @property
    def reads(self) -> tuple[int, ...]:
        """The slots of the inputs."""

    @property
    def writes(self) -> tuple[int, ...]:
        """The slots of the outputs."""

    @property
    def frees(self) -> tuple[int, ...]:
        """The slots that have no reader after the step."""


@dataclass(frozen=True, slots=True)
class Program:
    """The executable form of a plan: instructions, each of which runs one or several steps.

    Args:
        instructions: the instructions, in order.
        starts: the index of the first step of each instruction.
        on_complete: called after a successful run whose outputs have the inferred types and shapes, or ``None``.
        direct: a single function equivalent to all instructions, or ``None``.
    """

    instructions: tuple[Instruction, ...]
    starts: Sequence[int]
    on_complete: Callable[[], None] | None = None
    direct: Direct | None = None


class Recorder(Protocol):
    """Records a run of a plan, step by step, for replay."""

    def instruction(self, index: int) -> Instruction:
        """Return an instruction that runs a step and records its calls."""

    def program(self, inputs: Sequence[int], outputs: Sequence[int]) -> Program:
        """Return the program for later runs; every instruction must have run once, in order.

        Args:
            inputs: the slots of the plan's inputs.
            outputs: the slots of the plan's outputs.
        """


class Replayer(Protocol):
    """Records the runs of plans for a backend."""

    @property
    def around(self) -> Scope:
        """The scope that replayable kernels need around a run."""

    def key(self, most: int | None = None) -> Hashable:
        """Return what a recording depends on besides shapes, such as the number of threads.

        Args:
            most: the thread limit of a new run; by default, that of the current run.
        """

    def recorder(
        self,
        steps: Sequence[RecordedStep],
        instructions: Sequence[Instruction],
        replayed: Mapping[int, Collection[int]],
        of_shapes: Collection[int],
        constants: Collection[int],
    ) -> Recorder:
        """Return a recorder of a run.

        Args:
            steps: the steps of the plan, in order.
            instructions: the instruction of each step.
            replayed: for the index of each step with a replayable kernel, the slots whose contents decide its calls.
            of_shapes: the indices of steps whose results depend only on the shapes of their inputs.
            constants: the slots of constants.
        """


@dataclass(frozen=True, slots=True)
class Replayable:
    """How the calls of a kernel are recorded.

    The kernel may only allocate its results and call tasks on them, its inputs and views of either. It must make the same calls
    for equal shapes, and equal contents of the inputs in ``contents``.

    >>> Replayable(replayer := object(), contents=(1,)).contents
    (1,)

    Args:
        replayer: records the calls.
        contents: the indices of inputs whose contents decide which calls the kernel makes.
        alone: whether replaying a step with this kernel alone is faster than calling the kernel.
    """

    replayer: Replayer
    contents: Sequence[int] = ()
    alone: bool = True


class StepError(Exception):
    """Raised by an instruction of several steps if one of them fails; its cause is the exception of the step."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number
        """The index of the step within the instruction."""


def run_steps(instructions: Sequence[Instruction], slots: Slots) -> None:
    """Run the instructions of consecutive steps.

    Raises:
        StepError: if one of them fails.
    """
    for number, instruction in enumerate(instructions):
        try:
            instruction(slots)
        except Exception as reason:
            raise StepError(number) from reason


Result = TypeVar("Result")


class Before(NamedTuple):
    """An array that a replay computes before its recorded calls."""

    result: Any
    function: Callable[..., Any]
    args: tuple[Array, ...]


class After(NamedTuple):
    """A function that a replay calls with an array after its recorded calls."""

    function: Callable[..., object]
    array: Array


@dataclass(slots=True, eq=False)
class HostCalls:
    """The Python calls that a replay makes for a step, before and after its recorded calls."""

    before: list[Before] = field(default_factory=list)
    after: list[After] = field(default_factory=list)


HOST_CALLS: ContextVar[HostCalls | None] = ContextVar("host_calls", default=None)
"""The host calls of the step that is being recorded; ``None`` in other runs."""


def compute_before(result: Result, function: Callable[..., object], *args: Array) -> Result:
    """Register an array that a replay computes before its recorded calls, if this run is recorded; return the array.

    Args:
        result: the array, the result of ``function(*args)`` in this run.
        function: an idempotent function; a replay calls it with arrays of the same shapes and dtypes.
        args: inputs of the step.
    """
    if (calls := HOST_CALLS.get()) is not None:
        calls.before.append(Before(result, function, args))
    return result


def call_after(function: Callable[..., object], array: Array) -> None:
    """Register a function that a replay calls with ``array`` after its recorded calls, if this run is recorded."""
    if (calls := HOST_CALLS.get()) is not None:
        calls.after.append(After(function, array))
