"""Rotary position embedding: rows are read once, in vectors, and by several threads."""

from __future__ import annotations

import math
from functools import lru_cache, partial
from typing import Annotated, TypeAlias

import numpy as np

from ....ir.graph import Layer
from ....ir.tensor import Array
from ....ops.arithmetic.binary import Add
from ... import Fusion, Kernel, MatchContext, Refusal
from ...common.kept_memory import empty
from ...core.lengths import any_lengths
from ...patterns.rotary import Rotary, match_rotary
from .._backend import backend
from ..codegen.descriptor import Descriptor, i64
from ..codegen.language import instruction, types
from ..codegen.memory import load_i64
from ..codegen.vectors import Emit, Load, Store, Value
from ..threading.capture import replayed
from ..threading.parallel import parallel_for, threads
from ..threading.task import Task, each_chunk, load_args

__all__: list[str] = []

# Axes beside the last one, rows of a unit, and elements from which on several threads are faster.
OUTER = 3
ROWS_PER_UNIT = 32
MIN_PARALLEL_WORK = 1 << 16
# Jobs that a kernel keeps, for shapes and strides.
MAX_JOBS = 64

_Lengths: TypeAlias = tuple[int, ...]


class RotaryJob(Descriptor):
    """The job of `ROTARY`: the length of half a row, and of the axes of rows; strides in bytes, 0 where rows recur."""

    rows: i64
    half: i64
    lengths: Annotated[int, (np.int64, (OUTER,))]
    x: Annotated[int, (np.int64, (OUTER,))]
    turns: Annotated[int, (np.int64, (OUTER,))]
    other_turns: Annotated[int, (np.int64, (OUTER,))]


@instruction(*[types.int64] * 5)
def _turn_row(emit: Emit, x: Value, cos: Value, sin: Value, half: Value, out: Value) -> None:
    """Turn the points whose coordinates are the halves of a row; products are rounded, as NumPy does."""
    step = emit.builder.mul(half, emit.i64(4))

    def body(offset: Value, load: Load, store: Store) -> None:
        after = emit.at(offset, step)
        first, second = load(emit.at(x, offset)), load(emit.at(x, after))

        def product(row: Value, place: Value, factor: Value) -> Value:
            return emit.fence(emit.multiply(factor, load(emit.at(row, place))))

        left = emit.subtract(product(cos, offset, first), product(sin, offset, second))
        right = emit.add(product(cos, after, second), product(sin, after, first))
        store(left, emit.at(out, offset))
        store(right, emit.at(out, after))

    emit.vector_loop(half, body)


def _rotary(call: int) -> None:
    address, out, x, cos, sin, _ = load_args(call)
    job = RotaryJob.at(address)
    rows, half = job.rows, job.half
    for start, end in each_chunk(call, rows, ROWS_PER_UNIT):
        for row in range(start, end):
            rest, source, turn, other = row, x, cos, sin
            for axis in range(OUTER):
                length = load_i64(job, RotaryJob.lengths + axis)
                place = rest % length
                source += place * load_i64(job, RotaryJob.x + axis)
                turn += place * load_i64(job, RotaryJob.turns + axis)
                other += place * load_i64(job, RotaryJob.other_turns + axis)
                rest = rest // length
            _turn_row(source, turn, other, half, out + 8 * half * row)


ROTARY = Task(_rotary)
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
        parallel_for(ROTARY.address, job, out, x, cos, sin, threads() if x.size >= MIN_PARALLEL_WORK else 1)
        return out

    def _by_numpy(x: Array, cos: Array, sin: Array) -> Array:  # which refuses what does not fit
        first, second = x[..., : width // 2], x[..., width // 2 :]
        return np.asarray(x * cos + np.concatenate([-second, first], -1) * sin)

    return Kernel(kernel, accepts=any_lengths, replay=replayed())


def _job(
    width: int, shape: _Lengths, x: _Lengths, turns: _Lengths, cos: _Lengths, others: _Lengths, sin: _Lengths
) -> Array | None:
    """Return the job for shapes and strides of the tensor, the cosines and the sines; ``None`` for what it cannot do."""
    if not math.prod(shape) or any(lengths[-1:] != (width,) for lengths in (shape, turns, others)):
        return None
    found = [_strides(*each, shape) for each in ((shape, x), (turns, cos), (others, sin))]
    if None in found:
        return None
    lengths = (*shape[-2::-1], *[1] * (OUTER + 1 - len(shape)))
    return RotaryJob.fill(
        rows=math.prod(lengths), half=width // 2, lengths=lengths, x=found[0], turns=found[1],
        other_turns=found[2],
    )  # fmt: skip


def _strides(lengths: _Lengths, strides: _Lengths, shape: _Lengths) -> _Lengths | None:
    """Return the strides along the axes of rows, innermost first; ``None`` where the task cannot read an array.

    That is where it does not broadcast to the shape by rows, or its rows are not contiguous.
    """
    if len(lengths) > len(shape) or len(shape) > OUTER + 1 or strides[-1] != 4:
        return None
    found = []
    for length, stride, wanted in zip(lengths[-2::-1], strides[-2::-1], shape[-2::-1], strict=False):
        if length not in (1, wanted):
            return None
        found.append(stride if length == wanted else 0)
    return (*found, *[0] * (OUTER - len(found)))
