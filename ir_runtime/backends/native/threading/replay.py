"""Replay of several steps: their recorded calls, and the Python functions before and after them.

The Python functions (`core.replay.HostCalls`) that are called before the recorded calls work on a list of arrays: initial
contents of slots, constants, and results of earlier functions. The place of an array is its index in that list.

If a whole run is one replay, `direct_run` passes inputs and outputs directly, without slots.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import copy_context
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ...._util.arrays import DType
from ...._util.scoped import inside
from ....ir.tensor import Array
from ...common.kept_memory import allocator
from ...core.replay import Before, Direct, Instruction, Slots, run_steps
from ...core.threads import set_most
from ..codegen.descriptor import keep_alive
from .parallel import pool_address, running, threads
from .tape import Tape, View, replay, tuple_word
from .task import NO_SCRATCH

__all__ = ["direct_run", "resolve", "HostSteps", "describe_view", "ArrayRef", "Replay", "Values"]

Values: TypeAlias = list[Any]
"""The array at each place, or ``None`` before it is computed."""


class _Load(NamedTuple):
    """A place to fill with the array of a slot, of the given shape and dtype, when the replay begins."""

    place: int
    slot: int
    shape: tuple[int, ...]
    dtype: DType


class _Call(NamedTuple):
    """A Python function, the places of its arguments, and the place, shape and dtype of its result."""

    function: Callable[..., Array]
    args: tuple[int, ...]
    place: int
    shape: tuple[int, ...]
    dtype: DType


@dataclass(eq=False, slots=True)
class HostSteps:
    """The Python functions to call before the recorded calls of a part."""

    constants: Values = field(default_factory=list)
    """The list of arrays before a replay: constants, and ``None`` at other places."""
    loads: list[_Load] = field(default_factory=list)
    calls: list[_Call] = field(default_factory=list)
    holds: dict[int, int] = field(default_factory=dict)
    """The places of the slots that hold a result of a function which no recorded call has read."""

    def constant(self, array: Array | None) -> int:
        """Add an array that is the same in every replay; return its place."""
        self.constants.append(array)
        return len(self.constants) - 1

    def load(self, slot: int, array: Array) -> int:
        """Reserve a place for the array that a slot holds when a replay begins, unless it has one; return the place."""
        for known in self.loads:
            if known.slot == slot:
                return known.place
        self.loads.append(_Load(self.constant(None), slot, array.shape, array.dtype))
        return self.loads[-1].place

    def call(self, before: Before, args: Sequence[int]) -> int:
        """Add a call of ``before.function``, given the places of its arguments; return the place of its result."""
        place, result = self.constant(None), before.result
        self.calls.append(_Call(before.function, tuple(args), place, result.shape, result.dtype))
        return place

    def mark(self) -> tuple[int, int, int]:
        """Return the current state, for `undo`."""
        return len(self.constants), len(self.loads), len(self.calls)

    def undo(self, mark: tuple[int, int, int]) -> None:
        """Remove everything that was added since ``mark``."""
        constants, loads, calls = mark
        del self.constants[constants:], self.loads[loads:], self.calls[calls:]

    def run(self, slots: Slots) -> Values | None:
        """Call the functions; return the array at each place, or ``None`` if a shape or dtype differs from the recording."""
        values = [*self.constants]
        for place, slot, shape, dtype in self.loads:
            values[place] = array = slots[slot]
            if array.shape != shape or array.dtype is not dtype:
                return None
        for function, args, place, shape, dtype in self.calls:
            values[place] = array = function(*[values[arg] for arg in args])
            if array.shape != shape or array.dtype is not dtype:
                return None
        return values


_Shape: TypeAlias = tuple[int, ...]
_Given: TypeAlias = tuple[int, _Shape, _Shape, DType]
_Layout: TypeAlias = tuple[_Shape, DType, int, _Shape, "_Shape | None"]
ArrayRef: TypeAlias = "tuple[int, _Layout | None]"
"""The index of an array, and the layout of a view of it, or ``None`` for the array itself. The layout is the shape, dtype,
offset and strides of the view, and the axis order that makes the array C-contiguous, or ``None`` if it is."""


def describe_view(view: View, place: int) -> ArrayRef:
    """Describe a view by the index ``place`` of its region's array and a layout in that array, ``None`` for the whole array."""
    shape, strides, dtype = view.layout
    order = view.region.order
    moved = None if order is None or order == tuple(range(len(order))) else order
    return place, None if view.is_whole else (shape, dtype, view.offset, strides, moved)


@dataclass(frozen=True, slots=True, eq=False)
class Replay:
    """A replay of consecutive steps.

    Args:
        tape: the recorded calls.
        scratch: the size of the scratch memory in bytes.
        host: the Python functions to call before the recorded calls.
        given: the inputs: slot, or ``~place`` for an array of ``host``, and shape, strides and dtype.
        shapes: the slots of which only the shape is read, with the recorded shape.
        expected: the slots that must hold the recorded array, with that array.
        results: the shape and dtype of each result.
        after: the functions to call after the recorded calls, each with its argument, as in ``stores``.
        stores: the slots to set, each with its array. Index 0 is the scratch memory, followed by results and inputs;
            ``~place`` is an array of ``host``.
        fixed: the slots to set to the same value in every replay: an array, or ``None`` to clear them.
        shared: whether several threads share a call.
        instructions: the instructions of the steps, which run instead if inputs differ from the recording.
    """

    tape: Tape
    scratch: int
    host: HostSteps
    given: Sequence[_Given]
    shapes: Sequence[tuple[int, _Shape]]
    expected: Sequence[tuple[int, Array]]
    results: Sequence[tuple[_Shape, DType]]
    after: Sequence[tuple[Callable[..., object], ArrayRef]]
    stores: Sequence[tuple[int, ArrayRef]]
    fixed: Sequence[tuple[int, Array | None]]
    shared: bool
    instructions: Sequence[Instruction]

    @property
    def run(self) -> Instruction:
        """The replay as an instruction; a function, since Python calls it faster than an object."""
        call, address, first = replay(), self.tape.address, tuple_word()
        scratch, results, stores, after = self.scratch, self.results, self.stores, self.after
        shapes, expected, fixed = self.shapes, self.expected, self.fixed
        empty = allocator([(scratch, np.uint8), *results])
        shared, can_refuse, plain = self.shared, self.tape.can_refuse, self.instructions
        given = [entry for entry in self.given if entry[0] >= 0]
        hosted = [(~place, shape, strides, dtype) for place, shape, strides, dtype in self.given if place < 0]
        run_host = self.host.run if self.host.constants else None

        looks = bool(shapes or expected)

        def instruction(slots: Slots) -> None:
            inputs: list[Array] = []
            values: Values = []
            if (
                not _take_inputs(inputs, slots, given)
                or (looks and not _matches(slots, shapes, expected))
                or (shared and not pool_address())
            ):
                run_steps(plain, slots)
                return
            if run_host is not None:
                if (host_values := run_host(slots)) is None or not _take_inputs(inputs, host_values, hosted):
                    run_steps(plain, slots)
                    return
                values = host_values
            arrays = (empty(scratch, np.uint8), *[empty(*result) for result in results], *inputs)
            if call(address, pool_address() if shared else 0, arrays, first):
                raise MemoryError(NO_SCRATCH)
            if can_refuse and arrays[0][:8].any():
                run_steps(plain, slots)
                return
            for function, what in after:
                function(resolve(arrays, values, what))
            for slot, what in stores:
                slots[slot] = resolve(arrays, values, what)
            for slot, array in fixed:
                slots[slot] = array

        return keep_alive(instruction, self.tape)


def _take_inputs(inputs: list[Array], arrays: Slots, given: Sequence[_Given]) -> bool:
    """Append to ``inputs`` the array at each place in ``given``.

    Returns False if one differs from the recorded layout, or is a NumPy scalar.
    """
    for place, shape, strides, dtype in given:
        array = arrays[place]
        if (
            not isinstance(array, np.ndarray)
            or array.shape != shape
            or array.strides != strides
            or array.dtype is not dtype
        ):
            return False
        inputs.append(array)
    return True


def _matches(
    slots: Slots, shapes: Sequence[tuple[int, _Shape]], expected: Sequence[tuple[int, Array]]
) -> bool:
    """Return whether slots hold arrays of the recorded shapes, and the expected arrays."""
    for slot, shape in shapes:
        if slots[slot].shape != shape:
            return False
    return all(slots[slot] is array for slot, array in expected)


def resolve(arrays: tuple[Array, ...], values: Values, what: ArrayRef) -> Array:
    """Return the array or view that ``what`` describes; ``values`` are the arrays of `HostSteps`."""
    index, view = what
    if view is None:
        array: Array = arrays[index] if index >= 0 else values[~index]
        return array
    shape, dtype, offset, strides, order = view
    memory = arrays[index] if order is None else arrays[index].transpose(order)
    return np.ndarray(shape, dtype, memory, offset, strides)


def direct_run(whole: Replay, inputs: Sequence[int], outputs: Sequence[int]) -> Direct | None:
    """Return a function that performs a whole run by one replay, or ``None`` if the replay calls Python or needs slots.

    Args:
        whole: the replay of all steps of a plan.
        inputs: the slots of its inputs; the function takes them in the recorded shapes.
        outputs: the slots of its outputs.
    """
    stores = dict(whole.stores)
    reads = {slot for slot, *_ in (*whole.given, *whole.shapes)}
    in_python = bool(whole.host.constants or whole.after or whole.expected)
    if in_python or not reads.issubset(inputs) or not set(outputs).issubset(stores):
        return None
    given = [(inputs.index(slot), strides, dtype) for slot, _, strides, dtype in whole.given]
    refs: list[ArrayRef] = [stores[slot] for slot in outputs]
    call, address, first = replay(), whole.tape.address, tuple_word()
    scopes, count = (running,), threads()
    scratch, results, shared, can_refuse = whole.scratch, whole.results, whole.shared, whole.tape.can_refuse
    empty = allocator([(scratch, np.uint8), *results])

    def direct(feeds: Sequence[Array]) -> list[Array] | None:
        arrays: list[Array] = []
        for index, strides, dtype in given:
            array = feeds[index]
            if array.strides != strides or array.dtype is not dtype:
                return None
            arrays.append(array)
        if (pool := pool_address() if shared else 0) == 0 and shared:
            return None
        try:
            memory = (empty(scratch, np.uint8), *[empty(*result) for result in results], *arrays)
        except MemoryError:
            return None
        if call(address, pool, memory, first) or (can_refuse and memory[0][:8].any()):
            return None
        return [memory[what[0]] if what[1] is None else resolve(memory, [], what) for what in refs]

    def run_with_threads(feeds: Sequence[Array]) -> list[Array] | None:
        set_most(count)
        return inside(scopes, direct, feeds)

    def run_in_context(feeds: Sequence[Array]) -> list[Array] | None:
        return copy_context().run(run_with_threads, feeds)

    return keep_alive(run_in_context if shared else direct, whole.tape)
