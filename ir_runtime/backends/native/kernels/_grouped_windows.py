"""Windows over groups of several channels: as those of depthwise convolutions, with a product for each channel of a group.

The lanes of a vector are channels of the result. Where a group has fewer channels, a vector has several groups, and the
factors of its lanes are the same vector of the data, permuted; else all lanes have one number of the data as their factor.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..codegen import ir
from ..codegen.vectors import F32, INTS, LANES, VECTOR, Emit, Value
from ._windows import WINDOWS, Emitter, Lines, Memory, add_lines, address_or_fill, store_windows

__all__ = ["GROUP_CHANNELS", "fixed_width_groups", "general_groups"]

GROUP_CHANNELS = tuple(2**power for power in range(1, LANES.bit_length()))
"""The numbers of channels of groups that fill a vector."""

Factors = Callable[[Value], Value]
"""Returns the factors of the lanes from the address of an element of the data."""
AddChannel = Callable[[Value, Factors, list[Value]], list[Value]]
"""Returns the sums after a channel, given the byte offset of its weights, its factors, and the sums before."""


def _permuted(emit: Emit, channels: int, channel: int) -> Factors:
    order = ir.Constant(INTS, [lane // channels * channels + channel for lane in range(LANES)])
    none = ir.Constant(VECTOR, ir.UNDEFINED)
    return lambda address: emit.builder.shuffle_vector(emit.load(address), none, order)


def _add_channels(emit: Emit, channels: int, sums: Sequence[Value], add_channel: AddChannel) -> list[Value]:
    """Return the sums after all channels of a group."""
    if channels < LANES:
        for channel in range(channels):
            weights = emit.i64(4 * LANES * channel)
            sums = add_channel(weights, _permuted(emit, channels, channel), list(sums))
        return list(sums)

    def broadcast(address: Value) -> Value:
        return emit.splat(emit.load(emit.at(address, offset), F32))

    with emit.loop(emit.i64(channels), sums) as (index, before, after):
        offset = emit.builder.mul(index, emit.i64(4))
        after += add_channel(emit.builder.mul(offset, emit.i64(LANES)), broadcast, list(before))
    return after


def fixed_width_groups(channels: int, kernel: int, stride: int, padded: bool, memory: Memory) -> Emitter:
    """Emit a kernel of fixed width over groups of `GROUP_CHANNELS`, whose windows share the factors; dilation is 1."""
    beside, columns, size = WINDOWS, (WINDOWS - 1) * stride + kernel, 4 * LANES * channels

    def write(  # noqa: PLR0913 (values in registers)
        emit: Emit, x: Value, down: Value, right: Value, w: Value, rows: Value, planes: Value, behind: Value,
        further: Value, y: Value, step: Value, start: Value, first: Value, width: Value, filler: Value, _kernel: Value,
        _dilation: Value, _stride: Value, *more: Value,
    ) -> None:  # fmt: skip
        address_of = address_or_fill(emit, first, width, filler) if padded else lambda address, _: address

        def add_line(line: Value, weights: Value, sums: list[Value]) -> list[Value]:
            steps = [emit.builder.mul(right, emit.i64(column)) for column in range(columns)]
            places = [address_of(emit.at(line, step), emit.i64(n)) for n, step in enumerate(steps)]
            taps = [emit.at(weights, size * b) for b in range(kernel)]

            def add_channel(offset: Value, factors: Factors, sums: list[Value]) -> list[Value]:
                w = [emit.load(emit.at(tap, offset)) for tap in taps]
                for column, place in enumerate(places):
                    data = factors(place)
                    for b in range(kernel):
                        window, rest = divmod(column - b, stride)
                        if not rest and 0 <= window < beside:
                            sums[window] = emit.fma(data, w[b], sums[window])
                return sums

            return [emit.at(weights, size * kernel), *_add_channels(emit, channels, sums, add_channel)]

        lines = Lines(x, down, rows, w, planes, behind, further)
        sums = add_lines(emit, lines, [emit.load(start)] * beside, add_line)
        store_windows(emit, sums, y, step, memory, more)

    return write


def general_groups(channels: int, beside: int, memory: Memory) -> Emitter:
    """Emit windows of any size, stride and dilation over groups of `GROUP_CHANNELS`."""

    def write(  # noqa: PLR0913 (values in registers)
        emit: Emit, x: Value, down: Value, right: Value, w: Value, rows: Value, planes: Value, behind: Value,
        further: Value, y: Value, step: Value, start: Value, first: Value, width: Value, filler: Value, kernel: Value,
        dilation: Value, stride: Value, *more: Value,
    ) -> None:  # fmt: skip
        builder, address_of = emit.builder, address_or_fill(emit, first, width, filler)

        def add_line(line: Value, weights: Value, before: list[Value]) -> list[Value]:
            with emit.loop(kernel, [weights, *before]) as (b, (tap, *sums), following):
                places = []
                for place in range(beside):
                    along = builder.add(builder.mul(b, dilation), builder.mul(stride, emit.i64(place)))
                    places.append(address_of(emit.at(line, builder.mul(along, right)), along))

                def add_channel(offset: Value, factors: Factors, sums: list[Value]) -> list[Value]:
                    weight = emit.load(emit.at(tap, offset))
                    return [
                        emit.fma(factors(place), weight, sum) for place, sum in zip(places, sums, strict=True)
                    ]

                after = _add_channels(emit, channels, sums, add_channel)
                following += [emit.at(tap, 4 * LANES * channels), *after]
            return following

        lines = Lines(x, down, rows, w, planes, behind, further)
        sums = add_lines(emit, lines, [emit.load(start)] * beside, add_line)
        store_windows(emit, sums, y, step, memory, more)

    return write
