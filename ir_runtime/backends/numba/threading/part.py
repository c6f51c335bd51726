"""Parts of a run: consecutive steps that are recorded together, and the instruction that replays them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from ....arrays import DType
from ....ir.tensor import Array
from ...core.replay import Instruction, RecordedStep, Slots, run_steps
from ..codegen.descriptor import keeping
from .parallel import pool_address
from .recording import Record
from .regions import Region, UnknownArrayError, View
from .replay import SCRATCH_MARGIN, replay, tuple_word
from .tape import Tape, TapeWriter

__all__ = ["Part"]


@dataclass(eq=False, slots=True)
class Part:
    """Consecutive steps that are replayed together.

    It has a field for each thing that must be known of slots when the steps are replayed; each step adds to them.

    Args:
        start: the index of the first one.
        constants: the slots of constants.
        known: what slots hold now that never changes for these shapes; the recorder updates it.
    """

    start: int
    constants: Collection[int]
    known: Mapping[int, Array]
    size: int = 0
    instructions: list[Instruction] = field(default_factory=list)
    writer: TapeWriter = field(default_factory=TapeWriter)
    alive: dict[int, View] = field(default_factory=dict)
    """Where the contents of slots are that its steps read or wrote."""
    fixed: dict[int, Array] = field(default_factory=dict)
    """Likewise, of slots that get the same array in every replay."""
    cleared: set[int] = field(default_factory=set)
    expected: dict[int, Array] = field(default_factory=dict)
    """What slots must hold when the part begins."""
    shapes: dict[int, tuple[int, ...]] = field(default_factory=dict)
    """The shapes that slots must have then, beside those of inputs."""
    cheap: int = 0
    """How many of its steps NumPy computes as fast."""

    @property
    def is_worthwhile(self) -> bool:
        """Whether replaying is faster than running its steps."""
        return len(self.writer.calls) > min(self.cheap, 1)

    def add(
        self,
        step: RecordedStep,
        instruction: Instruction,
        contents: Collection[int],
        given: Sequence[Array],
        record: Record,
        made: Sequence[Array | None],
    ) -> None:
        """Add a step.

        Args:
            step: its slots.
            instruction: runs it.
            contents: the slots whose contents decide what it does.
            given: its inputs.
            record: what it did.
            made: its outputs.

        Raises:
            UnknownArrayError: if it cannot be replayed; then nothing was added.
        """
        pairs = dict(zip(step.reads, given, strict=True))
        fixed = [slot for slot in pairs if slot in self.constants or self._is_known(slot)]
        fresh = [(slot, x) for slot, x in pairs.items() if slot not in fixed and slot not in self.alive]
        if not set(contents).issubset(fixed):
            raise UnknownArrayError
        if any(slot in self.cleared or array.dtype.hasobject for slot, array in fresh):
            raise UnknownArrayError
        written = {slot: x for slot, x in zip(step.writes, made, strict=True) if x is not None}
        inputs, views = self.writer.add(fresh, [pairs[slot] for slot in fixed], record, written.values())
        self.cheap += record.is_cheap
        self._expect(fixed)
        for (slot, _), view in zip(fresh, inputs, strict=True):
            self._hold(slot, view)
        self._finish(step, instruction, written, dict(zip(written, views, strict=True)))

    def add_of_shapes(
        self,
        step: RecordedStep,
        instruction: Instruction,
        given: Sequence[Array],
        made: Sequence[Array | None],
    ) -> None:
        """Add a step whose outputs follow from the shapes of its inputs, and never change.

        Raises:
            UnknownArrayError: if that cannot be relied on; then nothing was added.
        """
        pairs = dict(zip(step.reads, given, strict=True))
        fixed = [slot for slot in pairs if slot in self.constants or self._is_known(slot)]
        fresh = {slot: x.shape for slot, x in pairs.items() if slot not in fixed and slot not in self.alive}
        if not self.cleared.isdisjoint(fresh):
            raise UnknownArrayError
        self._expect(fixed)
        self.shapes |= fresh
        written = {slot: x for slot, x in zip(step.writes, made, strict=True) if x is not None}
        self._finish(step, instruction, written, dict.fromkeys(written))

    def _is_known(self, slot: int) -> bool:
        """Return whether a slot holds the same array in every replay."""
        return slot in self.fixed or (
            slot in self.known and slot not in self.alive and slot not in self.cleared
        )

    def _expect(self, fixed: Collection[int]) -> None:
        """Let replays look for arrays that steps before the part have made."""
        self.expected |= {
            slot: self.known[slot] for slot in fixed if slot not in self.constants and slot not in self.fixed
        }

    def _finish(
        self,
        step: RecordedStep,
        instruction: Instruction,
        written: Mapping[int, Array],
        views: Mapping[int, View | None],
    ) -> None:
        """Keep where the outputs of a step are; no view stands for an array that never changes."""
        self.instructions.append(instruction)
        for slot, view in views.items():
            self._hold(slot, view)
            if view is None:
                self.fixed[slot] = written[slot]
        self.cleared -= set(written)
        for slot in step.frees:
            self._hold(slot, None)
            self.cleared.add(slot)
        self.writer.regions.release()

    def _hold(self, slot: int, view: View | None) -> None:
        """Let a slot hold an array in a region, or in none."""
        self.fixed.pop(slot, None)
        if (before := self.alive.pop(slot, None)) is not None:
            self.writer.regions.drop(before.region)
        if view is not None:
            view.region.users += 1
            self.alive[slot] = view

    @property
    def results(self) -> list[Region]:
        """What its steps allocate for later ones."""
        return list(dict.fromkeys(view.region for view in self.alive.values() if view.region.slot is None))

    def instruction(self) -> Instruction:
        """Return the instruction that replays the steps."""
        writer, results, first = self.writer, self.results, tuple_word()
        inputs = [region for region in writer.regions.all if region.slot is not None]
        places = {region: first + 1 + index for index, region in enumerate([*results, *inputs])}
        allocation = writer.allocation(results)
        given = {region.slot or 0: region.layout for region in inputs}
        changed = [
            (slot, view) for slot, view in self.alive.items() if view.region.slot != slot or not view.is_whole
        ]
        return _Replay(
            writer.tape(places, allocation),
            SCRATCH_MARGIN + allocation.size,
            [(slot, *layout) for slot, layout in given.items()],
            [(slot, shape) for slot, shape in self.shapes.items() if slot not in given],
            list(self.expected.items()),
            [(shape, dtype) for shape, _, dtype in (region.layout for region in results)],
            [(slot, *_made(view, places[view.region] - first)) for slot, view in changed],
            [*self.fixed.items(), *((slot, None) for slot in self.cleared)],
            any(call.threads > 1 for call in writer.calls),
            tuple(self.instructions),
        ).run


_Shape: TypeAlias = tuple[int, ...]
_Given: TypeAlias = tuple[int, _Shape, _Shape, DType]
_Made: TypeAlias = "tuple[tuple[int, ...], DType, int, tuple[int, ...]] | None"


def _made(view: View, place: int) -> tuple[int, _Made]:
    """Return the index of the array of a view, and what makes the view of it, ``None`` if that is the array itself."""
    shape, strides, dtype = view.layout
    return place, None if view.is_whole else (shape, dtype, view.offset, strides)


@dataclass(frozen=True, slots=True, eq=False)
class _Replay:
    """Replays consecutive steps. Ten fields: what the run loop reads, each once.

    Args:
        tape: their calls.
        scratch: bytes of scratch memory.
        given: the slot, shape, strides and dtype of each input.
        shapes: the slot and shape of what is read for its shape only.
        expected: slots, and which array each one must hold.
        results: the shape and dtype of each result.
        stores: slots, which array each one gets, counted from the scratch memory, and which view of it.
        fixed: slots that get the same in every replay: an array, or ``None`` where nothing reads them afterwards.
        shared: whether threads share a call.
        instructions: of the steps, which run for other inputs.
    """

    tape: Tape
    scratch: int
    given: Sequence[_Given]
    shapes: Sequence[tuple[int, _Shape]]
    expected: Sequence[tuple[int, Array]]
    results: Sequence[tuple[_Shape, DType]]
    stores: Sequence[tuple[int, int, _Made]]
    fixed: Sequence[tuple[int, Array | None]]
    shared: bool
    instructions: Sequence[Instruction]

    @property
    def run(self) -> Instruction:
        """The instruction: a function, as Python calls it faster than an object."""
        call, address, first, empty = replay(), self.tape.address, tuple_word(), np.empty
        scratch, given, results, stores = self.scratch, self.given, self.results, self.stores
        shapes, expected, fixed = self.shapes, self.expected, self.fixed
        shared, can_refuse, plain = self.shared, self.tape.can_refuse, self.instructions

        looks = bool(shapes or expected)

        def instruction(slots: Slots) -> None:
            inputs = []
            for slot, shape, strides, dtype in given:
                array = slots[slot]
                if array.shape != shape or array.strides != strides or array.dtype is not dtype:
                    run_steps(plain, slots)
                    return
                inputs.append(array)
            pool = pool_address() if shared else 0
            if (shared and not pool) or (looks and not _suited(slots, shapes, expected)):
                run_steps(plain, slots)
                return
            arrays = (empty(scratch, np.uint8), *[empty(*result) for result in results], *inputs)
            call(address, pool, arrays, first)
            if can_refuse and arrays[0][:8].any():
                run_steps(plain, slots)
                return
            for slot, index, view in stores:
                slots[slot] = arrays[index] if view is None else _view(arrays[index], *view)
            for slot, array in fixed:
                slots[slot] = array

        return keeping(instruction, self.tape)


def _suited(
    slots: Slots, shapes: Sequence[tuple[int, _Shape]], expected: Sequence[tuple[int, Array]]
) -> bool:
    """Return whether slots hold what decided which calls were made."""
    for slot, shape in shapes:
        if slots[slot].shape != shape:
            return False
    return all(slots[slot] is array for slot, array in expected)


def _view(array: Array, shape: _Shape, dtype: DType, offset: int, strides: _Shape) -> Array:
    return np.ndarray(shape, dtype, array, offset, strides)
