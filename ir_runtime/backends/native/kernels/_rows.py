"""Instructions on rows of f32: copies, transposes, dot products and weighted sums."""

from __future__ import annotations

from collections.abc import Sequence

from ..codegen import ir
from ..codegen.language import device, instruction, types
from ..codegen.vectors import F32, I32, I64, LANES, Emit, Store, Value

__all__ = [
    "add_weighted_rows",
    "clear_row",
    "copy_bytes",
    "copy_padded",
    "copy_row",
    "dot_rows",
    "emit_transpose",
    "transpose_part",
    "transpose_square",
    "transpose_vectors",
]

# The most bytes for which an inline copy is faster than calling memcpy.
MAX_INLINE = 1024


@instruction(types.int64, types.int64)
def clear_row(emit: Emit, out: Value, count: Value) -> None:
    """Set ``count`` elements at ``out`` to zero."""
    for offset, _, store in emit.vectors(count):
        store(emit.constant(0), emit.at(out, offset))


@instruction(*[types.int64] * 3)
def copy_row(emit: Emit, x: Value, count: Value, out: Value) -> None:
    """Copy ``count`` f32 elements from ``x`` to ``out``."""
    for offset, load, store in emit.vectors(count):
        store(load(emit.at(x, offset)), emit.at(out, offset))


@instruction(*[types.int64] * 3)
def _memcpy(emit: Emit, x: Value, size: Value, out: Value) -> None:
    """Copy ``size`` bytes from ``x`` to ``out`` by calling C's memcpy."""
    places = [emit.pointer(place) for place in (out, x)]
    copy = emit.function("memcpy", ir.POINTER, ir.POINTER, ir.POINTER, I64)
    emit.builder.call(copy, [*places, size])


@device
def copy_bytes(x: int, size: int, out: int) -> None:
    """Copy ``size`` bytes from ``x`` to ``out``, inline if they are few."""
    if size <= MAX_INLINE and size % 4 == 0:
        copy_row(x, size // 4, out)
    else:
        _memcpy(x, size, out)


@instruction(*[types.int64] * 3)
def copy_padded(emit: Emit, x: Value, count: Value, out: Value) -> None:
    """Copy ``count`` elements, and zero the remaining lanes of the last vector."""
    for offset, load, _ in emit.vectors(count):
        emit.store(load(emit.at(x, offset)), emit.at(out, offset))


@instruction(*[types.int64] * 6)
def dot_rows(emit: Emit, x: Value, y: Value, stride: Value, rows: Value, count: Value, out: Value) -> None:
    """Store in ``out`` the dot products of row ``x`` with each of ``rows`` rows of ``y``, which are ``stride`` bytes apart.

    All rows have ``count`` f32 elements.
    """
    builder = emit.builder
    at_once = 4
    steps = [builder.mul(stride, emit.i64(i)) for i in range(at_once)]

    def emit_products(rows_here: int, start: Value, target: Value) -> None:
        whole = builder.sdiv(count, emit.i64(LANES))
        with emit.loop(whole, [emit.constant(0)] * rows_here) as (i, now, following):
            offset = builder.mul(i, emit.i64(4 * LANES))
            factor = emit.load(emit.at(x, offset))
            for r in range(rows_here):
                other = emit.load(emit.at(emit.at(start, steps[r]), offset))
                following.append(emit.fma(factor, other, now[r]))
        done = builder.mul(whole, emit.i64(LANES))
        rest = builder.sub(count, done)
        offset = builder.mul(done, emit.i64(4))

        def add_remainder() -> list[Value]:
            load, _ = emit.masked_access(rest)
            factor = load(emit.at(x, offset))
            others = (load(emit.at(emit.at(start, steps[r]), offset)) for r in range(rows_here))
            return [emit.fma(factor, other, sum) for other, sum in zip(others, following, strict=True)]

        sums = emit.if_else(builder.icmp_signed(">", rest, emit.i64(0)), add_remainder, lambda: following)
        for r, lanes in enumerate(sums):
            emit.store(emit.reduce_add(lanes), emit.at(target, 4 * r))

    many = builder.sdiv(rows, emit.i64(at_once))
    with emit.loop(many, [y, out]) as (_, (start, target), following):
        emit_products(at_once, start, target)
        following += [emit.at(start, builder.mul(stride, emit.i64(at_once))), emit.at(target, 4 * at_once)]
    start, target = following
    with emit.loop(builder.sub(rows, builder.mul(many, emit.i64(at_once))), [start, target]) as (
        _,
        now,
        after,
    ):
        emit_products(1, now[0], now[1])
        after += [emit.at(now[0], stride), emit.at(now[1], 4)]


@instruction(*[types.int64] * 6)
def add_weighted_rows(
    emit: Emit, weights: Value, y: Value, stride: Value, rows: Value, count: Value, out: Value
) -> None:
    """Add to the row ``out`` the sum of ``rows`` rows of ``y``, ``stride`` bytes apart, each times its element of ``weights``.

    All rows have ``count`` f32 elements.
    """
    for offset, access in emit.strips(count, 8):
        places = [emit.at(offset, 4 * LANES * j) for j in range(len(access))]
        start = [load(emit.at(out, place)) for (load, _), place in zip(access, places, strict=True)]
        with emit.loop(rows, [emit.at(y, offset), weights, *start]) as (_, (at, weight, *now), following):
            factor = emit.splat(emit.load(weight, F32))
            following += [emit.at(at, stride), emit.at(weight, 4)]
            for j, (load, _) in enumerate(access):
                following.append(emit.fma(factor, load(emit.at(at, 4 * LANES * j)), now[j]))
        for (_, store), place, total in zip(access, places, following[2:], strict=True):
            store(total, emit.at(out, place))


@instruction(*[types.int64] * 4)
def transpose_square(emit: Emit, x: Value, stride: Value, out: Value, width: Value) -> None:
    """Transpose a square of `LANES` rows that are ``stride`` bytes apart to rows that are ``width`` bytes apart."""
    builder = emit.builder
    rows = [emit.load(emit.at(x, builder.mul(stride, emit.i64(i)))) for i in range(LANES)]
    for i, row in enumerate(transpose_vectors(emit, rows)):
        emit.store(row, emit.at(out, builder.mul(width, emit.i64(i))))


@instruction(*[types.int64] * 6)
def transpose_part(
    emit: Emit, x: Value, stride: Value, rows: Value, columns: Value, out: Value, width: Value
) -> None:
    """Transpose up to `LANES` rows and columns, like `transpose_square`.

    Whole vectors are stored: each result row is padded to `LANES` elements with its last one.
    """
    emit_transpose(emit, x, stride, rows, columns, out, width, emit.store)


def emit_transpose(
    emit: Emit, x: Value, stride: Value, rows: Value, columns: Value, out: Value, width: Value, store: Store
) -> None:  # fmt: skip
    """Emit the transpose of up to `LANES` rows and columns.

    ``store`` stores each result row, a vector whose lanes beyond ``rows`` repeat the last element.
    """
    builder, (load, _) = emit.builder, emit.masked_access(columns)
    places, last = [x], emit.at(x, builder.mul(stride, builder.sub(rows, emit.i64(1))))
    for i in range(1, LANES):
        is_row = builder.icmp_signed("<", emit.i64(i), rows)
        places.append(builder.select(is_row, emit.at(x, builder.mul(stride, emit.i64(i))), last))
    for i, row in enumerate(transpose_vectors(emit, [load(place) for place in places])):
        with builder.if_then(builder.icmp_signed("<", emit.i64(i), columns)):
            store(row, emit.at(out, builder.mul(width, emit.i64(i))))


def transpose_vectors(emit: Emit, rows: Sequence[Value]) -> list[Value]:
    """Transpose a square of `LANES` vectors by swapping off-diagonal blocks of growing size."""
    vectors, step = list(rows), 1
    while step < LANES:
        low, high = _swap_masks(step)
        for i in range(LANES):
            if not i & step:
                a, b = vectors[i], vectors[i + step]
                vectors[i] = emit.builder.shuffle_vector(a, b, low)
                vectors[i + step] = emit.builder.shuffle_vector(a, b, high)
        step *= 2
    return vectors


def _swap_masks(step: int) -> tuple[Value, Value]:
    """Return the two shuffle masks that swap off-diagonal blocks of ``step`` lanes between two vectors."""
    low = [j if not j & step else LANES + j - step for j in range(LANES)]
    high = [j + step if not j & step else LANES + j for j in range(LANES)]
    kind = ir.VectorType(I32, LANES)
    return ir.Constant(kind, low), ir.Constant(kind, high)
