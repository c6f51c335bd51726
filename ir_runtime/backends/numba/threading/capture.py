"""Recorders of runs, and the instructions that replay consecutive steps."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeAlias, TypeVar

import numpy as np

from ....arrays import DType
from ....ir.tensor import Array
from ...core.replay import Instruction, Program, RecordedStep, Slots, replayable, run_steps
from ..codegen.descriptor import keeping
from .parallel import pool_address, running, threads
from .recording import Record, recorded
from .replay import replay, tuple_word
from .tape import Region, Tape, TapeWriter, UnknownArrayError, View

__all__ = ["REPLAYER", "replayed"]

# Bytes of the arrays of a step for each of its calls, and of an instruction: between larger ones, Python takes no time, and
# deadlines and interrupts are not delayed. Steps of an instruction: recording looks for each array in the memory of all.
MAX_CALL_BYTES, MAX_BYTES, MAX_STEPS = 1 << 20, 1 << 22, 64

Made = TypeVar("Made")


class _Replayer:
    """Records runs of tasks."""

    around = running

    def key(self) -> Hashable:
        """Return the number of threads."""
        return threads()

    def recorder(
        self,
        steps: Sequence[RecordedStep],
        instructions: Sequence[Instruction],
        replayed: Collection[int],
        constants: Collection[int],
    ) -> _Recorder:
        """Return a recorder of a run, as `Replayer`."""
        return _Recorder(steps, instructions, replayed, constants)


REPLAYER = _Replayer()


def replayed(kernel: Made) -> Made:
    """Let the calls of a kernel, a function, be recorded; returns it. See `replayable` for what it may do."""
    return replayable(kernel, REPLAYER)


@dataclass(eq=False, slots=True)
class _Recorder:
    """Records a run; see `Replayer.recorder` for the first four fields."""

    steps: Sequence[RecordedStep]
    instructions: Sequence[Instruction]
    replayed: Collection[int]
    constants: Collection[int]
    found: list[tuple[Instruction, int]] = field(default_factory=list)
    """The instructions of the program, and the first step of each."""
    part: _Part | None = None
    """The steps at the end that are not among them yet."""

    def instruction(self, index: int) -> Instruction:
        """Return the instruction of a step, which also records it."""
        return partial(self._run, index)

    def program(self) -> Program:
        """Return the program for later runs."""
        self._close()
        return Program(tuple(each for each, _ in self.found), [start for _, start in self.found])

    def _run(self, index: int, slots: Slots) -> None:
        step, run = self.steps[index], self.instructions[index]
        if index in self.replayed:
            given = [slots[slot] for slot in step.reads]
            record = recorded(partial(run, slots))
            if self._added(index, given, record, [slots[slot] for slot in step.writes]):
                return
        else:
            run(slots)
        self._close()
        self.found.append((run, index))

    def _added(self, index: int, given: list[Array], record: Record, made: list[Array | None]) -> bool:
        """Add a step to the current part or a new one; return whether that is possible."""
        size = sum(array.nbytes for array in [*given, *made] if array is not None)
        if size > MAX_CALL_BYTES * max(len(record.calls), 1):
            return False
        if (part := self.part) and (part.size + size > MAX_BYTES or len(part.instructions) >= MAX_STEPS):
            self._close()
        part = self.part or _Part(index, self.constants)
        try:
            part.add(self.steps[index], self.instructions[index], given, record, made)
        except UnknownArrayError:
            return False
        part.size += size
        self.part = part
        return True

    def _close(self) -> None:
        """Add the instruction of the current part."""
        if (part := self.part) is None:
            return
        self.part = None
        if part.writer.calls:
            self.found.append((part.instruction(), part.start))
        else:
            self.found += [(run, part.start + number) for number, run in enumerate(part.instructions)]


@dataclass(eq=False, slots=True)
class _Part:
    """Consecutive steps that are replayed together."""

    start: int
    constants: Collection[int]
    size: int = 0
    instructions: list[Instruction] = field(default_factory=list)
    writer: TapeWriter = field(default_factory=TapeWriter)
    alive: dict[int, View] = field(default_factory=dict)
    """Where the contents of slots are that its steps wrote."""
    cleared: set[int] = field(default_factory=set)

    def add(
        self,
        step: RecordedStep,
        instruction: Instruction,
        given: Sequence[Array],
        record: Record,
        made: Sequence[Array | None],
    ) -> None:
        """Add a step.

        Raises:
            UnknownArrayError: if it cannot be replayed; then nothing was added.
        """
        pairs = list(zip(step.reads, given, strict=True))
        fixed = [array for slot, array in pairs if slot in self.constants]
        fresh = [(slot, x) for slot, x in pairs if slot not in self.constants and slot not in self.alive]
        if any(slot in self.cleared or array.dtype.hasobject for slot, array in fresh):
            raise UnknownArrayError
        written = {slot: x for slot, x in zip(step.writes, made, strict=True) if x is not None}
        views = self.writer.add(fresh, fixed, record, list(written.values()))
        self.instructions.append(instruction)
        self.alive |= dict(zip(written, views, strict=True))
        self.cleared -= set(written)
        for slot in step.frees:
            self.alive.pop(slot, None)
            self.cleared.add(slot)

    @property
    def results(self) -> list[Region]:
        """What its steps allocate for later ones."""
        return list(dict.fromkeys(view.region for view in self.alive.values() if view.region.is_allocated))

    def instruction(self) -> Instruction:
        """Return the instruction that replays the steps."""
        writer, results, first = self.writer, self.results, tuple_word()
        inputs = [region for region in writer.regions if region.slot is not None]
        places = {region: first + 1 + index for index, region in enumerate([*results, *inputs])}
        allocation = writer.allocation(results)
        return _Replay(
            writer.tape(places, allocation),
            allocation.size,
            [
                (region.slot or 0, region.owner.shape, region.owner.strides, region.owner.dtype)
                for region in inputs
            ],
            [(region.owner.shape, region.owner.dtype) for region in results],
            [(slot, *_made(view, places[view.region] - first)) for slot, view in self.alive.items()],
            tuple(self.cleared - self.alive.keys()),
            any(call.threads > 1 for call in writer.calls),
            tuple(self.instructions),
        ).run


_Given: TypeAlias = tuple[int, tuple[int, ...], tuple[int, ...], DType]
_Made: TypeAlias = "tuple[tuple[int, ...], DType, int, tuple[int, ...]] | None"


def _made(view: View, place: int) -> tuple[int, _Made]:
    """Return the index of the array of a view, and what makes the view of it, ``None`` if that is the array itself."""
    return place, None if view.is_whole else (view.shape, view.dtype, view.offset, view.strides)


@dataclass(frozen=True, slots=True, eq=False)
class _Replay:
    """Replays consecutive steps.

    Args:
        tape: their calls.
        scratch: bytes of scratch memory.
        given: the slot, shape, strides and dtype of each input.
        results: the shape and dtype of each result.
        stores: slots, which array each one gets, counted from the scratch memory, and which view of it.
        cleared: slots that nothing reads afterwards.
        shared: whether threads share a call.
        instructions: of the steps, which run for other inputs.
    """

    tape: Tape
    scratch: int
    given: Sequence[_Given]
    results: Sequence[tuple[tuple[int, ...], DType]]
    stores: Sequence[tuple[int, int, _Made]]
    cleared: Sequence[int]
    shared: bool
    instructions: Sequence[Instruction]

    @property
    def run(self) -> Instruction:
        """The instruction: a function, as Python calls it faster than an object."""
        call, address, first, empty = replay(), self.tape.address, tuple_word(), np.empty
        scratch, given, results, stores, cleared = (
            self.scratch,
            self.given,
            self.results,
            self.stores,
            self.cleared,
        )
        shared, can_refuse, plain = self.shared, self.tape.can_refuse, self.instructions

        def instruction(slots: Slots) -> None:
            inputs = []
            for slot, shape, strides, dtype in given:
                array = slots[slot]
                if array.shape != shape or array.strides != strides or array.dtype is not dtype:
                    run_steps(plain, slots)
                    return
                inputs.append(array)
            pool = pool_address() if shared else 0
            if shared and not pool:
                run_steps(plain, slots)
                return
            arrays = (empty(scratch, np.uint8), *[empty(*result) for result in results], *inputs)
            call(address, pool, arrays, first)
            if can_refuse and arrays[0][:8].any():
                run_steps(plain, slots)
                return
            for slot, index, view in stores:
                slots[slot] = arrays[index] if view is None else _view(arrays[index], *view)
            for slot in cleared:
                slots[slot] = None

        return keeping(instruction, self.tape)


def _view(array: Array, shape: tuple[int, ...], dtype: DType, offset: int, strides: tuple[int, ...]) -> Array:
    return np.ndarray(shape, dtype, array, offset, strides)
