"""Concatenation of small tensors between steps that are replayed: NumPy would end the replay there."""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from ....ir.tensor import Array, Value
from ....ops.movement.concat import Concat
from ... import Kernel
from ...common.layout import is_f32
from ...core.lengths import any_lengths
from .._backend import backend
from ..threading.capture import replayed
from ..threading.recording import is_recording
from ._copy import COPY, SIZES
from ._join import join

__all__: list[str] = []

# Results with more elements are left to others; those of 4 bytes are mostly copied by rows, as fast as by NumPy.
MAX_SIZE, MAX_ROW_SIZE = 1 << 16, 1 << 20


@backend.accelerates(Concat)
def small(op: Concat, *parts: Value) -> Kernel | None:
    """Few elements, or an open number of them, along any axis: where a run is recorded, by tasks, so that the replay does not end there."""
    rank = parts[0].shape.rank
    if not rank or any(part.shape.rank != rank for part in parts):
        return None
    axis = op.axis % rank
    if is_f32(*parts) and axis == 1 and rank > 2:
        return None  # channels of maps have a kernel of their own
    kinds = {part.element.dtype for part in parts}
    sizes = [math.prod(part.shape.static) for part in parts if part.shape.is_static]
    most = MAX_ROW_SIZE if all(kind.itemsize == 4 for kind in kinds) else MAX_SIZE
    if len(kinds) > 1 or not all(sizes) or sum(sizes) >= most:
        return None
    if not all(kind.kind in "fiub" and kind.itemsize in SIZES for kind in kinds):
        return None
    COPY.prepare()
    return _small(axis)


@cache
def _small(axis: int) -> Kernel:
    def kernel(*arrays: Array) -> Array:
        return join(arrays, axis) if is_recording() else np.concatenate(arrays, axis)

    return Kernel(kernel, accepts=any_lengths, replay=replayed(alone=False))
