"""Rotary position embedding: rows are read once, in vectors, and by several threads."""

from __future__ import annotations

import math
from functools import lru_cache, partial
from typing import TypeAlias

import numpy as np

from ....ir.graph import Layer
from ....ir.tensor import Array
from ....ops.arithmetic.binary import Add
from ... import Fusion, Kernel, MatchContext, Refusal
from ...common.kept_memory import empty
from ...core.lengths import any_lengths
from ...patterns.rotary import Rotary, match_rotary
from .._backend import backend
from ..codegen.descriptor import i64
from ..codegen.language import device, instruction, types
from ..codegen.vectors import Emit, Load, Value
from ..threading.capture import replayed
from ..threading.parallel import parallel_for, threads_for
from ._nest import (
    Addresses,
    NestJob,
    Place,
    aligned_strides,
    contiguous_strides,
    nest_fields,
    nest_task,
    row_stride,
)

__all__: list[str] = []

# Rows of a block.
ROWS_PER_UNIT = 32
# Jobs that a kernel keeps, for shapes and strides.
MAX_JOBS = 64

_WORD = 4
_Lengths: TypeAlias = tuple[int, ...]


class RotaryJob(NestJob):
    """The job of `ROTARY`: the length of half a row, which is a column."""

    half: i64


@instruction(*[types.int64] * 5)
def _turn_row(emit: Emit, x: Value, cos: Value, sin: Value, half: Value, out: Value) -> None:
    """Turn the points whose coordinates are the halves of a row; products are rounded, as NumPy does."""
    step = emit.builder.mul(half, emit.i64(4))

    def product(load: Load, row: Value, place: Value, factor: Value) -> Value:
        return emit.fence(emit.multiply(factor, load(emit.at(row, place))))

    for offset, load, store in emit.vectors(half):
        after = emit.at(offset, step)
        first, second = load(emit.at(x, offset)), load(emit.at(x, after))
        left = emit.subtract(product(load, cos, offset, first), product(load, sin, offset, second))
        right = emit.add(product(load, cos, after, second), product(load, sin, after, first))
        store(left, emit.at(out, offset))
        store(right, emit.at(out, after))


@device
def _turn_rows(job: RotaryJob, operands: Addresses, place: Place, rows: int, columns: int, room: int) -> None:
    out, x, cos, sin = operands
    for row in range(rows):
        _turn_row(
            x + row * row_stride(job, 1), cos + row * row_stride(job, 2), sin + row * row_stride(job, 3), job.half,
            out + row * row_stride(job, 0),
        )  # fmt: skip


ROTARY = nest_task("_rotary", _turn_rows)
"""Turn rows: A is the tensor, B has the cosines, and C the sines."""


@backend.pattern(Add)
def rotary(context: MatchContext, layer: Layer) -> Fusion | Refusal | None:
    """Match ``x * cos + turned(x) * sin``, f32, with the bits of the reference."""
    found = match_rotary(context, layer)
    if not isinstance(found, Rotary):
        return found
    ROTARY.prepare()
    return Fusion(found.layers, found.reads, _kernel(found.width))


def _kernel(width: int) -> Kernel:
    jobs = lru_cache(maxsize=MAX_JOBS)(partial(_job, width))

    def kernel(x: Array, cos: Array, sin: Array, *_: object) -> Array:
        job = jobs(x.shape, x.strides, cos.shape, cos.strides, sin.shape, sin.strides)
        if job is None:
            return _by_numpy(x, cos, sin)
        out = empty(x.shape, np.float32)
        parallel_for(ROTARY.address, job, out, x, cos, sin, threads_for(moved=4 * x.nbytes))
        return out

    def _by_numpy(x: Array, cos: Array, sin: Array) -> Array:  # which refuses what does not fit
        first, second = x[..., : width // 2], x[..., width // 2 :]
        return np.asarray(x * cos + np.concatenate([-second, first], -1) * sin)

    return Kernel(kernel, accepts=any_lengths, replay=replayed())


def _job(
    width: int, shape: _Lengths, x: _Lengths, turns: _Lengths, cos: _Lengths, others: _Lengths, sin: _Lengths
) -> Array | None:
    """Return the job for shapes and strides of the tensor, cosines and sines; ``None`` if unsupported."""
    if not math.prod(shape) or any(lengths[-1:] != (width,) for lengths in (shape, turns, others)):
        return None
    strides = [_row_strides(*each, shape) for each in ((shape, x), (turns, cos), (others, sin))]
    if any(each is None for each in strides):
        return None
    whole = contiguous_strides(shape)[-2::-1]
    rows = list(zip(shape[-2::-1], whole, *(each for each in strides if each is not None), strict=True))
    fields = nest_fields([(1, 0, 0, 0, 0), *rows], block=ROWS_PER_UNIT)
    return None if fields is None else RotaryJob.fill(**fields, room=0, half=width // 2)


def _row_strides(lengths: _Lengths, strides: _Lengths, shape: _Lengths) -> _Lengths | None:
    """Return the strides along the axes of rows, innermost first; ``None`` where the task cannot read an array.

    That is where it does not broadcast to the shape by rows, or its rows are not contiguous.
    """
    aligned = aligned_strides(lengths, strides, shape, tuple(range(len(shape))))
    return None if aligned is None or strides[-1] != _WORD else aligned[-2::-1]
