"""Programs of a plan: its instructions, or recordings of backends."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass, field

from ..backends.core.replay import (
    Direct,
    Instruction,
    Program,
    Replayer,
    Slots,
    run_steps,
)
from ..ir.tensor import Array
from .context import RUN
from .step import Step

__all__ = ["Programs"]

# A recording takes as long as some ten runs. So the first few shapes are recorded when they come again, and others once they
# came often, as those of caches that grow with each token; steps of the recordings that a plan keeps, of some 2 KiB
# each; and shapes whose runs it counts.
FEW, OFTEN, KEPT_STEPS, REMEMBERED = 16, 16, 1 << 14, 1024
_VIEWS = {"Reshape", "Squeeze", "Transpose", "Unsqueeze"}


@dataclass(frozen=True, slots=True, eq=False)
class Programs:
    """The programs of a plan. The second run on inputs of the same shapes is recorded, later ones replay it.

    Args:
        steps: of the plan.
        instructions: of the steps.
        inputs: the slots of the inputs.
        outputs: those of the outputs.
        constants: the slots of constants.
    """

    steps: Sequence[Step]
    instructions: tuple[Instruction, ...]
    inputs: Sequence[int]
    outputs: Sequence[int]
    constants: Collection[int]
    plain: Program = field(init=False)
    """One instruction for each step."""
    replayer: Replayer | None = field(init=False)
    """Records runs; ``None`` if no kernel is worth it."""
    recorded: dict[Hashable, Program] = field(default_factory=dict)
    seen: dict[Hashable, int] = field(default_factory=dict)
    """How often shapes came that are not recorded."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "plain", Program(self.instructions, range(len(self.steps))))
        replays = [step.kernel.replay for step in self.steps if step.kernel.replay is not None]
        worth = len(replays) > 1 or any(replay.alone for replay in replays)
        worth = worth or len(replays) == len(self.steps) == 1  # then a replay is all of a run
        object.__setattr__(self, "replayer", replays[0].replayer if worth else None)

    def next(self, env: Slots) -> Program:
        """Return the program of a run that begins with these inputs and constants."""
        if (replayer := self.replayer) is None:
            return self.plain
        key = (replayer.key(), *[env[slot].shape for slot in self.inputs])
        return self.recorded.get(key) or self._first(replayer, key)

    def direct(self, feeds: Sequence[Array], threads: int) -> Direct | None:
        """Return the recorded function for a whole run on these inputs, if any."""
        if not self.recorded or (replayer := self.replayer) is None:
            return None
        program = self.recorded.get((replayer.key(threads), *[feed.shape for feed in feeds]))
        return None if program is None else program.direct

    def _first(self, replayer: Replayer, key: Hashable) -> Program:
        """Return the program of one of the first runs for a key; changing shapes are not recorded."""
        runs = self.seen.get(key, 0)
        if runs >= (1 if len(self.recorded) < FEW else OFTEN):
            return self._recording(replayer, key)
        if len(self.seen) >= REMEMBERED:
            self.seen.clear()
        self.seen[key] = runs + 1
        return self.plain

    def _contents(self, replayer: Replayer, step: Step) -> Collection[int] | None:
        """Return the slots whose contents a step depends on, if it can be replayed."""
        kernel, replay = step.kernel, step.kernel.replay
        if replay is not None and replay.replayer is replayer:
            return [step.reads[index] for index in replay.contents if index < len(step.reads)]
        if kernel.has_host_calls or kernel.view:
            return ()
        is_view = not step.also and step.layer.type in _VIEWS
        return step.reads[1:] if is_view else None

    def _recording(self, replayer: Replayer, key: Hashable) -> Program:
        """Return a program that records itself while it runs."""
        numbers = range(len(self.steps))
        replayed = {
            i: dependency
            for i in numbers
            if (dependency := self._contents(replayer, self.steps[i])) is not None
        }
        of_shapes = {i for i in numbers if self.steps[i].kernel.of_shapes}
        recorder = replayer.recorder(self.steps, self.instructions, replayed, of_shapes, self.constants)
        memory = [0.0] * len(self.steps)

        def keep() -> None:
            if len(self.recorded) >= max(FEW, KEPT_STEPS // len(self.steps)):
                oldest, *_ = self.recorded
                self.recorded.pop(oldest, None)
            self.seen.pop(key, None)
            dependency = recorder.program(self.inputs, self.outputs)
            ends = [*dependency.starts[1:], len(memory)]
            parts = zip(dependency.instructions, dependency.starts, ends, strict=True)
            instructions = (
                self._limit_memory(recorded_instruction, start, memory[start:end])
                for recorded_instruction, start, end in parts
            )
            direct = None if any(memory) else dependency.direct  # which counts no memory
            self.recorded[key] = Program(tuple(instructions), dependency.starts, direct=direct)

        instructions = (_measure_memory(recorder.instruction(index), memory, index) for index in numbers)
        return Program(tuple(instructions), self.plain.starts, keep)

    def _limit_memory(self, instruction: Instruction, start: int, memory: Sequence[float]) -> Instruction:
        """Return an instruction of several steps that counts their memory, if not known in advance."""
        plain, total = self.instructions[start : start + len(memory)], sum(memory)
        if len(memory) == 1 and instruction is plain[0]:
            return instruction
        if min(memory) < 0:  # the run came near its limit, and was counted again
            return plain[0] if len(memory) == 1 else lambda slots: run_steps(plain, slots)
        if not total:
            return instruction

        def limited(slots: Slots) -> None:
            if (run := RUN.get(None)) is not None and total > run.left:
                run_steps(plain, slots)
                return
            if run is not None:
                run.left -= total
            instruction(slots)

        return limited


def _measure_memory(instruction: Instruction, memory: list[float], index: int) -> Instruction:
    """Return an instruction that also records its memory use."""

    def measured(slots: Slots) -> None:
        run = RUN.get(None)
        before = 0.0 if run is None else run.left
        instruction(slots)
        memory[index] = 0.0 if run is None else before - run.left

    return measured
