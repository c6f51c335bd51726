"""Rotary position embedding: a pattern of layers, computed in one vectorized and multithreaded pass over the rows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import accumulate, pairwise
from typing import TypeAlias

import numpy as np

from ....ir.element import ElementType
from ....ir.graph import Layer, Port
from ....ir.tensor import Array
from ....ops.arithmetic import Add
from ....ops.elementwise import Binary
from ....ops.movement.extend import Concat
from ....ops.movement.slice import Slice, Split, VariadicSplit
from ... import Fusion, Kernel, MatchContext, Refusal
from ...common.kept_memory import empty
from ...core.kernel import any_lengths
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
    align_strides,
    contiguous_strides,
    nest_fields,
    nest_task,
    row_stride,
)

__all__ = ["match_rotary"]


@dataclass(frozen=True)
class Rotary:
    """The matched layers, their inputs (tensor, cosines and sines first), and the row length."""

    layers: tuple[Layer, ...]
    reads: tuple[Port, ...]
    width: int


def match_rotary(context: MatchContext, layer: Layer) -> Rotary | Refusal | None:
    """Match ``x * cos + concat(-second half of x, first half of x) * sin`` along the last axis; ``layer`` is the sum."""
    products = [context.producer(port, "Multiply") for port in context.sources(layer)]
    for straight, crossed in (products, products[::-1]):
        if straight is None or crossed is None or straight is crossed:
            continue
        for joined, sin in _both_orders(context.sources(crossed)):
            concat = context.producer(joined, "Concat")
            if concat is not None and len(context.sources(concat)) == 2:
                match = _match_concat(context, layer, straight, crossed, concat, sin)
                if match is not None:
                    return match
    return None


def _match_concat(
    context: MatchContext, layer: Layer, straight: Layer, crossed: Layer, concat: Layer, sin: Port
) -> Rotary | Refusal | None:
    first, second = context.sources(concat)
    negated = _match_negation(context, first)
    if negated is None:
        return None
    inside = context.graph[negated[1].layer], context.graph[second.layer]
    (x, *_), (other, *_) = context.sources(inside[0]), context.sources(inside[1])
    cos = next((b for a, b in _both_orders(context.sources(straight)) if a == x), None)
    if x != other or cos is None:
        return None
    shape = context.value(x).shape
    if not shape.rank or not shape[-1].is_static or not isinstance(concat.op, Concat):
        return Refusal("the length of a row is unknown")
    width, half = shape[-1].min, shape[-1].min // 2
    if concat.op.axis not in (-1, shape.rank - 1):
        return None
    parts = _part(context, negated[1], shape.rank, width), _part(context, second, shape.rank, width)
    if parts != (range(half, width), range(half)) or width % 2 or not width:
        return Refusal("rows are not split into halves at constant positions")
    if any(context.value(port).element is not ElementType.f32 for port in (x, cos, sin)):
        return Refusal("the tensor, the cosines or the sines are not f32")
    if any(
        isinstance(la.op, Binary) and la.op.auto_broadcast != "numpy" for la in (straight, crossed, layer)
    ):
        return Refusal("a product or the sum does not broadcast as in NumPy")
    takers = {taker.id: taker for taker in inside}
    layers = (straight, *takers.values(), negated[0], concat, crossed, layer)
    return Rotary(layers, context.reads(layers, x, cos, sin), width)


def _both_orders(ports: tuple[Port, ...]) -> tuple[tuple[Port, Port], tuple[Port, Port]]:
    first, second = ports
    return (first, second), (second, first)


def _match_negation(context: MatchContext, port: Port) -> tuple[Layer, Port] | None:
    """Return the layer that computes a port by negating its input, and that input; ``None`` if there is none."""
    if (layer := context.producer(port, "Negative")) is not None:
        return layer, context.sources(layer)[0]
    layer = context.producer(port, "Multiply")
    if layer is None or context.value(port).shape.rank is None:
        return None
    for data, factor in _both_orders(context.sources(layer)):
        same_rank = context.value(data).shape.rank == context.value(port).shape.rank
        if context.scalar(factor) == -1 and same_rank:
            return layer, data
    return None


def _part(context: MatchContext, port: Port, rank: int, width: int) -> range | None:
    """Return the constant range of row elements that a Slice or Split selects; ``None`` for other layers and axes."""
    layer = context.graph[port.layer]
    _, *others = context.sources(layer)
    settings = [context.value(other).ints() for other in others]
    if isinstance(layer.op, Slice) and len(settings) == 4 and settings[3] in ((-1,), (rank - 1,)):
        bounds = settings[:3]
        return None if None in bounds else range(width)[slice(*(bound[0] for bound in bounds if bound))]
    if not isinstance(layer.op, Split | VariadicSplit) or settings[0] not in ((-1,), (rank - 1,)):
        return None
    if isinstance(layer.op, Split):
        lengths = [width // layer.op.num_splits] * layer.op.num_splits
    else:
        lengths = [
            width - sum(n for n in settings[1] or () if n >= 0) if n < 0 else n for n in settings[1] or ()
        ]
    parts = [range(a, b) for a, b in pairwise(accumulate(lengths, initial=0))]
    return parts[port.number] if port.number < len(parts) else None


# Rows of a block.
ROWS_PER_UNIT = 32
# Jobs that a kernel caches, one for each combination of shapes and strides.
MAX_JOBS = 64

_WORD = 4
_Lengths: TypeAlias = tuple[int, ...]


class RotaryJob(NestJob):
    """Parameters of `ROTARY`; a row is one column of the nest, and ``half`` is half its length."""

    half: i64


@instruction(*[types.int64] * 5)
def _turn_row(emit: Emit, x: Value, cos: Value, sin: Value, half: Value, out: Value) -> None:
    """Rotate the points whose coordinates are the two halves of a row; products are rounded as in NumPy."""
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
"""Rotate rows: A is the tensor, B the cosines, and C the sines."""


@backend.pattern(Add, after="Multiply")
def rotary(context: MatchContext, layer: Layer) -> Fusion | Refusal | None:
    """Match f32 ``x * cos + rotate_half(x) * sin``; the kernel is bit-identical to the reference."""
    match = match_rotary(context, layer)
    if not isinstance(match, Rotary):
        return match
    ROTARY.prepare()
    return Fusion(match.layers, match.reads, _kernel(match.width))


def _kernel(width: int) -> Kernel:
    jobs = lru_cache(maxsize=MAX_JOBS)(partial(_job, width))

    def kernel(x: Array, cos: Array, sin: Array, *_: object) -> Array:
        job = jobs(x.shape, x.strides, cos.shape, cos.strides, sin.shape, sin.strides)
        if job is None:
            return run_in_numpy(x, cos, sin)
        out = empty(x.shape, np.float32)
        parallel_for(ROTARY.address, job, out, x, cos, sin, threads_for(moved=4 * x.nbytes))
        return out

    def run_in_numpy(x: Array, cos: Array, sin: Array) -> Array:  # raises for shapes that do not broadcast
        first, second = x[..., : width // 2], x[..., width // 2 :]
        return np.asarray(x * cos + np.concatenate([-second, first], -1) * sin)

    return Kernel(kernel, accepts=any_lengths, replay=replayed())


def _job(
    width: int, shape: _Lengths, x: _Lengths, turns: _Lengths, cos: _Lengths, others: _Lengths, sin: _Lengths
) -> Array | None:
    """Return the job for the shapes and byte strides of the inputs; ``None`` if the task cannot read them.

    Args:
        width: the length of a row.
        shape: the shape of the tensor.
        x: the strides of the tensor.
        turns: the shape of the cosines.
        cos: the strides of the cosines.
        others: the shape of the sines.
        sin: the strides of the sines.
    """
    if not math.prod(shape) or any(lengths[-1:] != (width,) for lengths in (shape, turns, others)):
        return None
    strides = [_row_strides(*layout, shape) for layout in ((shape, x), (turns, cos), (others, sin))]
    if any(steps is None for steps in strides):
        return None
    whole = contiguous_strides(shape)[-2::-1]
    rows = list(zip(shape[-2::-1], whole, *(steps for steps in strides if steps is not None), strict=True))
    fields = nest_fields([(1, 0, 0, 0, 0), *rows], block=ROWS_PER_UNIT)
    return None if fields is None else RotaryJob.fill(**fields, room=0, half=width // 2)


def _row_strides(lengths: _Lengths, strides: _Lengths, shape: _Lengths) -> _Lengths | None:
    """Return an array's byte strides, broadcast to ``shape``, along the axes before the last, innermost first.

    Returns ``None`` if the array does not broadcast to the shape, or if its rows are not contiguous.
    """
    aligned = align_strides(lengths, strides, shape, tuple(range(len(shape))))
    return None if aligned is None or strides[-1] != _WORD else aligned[-2::-1]
