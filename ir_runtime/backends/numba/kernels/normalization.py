"""Normalizations over rows: their means, softmax."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import numpy as np

from ....ir.graph import Layer
from ....ir.tensor import Array, Value
from ....ops.activation.softmax import LogSoftmax, SoftMax
from ....ops.arithmetic.binary import Divide, Multiply
from ....ops.normalization import MVN
from ... import Fusion, Kernel, MatchContext, Refusal
from ...common.layout import is_f32
from ...core.lengths import accepting, any_lengths
from ...patterns.rms_norm import RMSNorm, match_rms_norm
from .._backend import backend
from ..codegen.language import device
from ..codegen.memory import fetch_add, load_f32, load_i64
from ..threading.parallel import parallel_for, threads
from ..threading.task import UNUSED, Task, contiguous, load_args
from ._epilogue import Epilogue, Finish, Fused, conclude
from ._reductions import centred, log, root, scaled, shifted, softened, squares, total

__all__ = ["WORTH", "Mode", "factor_of"]

# Numbers in a unit of work, and fewer than which are not worth a second thread.
UNIT = 1 << 12
WORTH = 1 << 14


@device
def factor_of(variance: Any, eps: float, mode: int) -> Any:
    """What numbers of that variance, or mean of squares, are multiplied with; ``mode`` is a `Mode`."""
    if mode == 0:
        return np.float32(1)
    return np.float32(1) / (root(variance) + eps if mode == 2 else root(variance + eps))


def _normalise(call: int) -> None:
    job, out, x, partner, second, counter = load_args(call)
    rows, length, unit, mode = load_i64(job, 0), load_i64(job, 1), load_i64(job, 2), load_i64(job, 3)
    scale, shift, words, numbers = load_i64(job, 4), load_i64(job, 5), load_i64(job, 6), load_i64(job, 7)
    eps = load_f32(job, 16)
    stride = 4 * length
    first = fetch_add(counter) * unit
    while first < rows:
        for row in range(first, min(first + unit, rows)):
            source, target = x + row * stride, out + row * stride
            mean = np.float32(0)
            if mode != 3:
                total(source, length, target)
                mean = load_f32(target, 0) / np.float32(length)
            factor = np.float32(1)
            if mode != 0:
                squares(source, length, target, mean)
                variance = load_f32(target, 0) / np.float32(length)
                factor = factor_of(variance, eps, mode)
            centred(source, length, scale, shift, target, mean, factor)
            conclude(words, numbers, partner, second, out, row * stride, 0, 1, length, stride)
        first = fetch_add(counter) * unit


def _soften(call: int) -> None:
    job, out, x, notes, _, counter = load_args(call)
    rows, length, unit, logarithm = load_i64(job, 0), load_i64(job, 1), load_i64(job, 2), load_i64(job, 3)
    stride = 4 * length
    about = notes + fetch_add(counter + 8) * 4 * _APART
    first = fetch_add(counter) * unit
    while first < rows:
        for row in range(first, min(first + unit, rows)):
            source, target = x + row * stride, out + row * stride
            softened(source, 0, length, target, about, np.float32(1))
            sum, top = load_f32(about, 0), load_f32(about, 1)
            if logarithm != 0:
                centred(source, length, 0, 0, target, top, np.float32(1))
                shifted(target, length, -log(sum))
            else:
                scaled(target, length, np.float32(1) / sum)
        first = fetch_add(counter) * unit


# Numbers from what one thread notes to what the next does: a line of the cache.
_APART = 32
_NORMALISE, _SOFTEN = Task(_normalise), Task(_soften)


class Mode(IntEnum):
    """What rows are divided by."""

    NONE = 0
    INSIDE = 1
    """The root of variance plus epsilon."""
    OUTSIDE = 2
    """The root of the variance, plus epsilon."""
    SQUARES = 3
    """The root of the mean of squares plus epsilon; no mean is subtracted."""

    @classmethod
    def of(cls, op: MVN) -> Mode:
        """What an operation says."""
        if not op.normalize_variance:
            return cls.NONE
        return cls.INSIDE if op.eps_mode == "inside_sqrt" else cls.OUTSIDE


def normalising(mode: Mode, eps: float, others: int) -> Kernel:
    """A kernel for rows along the last axis of its first input, before ``others`` that it need not read."""

    def make(epilogue: Epilogue) -> Kernel:
        done = Finish.of(epilogue)
        job = np.zeros(9, np.int64)
        kept = [
            None if row is None else np.ascontiguousarray(row) for row in (epilogue.scale, epilogue.shift)
        ]
        job[3:8] = (
            mode,
            *(0 if row is None else row.ctypes.data for row in kept),
            done.words.ctypes.data,
            done.numbers.ctypes.data,
        )
        job.view(np.float32)[16] = eps

        def kernel(x: Array, *rest: Array) -> Array:
            y = np.empty(x.shape, np.float32)
            if y.size:
                length, (one, two) = x.shape[-1], done.partners(rest[others:], -1)
                now = job.copy()
                now[:3] = y.size // length, length, max(UNIT // length, 1)
                parallel_for(
                    _NORMALISE.address, now, y.reshape(-1), contiguous(x), one, two, _threads(y.size)
                )  # fmt: skip
            return y

        kernel.kept = (kept, done)  # type: ignore[attr-defined]
        return kernel

    return Fused(make, accepts=any_lengths)


def _threads(size: int) -> int:
    return threads() if size >= WORTH else 1


@backend.accelerates(MVN)
def layer_norm(op: MVN, data: Value, axes: Value) -> Kernel | None:
    """f32 over the last axis."""
    rank = data.shape.rank
    if not is_f32(data) or not rank or axes.ints() not in ((-1,), (rank - 1,)):
        return None
    return normalising(Mode.of(op), op.eps, 1)


@backend.accelerates(SoftMax, LogSoftmax)
def softmax(op: SoftMax | LogSoftmax, data: Value) -> Kernel | None:
    """f32 along any axis; where that is not the last one, what lies along it is brought together."""
    rank = data.shape.rank
    if not is_f32(data) or not rank:
        return None
    axis, logarithm = op.axis % rank, isinstance(op, LogSoftmax)

    def kernel(x: Array) -> Array:
        x = x.swapaxes(axis, -1) if axis != rank - 1 else x
        y = np.empty(x.shape, np.float32)
        if y.size:
            length, count = x.shape[-1], _threads(y.size)
            job = np.array([y.size // length, length, max(UNIT // length, 1), logarithm], np.int64)
            notes = np.empty(count * _APART, np.float32)
            parallel_for(_SOFTEN.address, job, y.reshape(-1), contiguous(x), notes, UNUSED, count)
        return y.swapaxes(axis, -1) if axis != rank - 1 else y

    return accepting(kernel, any_lengths)


@backend.pattern(Multiply, Divide)
def rms_norm(context: MatchContext, layer: Layer) -> Fusion | Refusal | None:
    """``x / sqrt(mean(x²) + eps)`` over the last axis, f32."""
    found = match_rms_norm(context, layer)
    if not isinstance(found, RMSNorm):
        return found
    return Fusion(found.layers, found.reads, normalising(Mode.SQUARES, found.epsilon, len(found.reads) - 1))
