"""The instruction that replays a part of a run: see `part`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from ...._util.arrays import DType
from ....ir.tensor import Array
from ...common.kept_memory import allocator
from ...core.replay import Instruction, Slots, run_steps
from ..codegen.descriptor import keeping
from .host_steps import HostSteps, Values
from .parallel import pool_address
from .regions import View
from .replay import replay, tuple_word
from .tape import Tape
from .task import NO_SCRATCH

__all__ = ["Made", "Replay", "got", "made"]

_Shape: TypeAlias = tuple[int, ...]
_Given: TypeAlias = tuple[int, _Shape, _Shape, DType]
_Layout: TypeAlias = tuple[_Shape, DType, int, _Shape, "_Shape | None"]
Made: TypeAlias = "tuple[int, _Layout | None]"
"""The index of an array, and what makes a view of it, ``None`` for the array itself.

That is shape, dtype, offset and strides, and in which order of axes the array is in C order, ``None`` if it is."""


def made(view: View, place: int) -> Made:
    """Return a view of the array with that index."""
    shape, strides, dtype = view.layout
    order = view.region.order
    moved = None if order is None or order == tuple(range(len(order))) else order
    return place, None if view.is_whole else (shape, dtype, view.offset, strides, moved)


@dataclass(frozen=True, slots=True, eq=False)
class Replay:
    """Replays consecutive steps.

    Args:
        tape: their calls.
        scratch: bytes of scratch memory.
        host: what it does in Python before the calls.
        given: the slot, or ``~place`` for what is made in Python, and shape, strides and dtype of each input.
        shapes: the slot and shape of what is read for its shape only.
        expected: slots, and which array each one must hold.
        results: the shape and dtype of each result.
        after: functions that are called after the calls, and with what: as ``stores``, or ``~place`` for what was made in Python.
        stores: likewise slots, and what each one gets; arrays are counted from the scratch memory.
        fixed: slots that get the same in every replay: an array, or ``None`` where nothing reads them afterwards.
        shared: whether threads share a call.
        instructions: of the steps, which run for other inputs.
    """

    tape: Tape
    scratch: int
    host: HostSteps
    given: Sequence[_Given]
    shapes: Sequence[tuple[int, _Shape]]
    expected: Sequence[tuple[int, Array]]
    results: Sequence[tuple[_Shape, DType]]
    after: Sequence[tuple[Callable[..., object], Made]]
    stores: Sequence[tuple[int, Made]]
    fixed: Sequence[tuple[int, Array | None]]
    shared: bool
    instructions: Sequence[Instruction]

    @property
    def run(self) -> Instruction:
        """The instruction: a function, as Python calls it faster than an object."""
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
                not _taken(inputs, slots, given)
                or (looks and not _suited(slots, shapes, expected))
                or (shared and not pool_address())
            ):
                run_steps(plain, slots)
                return
            if run_host is not None:
                if (found := run_host(slots)) is None or not _taken(inputs, found, hosted):
                    run_steps(plain, slots)
                    return
                values = found
            arrays = (empty(scratch, np.uint8), *[empty(*result) for result in results], *inputs)
            if call(address, pool_address() if shared else 0, arrays, first):
                raise MemoryError(NO_SCRATCH)
            if can_refuse and arrays[0][:8].any():
                run_steps(plain, slots)
                return
            for function, what in after:
                function(got(arrays, values, what))
            for slot, what in stores:
                slots[slot] = got(arrays, values, what)
            for slot, array in fixed:
                slots[slot] = array

        return keeping(instruction, self.tape)


def _taken(inputs: list[Array], arrays: Slots, given: Sequence[_Given]) -> bool:
    """Append arrays to the inputs, if all have the layouts that were recorded; numbers of NumPy are no arrays."""
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


def _suited(
    slots: Slots, shapes: Sequence[tuple[int, _Shape]], expected: Sequence[tuple[int, Array]]
) -> bool:
    """Return whether slots hold what decided which calls were made."""
    for slot, shape in shapes:
        if slots[slot].shape != shape:
            return False
    return all(slots[slot] is array for slot, array in expected)


def got(arrays: tuple[Array, ...], values: Values, what: Made) -> Array:
    """Return an array, or a view of it; those that were made in Python are ``values``."""
    index, view = what
    if view is None:
        array: Array = arrays[index] if index >= 0 else values[~index]
        return array
    shape, dtype, offset, strides, order = view
    memory = arrays[index] if order is None else arrays[index].transpose(order)
    return np.ndarray(shape, dtype, memory, offset, strides)
