"""Conversions between common element types, shared among threads."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ....ir.tensor import Array, Value
from ....ops.type import Convert
from ... import Kernel
from ...common.kept_memory import empty
from ...core.lengths import any_lengths
from .._backend import backend
from ..codegen.descriptor import Descriptor, i64
from ..threading.capture import replayed
from ..threading.parallel import parallel_for, threads
from ..threading.recording import is_recording
from ..threading.task import UNUSED, Task, each_chunk, load_args
from ._conversion_code import PAIRS, convert_elements
from ._strided_copy import STRIDED_COPY
from .contiguous import contiguous

__all__: list[str] = []

# Elements of a unit; fewer in all are left to NumPy, unless a run is recorded; from how many on several threads are faster.
CHUNK = 1 << 13
MIN_SIZE = 1 << 10
MIN_PARALLEL_SIZE = 1 << 15


class ConvertJob(Descriptor):
    """The job of `CONVERT`: the number of elements, the conversion, and bytes of an element of the data and of the result."""

    count: i64
    pair: i64
    source_size: i64
    target_size: i64


def _convert(call: int) -> None:
    """Convert numbers; a unit is a chunk of them."""
    address, out, x, _, _, _ = load_args(call)
    job = ConvertJob.at(address)
    count, pair = job.count, job.pair
    source, target = job.source_size, job.target_size
    for start, end in each_chunk(call, count, CHUNK):
        convert_elements(pair, x + start * source, end - start, out + start * target)


CONVERT = Task(_convert)
"""Converts the numbers A."""


@backend.accelerates(Convert)
def convert(op: Convert, data: Value) -> Kernel | None:
    """The conversions of `PAIRS`; few numbers are converted where a run is recorded, so that the replay does not end there."""
    pair = PAIRS.get((data.element, op.destination_type))
    if pair is None:
        return None
    for task in (CONVERT, STRIDED_COPY):  # the second for few numbers that are not contiguous
        task.prepare()
    dtype = op.destination_type.dtype

    def kernel(x: Array) -> Array:
        if x.size < MIN_SIZE:
            if not is_recording():
                return _distinct(op.evaluate, x)
            x = contiguous(x)
        order = None if not x.size or 0 in x.strides else _memory_order(x)
        if order is None:
            return _distinct(op.evaluate, x)
        ordered = x.transpose(order)
        out = empty(ordered.shape, dtype)
        job = ConvertJob.fill(count=x.size, pair=pair, source_size=x.itemsize, target_size=dtype.itemsize)
        parallel_for(
            CONVERT.address,
            job,
            out,
            ordered,
            UNUSED,
            UNUSED,
            threads() if x.size >= MIN_PARALLEL_SIZE else 1,
        )
        return out.transpose(np.argsort(order))

    return Kernel(kernel, accepts=any_lengths, replay=replayed(alone=False))


def _memory_order(x: Array) -> list[int] | None:
    """Return the axes in memory order; ``None`` if elements are not dense."""
    order = list(range(x.ndim))
    if not x.flags.c_contiguous:
        order.sort(key=lambda axis: -x.strides[axis])
    return order if x.transpose(order).flags.c_contiguous else None


def _distinct(evaluate: Callable[[Array], Array], x: Array) -> Array:
    """Convert numbers; those that stand for several ones of a broadcast array once."""
    if 0 not in x.strides or not x.size:
        return evaluate(x)
    distinct = tuple(slice(None if stride else 1) for stride in x.strides)
    return np.broadcast_to(evaluate(x[distinct]), x.shape)
