"""Quotients and remainders of many integers, shared among threads."""

from __future__ import annotations

from ....ir.element import ElementType
from ....ir.tensor import Value
from ....ops.arithmetic.binary import Divide, Division, FloorMod, Mod
from ... import Kernel
from .._backend import backend
from ..codegen.language import device
from ..codegen.memory import fetch_add
from ._broadcast_rows import BroadcastJob, broadcast_kernel, broadcast_task
from ._integer_code import FLOOR_DIVIDE, FLOOR_MOD, MOD, TRUNCATE_DIVIDE, divide_rows

__all__: list[str] = []

# Fewer elements are left to NumPy, unless a run is recorded; about how long one takes, in eighths of a nanosecond.
MIN_SIZE, STEPS = 1 << 9, 2


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
    return broadcast_kernel(DIVIDE, a.element.dtype, op.evaluate, _code(op), MIN_SIZE, STEPS, refuses=True)


def _code(op: Division) -> int:
    if isinstance(op, Divide):
        return FLOOR_DIVIDE if op.m_pythondiv else TRUNCATE_DIVIDE
    return MOD if isinstance(op, Mod) else FLOOR_MOD
