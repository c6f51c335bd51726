"""The instruction that replays a part of a run; see `part`."""

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
"""The index of an array and the parameters of a view of it, ``None`` for the array itself: shape, dtype,
offset and strides, and the axis order in which the array is in C order, ``None`` if it already is."""


def made(view: View, place: int) -> Made:
    """Return a view of the array at an index."""
    shape, strides, dtype = view.layout
    order = view.region.order
    moved = None if order is None or order == tuple(range(len(order))) else order
    return place, None if view.is_whole else (shape, dtype, view.offset, strides, moved)


@dataclass(frozen=True, slots=True, eq=False)
class Replay:
    """Replays consecutive steps.

    Args:
        tape: the recorded calls.
        scratch: the bytes of scratch memory.
        host: the Python functions before the calls.
        given: for each input: the slot, or ``~place`` for a result of ``host``, and its shape, strides and
            dtype.
        shapes: the slots of which only the shape is read, and that shape.
        expected: the slots that must hold a certain array, and that array.
        results: the shape and dtype of each result.
        after: the functions to call after the calls, and their argument: as in ``stores``, or ``~place`` for
            a result of ``host``.
        stores: the slots to set and the array of each; indices count from the scratch memory.
        fixed: the slots that get the same value in every replay: an array, or ``None`` if it is not read
            afterwards.
        shared: whether threads share any call.
        instructions: the instructions of the steps, which run for other inputs.
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
        """The instruction as a function, which Python calls faster than an object."""
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
    """Append arrays to the inputs if all have the recorded layouts; NumPy scalars are not arrays."""
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
    """Return whether slots hold the contents that determined the recorded calls."""
    for slot, shape in shapes:
        if slots[slot].shape != shape:
            return False
    return all(slots[slot] is array for slot, array in expected)


def got(arrays: tuple[Array, ...], values: Values, what: Made) -> Array:
    """Return an array, or a view of it; ``values`` are the arrays computed in Python."""
    index, view = what
    if view is None:
        array: Array = arrays[index] if index >= 0 else values[~index]
        return array
    shape, dtype, offset, strides, order = view
    memory = arrays[index] if order is None else arrays[index].transpose(order)
    return np.ndarray(shape, dtype, memory, offset, strides)
