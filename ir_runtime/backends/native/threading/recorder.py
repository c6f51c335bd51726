"""Recorders of runs: they divide the steps into parts to replay, and steps to run one by one.

Imported in the second run of a model, since programs that run each model once need no recorder.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from ....ir.tensor import Array
from ...core.replay import Instruction, Program, RecordedStep, Slots
from .direct import direct_run
from .part import Part
from .part_replay import Replay
from .recording import Record, recorded
from .regions import UnknownArrayError

__all__ = ["Recorder"]

# Bytes of the arrays of a step for each of its calls, and of an instruction: between larger ones, Python takes no time, and
# deadlines and interrupts are not delayed. Those of an instruction are many, as Python takes 100 microseconds where layers
# have driven it out of the caches. Steps of an instruction: between instructions, limits are looked at.
MAX_CALL_BYTES, MAX_BYTES, MAX_STEPS = 1 << 24, 1 << 27, 256
# Bytes of an array that follows from shapes, which a recording keeps.
MAX_FIXED_BYTES = 1 << 16
# A step of more calls is a network that packs its weights; its constants are those that its definition reads.
MANY_CALLS = 8


@dataclass(eq=False, slots=True)
class Recorder:
    """Records a run; see `Replayer.recorder` for the first five fields."""

    steps: Sequence[RecordedStep]
    instructions: Sequence[Instruction]
    replayed: Mapping[int, Collection[int]]
    of_shapes: Collection[int]
    constants: Collection[int]
    found: list[tuple[Instruction, int]] = field(default_factory=list)
    """The instructions of the program, with the first step of each."""
    replay: Replay | None = None
    """The last instruction that replays a part."""
    part: Part | None = None
    """The last steps, which have no instruction yet."""
    known: dict[int, Array] = field(default_factory=dict)
    """The slots whose contents depend only on shapes."""

    def instruction(self, index: int) -> Instruction:
        """Return an instruction that runs a step and records it."""
        return partial(self._run, index)

    def program(self, inputs: Sequence[int], outputs: Sequence[int]) -> Program:
        """Return the program for later runs."""
        self._close()
        whole = self.replay if len(self.found) == 1 else None
        direct = None if whole is None else direct_run(whole, inputs, outputs)
        starts = [start for _, start in self.found]
        return Program(tuple(each for each, _ in self.found), starts, direct=direct)

    def _run(self, index: int, slots: Slots) -> None:
        step, run = self.steps[index], self.instructions[index]
        given = [slots[slot] for slot in step.reads]
        record = self._record(index, partial(run, slots))
        made = [slots[slot] for slot in step.writes]
        fixed = {slot: array for slot, array in zip(step.writes, made, strict=True) if array is not None}
        if index not in self.of_shapes:
            fixed = {}
        elif sum(array.nbytes for array in fixed.values()) > MAX_FIXED_BYTES:
            record, fixed = None, {}
        if record is None or not self._added(index, given, record, made):
            self._close()
            self.found.append((run, index))
        for slot in (*step.writes, *step.frees):
            self.known.pop(slot, None)
        self.known |= fixed

    def _record(self, index: int, run: Callable[[], None]) -> Record | None:
        """Run a step; return its record, if it can be replayed."""
        if index in self.replayed:
            return recorded(run)
        run()
        return Record() if index in self.of_shapes else None

    def _added(self, index: int, given: list[Array], record: Record, made: list[Array | None]) -> bool:
        """Add a step to the current part or a new one; return whether that is possible."""
        step, run = self.steps[index], self.instructions[index]
        several = len(record.calls) > MANY_CALLS
        read = [
            x for slot, x in zip(step.reads, given, strict=True) if not (several and slot in self.constants)
        ]
        size = sum(array.nbytes for array in [*read, *made] if array is not None)
        if size > MAX_CALL_BYTES * max(len(record.calls), 1):
            return False
        if (part := self.part) and (part.size + size > MAX_BYTES or len(part.instructions) >= MAX_STEPS):
            self._close()
        part = self.part or Part(index, self.constants, self.known)
        try:
            if index in self.of_shapes:
                part.add_of_shapes(step, run, given, made)
            elif _has_nothing_to_replay(record, made):
                part.add_of_shapes(step, run, given, made, self.replayed[index])
            else:
                part.add(step, run, self.replayed[index], given, record, made)
        except UnknownArrayError:
            return False
        part.size += size
        self.part = part
        return True

    def _close(self) -> None:
        """Append the instruction of the current part."""
        if (part := self.part) is None:
            return
        self.part = None
        is_whole = bool(part.writer.calls) and len(part.instructions) == len(self.steps)
        if part.is_worthwhile or is_whole:
            self.replay = part.replay()
            self.found.append((self.replay.run, part.start))
        else:
            self.found += [(run, part.start + number) for number, run in enumerate(part.instructions)]


def _has_nothing_to_replay(record: Record, made: Sequence[Array | None]) -> bool:
    """Return whether a step only allocated empty results, for which kernels do not run."""
    host = record.host
    did_nothing = not (record.calls or record.refusals or host.before or host.after)
    return did_nothing and all(array is None or not array.size for array in made)
