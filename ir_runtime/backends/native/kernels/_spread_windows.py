"""Windows of any width that are a dilation apart: they share the columns that they load, as fixed widths do.

Of a row of the kernel, `TAPS` elements at a time are multiplied, and then the rest. Windows with stride 1 that are a dilation
apart read the same columns; those between them are other windows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..codegen.vectors import LANES, Emit, Value
from ._windows import WINDOWS, Emitter, Lines, Memory, add_lines, address_or_fill, store_windows

__all__ = ["spread_window"]

TAPS = 3
"""Elements of the kernel at a time."""

AddTaps = Callable[[int, Value, Value, Value, list[Value]], list[Value]]
"""Returns the sums after some elements of a row, given how many, the address of the data, its column, and the weights."""


def spread_window(padded: bool, memory: Memory) -> Emitter:
    """Emit windows of stride 1 and any width, a dilation apart."""

    def write(  # noqa: PLR0913 (values in registers)
        emit: Emit, x: Value, down: Value, right: Value, w: Value, rows: Value, planes: Value, behind: Value,
        further: Value, y: Value, step: Value, start: Value, first: Value, width: Value, filler: Value, kernel: Value,
        dilation: Value, _stride: Value, *more: Value,
    ) -> None:  # fmt: skip
        across = emit.builder.mul(right, dilation)
        address_of = address_or_fill(emit, first, width, filler) if padded else lambda address, _: address
        low, count = _inside(emit, first, width, kernel, dilation) if padded else (emit.i64(0), kernel)

        def add_taps(n: int, line: Value, column: Value, weights: Value, sums: list[Value]) -> list[Value]:
            taps = [emit.load(emit.at(weights, 4 * LANES * b)) for b in range(n)]
            for place in range(WINDOWS + n - 1):
                along = emit.builder.add(column, emit.builder.mul(dilation, emit.i64(place)))
                address = address_of(emit.at(line, emit.builder.mul(across, emit.i64(place))), along)
                data = memory.load(emit, address)
                for b in range(n):
                    if 0 <= place - b < WINDOWS:
                        sums[place - b] = emit.fma(data, taps[b], sums[place - b])
            return sums

        def add_line(line: Value, weights: Value, sums: list[Value]) -> list[Value]:
            begin = [emit.at(line, emit.builder.mul(low, across)), emit.builder.mul(low, dilation)]
            begin.append(emit.at(weights, emit.builder.mul(low, emit.i64(4 * LANES))))
            found = _all_taps(emit, count, across, dilation, [*begin, *sums], add_taps)
            return [emit.at(weights, emit.builder.mul(kernel, emit.i64(4 * LANES))), *found]

        lines = Lines(x, down, rows, w, planes, behind, further)
        sums = add_lines(emit, lines, [emit.load(start)] * WINDOWS, add_line)
        store_windows(emit, sums, y, step, memory, more)

    return write


def _inside(emit: Emit, first: Value, width: Value, kernel: Value, dilation: Value) -> tuple[Value, Value]:
    """Return the first element of a row of the kernel that some window has inside the data, and how many such there are.

    With a dilation, all are taken: which are inside would take divisions.
    """
    builder, none = emit.builder, emit.i64(0)

    def at_least(value: Value, least: Value) -> Value:
        return builder.select(builder.icmp_signed(">", value, least), value, least)

    is_dense = builder.icmp_signed("==", dilation, emit.i64(1))
    low = at_least(builder.sub(emit.i64(1 - WINDOWS), first), none)
    after = at_least(builder.sub(width, first), none)
    high = builder.select(builder.icmp_signed("<", after, kernel), after, kernel)
    low = builder.select(is_dense, builder.select(builder.icmp_signed("<", low, high), low, high), none)
    return low, builder.sub(builder.select(is_dense, high, kernel), low)


def _all_taps(
    emit: Emit, count: Value, across: Value, dilation: Value, begin: Sequence[Value], add_taps: AddTaps
) -> list[Value]:
    """Return the sums after ``count`` elements, which begin at an address of the data, a column, and weights."""
    builder, now = emit.builder, list(begin)
    many = builder.sdiv(count, emit.i64(TAPS))
    rest = builder.sub(count, builder.mul(many, emit.i64(TAPS)))
    for n, times in ((TAPS, many), (1, rest)):
        with emit.loop(times, now) as (_, (line, column, weights, *sums), following):
            after = add_taps(n, line, column, weights, list(sums))
            following += [
                emit.at(line, builder.mul(across, emit.i64(n))),
                builder.add(column, builder.mul(dilation, emit.i64(n))),
                emit.at(weights, 4 * LANES * n),
                *after,
            ]
        now = list(following)
    return now[3:]
