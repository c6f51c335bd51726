"""And, or, and exclusive or of few booleans, as in masks: where a run is recorded, so that the replay does not end there."""

from __future__ import annotations

from functools import partial

import numpy as np
from llvmlite import ir

from ....ir.element import ElementType
from ....ir.tensor import Array, Value
from ....ops.bitwise import BitwiseAnd, BitwiseOr, BitwiseXor
from ....ops.elementwise import Binary
from ....ops.logical import LogicalAnd, LogicalOr, LogicalXor
from ... import Kernel
from ...common.kept_memory import empty
from ...core.lengths import accepting, any_lengths
from .._backend import backend
from ..codegen.descriptor import Descriptor, i64
from ..codegen.language import instruction, types
from ..codegen.memory import load_i64
from ..codegen.vectors import Emit
from ..threading.capture import replayed
from ..threading.parallel import parallel_for
from ..threading.recording import is_recording
from ..threading.task import UNUSED, Task, load_args
from ._strided_copy import STRIDED_COPY, broadcast_together

__all__: list[str] = []

_CODES: dict[type[Binary], int] = {
    BitwiseAnd: 0, LogicalAnd: 0, BitwiseOr: 1, LogicalOr: 1, BitwiseXor: 2, LogicalXor: 2,
}  # fmt: skip
_BYTE = ir.IntType(8)


class BooleansJob(Descriptor):
    """The job of `BOOLEANS`: the number of elements, and the operation."""

    count: i64
    code: i64


@instruction(*[types.int64] * 5)
def _combine(
    emit: Emit, code: ir.Value, count: ir.Value, a: ir.Value, b: ir.Value, out: ir.Value
) -> None:  # fmt: skip
    """Store the results of ``count`` pairs of bytes."""
    builder = emit.builder

    def go(index: int) -> None:
        combine = (builder.and_, builder.or_, builder.xor)[index]
        with emit.loop(count, [a, b, out]) as (_, places, following):
            *read, write = (builder.inttoptr(place, ir.PointerType(_BYTE)) for place in places)
            builder.store(combine(*(builder.load(at, typ=_BYTE) for at in read)), write)
            following += [emit.at(place, 1) for place in places]

    emit.switch(code, {index: partial(go, index) for index in range(3)})


def _booleans(call: int) -> None:
    """Combine all; only one thread is called."""
    job, out, a, b, _, _ = load_args(call)
    _combine(load_i64(job, BooleansJob.code), load_i64(job, BooleansJob.count), a, b, out)


BOOLEANS = Task(_booleans)
"""Combines A and B, which have the shape of the result."""


@backend.accelerates(*_CODES)
def booleans(op: Binary, a: Value, b: Value) -> Kernel | None:
    """Booleans that broadcast as in NumPy; in other runs, NumPy combines them as fast."""
    if {a.element, b.element} != {ElementType.boolean} or op.auto_broadcast == "pdpd":
        return None
    for task in (BOOLEANS, STRIDED_COPY):
        task.prepare()

    def kernel(a: Array, b: Array) -> Array:
        found = _combined(_CODES[type(op)], a, b) if is_recording() else None
        return op.evaluate(a, b) if found is None else found

    return accepting(replayed(kernel, alone=False), any_lengths)


def _combined(code: int, a: Array, b: Array) -> Array | None:
    """Return the result by tasks, ``None`` where they cannot."""
    if (found := broadcast_together(a, b)) is None:
        return None
    out = empty(found[0].shape, np.bool_)
    job = BooleansJob.fill(count=out.size, code=code)
    parallel_for(BOOLEANS.address, job, out, found[0], found[1], UNUSED, 1)
    return out
