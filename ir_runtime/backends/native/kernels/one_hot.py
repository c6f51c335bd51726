"""One-hot encoding, shared among threads: each part of the result is filled, then what stands at its classes is written."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from ....ir.element import ElementType
from ....ir.tensor import Array, Value
from ....ops.sequence.one_hot import OneHot1, OneHot16, OneHotBase
from ... import Kernel
from ...common.kept_memory import empty
from ...core.lengths import any_lengths
from .._backend import backend
from ..codegen import ir
from ..codegen.descriptor import Descriptor, i64
from ..codegen.language import instruction, types
from ..codegen.typed import store_typed, typed_loop
from ..codegen.vectors import Emit
from ..threading.capture import replayed
from ..threading.parallel import parallel_for, threads_for
from ..threading.recording import is_recording
from ..threading.task import UNUSED, Task, each_unit, load_args
from ._copy import SIZES
from ._indices import load_index

__all__: list[str] = []

# Elements of a unit where that is possible; results with fewer are left to NumPy, unless a run is recorded.
BLOCK = 1 << 13
MIN_SIZE = 1 << 11


class OneHotJob(Descriptor):
    """The job of `ONE_HOT`: lengths before, of, and behind the axis of classes, and how many of the first two a unit has.

    ``added`` is what negative classes are increased by; sizes are in bytes; values are bits.
    """

    outer: i64
    depth: i64
    inner: i64
    block_outer: i64
    block_depth: i64
    added: i64
    index_size: i64
    size: i64
    on_value: i64
    off_value: i64


@instruction(*[types.int64] * 4)
def _fill(emit: Emit, size: ir.Value, value: ir.Value, count: ir.Value, out: ir.Value) -> None:
    """Store the lowest ``size`` bytes of a number ``count`` times."""

    def go(width: int) -> None:
        kind = ir.IntType(8 * width)
        same = emit.splat(value if width == 8 else emit.builder.trunc(value, kind))
        typed_loop(emit, count, lambda index, mask: store_typed(emit, same, out, index, mask))

    emit.switch(size, {width: partial(go, width) for width in SIZES})


def _one_hot(call: int) -> None:
    """Fill and set blocks; a unit has some of the outer indices, and some of the classes."""
    address, out, indices, _, _, _ = load_args(call)
    job = OneHotJob.at(address)
    outer, depth, inner = (
        job.outer, job.depth, job.inner,
    )  # fmt: skip
    tall, deep = job.block_outer, job.block_depth
    size, index_size = job.size, job.index_size
    added = job.added
    across = (depth + deep - 1) // deep
    units = (outer + tall - 1) // tall * across
    for unit in each_unit(call, units):
        top, first = unit // across * tall, unit % across * deep
        end = min(first + deep, depth)
        for row in range(top, min(top + tall, outer)):
            place = out + size * (row * depth + first) * inner
            _fill(size, job.off_value, (end - first) * inner, place)
            for column in range(inner):
                found = load_index(indices, row * inner + column, index_size)
                if found < 0:
                    found += added
                if first <= found < end:
                    at = out + size * ((row * depth + found) * inner + column)
                    _fill(size, job.on_value, 1, at)


ONE_HOT = Task(_one_hot)
"""Encodes the classes A."""


@backend.accelerates(OneHot1, OneHot16)
def one_hot(op: OneHotBase, indices: Value, depth: Value, on_value: Value, off_value: Value) -> Kernel | None:
    """Classes of i32 or i64, and values of whole bytes."""
    if indices.element not in (ElementType.i32, ElementType.i64) or indices.shape.rank is None:
        return None
    dtype = on_value.element.dtype
    if on_value.element is not off_value.element or dtype.hasobject or dtype.itemsize not in SIZES:
        return None
    axis = op.axis % (indices.shape.rank + 1)
    normalizes = isinstance(op, OneHot16) and op.negative_indices_mode == "normalize"
    ONE_HOT.prepare()

    def kernel(indices: Array, depth: Array, on_value: Array, off_value: Array) -> Array:
        classes = int(depth.item())
        size = indices.size * max(classes, 0)
        if not size or (size < MIN_SIZE and not is_recording()):
            return op.evaluate(indices, depth, on_value, off_value)
        shape = (*indices.shape[:axis], classes, *indices.shape[axis:])
        out, inner = empty(shape, dtype), math.prod(indices.shape[axis:])
        deep = min(max(BLOCK // inner, 1), classes)
        job = OneHotJob.fill(
            outer=math.prod(indices.shape[:axis]), depth=classes, inner=inner, block_depth=deep,
            block_outer=max(BLOCK // (deep * inner), 1), added=classes if normalizes else 0,
            index_size=indices.itemsize, size=dtype.itemsize, on_value=_bits(on_value), off_value=_bits(off_value),
        )  # fmt: skip
        count = threads_for(steps=size // 8)
        parallel_for(ONE_HOT.address, job, out, np.ascontiguousarray(indices), UNUSED, UNUSED, count)
        return out

    return Kernel(kernel, accepts=any_lengths, replay=replayed(contents=[1, 2, 3], alone=False))


def _bits(number: Array) -> int:
    """Return the bytes of a number as the lowest ones of a signed integer of 64 bits."""
    return int.from_bytes(number.tobytes().ljust(8, b"\0"), "little", signed=True)
