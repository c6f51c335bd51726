"""Sliding windows over NHWC maps and volumes: several neighbouring windows at a time, for one vector of channels.

In padding, a window reads a vector of fill values, so no data is padded and borders are nearly as fast as the interior.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from ....ir.tensor import Array
from ....ops.window import SlidingWindow
from ...common.kept_memory import empty
from ..codegen.descriptor import Descriptor, i64
from ..codegen.language import Instruction, device, instruction, types
from ..codegen.vectors import LANES, Emit, Value

__all__ = [
    "are_better_channels",
    "drop_padding",
    "Memory",
    "WINDOWS",
    "FEW_WINDOWS",
    "F32_SIZE",
    "Lines",
    "SlidingWindows",
    "add_lines",
    "address_or_fill",
    "geometry",
    "store_windows",
    "load_f32_vector",
    "window_range",
    "sliding_window",
    "fixed_width_window",
    "general_window",
    "pad_channels",
]
Emitter = Callable[..., None]
"""Emits one kernel variant of a `sliding_window` instruction."""
Combine = Callable[[Emit, Value, Value, Value], Value]
"""Returns the next accumulator of a window, given the accumulator, a data vector and a weight vector."""

# Windows computed together: enough accumulators to hide the latency of FMA, and a divisor of usual row lengths.
WINDOWS = 7
FEW_WINDOWS = 3

F32_SIZE = 4


class SlidingWindows(Descriptor):
    """The geometry of sliding windows over a map, in the layout that kernels read."""

    height: i64
    width: i64
    channels: i64
    out_height: i64
    out_width: i64
    kernel_height: i64
    kernel_width: i64
    stride_down: i64
    stride_across: i64
    dilation_down: i64
    dilation_across: i64
    pad_top: i64
    pad_left: i64


def geometry(
    op: SlidingWindow, lengths: Sequence[int], channels: int, kernel: Sequence[int], spread: Sequence[int]
) -> dict[str, int]:
    """Return the fields of `SlidingWindows` for the last two spatial axes.

    Args:
        op: the convolution or pooling.
        lengths: the spatial shape of the data.
        channels: the number of channels.
        kernel: the shape of a window.
        spread: the dilations.
    """
    before = [begin for begin, _ in op.pads(lengths, kernel)]
    per_axis = lengths, op.windows(lengths, kernel), kernel, op.strides, spread, before
    fields = [number for values in per_axis for number in values[-2:]]
    fields.insert(2, channels)
    return dict(zip(SlidingWindows.dtype.names or (), map(int, fields), strict=True))


@device
def window_range(first: int, length: int, dilation: int, kernel: int) -> tuple[int, int]:
    """Return the half-open range of the elements of a window that lie inside an axis of ``length`` elements.

    ``first`` is the position of element 0, which may be negative.
    """
    low = (-first + dilation - 1) // dilation if first < 0 else 0
    high = (length - first + dilation - 1) // dilation if length > first else 0
    low, high = min(low, kernel), min(high, kernel)
    return low, max(high, low)


def sliding_window(variants: Mapping[int, Emitter], more: Sequence[str] = ()) -> Instruction:
    """Return an instruction that computes neighbouring windows by one of several kernel variants.

    Its arguments are the variant; the data and the bytes between its rows and between its columns; the weights; the number
    of rows; the number of planes, and the bytes between planes of the data and of the weights; the result and the bytes
    between its columns; the initial values of accumulators; the data column of the first window, and the number of data
    columns; the fill values; the columns, dilation and stride of the kernel. Arguments of the types ``more`` follow, which
    are passed to the store functions.

    Args:
        variants: the emitter of each variant.
        more: the types of additional arguments.
    """

    def write(emit: Emit, form: Value, *arguments: Value) -> None:
        emit.switch(
            form, {number: partial(variant, emit, *arguments) for number, variant in variants.items()}
        )

    return instruction(*[types.int64] * 18, *more)(write)


def load_f32_vector(emit: Emit, address: Value, count: Value | None = None) -> Value:
    """Load a vector of f32; if ``count`` is not ``None``, only its first ``count`` lanes, with zeros in the others."""
    return emit.load(address) if count is None else emit.masked_load(address, emit.lane_mask(count))


def _store(emit: Emit, value: Value, address: Value, *_: Value, count: Value | None = None) -> None:
    store_f32_vector(emit, value, address, count)


def store_f32_vector(emit: Emit, value: Value, address: Value, count: Value | None = None) -> None:
    """Store a vector of f32; if ``count`` is not ``None``, only its first ``count`` lanes."""
    if count is None:
        emit.store(value, address)
    else:
        emit.masked_store(value, address, emit.lane_mask(count))


class Memory(NamedTuple):
    """The functions by which windows load data and store results; by default, both are f32."""

    load: Callable[..., Value] = load_f32_vector
    """Loads a vector; takes an emitter and the address."""
    store: Callable[..., None] = _store
    """Stores a vector; takes an emitter, the vector, its address, and the additional arguments of the instruction."""

    def of_lanes(self, count: Value) -> Memory:
        """Return both functions restricted to the first ``count`` lanes."""
        return Memory(partial(self.load, count=count), partial(self.store, count=count))


F32 = Memory()


def fixed_width_window(kernel: int, stride: int, padded: bool, memory: Memory = F32) -> Emitter:
    """Return an emitter of `WINDOWS` convolution windows with a constant kernel width, constant stride and no dilation.

    Windows share loaded data columns. Unless ``padded``, all windows must lie inside the data.
    """
    beside, columns = WINDOWS, (WINDOWS - 1) * stride + kernel

    def write(  # noqa: PLR0913 (values in registers)
        emit: Emit, x: Value, down: Value, right: Value, w: Value, rows: Value, planes: Value, behind: Value,
        further: Value, y: Value, step: Value, start: Value, first: Value, width: Value, filler: Value, _kernel: Value,
        _dilation: Value, _stride: Value, *more: Value,
    ) -> None:  # fmt: skip
        beginning = emit.load(start)
        load = _load_or_fill(emit, first, width, filler, memory) if padded else _load(emit, memory)

        def add_line(line: Value, weights: Value, sums: list[Value]) -> list[Value]:
            taps = [emit.load(emit.at(weights, 4 * LANES * b)) for b in range(kernel)]
            for column in range(columns):
                data = load(emit.at(line, emit.builder.mul(right, emit.i64(column))), emit.i64(column))
                for b in range(kernel):
                    place, rest = divmod(column - b, stride)
                    if not rest and 0 <= place < beside:
                        sums[place] = emit.fma(data, taps[b], sums[place])
            return [emit.at(weights, 4 * LANES * kernel), *sums]

        lines = Lines(x, down, rows, w, planes, behind, further)
        store_windows(emit, add_lines(emit, lines, [beginning] * beside, add_line), y, step, memory, more)

    return write


def general_window(combine: Combine, beside: int, memory: Memory = F32, narrow: bool = False) -> Emitter:
    """Return an emitter of windows of any size, stride and dilation.

    Args:
        combine: updates an accumulator.
        beside: the number of neighbouring windows.
        memory: the load and store functions.
        narrow: whether to compute only some lanes; the last argument of the instruction is their number.
    """

    def write(  # noqa: PLR0913 (values in registers)
        emit: Emit, x: Value, down: Value, right: Value, w: Value, rows: Value, planes: Value, behind: Value,
        further: Value, y: Value, step: Value, start: Value, first: Value, width: Value, filler: Value, kernel: Value,
        dilation: Value, stride: Value, *more: Value,
    ) -> None:  # fmt: skip
        builder, beginning = emit.builder, emit.load(start)
        access = memory.of_lanes(more[-1]) if narrow else memory
        load = _load_or_fill(emit, first, width, filler, access)

        def add_line(line: Value, weights: Value, before: list[Value]) -> list[Value]:
            with emit.loop(kernel, [weights, *before]) as (b, (tap, *sums), following):
                weight = emit.load(tap)
                for place in range(beside):
                    along = builder.add(builder.mul(b, dilation), builder.mul(stride, emit.i64(place)))
                    data = load(emit.at(line, builder.mul(along, right)), along)
                    sums[place] = combine(emit, sums[place], data, weight)
                following += [emit.at(tap, 4 * LANES), *sums]
            return following

        lines = Lines(x, down, rows, w, planes, behind, further)
        store_windows(emit, add_lines(emit, lines, [beginning] * beside, add_line), y, step, access, more)

    return write


class Lines(NamedTuple):
    """The rows that windows cover, and their weights.

    Args:
        x: the address of the first data row.
        down: the bytes between data rows.
        rows: the number of rows in a plane.
        weights: the address of the weights of the first row.
        planes: the number of planes.
        behind: the bytes between planes of the data.
        further: the bytes between planes of the weights.
    """

    x: Value
    down: Value
    rows: Value
    weights: Value
    planes: Value
    behind: Value
    further: Value


def add_lines(
    emit: Emit,
    lines: Lines,
    sums: Sequence[Value],
    add_line: Callable[[Value, Value, list[Value]], list[Value]],
) -> list[Value]:
    """Emit a loop over all rows of all planes, and return the accumulators after it.

    ``add_line`` takes the address of a row, the address of its weights, and the accumulators; it returns the advanced
    address of the weights, followed by the updated accumulators.
    """
    with emit.loop(lines.planes, [lines.x, lines.weights, *sums]) as (_, (plane, first, *totals), behind):
        with emit.loop(lines.rows, [plane, first, *totals]) as (_, (line, weights, *before), below):
            below += [emit.at(line, lines.down), *add_line(line, weights, before)]
        behind += [emit.at(plane, lines.behind), emit.at(first, lines.further), *below[2:]]
    return behind[2:]


def _load(emit: Emit, memory: Memory) -> Callable[[Value, Value], Value]:
    return lambda address, _: memory.load(emit, address)


def _load_or_fill(
    emit: Emit, first: Value, width: Value, filler: Value, memory: Memory
) -> Callable[[Value, Value], Value]:
    """Return a function that loads a data column, or fill values if the column is outside the data."""
    address_of = address_or_fill(emit, first, width, filler)
    return lambda address, column: memory.load(emit, address_of(address, column))


def address_or_fill(emit: Emit, first: Value, width: Value, filler: Value) -> Callable[[Value, Value], Value]:
    """Return a function that maps the address and index of a data column to the address to load from.

    That is the address itself, or ``filler`` if ``first`` plus the index is not below ``width``.
    """

    def address_of(address: Value, column: Value) -> Value:
        exists = emit.builder.icmp_unsigned("<", emit.builder.add(first, column), width)
        return emit.builder.select(exists, address, filler)

    return address_of


def store_windows(
    emit: Emit, values: Sequence[Value], y: Value, step: Value, memory: Memory, more: Sequence[Value]
) -> None:
    """Store the results of neighbouring windows, ``step`` bytes apart."""
    for place, value in enumerate(values):
        memory.store(emit, value, emit.at(y, emit.builder.mul(step, emit.i64(place))), *more)


def are_better_channels(x: Array) -> bool:
    """Return whether to compute the images of a batch as the channels of one image, to fill vectors.

    This is so for contiguous f32 ``x[N, C, ...]`` with ``C < LANES <= N * C``.
    """
    images, channels = x.shape[:2]
    return channels < LANES <= images * channels and x.itemsize == F32_SIZE and x.flags.c_contiguous


def pad_channels(x: Array, axis: int = -1) -> Array:
    """Pad the channels, along ``axis``, with zeros to at least one vector."""
    channels = x.shape[axis]
    if channels >= LANES:
        return x
    rows = np.moveaxis(x, axis, -1)
    padded = np.zeros((*rows.shape[:-1], LANES), x.dtype)
    _copy_pixels(padded[..., :channels], rows)
    return np.moveaxis(padded, -1, axis)


def drop_padding(y: Array, channels: int) -> Array:
    """Return the first ``channels`` channels of a channels-last result, without those that `pad_channels` added."""
    if y.shape[-1] == channels:
        return y
    out = empty((*y.shape[:-1], channels), y.dtype)
    _copy_pixels(out, y[..., :channels])
    return out


def _copy_pixels(target: Array, source: Array) -> None:
    """Copy pixels; contiguous channels are copied as one item, which is four times as fast."""
    channels = source.shape[-1]
    if channels and source.strides[-1] == source.itemsize:
        item = f"V{source.itemsize * channels}"
        target, source = target.view(item), source.view(item)
    target[...] = source
