"""Channel shuffle of two groups."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from ....ir.element import ElementType
from ....ir.shape import PartialShape
from ....ir.tensor import Array, TensorType, Value
from ....ops.shape.reshape import Reshape
from ... import Kernel
from ...common.kept_memory import empty
from ...common.layout import channels_first
from .._backend import backend
from ..codegen import ir
from ..codegen.descriptor import Descriptor, i64
from ..codegen.language import device, instruction, types
from ..codegen.vectors import I32, LANES, Emit
from ..threading.parallel import parallel_for, threads_for
from ..threading.task import UNUSED, Task, each_chunk, load_args
from ._windows import F32_SIZE
from .contiguous import contiguous

__all__: list[str] = []

# Elements of the map of a unit.
ROWS_PER_UNIT = 64


class ShuffleJob(Descriptor):
    """The job of `SHUFFLE`."""

    rows: i64
    half_channels: i64


@instruction(types.int64, types.int64, types.int64)
def _interleave(emit: Emit, x: ir.Value, other: ir.Value, y: ir.Value) -> None:
    """Interleave a vector from each of two addresses."""
    first, second = emit.load(x), emit.load(other)
    for part in range(2):
        picked = [place // 2 + LANES * (place % 2) for place in range(part * LANES, (part + 1) * LANES)]
        mask = ir.Constant(ir.VectorType(I32, LANES), picked)
        emit.store(emit.builder.shuffle_vector(first, second, mask), emit.at(y, 4 * LANES * part))


@device
def _shuffle_row(x: int, y: int, half: int) -> None:
    for c in range(0, half, LANES):
        at = F32_SIZE * min(c, half - LANES)
        _interleave(x + at, x + F32_SIZE * half + at, y + 2 * at)


def _shuffle(call: int) -> None:
    address, y, x, _, _, _ = load_args(call)
    job = ShuffleJob.at(address)
    count, half = job.rows, job.half_channels
    for start, end in each_chunk(call, count, ROWS_PER_UNIT):
        for index in range(start, end):
            at = F32_SIZE * 2 * half * index
            _shuffle_row(x + at, y + at, half)


SHUFFLE = Task(_shuffle)
"""Shuffle the channels of elements of a map."""


@backend.accelerates(Reshape)
def shuffle(op: Reshape, data: Value, shape: Value) -> Kernel | None:
    """f32 ``[N, C/2, 2, H, W]``, stored as NHWC with two groups of channels, which are interleaved."""
    target = shape.known()
    dims = data.shape
    if data.element is not ElementType.f32 or target is None or target.size != 4 or dims.rank != 5:
        return None
    if not (dims[1].is_static and dims[1].min >= LANES and dims[2] == 2):
        return None

    @lru_cache(maxsize=16)
    def result(lengths: tuple[int, ...]) -> tuple[int, ...]:
        return op.infer(Value(TensorType(ElementType.f32, PartialShape(lengths))), shape).static

    def kernel(x: Array, _: Array) -> Array:
        images, half, groups, height, width = x.shape
        stored = x.transpose(0, 3, 4, 2, 1)
        if not stored.flags.c_contiguous or result(x.shape) != (images, half * groups, height, width):
            return op.evaluate(x, target)
        y = empty((images, height, width, groups * half), np.float32)
        job = ShuffleJob.fill(rows=images * height * width, half_channels=half)
        shared = threads_for(moved=2 * y.nbytes)
        parallel_for(SHUFFLE.address, job, y, contiguous(stored), UNUSED, UNUSED, shared)
        return channels_first(y)

    return Kernel(kernel)
