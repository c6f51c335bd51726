"""Conversions between common element types, shared among threads."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from ....ir.tensor import Array, Value
from ....ops.type import Convert
from ... import Kernel
from ...core.lengths import any_lengths
from .._backend import backend
from ..codegen.language import device
from ..threading.capture import replayed
from ..threading.recording import is_recording
from ._broadcast_rows import BroadcastJob, broadcast_kernel, broadcast_task
from ._conversion_code import PAIRS, convert_elements

__all__: list[str] = []

# Fewer elements are left to NumPy, unless a run is recorded.
MIN_SIZE = 1 << 10


@device
def _convert_row(job: BroadcastJob, out: int, x: int, _b: int, _c: int, count: int) -> None:
    convert_elements(job.code, x, count, out)


CONVERT = broadcast_task("_convert", _convert_row)
"""Converts the numbers A."""


@backend.accelerates(Convert)
def convert(op: Convert, data: Value) -> Kernel | None:
    """The conversions of `PAIRS`; few numbers are converted where a run is recorded, so that the replay does not end there."""
    pair = PAIRS.get((data.element, op.destination_type))
    if pair is None:
        return None
    evaluate = partial(_convert_distinct, op.evaluate)
    by_task = broadcast_kernel(CONVERT, op.destination_type.dtype, evaluate, pair, MIN_SIZE).run

    def kernel(x: Array) -> Array | tuple[Array, ...]:
        if x.size < MIN_SIZE and not is_recording():
            return evaluate(x)
        return by_task(x) if x.size < MIN_SIZE or _is_dense(x) else evaluate(x)

    return Kernel(kernel, accepts=any_lengths, replay=replayed(alone=False))


def _is_dense(x: Array) -> bool:
    """Return whether elements are contiguous, with their axes in some order."""
    if x.flags.c_contiguous:
        return True
    order = sorted(range(x.ndim), key=lambda axis: -x.strides[axis])
    return bool(x.transpose(order).flags.c_contiguous)


def _convert_distinct(evaluate: Callable[[Array], Array], x: Array) -> Array:
    """Convert numbers; those that stand for several ones of a broadcast array once."""
    if 0 not in x.strides or not x.size:
        return evaluate(x)
    distinct = tuple(slice(None if stride else 1) for stride in x.strides)
    return np.broadcast_to(evaluate(x[distinct]), x.shape)
