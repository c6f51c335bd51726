"""Normalizations over rows: their means, softmax."""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from ...ir.graph import Layer, Port
from ...ir.tensor import Array, Value
from ...ops.activation.softmax import LogSoftmax, SoftMax
from ...ops.arithmetic.binary import Divide, Multiply
from ...ops.normalization import MVN
from ...ops.reduction import ReduceMean
from .. import Kernel, Look, Match
from ..numpy._memory import is_f32
from ._backend import backend
from ._curves import apply
from ._epilogue import Epilogue, Finish, Fused, add_rows, finish
from ._rows import centred, root, scaled, shifted, softened, squares, total
from ._threads import share, threads
from ._work import (
    CALL_A,
    CALL_B,
    CALL_C,
    CALL_JOB,
    CALL_OUT,
    COUNTER,
    NOTHING,
    Worker,
    line,
    number,
    take,
    word,
)

__all__: list[str] = []

# Numbers in a unit of work, and fewer than which are not worth a second thread.
UNIT = 1 << 12
WORTH = 1 << 14


def _normalise(call: int) -> None:
    job, out, x = word(call, CALL_JOB), word(call, CALL_OUT), word(call, CALL_A)
    rows, length, unit, mode = word(job, 0), word(job, 1), word(job, 2), word(job, 3)
    scale, shift, words, numbers = word(job, 4), word(job, 5), word(job, 6), word(job, 7)
    eps = number(job, 16)
    stride = 4 * length
    first = take(call + 8 * COUNTER) * unit
    while first < rows:
        for row in range(first, min(first + unit, rows)):
            source, target = x + row * stride, out + row * stride
            mean = np.float32(0)
            if mode != 3:
                total(source, length, target)
                mean = number(target, 0) / np.float32(length)
            factor = np.float32(1)
            if mode != 0:
                squares(source, length, target, mean)
                variance = number(target, 0) / np.float32(length)
                if mode == 2:
                    factor = np.float32(1) / (root(variance) + eps)
                else:
                    factor = np.float32(1) / root(variance + eps)
            centred(source, length, scale, shift, target, mean, factor)
            if word(words, 0) != 0:
                add_rows(target, word(call, CALL_B) + row * stride, length)
            if number(numbers, 0) > -np.inf or number(numbers, 1) < np.inf:
                apply(target, length, 1, number(numbers, 0), number(numbers, 1))
            finish(
                words,
                numbers,
                word(call, CALL_B),
                word(call, CALL_C),
                out,
                row * stride,
                0,
                1,
                length,
                stride,
            )
        first = take(call + 8 * COUNTER) * unit


def _soften(call: int) -> None:
    job, out, x = word(call, CALL_JOB), word(call, CALL_OUT), word(call, CALL_A)
    rows, length, unit, logarithm = word(job, 0), word(job, 1), word(job, 2), word(job, 3)
    stride = 4 * length
    about = word(call, CALL_B) + take(call + 8 * COUNTER + 8) * 4 * _APART
    first = take(call + 8 * COUNTER) * unit
    while first < rows:
        for row in range(first, min(first + unit, rows)):
            source, target = x + row * stride, out + row * stride
            softened(source, 0, length, target, about, np.float32(1))
            sum, top = number(about, 0), number(about, 1)
            if logarithm != 0:
                centred(source, length, 0, 0, target, top, np.float32(1))
                shifted(target, length, -np.log(sum))
            else:
                scaled(target, length, np.float32(1) / sum)
        first = take(call + 8 * COUNTER) * unit


# Numbers from what one thread notes to what the next does: a line of the cache.
_APART = 32
_NORMALISE, _SOFTEN = Worker(_normalise), Worker(_soften)


class Mode(IntEnum):
    """What rows are divided by."""

    NOTHING = 0
    INSIDE = 1
    """The root of variance plus epsilon."""
    OUTSIDE = 2
    """The root of the variance, plus epsilon."""
    SQUARES = 3
    """The root of the mean of squares plus epsilon; no mean is subtracted."""


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
                share(
                    _NORMALISE.address, now, y.reshape(-1), line(x), one, two, _threads(y.size)
                )  # fmt: skip
            return y

        kernel.kept = (kept, done)  # type: ignore[attr-defined]
        return kernel

    return Fused(make)


def _threads(size: int) -> int:
    return threads() if size >= WORTH else 1


@backend.accelerates(MVN)
def layer_norm(op: MVN, data: Value, axes: Value) -> Kernel | None:
    """f32 over the last axis."""
    rank = data.shape.rank
    if not is_f32(data) or not rank or axes.ints() not in ((-1,), (rank - 1,)):
        return None
    mode = Mode.INSIDE if op.eps_mode == "inside_sqrt" else Mode.OUTSIDE
    return normalising(mode if op.normalize_variance else Mode.NOTHING, op.eps, 1)


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
            share(_SOFTEN.address, job, y.reshape(-1), line(x), notes, NOTHING, count)
        return y.swapaxes(axis, -1) if axis != rank - 1 else y

    return kernel


@backend.recognises(Multiply, Divide)
def root_mean_square(look: Look, layer: Layer) -> Match | None:
    """``x / sqrt(mean(x²) + eps)`` over the last axis, f32, in the ways that exporters spell it."""
    first, second = look.sources(layer)
    if isinstance(layer.op, Divide):
        return _by_root(look, layer, first, second, ())
    for x, other in ((first, second), (second, first)):
        if (inverse := look.made_by(other, "Divide")) is not None:
            above, below = look.sources(inverse)
            if look.number(above) == 1 and (found := _by_root(look, layer, x, below, (inverse,))) is not None:
                return found
        if (inverse := look.made_by(other, "Power")) is not None:
            base, exponent = look.sources(inverse)
            if look.number(exponent) == -0.5:
                return _by_mean(look, layer, x, base, (inverse,))
    return None


def _by_root(look: Look, layer: Layer, x: Port, root: Port, after: tuple[Layer, ...]) -> Match | None:
    if (made := look.made_by(root, "Sqrt")) is not None:
        return _by_mean(look, layer, x, look.sources(made)[0], (made, *after))
    power = look.made_by(root, "Power")
    if power is None or look.number(look.sources(power)[1]) != 0.5:
        return None
    return _by_mean(look, layer, x, look.sources(power)[0], (power, *after))


def _by_mean(look: Look, layer: Layer, x: Port, raised: Port, after: tuple[Layer, ...]) -> Match | None:
    """What comes after is ``raised``, the mean and epsilon."""
    added = look.made_by(raised, "Add")
    if added is None or not is_f32(look.seen(x)) or not look.seen(x).shape.rank:
        return None
    one, two = look.sources(added)
    mean, eps = (one, two) if look.number(two) is not None else (two, one)
    reduced, epsilon = look.made_by(mean, "ReduceMean"), look.number(eps)
    if (
        reduced is None
        or epsilon is None
        or not isinstance(reduced.op, ReduceMean)
        or not reduced.op.keep_dims
    ):
        return None
    squares, axes = look.sources(reduced)
    if look.seen(axes).ints() not in ((-1,), ((look.seen(x).shape.rank or 0) - 1,)):
        return None
    squared = look.made_by(squares, "Power", "Multiply")
    if squared is None or look.sources(squared)[0] != x:
        return None
    other = look.sources(squared)[1]
    if look.number(other) != 2 if squared.type == "Power" else other != x:
        return None
    ports = _ports(look, x, squared, reduced, added, *after)
    return Match(
        (squared, reduced, added, *after, layer), ports, normalising(Mode.SQUARES, epsilon, len(ports) - 1)
    )


def _ports(look: Look, x: Port, *layers: Layer) -> tuple[Port, ...]:
    """What the layers of a match read from outside: the tensor first, then numbers."""
    inside = {layer.id for layer in layers}
    outside = [s for layer in layers for s in look.sources(layer) if s != x and s.layer not in inside]
    return (x, *dict.fromkeys(outside))
