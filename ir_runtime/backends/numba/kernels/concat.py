"""Joining maps of channels: the threads copy what lies beside each other, element by element of the map."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from llvmlite import ir

from ....ir.tensor import Array, Value
from ....ops.movement.concat import Concat
from ... import Kernel
from ...common.layout import channels_first, is_f32
from ...core.lengths import accepting, any_lengths
from .._backend import backend
from ..codegen.language import instruction, types
from ..codegen.memory import fetch_add, load_i64
from ..codegen.vectors import I64, Emit
from ..threading.parallel import parallel_for, threads
from ..threading.task import UNUSED, Task, load_args

__all__: list[str] = []

# Results of fewer numbers than this are left to NumPy, as all are where there is one thread.
WORTH = 1 << 16
# Elements of the map that a thread takes at a time, so that what is read stays in the first cache.
SEVERAL = 32
# Words for a part: where it lies, bytes between its elements, and its channels.
_PART = 3


@instruction(*[types.int64] * 3)
def _copied(emit: Emit, x: Any, size: Any, out: Any) -> None:
    """Copy so many bytes, as C's library does it best."""
    pointer = ir.PointerType()
    places = [emit.builder.inttoptr(place, pointer) for place in (out, x)]
    copy = emit.function("memcpy", pointer, pointer, pointer, I64)
    emit.builder.call(copy, [*places, size])


def _join(call: int) -> None:
    """A unit is some elements of the map, of all parts."""
    job, out, table, _, _, counter = load_args(call)
    rows, parts, channels = load_i64(job, 0), load_i64(job, 1), load_i64(job, 2)
    start = fetch_add(counter) * SEVERAL
    while start < rows:
        some = min(SEVERAL, rows - start)
        target = out + 4 * channels * start
        for part in range(parts):
            entry = table + 8 * _PART * part
            stride, count = load_i64(entry, 1), load_i64(entry, 2)
            source = load_i64(entry, 0) + start * stride
            for row in range(some):
                _copied(source + row * stride, 4 * count, target + 4 * channels * row)
            target += 4 * count
        start = fetch_add(counter) * SEVERAL


JOIN = Task(_join)
"""Its job: elements of the map, parts, and channels of the result; the parts are read as A."""


@backend.accelerates(Concat)
def channels(op: Concat, *parts: Value) -> Kernel | None:
    """f32 ``[N, C, H, W]`` along the channels, which are stored last."""
    if not is_f32(*parts) or op.axis not in (1, -3) or any(part.shape.rank != 4 for part in parts):
        return None
    join, axis = np.concatenate, op.axis
    JOIN.prepare()

    def kernel(*arrays: Array) -> Array:
        n, _, height, width = arrays[0].shape
        count = sum(x.shape[1] for x in arrays)
        size = n * height * width * count
        if size < WORTH or threads() == 1 or not all(_in_rows(x, (n, height, width)) for x in arrays):
            return join(arrays, axis)
        y = np.empty((n, height, width, count), np.float32)
        job = np.array([n * height * width, len(arrays), count], np.int64)
        parallel_for(JOIN.address, job, y, _table(arrays), UNUSED, UNUSED, threads())
        return channels_first(y)

    return accepting(kernel, any_lengths)


def _in_rows(x: Array, lengths: tuple[int, int, int]) -> bool:
    """Whether channels lie side by side, and elements of the map at equal distances."""
    images, height, width = lengths
    far, near, down, across = x.strides
    whole = (far == height * down or images == 1) and (down == width * across or height == 1)
    return near == 4 and whole and (x.shape[0], *x.shape[2:]) == lengths


def _table(arrays: Sequence[Array]) -> Array:
    words = [n for x in arrays for n in (x.ctypes.data, x.strides[3], x.shape[1])]
    return np.array(words, np.int64)
