"""The recorder of a run: it groups steps into parts that are replayed as one, and steps that run one by one.

A part consists of consecutive steps that are replayed together. This module is imported in the second run of a model, since
programs that run each model once need no recorder.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from ....ir.tensor import Array
from ...core.replay import Before, HostCalls, Instruction, Program, RecordedStep, Slots
from .parallel import Record, record_calls
from .replay import ArrayRef, HostSteps, Replay, describe_view, direct_run
from .tape import SCRATCH_MARGIN, Region, TapeWriter, UnknownArrayError, View, tuple_word

__all__ = ["Part", "Recorder"]

NO_PLACES: Mapping[int, int] = {}


@dataclass(eq=False, slots=True)
class Part:
    """Consecutive steps that are replayed together, and the state of slots that their replay relies on.

    Args:
        start: the index of the first step.
        constants: the slots of constants.
        known: the contents of slots that depend only on shapes; the recorder updates it.
    """

    start: int
    constants: Collection[int]
    known: Mapping[int, Array]
    size: int = 0
    instructions: list[Instruction] = field(default_factory=list)
    writer: TapeWriter = field(default_factory=TapeWriter)
    alive: dict[int, View] = field(default_factory=dict)
    """For each slot that its steps read or wrote, the location of its array."""
    fixed: dict[int, Array] = field(default_factory=dict)
    """The arrays of slots that are the same in every replay."""
    cleared: set[int] = field(default_factory=set)
    expected: dict[int, Array] = field(default_factory=dict)
    """The arrays that slots must hold when the part begins."""
    shapes: dict[int, tuple[int, ...]] = field(default_factory=dict)
    """The shapes that the arrays of other slots must have when the part begins."""
    cheap: int = 0
    """The number of steps that are no slower in NumPy."""
    host: HostSteps = field(default_factory=HostSteps)
    """The Python functions to call before the recorded calls."""
    after: list[tuple[Callable[..., object], View | int]] = field(default_factory=list)
    """The functions to call after the recorded calls, each with its argument: a view, or the place of an array of `host`."""

    @property
    def is_worthwhile(self) -> bool:
        """Whether replaying is faster than running the steps."""
        return len(self.writer.calls) > min(self.cheap, 1)

    def add(
        self, step: RecordedStep, instruction: Instruction, contents: Collection[int], read_arrays: Sequence[Array],
        record: Record, written_arrays: Sequence[Array | None],
    ) -> None:  # fmt: skip
        """Add a step with recorded calls.

        Args:
            step: the slots of the step.
            instruction: the instruction that runs it.
            contents: the slots whose contents determine its calls.
            read_arrays: its inputs.
            record: the record of its calls.
            written_arrays: its outputs.

        Raises:
            UnknownArrayError: if the step cannot be replayed; the part is unchanged.
        """
        pairs = dict(zip(step.reads, read_arrays, strict=True))
        fixed = [slot for slot in pairs if slot in self.constants or self._is_known(slot)]
        fresh = self._fresh(pairs, fixed, record.host)
        if not set(contents).issubset(fixed):
            raise UnknownArrayError
        if any(slot in self.cleared or array.dtype.hasobject for slot, array in fresh):
            raise UnknownArrayError
        written = {slot: x for slot, x in zip(step.writes, written_arrays, strict=True) if x is not None}
        mark = self.host.mark()
        try:
            for slot, array in fresh:
                if not array.size:  # no call reads it, but its shape matters
                    self._place(slot, array, fixed)
            fresh = [(slot, x) for slot, x in fresh if x.size]
            before = [(self._call_before(call, pairs, fixed), call.result) for call in record.host.before]
            hosted = {} if record.calls else self._hosted_places(before, written)
            inputs = [(~self.host.holds.get(slot, ~slot), x) for slot, x in fresh]
            inputs += [(~place, x) for place, x in before if record.calls and x.size]
            after = [call.array for call in record.host.after]
            outputs = [x for slot, x in written.items() if slot not in hosted]
            regions, views = self.writer.add(
                inputs, [pairs[slot] for slot in fixed], record, [*outputs, *after]
            )
        except UnknownArrayError:
            self.host.undo(mark)
            raise
        self.cheap += record.is_cheap
        self._expect(fixed)
        for (slot, _), region in zip(fresh, regions, strict=False):
            self._hold(slot, region)
        for call, view in zip(record.host.after, views[len(outputs) :], strict=True):
            self._call_after(call.function, call.array, view)
        slots = [slot for slot in written if slot not in hosted]
        self._finish(step, instruction, written, dict(zip(slots, views, strict=False)), hosted)

    def _fresh(
        self, pairs: Mapping[int, Array], fixed: Collection[int], host: HostCalls
    ) -> list[tuple[int, Array]]:
        """Return the inputs that calls may read, and that no earlier step has read or written, with their slots."""
        args = {id(array) for call in host.before for array in call.args}
        return [
            (slot, x)
            for slot, x in pairs.items()
            if slot not in fixed and slot not in self.alive and id(x) not in args
        ]

    def _hosted_places(
        self, before: Sequence[tuple[int, Array]], written: Mapping[int, Array]
    ) -> dict[int, int]:
        """Return the slots of outputs that Python functions computed, and the places of these outputs."""
        places = {id(array): place for place, array in before}
        return {slot: places[id(array)] for slot, array in written.items() if id(array) in places}

    def _call_before(self, before: Before, pairs: Mapping[int, Array], fixed: Collection[int]) -> int:
        """Add a Python function to call before the recorded calls; return the place of its result."""
        slots = {id(array): slot for slot, array in pairs.items()}
        if any(id(array) not in slots for array in before.args):
            raise UnknownArrayError
        return self.host.call(before, [self._place(slots[id(array)], array, fixed) for array in before.args])

    def _place(self, slot: int, array: Array, fixed: Collection[int]) -> int:
        """Return the place, in `HostSteps`, of an array that is available before the recorded calls.

        Raises:
            UnknownArrayError: if the array is not available then, since a recorded call computes it or its slot was freed.
        """
        if slot in self.host.holds:
            return self.host.holds[slot]
        if slot in fixed:
            return self.host.constant(array)
        view = self.alive.get(slot)
        if slot in self.cleared or (view is not None and (view.region.slot != slot or not view.is_whole)):
            raise UnknownArrayError
        return self.host.load(slot, array)

    def _call_after(self, function: Callable[..., object], array: Array, view: View | None) -> None:
        """Add a function to call with an array after the recorded calls; ``view`` is ``None`` if the array is constant."""
        if view is None:
            self.after.append((function, self.host.constant(array)))
        else:
            view.region.users += 1
            self.after.append((function, view))

    def add_of_shapes(
        self,
        step: RecordedStep,
        instruction: Instruction,
        read_arrays: Sequence[Array],
        written_arrays: Sequence[Array | None],
        contents: Collection[int] = (),
    ) -> None:
        """Add a step whose outputs depend only on the shapes of its inputs, and the contents of the slots ``contents``.

        Raises:
            UnknownArrayError: if the inputs may differ between replays; the part is unchanged.
        """
        pairs = dict(zip(step.reads, read_arrays, strict=True))
        fixed = [slot for slot in pairs if slot in self.constants or self._is_known(slot)]
        if not set(contents).issubset(fixed):
            raise UnknownArrayError
        seen = {*fixed, *self.alive, *self.host.holds}
        fresh = {slot: x.shape for slot, x in pairs.items() if slot not in seen}
        if not self.cleared.isdisjoint(fresh):
            raise UnknownArrayError
        self._expect(fixed)
        self.shapes |= fresh
        written = {slot: x for slot, x in zip(step.writes, written_arrays, strict=True) if x is not None}
        self._finish(step, instruction, written, dict.fromkeys(written))

    def _is_known(self, slot: int) -> bool:
        """Return whether a slot holds the same array in every replay."""
        return slot in self.fixed or (
            slot in self.known and slot not in self.alive and slot not in self.cleared
        )

    def _expect(self, fixed: Collection[int]) -> None:
        """Require that slots written before the part hold the same arrays in a replay."""
        self.expected |= {
            slot: self.known[slot] for slot in fixed if slot not in self.constants and slot not in self.fixed
        }

    def _finish(
        self,
        step: RecordedStep,
        instruction: Instruction,
        written: Mapping[int, Array],
        views: Mapping[int, View | None],
        hosted: Mapping[int, int] = NO_PLACES,
    ) -> None:
        """Update slots after a step.

        Args:
            step: the slots of the step.
            instruction: the instruction that runs it.
            written: the outputs by slot.
            views: the location of each output, ``None`` for a constant one.
            hosted: the places of outputs that are computed in Python.
        """
        self.instructions.append(instruction)
        for slot, view in views.items():
            self._hold(slot, view)
            if view is None:
                self.fixed[slot] = written[slot]
        for slot, place in hosted.items():
            self._hold(slot, None)
            self.host.holds[slot] = place
        self.cleared -= set(written)
        for slot in step.frees:
            self._hold(slot, None)
            self.cleared.add(slot)
        self.writer.regions.release()

    def _hold(self, slot: int, view: View | None) -> None:
        """Set the location of the array in a slot; ``None`` if it is in no region."""
        self.fixed.pop(slot, None)
        self.host.holds.pop(slot, None)
        if (before := self.alive.pop(slot, None)) is not None:
            self.writer.regions.drop(before.region)
        if view is not None:
            view.region.users += 1
            self.alive[slot] = view

    @property
    def results(self) -> list[Region]:
        """The allocations of steps that are still read after the recorded calls."""
        views = [*self.alive.values(), *(what for _, what in self.after if isinstance(what, View))]
        return list(dict.fromkeys(view.region for view in views if view.region.slot is None))

    def replay(self) -> Replay:
        """Return the replay of the steps."""
        writer, results, first = self.writer, self.results, tuple_word()
        inputs = [region for region in writer.regions.all if region.slot is not None]
        inputs.sort(key=_is_hosted)
        places = {region: first + 1 + index for index, region in enumerate([*results, *inputs])}
        allocation = writer.allocation(results)
        layouts = [(region.slot or 0, *region.layout) for region in inputs]
        slots = {slot for slot, *_ in layouts}

        def refer_to(what: View | int) -> ArrayRef:
            return (
                (~what, None) if isinstance(what, int) else describe_view(what, places[what.region] - first)
            )

        changed: dict[int, View | int] = {
            slot: view for slot, view in self.alive.items() if view.region.slot != slot or not view.is_whole
        }
        return Replay(
            writer.tape(places, allocation), SCRATCH_MARGIN + allocation.size, self.host, layouts, [(slot,
            shape) for slot, shape in self.shapes.items() if slot not in slots], list(self.expected.items()),
            [(shape, dtype) for shape, _, dtype in (region.layout for region in results)], [(function,
            refer_to(what)) for function, what in self.after], [(slot, refer_to(what)) for slot, what in (changed |
            self.host.holds).items()], [*self.fixed.items(), *((slot, None) for slot in self.cleared)],
            any(call.threads > 1 for call in writer.calls), tuple(self.instructions),
        )  # fmt: skip


def _is_hosted(region: Region) -> bool:
    return region.slot is not None and region.slot < 0


# Limits of a replayed instruction: bytes of a step's arrays for each of its calls, bytes of all steps, and the number of steps.
# Deadlines and interrupts are checked between instructions, and for larger steps the time of Python is negligible. The limit
# for all steps is high, since Python takes 100 microseconds after layers have evicted it from the caches.
MAX_CALL_BYTES, MAX_BYTES, MAX_STEPS = 1 << 24, 1 << 27, 256
# The largest size, in bytes, of outputs that depend only on shapes and that a recording keeps.
MAX_FIXED_BYTES = 1 << 16
# A step of more calls is a fused network with packed weights; only its definition reads its constants.
MANY_CALLS = 8


@dataclass(eq=False, slots=True)
class Recorder:
    """Records a run; the first five fields are the arguments of `Replayer.recorder`."""

    steps: Sequence[RecordedStep]
    instructions: Sequence[Instruction]
    replayed: Mapping[int, Collection[int]]
    of_shapes: Collection[int]
    constants: Collection[int]
    entries: list[tuple[Instruction, int]] = field(default_factory=list)
    """The instructions of the program, with the first step of each."""
    replay: Replay | None = None
    """The last instruction that replays a part."""
    part: Part | None = None
    """The steps that have no instruction yet."""
    known: dict[int, Array] = field(default_factory=dict)
    """The arrays of slots whose contents depend only on shapes."""

    def instruction(self, index: int) -> Instruction:
        """Return an instruction that runs a step and records its calls."""
        return partial(self._run, index)

    def program(self, inputs: Sequence[int], outputs: Sequence[int]) -> Program:
        """Return the program for later runs."""
        self._close()
        whole = self.replay if len(self.entries) == 1 else None
        direct = None if whole is None else direct_run(whole, inputs, outputs)
        starts = [start for _, start in self.entries]
        return Program(tuple(instruction for instruction, _ in self.entries), starts, direct=direct)

    def _run(self, index: int, slots: Slots) -> None:
        step, run = self.steps[index], self.instructions[index]
        read_arrays = [slots[slot] for slot in step.reads]
        record = self._record(index, partial(run, slots))
        written_arrays = [slots[slot] for slot in step.writes]
        fixed = {
            slot: array for slot, array in zip(step.writes, written_arrays, strict=True) if array is not None
        }
        if index not in self.of_shapes:
            fixed = {}
        elif sum(array.nbytes for array in fixed.values()) > MAX_FIXED_BYTES:
            record, fixed = None, {}
        if record is None or not self._add(index, read_arrays, record, written_arrays):
            self._close()
            self.entries.append((run, index))
        for slot in (*step.writes, *step.frees):
            self.known.pop(slot, None)
        self.known |= fixed

    def _record(self, index: int, run: Callable[[], None]) -> Record | None:
        """Run a step; return its record, or ``None`` if it cannot be replayed."""
        if index in self.replayed:
            return record_calls(run)
        run()
        return Record() if index in self.of_shapes else None

    def _add(
        self, index: int, read_arrays: list[Array], record: Record, written_arrays: list[Array | None]
    ) -> bool:
        """Add a step to the current part or a new one; return False if it cannot be replayed."""
        step, run = self.steps[index], self.instructions[index]
        several = len(record.calls) > MANY_CALLS
        read = [
            x
            for slot, x in zip(step.reads, read_arrays, strict=True)
            if not (several and slot in self.constants)
        ]
        size = sum(array.nbytes for array in [*read, *written_arrays] if array is not None)
        if size > MAX_CALL_BYTES * max(len(record.calls), 1):
            return False
        if (part := self.part) and (part.size + size > MAX_BYTES or len(part.instructions) >= MAX_STEPS):
            self._close()
        part = self.part or Part(index, self.constants, self.known)
        try:
            if index in self.of_shapes:
                part.add_of_shapes(step, run, read_arrays, written_arrays)
            elif _has_nothing_to_replay(record, written_arrays):
                part.add_of_shapes(step, run, read_arrays, written_arrays, self.replayed[index])
            else:
                part.add(step, run, self.replayed[index], read_arrays, record, written_arrays)
        except UnknownArrayError:
            return False
        part.size += size
        self.part = part
        return True

    def _close(self) -> None:
        """End the current part: append the instruction that replays it, or those of its steps if that is no slower."""
        if (part := self.part) is None:
            return
        self.part = None
        is_whole = bool(part.writer.calls) and len(part.instructions) == len(self.steps)
        if part.is_worthwhile or is_whole:
            self.replay = part.replay()
            self.entries.append((self.replay.run, part.start))
        else:
            self.entries += [(run, part.start + number) for number, run in enumerate(part.instructions)]


def _has_nothing_to_replay(record: Record, written_arrays: Sequence[Array | None]) -> bool:
    """Return whether a step made no calls, since all of its results are empty."""
    host = record.host
    did_nothing = not (record.calls or record.refusals or host.before or host.after)
    return did_nothing and all(array is None or not array.size for array in written_arrays)
