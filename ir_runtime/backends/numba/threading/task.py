"""Tasks: kernels whose units of work are shared by threads.

A task is a routine that is given the address of a call: words that hold addresses, and counters, all 0. `load_args`
returns

    job            the descriptor of the task
    out, a, b, c   the result, and the inputs; `load_fourth` returns another one
    counter        counts the units that threads have taken with `fetch_add`; the words after it are free counters

Threads take units dynamically: one that comes late, or is interrupted, takes fewer. Phases of one call count their
units separately; between phases, `barrier` waits for units that other threads have begun, and for nothing else, so no
thread waits for one that has not arrived.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..codegen.language import Routine, device, types
from ..codegen.memory import load_i64, store_i64
from ..jit.loader import loader

__all__ = ["CALL_WORDS", "UNUSED", "Task", "load_args", "load_fourth", "store_args"]

# Index of the first counter, and words of a call: counters are on separate cache lines.
_COUNTER, CALL_WORDS = 8, 32

UNUSED = np.empty(0, np.float32)
"""Placeholder for an array that a task does not read."""


class Task(Routine):
    """A routine that takes the address of a call."""

    def __init__(self, function: Callable[[int], None]) -> None:
        super().__init__(function, (types.int64,))
        self._address = 0

    def prepare(self) -> None:
        """Load or build the machine code: when a model is compiled rather than in its first run."""
        self._address = self._address or loader().address(self)

    @property
    def address(self) -> int:
        """Address of the machine code."""
        if not self._address:
            self.prepare()
        return self._address


@device
def store_args(call: int, job: int, out: int, a: int, b: int, c: int, d: int) -> None:
    """Store the addresses that a task is called with."""
    store_i64(call, 0, job)
    store_i64(call, 1, out)
    store_i64(call, 2, a)
    store_i64(call, 3, b)
    store_i64(call, 4, c)
    store_i64(call, 5, d)


@device
def load_args(call: int) -> tuple[int, int, int, int, int, int]:
    """Load the addresses of the job, the result, three inputs, and the counters."""
    return (
        load_i64(call, 0), load_i64(call, 1), load_i64(call, 2), load_i64(call, 3), load_i64(call, 4),
        call + 8 * _COUNTER,
    )  # fmt: skip


@device
def load_fourth(call: int) -> int:
    """Load the address of a fourth input."""
    found: int = load_i64(call, 5)
    return found
