"""Replay: record the calls of kernels in one run of a plan, and repeat them later without Python.

A kernel whose calls depend on nothing but the shapes of its inputs, and on the number of threads, may be `Replayable`.
Its backend then records a run, and returns a program in which one instruction stands for several steps (as in the
capture and replay of CUDA graphs).

Variables belong to a run, and cache buffers differ from run to run, so recorded calls cannot refer to them.
Kernels of such layers register Python calls instead (`HostCalls`), so that a replay need not stop at them.
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
    "called_after",
    "Direct",
    "HOST_CALLS",
    "HostCalls",
    "Instruction",
    "made_before",
    "Program",
    "Recorder",
    "Replayable",
    "Replayer",
    "run_steps",
    "Slots",
    "StepError",
]

Slots: TypeAlias = list[Any]
"""An array for each slot, ``None`` in empty ones."""

Instruction: TypeAlias = Callable[[Slots], None]
"""A function that calls a kernel on slots, stores its results, and clears the slots that nothing reads any more.

If the kernel fails, it changes no slot."""

Direct: TypeAlias = Callable[[Sequence[Array]], "list[Array] | None"]
"""A function that does all that a run does: it takes arrays for the inputs of the plan, which have the shapes that were
recorded, and returns arrays for the outputs; ``None`` where the instructions must run. It sets no context variable, and needs none of the scopes around a run."""


class RecordedStep(Protocol):
    """The slots of a recorded step."""

    @property
    def reads(self) -> tuple[int, ...]:
        """The slots of the inputs."""

    @property
    def writes(self) -> tuple[int, ...]:
        """The slots of the outputs."""

    @property
    def frees(self) -> tuple[int, ...]:
        """The slots freed afterwards."""


@dataclass(frozen=True, slots=True)
class Program:
    """The executable form of a run.

    Args:
        instructions: in order.
        starts: the index of the first step of each instruction.
        on_complete: called after a successful run with outputs as inferred, or ``None``.
        direct: a function equivalent to all instructions, if possible.
    """

    instructions: tuple[Instruction, ...]
    starts: Sequence[int]
    on_complete: Callable[[], None] | None = None
    direct: Direct | None = None


class Recorder(Protocol):
    """Records one run."""

    def instruction(self, index: int) -> Instruction:
        """Return the instruction of a step, which also records it."""

    def program(self, inputs: Sequence[int], outputs: Sequence[int]) -> Program:
        """Return the program for later runs, after every instruction ran once, in order.

        Args:
            inputs: the slots of the inputs of the plan.
            outputs: those of its outputs.
        """


class Replayer(Protocol):
    """Records runs for a backend."""

    @property
    def around(self) -> Scope:
        """The scopes that replayable kernels need around a run."""

    def key(self, most: int | None = None) -> Hashable:
        """Return the key of a recording in addition to shapes.

        Args:
            most: the most threads of a new run; by default, of the current run.
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
            steps: of the plan, in order.
            instructions: of the steps.
            replayed: the slots whose contents a step depends on, by the indices of steps with a replayable kernel.
            of_shapes: the indices of steps whose results follow from the shapes of their inputs, and never change.
            constants: the slots of constants.
        """


@dataclass(frozen=True, slots=True)
class Replayable:
    """A description of how a kernel's calls are recorded.

    The kernel must allocate its results, and otherwise do nothing but call tasks on them, on its inputs, and on views of
    either: with the same tasks and jobs for equal shapes, and equal contents of some inputs.

    >>> Replayable(replayer := object(), contents=(1,)).contents
    (1,)

    Args:
        replayer: records it.
        contents: the indices of inputs whose contents decide which calls it makes.
        alone: whether a replay of this kernel alone is faster than a call of it.
    """

    replayer: Replayer
    contents: Sequence[int] = ()
    alone: bool = True


class StepError(Exception):
    """Carries the exception of a step out of an instruction for several steps, as its cause."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number
        """The number of the step, counted from the first one of the instruction."""


def run_steps(instructions: Sequence[Instruction], slots: Slots) -> None:
    """Run the instructions of consecutive steps, as one.

    Raises:
        StepError: if one of them fails.
    """
    for number, instruction in enumerate(instructions):
        try:
            instruction(slots)
        except Exception as reason:
            raise StepError(number) from reason


Made = TypeVar("Made")


class Before(NamedTuple):
    """An array computed before the recorded calls of a replay."""

    made: Any
    function: Callable[..., Any]
    args: tuple[Array, ...]


class After(NamedTuple):
    """A function of an array called after the recorded calls of a replay."""

    function: Callable[..., object]
    array: Array


@dataclass(slots=True, eq=False)
class HostCalls:
    """The Python calls of a step's kernel."""

    before: list[Before] = field(default_factory=list)
    after: list[After] = field(default_factory=list)


HOST_CALLS: ContextVar[HostCalls | None] = ContextVar("host_calls", default=None)
"""Those of the current step; ``None`` in runs that are not recorded."""


def made_before(made: Made, function: Callable[..., object], *args: Array) -> Made:
    """Register an array that replays compute before their recorded calls; return the array.

    Args:
        made: the result of the function in this run.
        function: an idempotent function, called only if ``args`` have the same shapes and dtypes.
        args: inputs of the step.
    """
    if (calls := HOST_CALLS.get()) is not None:
        calls.before.append(Before(made, function, args))
    return made


def called_after(function: Callable[..., object], array: Array) -> None:
    """Register a function that replays call after their recorded calls."""
    if (calls := HOST_CALLS.get()) is not None:
        calls.after.append(After(function, array))
