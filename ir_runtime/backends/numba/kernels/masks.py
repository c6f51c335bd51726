"""Comparisons of few integers, and Select, as in masks: where a run is recorded, so that the replay does not end there."""

from __future__ import annotations

import numpy as np

from ....ir.element import ElementType
from ....ir.operation import Operation
from ....ir.tensor import Array, Value
from ....ops.comparison import Equal, Greater, GreaterEqual, Less, LessEqual, NotEqual
from ....ops.condition import Select
from ... import Kernel
from ...core.lengths import accepting, any_lengths
from .._backend import backend
from ..codegen.descriptor import Descriptor, i64
from ..codegen.memory import load_i64
from ..threading.capture import replayed
from ..threading.parallel import parallel_for
from ..threading.recording import is_recording
from ..threading.task import UNUSED, Task, load_args
from ._indices import load_boolean, load_index, store_boolean, store_index
from ._strided_copy import STRIDED_COPY, broadcast_together

__all__: list[str] = []

_INTEGERS = (ElementType.i32, ElementType.i64)
# Whether the question is "less", else "equal"; whether operands are swapped; whether the answer is negated.
_QUESTIONS: dict[type[Operation], tuple[bool, bool, bool]] = {
    Equal: (False, False, False), NotEqual: (False, False, True), Less: (True, False, False),
    GreaterEqual: (True, False, True), Greater: (True, True, False), LessEqual: (True, True, True),
}  # fmt: skip


class MaskJob(Descriptor):
    """The job of `COMPARE` and `SELECT`: the number of elements, their bytes, and the question."""

    count: i64
    size: i64
    is_less: i64
    is_negated: i64


def _compare(call: int) -> None:
    """Compare all; only one thread is called."""
    job, out, a, b, _, _ = load_args(call)
    size, is_less = load_i64(job, MaskJob.size), load_i64(job, MaskJob.is_less)
    answer = 1 - load_i64(job, MaskJob.is_negated)
    for place in range(load_i64(job, MaskJob.count)):
        x, y = load_index(a, place, size), load_index(b, place, size)
        holds = x < y if is_less != 0 else x == y
        store_boolean(out, place, answer if holds else 1 - answer)


def _select(call: int) -> None:
    """Select all; only one thread is called."""
    job, out, condition, then, otherwise, _ = load_args(call)
    size = load_i64(job, MaskJob.size)
    for place in range(load_i64(job, MaskJob.count)):
        source = then if load_boolean(condition, place) != 0 else otherwise
        store_index(out, place, load_index(source, place, size), size)


COMPARE, SELECT = Task(_compare), Task(_select)
"""Compare A and B; take B where A holds, and else C. All have the shape of the result."""


@backend.accelerates(*_QUESTIONS)
def compare(op: Operation, a: Value, b: Value) -> Kernel | None:
    """i32 or i64 that broadcast as in NumPy; in other runs, NumPy compares as fast."""
    if a.element is not b.element or a.element not in _INTEGERS or not _is_numpy(op):
        return None
    is_less, is_swapped, is_negated = _QUESTIONS[type(op)]
    for task in (COMPARE, STRIDED_COPY):
        task.prepare()

    def kernel(a: Array, b: Array) -> Array:
        found = broadcast_together(b, a) if is_swapped else broadcast_together(a, b)
        if found is None:
            return np.asarray(op.evaluate(a, b))
        out = np.empty(found[0].shape, np.bool_)
        job = MaskJob.fill(count=out.size, size=a.itemsize, is_less=is_less, is_negated=is_negated)
        parallel_for(COMPARE.address, job, out, found[0], found[1], UNUSED, 1)
        return out

    return _for_few(kernel, op)


@backend.accelerates(Select)
def select(op: Select, condition: Value, then: Value, otherwise: Value) -> Kernel | None:
    """f32, i32 or i64 that broadcast as in NumPy; in other runs, NumPy selects as fast."""
    kinds = (ElementType.f32, *_INTEGERS)
    if then.element is not otherwise.element or then.element not in kinds or not _is_numpy(op):
        return None
    for task in (SELECT, STRIDED_COPY):
        task.prepare()

    def kernel(condition: Array, then: Array, otherwise: Array) -> Array:
        found = broadcast_together(condition, then, otherwise)
        if found is None:
            return op.evaluate(condition, then, otherwise)
        out = np.empty(found[0].shape, then.dtype)
        job = MaskJob.fill(count=out.size, size=then.itemsize, is_less=0, is_negated=0)
        parallel_for(SELECT.address, job, out, found[0], found[1], found[2], 1)
        return out

    return _for_few(kernel, op)


def _is_numpy(op: Operation) -> bool:
    return getattr(op, "auto_broadcast", "") == "numpy"


def _for_few(recorded: Kernel, op: Operation) -> Kernel:
    """Return a kernel that computes by tasks where a run is recorded."""
    evaluate = op.evaluate

    def kernel(*arrays: Array) -> Array | tuple[Array, ...]:
        return recorded(*arrays) if is_recording() else evaluate(*arrays)

    return accepting(replayed(kernel, alone=False), any_lengths)
