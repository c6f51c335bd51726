"""Conversions of few integers and booleans, as of positions and masks: where a run is recorded, so that the replay does not end there."""

from __future__ import annotations

import numpy as np
from llvmlite import ir

from ....arrays import DType
from ....ir.element import ElementType
from ....ir.tensor import Array, Value
from ....ops.type import Convert
from ... import Kernel
from ...core.lengths import accepting, any_lengths
from .._backend import backend
from ..codegen.descriptor import Descriptor, i64
from ..codegen.language import instruction, types
from ..codegen.memory import load_i64
from ..codegen.vectors import F32, Emit
from ..threading.capture import replayed
from ..threading.parallel import parallel_for
from ..threading.recording import is_recording
from ..threading.task import UNUSED, Task, load_args
from ._indices import load_boolean, load_index, store_boolean, store_index

__all__: list[str] = []

# More elements are left to NumPy.
MAX_SIZE = 1 << 12

_SOURCES = (ElementType.boolean, ElementType.i32, ElementType.i64)


class ConvertJob(Descriptor):
    """The job of `CONVERT`: sizes in bytes, 1 for booleans; ``target_size`` is 0 for f32."""

    count: i64
    source_size: i64
    target_size: i64


@instruction(types.int64, types.int64, types.int64)
def _store_number(emit: Emit, address: ir.Value, place: ir.Value, number: ir.Value) -> None:
    """Store an integer as f32."""
    builder = emit.builder
    emit.store(builder.sitofp(number, F32), emit.at(address, builder.mul(place, emit.i64(4))))


def _convert(call: int) -> None:
    """Convert all numbers; only one thread is called."""
    job, out, x, _, _, _ = load_args(call)
    source, target = load_i64(job, ConvertJob.source_size), load_i64(job, ConvertJob.target_size)
    for place in range(load_i64(job, ConvertJob.count)):
        number = load_boolean(x, place) if source == 1 else load_index(x, place, source)
        if target == 0:
            _store_number(out, place, number)
        elif target == 1:
            store_boolean(out, place, number)
        else:
            store_index(out, place, number, target)


CONVERT = Task(_convert)
"""Converts the integers or booleans A."""


@backend.accelerates(Convert)
def convert(op: Convert, data: Value) -> Kernel | None:
    """i32, i64 and booleans to each other, modulo their size, and to f32; in other runs, NumPy converts as fast."""
    source, target = data.element, op.destination_type
    if source is target or source not in _SOURCES or target not in (*_SOURCES, ElementType.f32):
        return None
    CONVERT.prepare()
    dtype = target.dtype

    def kernel(x: Array) -> Array:
        if not is_recording() or not 0 < x.size <= MAX_SIZE or not x.flags.c_contiguous:
            return _converted(x, dtype)
        out = np.empty(x.shape, dtype)
        size = 0 if dtype == np.float32 else dtype.itemsize
        job = ConvertJob.fill(count=x.size, source_size=x.itemsize, target_size=size)
        parallel_for(CONVERT.address, job, out, x, UNUSED, UNUSED, 1)
        return out

    return accepting(replayed(kernel, alone=False), any_lengths)


def _converted(x: Array, dtype: DType) -> Array:
    """Convert numbers; those that stand for several ones of a broadcast array once."""
    if 0 not in x.strides or not x.size:
        return x.astype(dtype, copy=False)
    distinct = tuple(slice(None if stride else 1) for stride in x.strides)
    return np.broadcast_to(x[distinct].astype(dtype, copy=False), x.shape)
