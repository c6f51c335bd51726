"""Quotients and remainders of many integers, shared among threads."""

from __future__ import annotations

from ....ir.element import ElementType
from ....ir.tensor import Array, Value
from ....ops.arithmetic.binary import Divide, Division, FloorMod, Mod
from ... import Kernel
from ...common.kept_memory import empty
from ...core.lengths import any_lengths
from .._backend import backend
from ..codegen.language import device
from ..codegen.memory import fetch_add
from ..threading.capture import replayed
from ..threading.parallel import parallel_for, threads
from ..threading.recording import is_recording, was_refused
from ..threading.task import UNUSED
from ._broadcast_rows import BroadcastJob, broadcast_layout, broadcast_task
from ._integer_code import FLOOR_DIVIDE, FLOOR_MOD, MOD, TRUNCATE_DIVIDE, divide_rows

__all__: list[str] = []

# Fewer elements are left to NumPy, unless a run is recorded; from how many on several threads are faster.
MIN_SIZE, MIN_PARALLEL_SIZE = 1 << 9, 1 << 14


@device
def _divide_row(job: BroadcastJob, out: int, a: int, b: int, c: int, count: int) -> None:
    zeros = divide_rows(
        job.code, job.size, job.singles,
        a, b, count, out,
    )  # fmt: skip
    if zeros != 0:
        fetch_add(job + 8 * BroadcastJob.refused)


DIVIDE = broadcast_task("_divide", _divide_row)
"""Divides the integers A by B; rows with a divisor of 0 are counted as refused."""


@backend.accelerates(Divide, Mod, FloorMod)
def divide(op: Division, a: Value, b: Value) -> Kernel | None:
    """i32 or i64 that broadcast as in NumPy."""
    if a.element is not b.element or a.element not in (ElementType.i32, ElementType.i64):
        return None
    if op.auto_broadcast != "numpy":
        return None
    DIVIDE.prepare()
    code = _code(op)

    def kernel(a: Array, b: Array) -> Array:
        size = max(a.size, b.size)
        layout = broadcast_layout((a, b)) if size >= MIN_SIZE or is_recording() else None
        if layout is None:
            return op.evaluate(a, b)
        out = empty(layout.shape, a.dtype)
        job = BroadcastJob.fill(**layout.fields, size=a.itemsize, code=code, refused=0)
        count = threads() if size >= MIN_PARALLEL_SIZE else 1
        x, y = layout.operands((a, b))
        parallel_for(DIVIDE.address, job, out, x, y, UNUSED, count)
        return op.evaluate(a, b) if was_refused(job, BroadcastJob.refused) else out.transpose(layout.back)

    return Kernel(kernel, accepts=any_lengths, replay=replayed(alone=False))


def _code(op: Division) -> int:
    if isinstance(op, Divide):
        return FLOOR_DIVIDE if op.m_pythondiv else TRUNCATE_DIVIDE
    return MOD if isinstance(op, Mod) else FLOOR_MOD
