"""Group and instance normalization in NHWC layout, computed from the column sums of a feature map."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache, partial

import numpy as np

from ....ir.tensor import Array, Value
from ....ops.normalization import MVN, GroupNormalization
from ... import Kernel, KernelTemplate
from ...common.kept_memory import empty
from ...common.layout import channels_first, channels_last, is_f32
from ...core.kernel import any_lengths
from .._backend import backend
from ..codegen import ir
from ..codegen.descriptor import Descriptor, f32, i64
from ..codegen.language import Instruction, device, instruction, types
from ..codegen.memory import load_f32, scratch_memory, store_f32
from ..codegen.vectors import LANES, Emit
from ..threading.capture import replayed
from ..threading.parallel import parallel_for, threads_for
from ..threading.task import Task, each_unit
from ._copy import contiguous
from ._epilogue import Epilogue, EpilogueField, FusedKernel, PackedEpilogue, apply_epilogue
from .normalization import GROW, NEGLIGIBLE, SHRINK, Mode, overflows, reciprocal_deviation

__all__: list[str] = []

# Rows and minimum channels of a block of the map, which stays in the L1 cache.
ROWS = 64
MIN_CHANNELS = 4 * LANES


def _column_reduction(term: Callable[[Emit, ir.Value, ir.Value, ir.Value], ir.Value]) -> Instruction:
    """Return an instruction ``(x, stride, rows, count, sums, means)`` that adds a term of each row to the sums."""

    def write(
        emit: Emit, x: ir.Value, stride: ir.Value, rows: ir.Value, count: ir.Value, sums: ir.Value, means:
        ir.Value,
    ) -> None:  # fmt: skip
        for offset, load, store in emit.vectors(count):
            place, mean = emit.at(sums, offset), load(emit.at(means, offset))
            with emit.loop(rows, [emit.at(x, offset), emit.constant(0)]) as (_, (at, sum), following):
                following += [emit.at(at, stride), term(emit, sum, load(at), mean)]
            store(emit.add(load(place), following[1]), place)

    return instruction(*[types.int64] * 6)(write)


def _square(emit: Emit, sum: ir.Value, x: ir.Value, mean: ir.Value) -> ir.Value:
    deviation = emit.subtract(x, mean)
    return emit.fma(deviation, deviation, sum)


_column_sums, _column_squares = (
    _column_reduction(lambda emit, sum, x, _: emit.add(sum, x)),
    _column_reduction(_square),
)


@instruction(*[types.int64] * 8)
def _normalize_columns(  # noqa: PLR0913 (values in registers)
    emit: Emit, x: ir.Value, stride: ir.Value, rows: ir.Value, count: ir.Value, out: ir.Value, means:
    ir.Value, factors: ir.Value, shifts: ir.Value,
) -> None:  # fmt: skip
    """Compute ``(x - mean) * factor + shift``; ``means``, ``factors`` and ``shifts`` are rows."""
    for offset, load, store in emit.vectors(count):
        mean, factor, shift = (load(emit.at(row, offset)) for row in (means, factors, shifts))
        with emit.loop(rows, [emit.at(x, offset), emit.at(out, offset)]) as (_, (at, target), following):
            store(emit.fma(emit.subtract(load(at), mean), factor, shift), target)
            following += [emit.at(at, stride), emit.at(target, stride)]


class GroupNormJob(Descriptor):
    """Parameters of `_normalize`.

    ``units`` counts the units of work of all images, ``blocks`` those of one image; a unit has up to ``unit_channels`` channels.
    ``size`` is the number of pixels of an image; ``scale`` and ``shift`` are the addresses of one number per channel.
    """

    units: i64
    blocks: i64
    size: i64
    channels: i64
    group_channels: i64
    unit_channels: i64
    mode: i64
    epsilon: f32
    scale: i64
    shift: i64
    epilogue: EpilogueField


@device
def _mean(sums: int, first: int, width: int, size: int) -> np.float32:
    """Return the mean of a group from the sums of its channels, and reset these sums to 0.

    The group has ``width`` channels of ``size`` pixels; ``first`` is the index of its first channel in ``sums``.
    """
    total = np.float32(0)
    for c in range(first, first + width):
        total += load_f32(sums, c)
        store_f32(sums, c, np.float32(0))
    return total / np.float32(width * size)


@device
def _measure(x: int, stride: int, size: int, count: int, width: int, means: int, sums: int) -> None:
    """Store in ``means`` the mean of its group for each channel, and in ``sums`` each channel's sum of squared deviations from it.

    There are ``count`` channels in groups of ``width``, and ``size`` pixels, which are ``stride`` bytes apart.
    """
    for c in range(count):
        store_f32(means, c, np.float32(0))
        store_f32(sums, c, np.float32(0))
    for row in range(0, size, ROWS):
        _column_sums(x + row * stride, stride, min(ROWS, size - row), count, sums, means)
    for group in range(0, count, width):
        mean = _mean(sums, group, width, size)
        for c in range(group, group + width):
            store_f32(means, c, mean)
    for row in range(0, size, ROWS):
        _column_squares(x + row * stride, stride, min(ROWS, size - row), count, sums, means)


@Task
def _normalize(call: int, job: GroupNormJob, out: int, x: int, partner: int, second: int) -> None:
    """Normalize A; a unit of work is one or more channel groups of an image. B and C are extra tensors of the epilogue."""
    units, blocks, size, channels = job.units, job.blocks, job.size, job.channels
    width, most, mode, eps = job.group_channels, job.unit_channels, job.mode, job.epsilon
    scale, shift = job.scale, job.shift
    stride, means = 4 * channels, scratch_memory(12 * most)
    sums, shrinks = means + 4 * most, means + 8 * most
    for unit in each_unit(call, units):
        first = unit % blocks * most
        count, start = min(most, channels - first), 4 * (unit // blocks * size * channels + first)
        source, one = x + start, np.float32(1)
        for c in range(count):
            store_f32(shrinks, c, one)
        while True:
            _measure(source, stride, size, count, width, means, sums)
            again = False
            for group in range(0, count, width):
                variance, is_shrunk = _mean(sums, group, width, size), load_f32(shrinks, group) != one
                factor = reciprocal_deviation(variance, NEGLIGIBLE if is_shrunk else eps, mode)
                is_wide = not is_shrunk and overflows(load_f32(means, group), factor)
                again = again or is_wide
                factor = GROW if mode == 0 and is_shrunk else factor
                for c in range(group, group + width):
                    store_f32(shrinks, c, SHRINK if is_wide else one)
                    store_f32(sums, c, factor * load_f32(scale, first + c))
            if not again:
                break
            for c in range(count):
                store_f32(means, c, np.float32(0))
            for row in range(0, size, ROWS):
                at, rows = row * stride, min(ROWS, size - row)
                _normalize_columns(source + at, stride, rows, count, out + start + at, means, shrinks, means)
            source = out + start
        for row in range(0, size, ROWS):
            at, rows = start + row * stride, min(ROWS, size - row)
            from_row = source + row * stride
            _normalize_columns(from_row, stride, rows, count, out + at, means, sums, shift + 4 * first)
            apply_epilogue(job.epilogue, partner, second, out, at, 4 * first, rows, count, stride)


@backend.accelerates(GroupNormalization)
def group_norm(op: GroupNormalization, data: Value, scale: Value, bias: Value) -> KernelTemplate | None:
    """Return a GroupNormalization kernel for f32 with a known number of channels and constant scale and bias, else ``None``."""
    factors, shifts = scale.known(), bias.known()
    if not is_f32(data, scale, bias) or factors is None or shifts is None:
        return None
    if not data.shape.rank or not data.shape[1].is_static:
        return None
    make = partial(_kernel, op.num_groups, Mode.EPS_INSIDE, op.epsilon, 2)
    return FusedKernel(make, 1, Epilogue(factors, shifts))


@backend.accelerates(MVN)
def instance_norm(op: MVN, data: Value, axes: Value) -> KernelTemplate | None:
    """Return an MVN kernel for f32 over all spatial axes, of which there are at least two; else ``None``."""
    rank, reduced = data.shape.rank, axes.ints()
    if not is_f32(data) or not rank or rank < 4 or reduced is None:
        return None
    if {axis % rank for axis in reduced} != set(range(2, rank)):
        return None
    return FusedKernel(partial(_kernel, None, Mode.of(op), op.eps, 1), 1, accepts=any_lengths)


def _kernel(groups: int | None, mode: Mode, eps: float, others: int, epilogue: Epilogue) -> Kernel:
    """Return a normalization kernel.

    Args:
        groups: the number of channel groups; ``None`` for one per channel.
        mode: the divisor.
        eps: the epsilon of the divisor.
        others: the number of inputs between the data and those of the epilogue, which are unused.
        epilogue: the fused layers.
    """
    packed = PackedEpilogue.of(epilogue)
    rows = [
        np.full(1, usual, np.float32) if row is None else row.reshape(-1)
        for row, usual in ((epilogue.scale, 1), (epilogue.shift, 0))
    ]

    @lru_cache(maxsize=16)
    def job_for(images: int, channels: int, size: int) -> Array:
        width = channels // groups if groups else 1
        multiple = math.lcm(width, LANES)
        most = min(multiple * -(-MIN_CHANNELS // multiple), channels)
        blocks = -(-channels // most)
        scale, shift = (np.ascontiguousarray(np.broadcast_to(row, channels)) for row in rows)
        return GroupNormJob.fill(
            units=images * blocks, blocks=blocks, size=size, channels=channels, group_channels=width,
            unit_channels=most, mode=mode, epsilon=eps, scale=scale, shift=shift, epilogue=packed.record,
        )  # fmt: skip

    def kernel(x: Array, *rest: Array) -> Array:
        source = contiguous(channels_last(x))
        y = empty(source.shape, np.float32)
        if y.size:
            count = threads_for(moved=4 * y.nbytes)
            job = job_for(len(x), x.shape[1], math.prod(x.shape[2:]))
            first, second = packed.extra_arrays(rest[others:], 1)
            parallel_for(_normalize.address, job, y, source, first, second, count)
        return channels_first(y)

    return Kernel(kernel, replay=replayed())
