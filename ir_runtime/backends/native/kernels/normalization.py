"""Normalization of rows: MVN (layer normalization), softmax, and the patterns of RMS and L2 normalization."""

from __future__ import annotations

import math
from enum import IntEnum
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ....ir.element import ElementType
from ....ir.graph import Layer, Port
from ....ir.tensor import Array, Value
from ....ops.activation import LogSoftmax, SoftMax
from ....ops.arithmetic import Divide, Multiply
from ....ops.normalization import MVN
from ....ops.reduction import ReduceL2, ReduceMean
from ... import Fusion, Kernel, KernelTemplate, MatchContext, Refusal
from ...common.kept_memory import empty
from ...common.layout import is_f32, moveaxis
from ...core.kernel import any_lengths
from .._backend import backend
from ..codegen.descriptor import Descriptor, f32, i64
from ..codegen.language import device
from ..codegen.memory import fetch_add, load_f32, scratch_memory
from ..codegen.vectors import LANES
from ..threading.capture import replayed
from ..threading.parallel import parallel_for, threads_for, workspace
from ..threading.task import UNUSED, Task, each_chunk, shared_counters
from ._copy import contiguous
from ._epilogue import Epilogue, EpilogueField, FusedKernel, PackedEpilogue, apply_epilogue
from ._reductions import (
    SOFTMAX_COLUMNS,
    log,
    normalize_row,
    scale_row,
    shift_row,
    softmax_columns,
    softmax_terms,
    sqrt,
    sum_row,
    sum_squares,
)

__all__ = ["GROW", "NEGLIGIBLE", "SHRINK", "Mode", "overflows", "reciprocal_deviation"]


class RMSNorm(NamedTuple):
    """The matched layers of ``x / sqrt(mean(x²) + epsilon)``.

    ``reads`` are ``x`` and constants that the kernel ignores.
    """

    layers: tuple[Layer, ...]
    reads: tuple[Port, ...]
    epsilon: float


def match_rms_norm(context: MatchContext, layer: Layer) -> RMSNorm | Refusal | None:
    """Match f32 ``x / sqrt(mean(x²) + eps)`` over the last axis, in the forms that exporters write.

    ``layer`` is the last layer: the division, or the product with the inverse.
    """
    first, second = context.sources(layer)
    if isinstance(layer.op, Divide):
        return _match_root(context, layer, first, second, ())
    for x, other in ((first, second), (second, first)):
        if (inverse := context.producer(other, "Divide")) is not None:
            above, below = context.sources(inverse)
            match = _match_root(context, layer, x, below, (inverse,)) if context.scalar(above) == 1 else None
            if match is not None:
                return match
        if (inverse := context.producer(other, "Power")) is not None:
            base, exponent = context.sources(inverse)
            if context.scalar(exponent) == -0.5:
                return _match_mean(context, layer, x, base, (inverse,))
    return None


def _match_root(
    context: MatchContext, layer: Layer, x: Port, root: Port, after: tuple[Layer, ...]
) -> RMSNorm | Refusal | None:
    if (sqrt_layer := context.producer(root, "Sqrt")) is not None:
        return _match_mean(context, layer, x, context.sources(sqrt_layer)[0], (sqrt_layer, *after))
    power = context.producer(root, "Power")
    if power is None or context.scalar(context.sources(power)[1]) != 0.5:
        return None
    return _match_mean(context, layer, x, context.sources(power)[0], (power, *after))


def _match_mean(
    context: MatchContext, layer: Layer, x: Port, raised: Port, after: tuple[Layer, ...]
) -> RMSNorm | Refusal | None:
    """Match ``mean(x²) + epsilon``, whose port is ``raised``.

    ``after`` are the layers between the sum and ``layer``, the last layer of the pattern.
    """
    added = context.producer(raised, "Add")
    if added is None:
        return None
    one, two = context.sources(added)
    mean, eps = (one, two) if context.scalar(two) is not None else (two, one)
    reduced, epsilon = context.producer(mean, "ReduceMean"), context.scalar(eps)
    squares = None if reduced is None else context.sources(reduced)[0]
    squared = None if squares is None else context.producer(squares, "Power", "Multiply")
    if reduced is None or squared is None or not _squares(context, squared, x):
        return None
    rank = context.value(x).shape.rank
    if epsilon is None:
        return Refusal("epsilon is not a constant scalar")
    if context.value(x).element is not ElementType.f32:
        return Refusal(f"the input is {context.value(x).element.label}, not f32")
    if not isinstance(reduced.op, ReduceMean) or not reduced.op.keep_dims:
        return Refusal("the mean does not keep the reduced axis")
    if not rank or context.value(context.sources(reduced)[1]).ints() not in ((-1,), (rank - 1,)):
        return Refusal("the mean is not over the last axis, or its axes are not constant")
    ports = context.reads((squared, reduced, added, *after), x)
    return RMSNorm((squared, reduced, added, *after, layer), ports, epsilon)


def _squares(context: MatchContext, squared: Layer, x: Port) -> bool:
    """Return whether a Power or a Multiply computes the square of ``x``."""
    base, other = context.sources(squared)
    return base == x and (context.scalar(other) == 2 if squared.type == "Power" else other == x)


# The minimum epsilon of L2 normalization: the inverse of a smaller norm may be infinite.
MIN_LENGTH = 1e-30


class L2Norm(NamedTuple):
    """The matched layers of ``x / max(norm(x), epsilon)``; ``reads`` are ``x`` and constants that the kernel ignores."""

    layers: tuple[Layer, ...]
    reads: tuple[Port, ...]
    epsilon: float


def match_l2_norm(context: MatchContext, layer: Layer) -> L2Norm | Refusal | None:
    """Match f32 ``x / max(norm(x), epsilon)`` over the last axis; ``layer`` is the division."""
    if not isinstance(layer.op, Divide):
        return None
    x, below = context.sources(layer)
    least = context.producer(below, "Maximum")
    norm = None if least is None else context.producer(context.sources(least)[0], "ReduceL2")
    if least is None or norm is None or context.sources(norm)[0] != x:
        return None
    rank, epsilon = context.value(x).shape.rank, context.scalar(context.sources(least)[1])
    if epsilon is None or not epsilon >= MIN_LENGTH or context.value(below).shape.rank != rank:
        return Refusal("epsilon is not a positive constant scalar")
    if not is_f32(context.value(x)):
        return Refusal(f"the input is {context.value(x).element.label}, not f32")
    if not isinstance(norm.op, ReduceL2) or not norm.op.keep_dims:
        return Refusal("the norm does not keep the reduced axis")
    if not rank or context.value(context.sources(norm)[1]).ints() not in ((-1,), (rank - 1,)):
        return Refusal("the norm is not over the last axis, or its axes are not constant")
    return L2Norm((norm, least, layer), context.reads((norm, least, layer), x), epsilon)


# Elements of a unit of work.
UNIT_SIZE = 1 << 12
# Minimum number of rows of at most `LANES` elements that softmax processes faster as columns.
MIN_SHORT_ROWS = 64


class NormalizationJob(Descriptor):
    """Parameters of `_NORMALIZE`; ``scale`` and ``shift`` are addresses of rows, or 0."""

    rows: i64
    length: i64
    rows_per_unit: i64
    mode: i64
    scale: i64
    shift: i64
    epilogue: EpilogueField
    epsilon: f32


class SoftmaxJob(Descriptor):
    """Parameters of `_SOFTMAX`."""

    rows: i64
    length: i64
    rows_per_unit: i64
    logarithm: i64


@device
def reciprocal_deviation(variance: np.float32, eps: np.float32, mode: int) -> np.float32:
    """Return the reciprocal divisor of a row from its variance, or from its mean (RMS) or sum (L2) of squares.

    ``mode`` is a `Mode`; for `Mode.NONE`, the result is 1.
    """
    if mode == 0:
        return np.float32(1)
    if mode == 4:
        norm = sqrt(variance)
        return np.float32(1) / (eps if norm < eps else norm)
    deviation: np.float32 = sqrt(variance) + eps if mode == 2 else sqrt(variance + eps)
    return np.float32(1) / deviation


SHRINK, GROW = np.float32(2.0**-80), np.float32(2.0**80)
"""`SHRINK` scales rows whose sum or sum of squares overflows f32 before they are summed; `GROW` is its reciprocal.

In the specification, sums do not overflow; in OpenVINO, one element of 3e38 makes a row 0.
"""
NEGLIGIBLE = np.float32(2.0**-126)
"""The epsilon of rows that were scaled by `SHRINK`: negligible, but it prevents 0 / 0."""


@device
def overflows(mean: np.float32, factor: np.float32) -> bool:
    """Return whether the mean is infinite or NaN, or the factor from `reciprocal_deviation` 0 or NaN, as when sums overflow f32."""
    return not (mean - mean == np.float32(0) and factor > np.float32(0))


def _normalize(call: int, job: NormalizationJob, out: int, x: int, partner: int, second: int) -> None:
    rows, length, unit, mode = job.rows, job.length, job.rows_per_unit, job.mode
    scale, shift = job.scale, job.shift
    eps = job.epsilon
    stride = 4 * length
    for first, end in each_chunk(call, rows, unit):
        for row in range(first, end):
            source, target = x + row * stride, out + row * stride
            sums, least, usual, times, plus = target, eps, np.float32(1), scale, shift
            while True:
                mean = np.float32(0)
                if mode < 3:
                    sum_row(source, length, sums)
                    mean = load_f32(sums, 0) / np.float32(length)
                factor = usual
                if mode != 0:
                    sum_squares(source, length, sums, mean)
                    variance = load_f32(sums, 0) / np.float32(1 if mode == 4 else length)
                    factor = reciprocal_deviation(variance, least, mode)
                is_shrunk = source == target
                again = mode < 3 and not is_shrunk and overflows(mean, factor)
                if again:
                    mean, factor, times, plus = np.float32(0), SHRINK, 0, 0
                normalize_row(source, length, times, plus, target, mean, factor)
                if not again:
                    break
                source, sums, least, usual, times, plus = (
                    target, scratch_memory(4), NEGLIGIBLE, GROW, scale, shift,
                )  # fmt: skip
            apply_epilogue(job.epilogue, partner, second, out, row * stride, 0, 1, length, stride)


def _softmax(call: int, job: SoftmaxJob, out: int, x: int, sums: int) -> None:
    counter = shared_counters(call)
    rows, length, unit, logarithm = job.rows, job.length, job.rows_per_unit, job.logarithm
    stride = 4 * length
    about = sums + fetch_add(counter + 8) * 4 * _SUM_STRIDE
    for first, end in each_chunk(call, rows, unit):
        for row in range(first, end):
            source, target = x + row * stride, out + row * stride
            softmax_terms(source, 0, length, target, about, np.float32(1))
            sum, top = load_f32(about, 0), load_f32(about, 1)
            if logarithm != 0:
                normalize_row(source, length, 0, 0, target, top, np.float32(1))
                shift_row(target, length, -log(sum))
            else:
                scale_row(target, length, np.float32(1) / sum)


# Distance of the sums of two threads in f32 elements, so that they are on separate cache lines.
_SUM_STRIDE = 32
_NORMALIZE, _SOFTMAX = Task(_normalize), Task(_softmax)


class Mode(IntEnum):
    """The divisor of rows."""

    NONE = 0
    EPS_INSIDE = 1
    """``sqrt(variance + epsilon)``."""
    EPS_OUTSIDE = 2
    """``sqrt(variance) + epsilon``."""
    RMS = 3
    """``sqrt(mean(x**2) + epsilon)``; no mean is subtracted."""
    L2 = 4
    """``max(sqrt(sum(x**2)), epsilon)``; no mean is subtracted."""

    @classmethod
    def of(cls, op: MVN) -> Mode:
        """Return the mode of an operation."""
        if not op.normalize_variance:
            return cls.NONE
        return cls.EPS_INSIDE if op.eps_mode == "inside_sqrt" else cls.EPS_OUTSIDE


def normalization_kernel(mode: Mode, eps: float, others: int, axis: int = -1) -> KernelTemplate:
    """Return a kernel that normalizes the first input along an axis, and ignores the next ``others`` inputs."""

    def make(epilogue: Epilogue) -> Kernel:
        packed = PackedEpilogue.of(epilogue)
        scale, shift = (
            None if row is None else np.ascontiguousarray(row) for row in (epilogue.scale, epilogue.shift)
        )

        @lru_cache(maxsize=64)
        def job_for(rows: int, length: int) -> Array:
            return NormalizationJob.fill(
                rows=rows, length=length, rows_per_unit=max(UNIT_SIZE // length, 1), mode=mode, scale=scale,
                shift=shift, epsilon=eps, epilogue=packed.record,
            )  # fmt: skip

        def kernel(x: Array, *rest: Array) -> Array:
            x = x if axis == -1 else moveaxis(x, axis, -1)
            y = empty(x.shape, np.float32)
            if y.size:
                length, (one, two) = x.shape[-1], packed.extra_arrays(rest[others:], axis)
                job = job_for(y.size // length, length)
                parallel_for(
                    _NORMALIZE.address, job, y.reshape(-1), contiguous(x), one, two, _threads(y.size)
                )  # fmt: skip
            return y if axis == -1 else moveaxis(y, -1, axis)

        return Kernel(kernel, replay=replayed())

    return FusedKernel(make, axis, accepts=any_lengths)


def _threads(size: int) -> int:
    return threads_for(moved=16 * size)


@backend.accelerates(MVN)
def layer_norm(op: MVN, data: Value, axes: Value) -> KernelTemplate | None:
    """Return an MVN kernel for f32 over one axis: the last axis, or another one, at best last in memory."""
    rank, reduced = data.shape.rank, axes.ints()
    if not is_f32(data) or not rank or reduced is None or len(reduced) != 1:
        return None
    axis = reduced[0] % rank
    return normalization_kernel(Mode.of(op), op.eps, 1, -1 if axis == rank - 1 else axis)


@lru_cache(maxsize=64)
def _softmax_job(rows: int, length: int, logarithm: bool) -> Array:
    return SoftmaxJob.fill(
        rows=rows, length=length, rows_per_unit=max(UNIT_SIZE // length, 1), logarithm=logarithm
    )


@backend.accelerates(SoftMax, LogSoftmax)
def softmax(op: SoftMax | LogSoftmax, data: Value) -> Kernel | None:
    """Return a kernel for f32 softmax or log-softmax along any axis.

    Softmax of many short rows, or along an axis before the last, may be vectorized across rows instead of along them.
    """
    rank = data.shape.rank
    if not is_f32(data) or not rank:
        return None
    axis, logarithm = op.axis % rank, isinstance(op, LogSoftmax)
    SOFTMAX_COLUMNS.prepare()

    def kernel(x: Array) -> Array:
        if not logarithm and (result := _softmax_of_columns(x, axis)) is not None:
            return result
        x = x.swapaxes(axis, -1) if axis != rank - 1 else x
        y = empty(x.shape, np.float32)
        if y.size:
            length, count = x.shape[-1], _threads(y.size)
            job = _softmax_job(y.size // length, length, logarithm)
            sums = workspace(count * _SUM_STRIDE)
            parallel_for(_SOFTMAX.address, job, y.reshape(-1), contiguous(x), sums, UNUSED, count)
        return y.swapaxes(axis, -1) if axis != rank - 1 else y

    return Kernel(kernel, accepts=any_lengths, replay=replayed())


def _softmax_of_columns(x: Array, axis: int) -> Array | None:
    """Compute softmax of `LANES` rows at a time, in layouts where that is faster than row by row, else return ``None``.

    These have at least `LANES` elements along the axes after ``axis``, or many short rows that are contiguous.
    """
    length, inner = x.shape[axis], math.prod(x.shape[axis + 1 :])
    if not x.size:
        return None
    if inner >= LANES and (length <= LANES or x.flags.c_contiguous):
        y = empty(x.shape, np.float32)
        softmax_columns(contiguous(x), y, (x.size // (length * inner), length, inner))
        return y
    if not x.flags.c_contiguous:
        return None
    rows = x.size // length
    if inner > 1 or length > LANES or rows < MIN_SHORT_ROWS:
        return None
    columns = empty((length, rows), np.float32)
    softmax_columns(contiguous(x.reshape(rows, length).T), columns, (1, length, rows))
    return columns.T.reshape(x.shape)


@backend.pattern(Divide)
def l2_norm(context: MatchContext, layer: Layer) -> Fusion | Refusal | None:
    """Match f32 ``x / max(norm(x), eps)`` over the last axis."""
    match = match_l2_norm(context, layer)
    if not isinstance(match, L2Norm):
        return match
    kernel = normalization_kernel(Mode.L2, match.epsilon, len(match.reads) - 1)
    return Fusion(match.layers, match.reads, kernel)


@backend.pattern(Multiply, Divide)
def rms_norm(context: MatchContext, layer: Layer) -> Fusion | Refusal | None:
    """Match f32 ``x / sqrt(mean(x²) + eps)`` over the last axis."""
    match = match_rms_norm(context, layer)
    if not isinstance(match, RMSNorm):
        return match
    kernel = normalization_kernel(Mode.RMS, match.epsilon, len(match.reads) - 1)
    return Fusion(match.layers, match.reads, kernel)
