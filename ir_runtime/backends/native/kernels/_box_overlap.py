"""Overlap of a box with a vector of boxes, for non-maximum suppression."""

from __future__ import annotations

import numpy as np

from ..codegen import ir
from ..codegen.language import device, instruction, types
from ..codegen.memory import load_f32, store_f32
from ..codegen.vectors import F32, I64, LANES, Emit

__all__ = ["BOX_FIELDS", "add_box", "is_suppressed"]

# Numbers of a box: its corners and its area.
BOX_FIELDS = 5


@instruction(*[types.int64] * 3, types.float32, returns=types.int64)
def _any_overlap(emit: Emit, box: ir.Value, others: ir.Value, apart: ir.Value, limit: ir.Value) -> ir.Value:
    """Return whether one of a vector of boxes overlaps a box with an IoU of at least ``limit``, which is above 0.

    ``others`` has a row for each number of a box. A box with NaN overlaps nothing. Rounded as in the reference.
    """
    builder = emit.builder
    ours = [emit.splat(emit.load(emit.at(box, 4 * i), F32)) for i in range(BOX_FIELDS)]
    theirs = [emit.load(emit.at(others, builder.mul(apart, emit.i64(i)))) for i in range(BOX_FIELDS)]

    def side(i: int) -> ir.Value:
        low, high = emit.maximum(ours[i], theirs[i]), emit.minimum(ours[i + 2], theirs[i + 2])
        return emit.maximum(emit.subtract(high, low), emit.constant(0))

    shared = emit.multiply(side(0), side(1))
    union = emit.subtract(emit.add(theirs[4], ours[4]), shared)
    found = builder.fcmp_ordered(">=", emit.divide(shared, union), emit.splat(limit))
    for fact in (shared, theirs[4], ours[4]):
        found = builder.and_(found, builder.fcmp_ordered(">", fact, emit.constant(0)))
    return builder.zext(builder.bitcast(found, ir.IntType(LANES)), I64)


@device
def is_suppressed(box: int, others: int, apart: int, count: int, limit: np.float32) -> bool:
    """Return whether one of ``count`` boxes, in columns that are ``apart`` bytes from each other, overlaps a box."""
    start = 0
    while start < count and _any_overlap(box, others + 4 * start, apart, limit) == 0:
        start += LANES
    return start < count


@device
def add_box(box: int, others: int, apart: int, count: int) -> None:
    """Add a box to ``count`` others; the rest of a vector has NaN, which overlap nothing."""
    for fact in range(BOX_FIELDS):
        line = others + fact * apart
        if count % LANES == 0:
            for lane in range(LANES):
                store_f32(line, count + lane, np.float32(np.nan))
        store_f32(line, count, load_f32(box, fact))
