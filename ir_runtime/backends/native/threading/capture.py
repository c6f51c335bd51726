"""Recording of kernel calls, and the threads that replay them."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING

from ...core.replay import Instruction, RecordedStep, Replayable
from .parallel import at_most_cores, running, threads

if TYPE_CHECKING:
    from .recorder import Recorder

__all__ = ["REPLAYER", "replayed"]


class _Replayer:
    """Records runs of tasks."""

    around = running

    def key(self, most: int | None = None) -> Hashable:
        """Return the number of threads."""
        return threads() if most is None else at_most_cores(most)

    def recorder(
        self, steps: Sequence[RecordedStep], instructions: Sequence[Instruction], replayed: Mapping[int,
        Collection[int]], of_shapes: Collection[int], constants: Collection[int],
    ) -> Recorder:  # fmt: skip
        """Return a recorder of a run, as `Replayer`."""
        from .recorder import Recorder  # once a model runs again

        return Recorder(steps, instructions, replayed, of_shapes, constants)


REPLAYER = _Replayer()


def replayed(contents: Sequence[int] = (), alone: bool = True) -> Replayable:
    """Return the recording policy of a kernel; `Replayable` describes the requirements."""
    return Replayable(REPLAYER, contents, alone)
