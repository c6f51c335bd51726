"""Bucketize of f32: by comparison with all bounds if they are few, else by binary search."""

from __future__ import annotations

from functools import partial

import numpy as np

from ....ir.element import ElementType
from ....ir.tensor import Array, Value
from ....ops.condition import Bucketize
from ... import Kernel
from ...common.kept_memory import empty
from ...common.layout import is_f32
from ...core.kernel import any_lengths
from .._backend import backend
from ..codegen import ir
from ..codegen.descriptor import Descriptor, i64
from ..codegen.language import device, instruction, types
from ..codegen.memory import load_f32
from ..codegen.vectors import F32, I64, I64S, INTS, VECTOR, Emit, load_typed, store_typed
from ..threading.capture import replayed
from ..threading.denormals import keep_denormals, set_float_mode
from ..threading.parallel import is_recording, parallel_for, threads_for
from ..threading.task import UNUSED, Task, each_unit
from ._indices import store_index

__all__: list[str] = []

# Elements of a unit of work.
CHUNK = 1 << 10
# Data with fewer elements is left to NumPy, unless a run is recorded.
MIN_SIZE = 1 << 8
# The most bounds that are all compared with each element.
FEW = 128


class BucketizeJob(Descriptor):
    """Parameters of `_bucketize`.

    ``count`` and ``buckets`` are the lengths of the data and of the bounds; ``is_right`` is ``with_right_bound``; ``size``
    is the size of a result element in bytes.
    """

    count: i64
    buckets: i64
    is_right: i64
    size: i64


@instruction(types.int64, types.float32, types.float32, types.int64, returns=types.int64)
def _if_counted(
    emit: Emit, size: ir.Value, bound: ir.Value, number: ir.Value, is_right: ir.Value
) -> ir.Value:
    """Return ``size`` if `_is_counted`, else 0, without a branch."""
    builder = emit.builder
    above, within = (_is_counted(emit, bound, number, value) for value in (True, False))
    holds = builder.select(builder.icmp_signed("!=", is_right, emit.i64(0)), above, within)
    return builder.and_(size, builder.sext(holds, I64))


def _is_counted(emit: Emit, bound: ir.Value, number: ir.Value, is_right: bool) -> ir.Value:
    """Return ``bound < number`` if ``is_right``, else ``not bound > number``."""
    builder = emit.builder
    if is_right:
        return builder.fcmp_ordered("<", bound, number)
    return builder.fcmp_unordered("<=", bound, number)


@instruction(*[types.int64] * 7)
def _count_bounds(
    emit: Emit, size: ir.Value, is_right: ir.Value, x: ir.Value, count: ir.Value, buckets: ir.Value, length: ir.Value,
    out: ir.Value,
) -> None:  # fmt: skip
    """Store the bucket index of each of ``count`` elements: the number of bounds that `_is_counted`, found by comparing with all.

    ``size`` is the size of a result element in bytes, ``length`` the number of bounds.
    """

    def go(kind: ir.Type, is_right: bool) -> None:
        for index, _, mask in emit.masked_strips(count):
            number = load_typed(emit, VECTOR, x, index, mask)
            with emit.loop(length, [buckets, ir.Constant(INTS, None)]) as (_, (place, total), following):
                counted = _is_counted(emit, emit.splat(emit.load(place, F32)), number, is_right)
                following += [
                    emit.at(place, 4),
                    emit.builder.sub(total, emit.builder.sext(counted, INTS)),
                ]
            counts = following[1]
            store_typed(emit, counts if kind == INTS else emit.builder.sext(counts, kind), out, index, mask)

    number = emit.builder.add(emit.builder.mul(size, emit.i64(2)), is_right)
    kinds = (4, INTS), (8, I64S)
    branches = {
        2 * width + right: partial(go, kind, bool(right)) for width, kind in kinds for right in (0, 1)
    }
    emit.switch(number, branches)


@device
def _is_ascending(buckets: int, length: int) -> bool:
    """Return whether no bound is less than the one before it."""
    place = 1
    while place < length and load_f32(buckets, place - 1) <= load_f32(buckets, place):
        place += 1
    return place >= length


@Task
def _bucketize(call: int, job: BucketizeJob, out: int, x: int, buckets: int) -> None:
    """Store the bucket index of each element of A among the bounds B; a unit of work is a chunk of elements.

    The binary search takes the steps of the reference, so the results agree even if bounds are not ascending.
    """
    mode = keep_denormals()
    count, length = job.count, job.buckets
    is_right, size = job.is_right, job.size
    is_counting = length <= FEW and _is_ascending(buckets, length)
    units = (count + CHUNK - 1) // CHUNK
    for unit in each_unit(call, units):
        start, end = unit * CHUNK, min(unit * CHUNK + CHUNK, count)
        if is_counting:
            _count_bounds(size, is_right, x + 4 * start, end - start, buckets, length, out + size * start)
            start = end
        for place in range(start, end):
            number, bucket, rest = load_f32(x, place), 0, length
            while rest > 0:
                half = rest // 2
                bound = load_f32(buckets, bucket + half)
                bucket += _if_counted(half + 1, bound, number, is_right)
                rest = half - _if_counted(1 - (rest & 1), bound, number, is_right)
            store_index(out, place, bucket, size)
    set_float_mode(mode)


@backend.accelerates(Bucketize)
def bucketize(op: Bucketize, data: Value, buckets: Value) -> Kernel | None:
    """Return a Bucketize kernel for f32 data and bounds, or ``None`` for other element types."""
    if not is_f32(data, buckets) or op.output_type not in (ElementType.i32, ElementType.i64):
        return None
    _bucketize.prepare()
    dtype = op.output_type.dtype

    def kernel(x: Array, buckets: Array) -> Array:
        if not x.size or (x.size < MIN_SIZE and not is_recording()):
            return op.evaluate(x, buckets)
        out = empty(x.shape, dtype)
        job = BucketizeJob.fill(
            count=x.size, buckets=buckets.size, is_right=op.with_right_bound, size=dtype.itemsize
        )
        arrays = np.ascontiguousarray(x), np.ascontiguousarray(buckets)
        parallel_for(_bucketize.address, job, out, *arrays, UNUSED, threads_for(steps=x.size))
        return out

    return Kernel(kernel, accepts=any_lengths, replay=replayed(alone=False))
