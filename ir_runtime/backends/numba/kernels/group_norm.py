"""Normalizations of groups of channels, or of each: what lies side by side are channels, so sums go down columns."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import numpy as np

from ....ir.tensor import Array, Value
from ....ops.normalization import MVN, GroupNormalization
from ... import Kernel
from ...common.layout import channels_first, channels_last, is_f32
from ...core.lengths import any_lengths
from .._backend import backend
from ..codegen.language import device, instruction, types
from ..codegen.memory import alloc, fetch_add, free, load_f32, load_i64, store_f32
from ..codegen.vectors import LANES, Emit, Load, Store
from ..threading.parallel import parallel_for, threads
from ..threading.task import Task, contiguous, load_args
from ._epilogue import Epilogue, Finish, Fused, conclude
from .normalization import WORTH, Mode, factor_of

__all__: list[str] = []

# Elements of the map, and channels at least, that are gone over at a time: they stay in the first cache.
ROWS = 64
WIDE = 4 * LANES


def _down(term: Callable[[Emit, Any, Any, Any], Any]) -> Any:
    """An instruction that adds to a row, column by column, what ``term`` makes of several rows and one of means.

    Arguments: the rows, bytes between them, how many, numbers in each; the sums, the means.
    """

    def write(emit: Emit, x: Any, stride: Any, rows: Any, count: Any, sums: Any, means: Any) -> None:
        def body(offset: Any, load: Load, store: Store) -> None:
            place, mean = emit.at(sums, offset), load(emit.at(means, offset))
            with emit.loop(rows, [emit.at(x, offset), emit.constant(0)]) as (_, (at, sum), following):
                following += [emit.at(at, stride), term(emit, sum, load(at), mean)]
            store(emit.add(load(place), following[1]), place)

        emit.vector_loop(count, body)

    return instruction(*[types.int64] * 6)(write)


def _square(emit: Emit, sum: Any, x: Any, mean: Any) -> Any:
    more = emit.subtract(x, mean)
    return emit.fma(more, more, sum)


_totals, _squares = _down(lambda emit, sum, x, _: emit.add(sum, x)), _down(_square)


@instruction(*[types.int64] * 8)
def _centred(
    emit: Emit, x: Any, stride: Any, rows: Any, count: Any, out: Any, means: Any, factors: Any, shifts: Any
) -> None:
    """``(x - mean) * factor + shift``, each a row."""

    def body(offset: Any, load: Load, store: Store) -> None:
        mean, factor, shift = (load(emit.at(row, offset)) for row in (means, factors, shifts))
        with emit.loop(rows, [emit.at(x, offset), emit.at(out, offset)]) as (_, (at, target), following):
            store(emit.fma(emit.subtract(load(at), mean), factor, shift), target)
            following += [emit.at(at, stride), emit.at(target, stride)]

    emit.vector_loop(count, body)


@device
def _mean(sums: int, first: int, width: int, size: int) -> Any:
    """That of a group, from the sums of its channels, which become 0."""
    total = np.float32(0)
    for c in range(first, first + width):
        total += load_f32(sums, c)
        store_f32(sums, c, np.float32(0))
    return total / np.float32(width * size)


def _normalise(call: int) -> None:
    job, out, x, partner, second, counter = load_args(call)
    units, blocks, size, channels = load_i64(job, 0), load_i64(job, 1), load_i64(job, 2), load_i64(job, 3)
    width, most, mode, eps = load_i64(job, 4), load_i64(job, 5), load_i64(job, 6), load_f32(job, 14)
    scale, shift, words, numbers = load_i64(job, 8), load_i64(job, 9), load_i64(job, 10), load_i64(job, 11)
    stride, means = 4 * channels, alloc(8 * most)
    sums = means + 4 * most
    unit = fetch_add(counter)
    while unit < units:
        first = unit % blocks * most
        count, start = min(most, channels - first), 4 * (unit // blocks * size * channels + first)
        for c in range(2 * most):
            store_f32(means, c, np.float32(0))
        for row in range(0, size, ROWS):
            _totals(x + start + row * stride, stride, min(ROWS, size - row), count, sums, means)
        for group in range(0, count, width):
            mean = _mean(sums, group, width, size)
            for c in range(group, group + width):
                store_f32(means, c, mean)
        for row in range(0, size, ROWS):
            _squares(x + start + row * stride, stride, min(ROWS, size - row), count, sums, means)
        for group in range(0, count, width):
            factor = factor_of(_mean(sums, group, width, size), eps, mode)
            for c in range(group, group + width):
                store_f32(sums, c, factor * load_f32(scale, first + c))
        for row in range(0, size, ROWS):
            at, rows = start + row * stride, min(ROWS, size - row)
            _centred(x + at, stride, rows, count, out + at, means, sums, shift + 4 * first)
            conclude(words, numbers, partner, second, out, at, 4 * first, rows, count, stride)
        unit = fetch_add(counter)
    free(means)


NORMALISE = Task(_normalise)
"""Takes whole groups of channels of an image.

Its job: units, those of an image; elements of a map, channels; channels of a group and of a unit; a `Mode`; the f32
that is added to the variance; addresses of what each channel is multiplied with in the end, of what is added to it,
and of the words and numbers of what follows.
"""


@backend.accelerates(GroupNormalization)
def group_norm(op: GroupNormalization, data: Value, scale: Value, bias: Value) -> Kernel | None:
    """f32 of so many channels, with constant scale and bias."""
    factors, shifts = scale.known(), bias.known()
    if not is_f32(data, scale, bias) or factors is None or shifts is None:
        return None
    if not data.shape.rank or not data.shape[1].is_static:
        return None
    make = partial(_kernel, op.num_groups, Mode.INSIDE, op.epsilon, 2)
    return Fused(make, 1, Epilogue(factors, shifts))


@backend.accelerates(MVN)
def instance_norm(op: MVN, data: Value, axes: Value) -> Kernel | None:
    """f32 over all axes behind the channels, which are more than one."""
    rank, found = data.shape.rank, axes.ints()
    if not is_f32(data) or not rank or rank < 4 or found is None:
        return None
    if {axis % rank for axis in found} != set(range(2, rank)):
        return None
    return Fused(partial(_kernel, None, Mode.of(op), op.eps, 1), 1, accepts=any_lengths)


def _kernel(groups: int | None, mode: Mode, eps: float, others: int, epilogue: Epilogue) -> Kernel:
    """Of so many groups, or of each channel; before the inputs of ``epilogue`` are ``others``, not read here."""
    ending = Finish.of(epilogue)
    rows = [
        np.full(1, usual, np.float32) if row is None else row.reshape(-1)
        for row, usual in ((epilogue.scale, 1), (epilogue.shift, 0))
    ]

    @lru_cache(maxsize=16)
    def job_for(images: int, channels: int, size: int) -> tuple[Array, Any]:
        width = channels // groups if groups else 1
        several = math.lcm(width, LANES)
        most = min(several * -(-WIDE // several), channels)
        blocks = -(-channels // most)
        kept = [np.ascontiguousarray(np.broadcast_to(row, channels)) for row in rows]
        words = [images * blocks, blocks, size, channels, width, most, mode, 0]
        arrays = (*kept, ending.words, ending.numbers)
        job = np.array([*words, *(array.ctypes.data for array in arrays)], np.int64)
        job.view(np.float32)[14] = eps
        return job, kept

    def kernel(x: Array, *rest: Array) -> Array:
        source = contiguous(channels_last(x))
        y = np.empty(source.shape, np.float32)
        if y.size:
            job, _ = job_for(len(x), x.shape[1], math.prod(x.shape[2:]))
            first, second = ending.partners(rest[others:], 1)
            parallel_for(
                NORMALISE.address, job, y, source, first, second, threads() if y.size >= WORTH else 1
            )
        return channels_first(y)

    return kernel
