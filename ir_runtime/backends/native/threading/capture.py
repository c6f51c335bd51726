"""Recording of native kernel calls: the `Replayer` of the backend, and `replayed`, which declares kernels replayable."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING

from ...core.replay import Instruction, RecordedStep, Replayable
from .parallel import at_most_cores, running, threads

if TYPE_CHECKING:
    from .recorder import Recorder

__all__ = ["REPLAYER", "replayed"]


class _Replayer:
    """Records task calls; see `core.replay.Replayer`."""

    around = running

    def key(self, most: int | None = None) -> Hashable:
        """Return the number of threads, at most ``most`` if given, which decides how calls divide their work."""
        return threads() if most is None else at_most_cores(most)

    def recorder(
        self, steps: Sequence[RecordedStep], instructions: Sequence[Instruction], replayed: Mapping[int,
        Collection[int]], of_shapes: Collection[int], constants: Collection[int],
    ) -> Recorder:  # fmt: skip
        """Return a recorder of a run; see `Replayer.recorder`."""
        from .recorder import Recorder  # needed only once a model runs again

        return Recorder(steps, instructions, replayed, of_shapes, constants)


REPLAYER = _Replayer()


def replayed(contents: Sequence[int] = (), alone: bool = True) -> Replayable:
    """Declare a kernel of this backend replayable; `Replayable` explains the arguments and states the requirements."""
    return Replayable(REPLAYER, contents, alone)
