"""Uniform f32 random numbers from Philox, one block per vector lane; bit-identical to the reference."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ....ir.element import ElementType
from ....ir.tensor import Array, Value
from ....ops.generation import RandomUniform
from ....ops.kernels.random import KEY_STEPS, MULTIPLIERS, ROUNDS
from ... import Kernel
from ...common.kept_memory import empty
from .._backend import backend
from ..codegen import ir
from ..codegen.descriptor import Descriptor, f32, i64
from ..codegen.language import instruction, types
from ..codegen.vectors import F32, I32, I64S, INTS, LANES, VECTOR, Emit
from ..threading.parallel import parallel_for, threads_for
from ..threading.task import UNUSED, Task, each_chunk

__all__: list[str] = []

# Random numbers of a Philox block, and of a group of `LANES` blocks; groups per unit.
BLOCK = 4
GROUP = BLOCK * LANES
GROUPS_PER_UNIT = 32
# Bits of a random integer that become the fraction of an f32.
FRACTION_BITS = 23


class UniformJob(Descriptor):
    """Parameters of `_uniform`: groups of blocks; key, stream and first block; the width of the range and its lower end."""

    groups: i64
    key: i64
    stream: i64
    first: i64
    spread: f32
    low: f32


@instruction(*[types.int64] * 3)
def _draw(emit: Emit, job: ir.Value, group: ir.Value, out: ir.Value) -> None:
    """Generate and store the numbers of a group of blocks."""
    builder = emit.builder
    key, stream, first = (
        emit.load(emit.at(job, 8 * index), ir.I64)
        for index in (UniformJob.key, UniformJob.stream, UniformJob.first)
    )
    begin = emit.splat(builder.add(first, builder.mul(group, emit.i64(LANES))))
    blocks = builder.add(begin, ir.Constant(I64S, list(range(LANES))))
    words = [half for word in (blocks, emit.splat(stream)) for half in _halves(emit, word)]
    encrypted = _encrypt(emit, words, _halves(emit, emit.splat(key)))
    spread, low = (
        emit.splat(emit.load(emit.at(job, 4 * int(index)), F32))
        for index in (UniformJob.spread, UniformJob.low)
    )
    vectors = []
    for integers in encrypted:
        low_bits = builder.and_(integers, ir.Constant(INTS, [2**FRACTION_BITS - 1] * LANES))
        fraction = builder.fmul(builder.sitofp(low_bits, VECTOR), emit.constant(2.0**-FRACTION_BITS))
        vectors.append(builder.fadd(emit.fence(builder.fmul(fraction, spread)), low))
    for place, vector in enumerate(_interleave(emit, vectors)):
        emit.store(vector, emit.at(out, 4 * LANES * place))


def _halves(emit: Emit, words: ir.Value) -> list[ir.Value]:
    """Return the low and the high 32 bits of a vector of i64."""
    high = emit.builder.lshr(words, ir.Constant(I64S, [32] * LANES))
    return [emit.builder.trunc(bits, INTS) for bits in (words, high)]


def _encrypt(emit: Emit, words: list[ir.Value], keys: list[ir.Value]) -> list[ir.Value]:
    """Return the four random integers of each block by encrypting its four counter words, as in `ops.kernels.random`."""
    builder, (a, b, c, d) = emit.builder, words
    for _ in range(ROUNDS):
        (low_a, high_a), (low_c, high_c) = (
            _halves(emit, builder.mul(builder.zext(x, I64S), ir.Constant(I64S, [int(factor)] * LANES)))
            for x, factor in zip((a, c), MULTIPLIERS, strict=True)
        )
        a, b = builder.xor(builder.xor(high_c, b), keys[0]), low_c
        c, d = builder.xor(builder.xor(high_a, d), keys[1]), low_a
        keys = [
            builder.add(key, ir.Constant(INTS, [step] * LANES))
            for key, step in zip(keys, KEY_STEPS, strict=True)
        ]
    return [a, b, c, d]


def _interleave(emit: Emit, vectors: list[ir.Value]) -> list[ir.Value]:
    """Interleave the lanes of four vectors, and return them as four vectors."""
    first, second = (_shuffle(emit, vectors[at], vectors[at + 1], list(range(2 * LANES))) for at in (0, 2))
    interleaved = []
    for part in range(BLOCK):
        lanes = range(part * LANES, (part + 1) * LANES)
        interleaved.append(_shuffle(emit, first, second, [n % BLOCK * LANES + n // BLOCK for n in lanes]))
    return interleaved


def _shuffle(emit: Emit, a: ir.Value, b: ir.Value, lanes: list[int]) -> ir.Value:
    return emit.builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(I32, len(lanes)), lanes))


@Task
def _uniform(call: int, job: UniformJob, out: int) -> None:
    """Generate random numbers; a work unit is `GROUPS_PER_UNIT` groups of blocks."""
    groups = job.groups
    for start, end in each_chunk(call, groups, GROUPS_PER_UNIT):
        for group in range(start, end):
            _draw(job, group, out + 4 * GROUP * group)


@backend.accelerates(RandomUniform)
def uniform(op: RandomUniform, shape: Value, minval: Value, maxval: Value) -> Kernel | None:
    """Return a RandomUniform kernel for f32 with the alignment of TensorFlow."""
    if op.output_type is not ElementType.f32 or op.alignment != "tensorflow":
        return None
    _uniform.prepare()
    inputs = shape, minval, maxval
    fixed = None if any(value.known() is None for value in inputs) else op.infer(*inputs).static

    def kernel(
        shape: Array, minval: Array, maxval: Array, *, advance: Callable[[int], int] | None = None
    ) -> Array:
        lengths = fixed
        if lengths is None:
            lengths = op.infer(*map(Value.constant, (shape, minval, maxval))).static
        key, stream, start = op.origin(lengths, advance)
        streams_before, first = divmod(start, 2**64)
        size = math.prod(lengths)
        groups = -(-size // GROUP)
        low, high = minval.reshape(()), maxval.reshape(())
        out = empty(groups * GROUP, np.float32)
        job = UniformJob.fill(
            groups=groups, key=_to_signed(key), stream=_to_signed(stream + streams_before), first=_to_signed(first),
            spread=float(high - low), low=float(low),
        )  # fmt: skip
        count = threads_for(steps=size // 2)
        parallel_for(_uniform.address, job, out, UNUSED, UNUSED, UNUSED, count)
        return out[:size].reshape(lengths)

    return Kernel(kernel)


def _to_signed(word: int) -> int:
    """Return the low 64 bits of an integer as i64."""
    return (word + 2**63) % 2**64 - 2**63
