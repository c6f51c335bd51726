"""The Winograd transform of filters, F(4x4, 3x3), when a model is compiled: into packed matrices, a vector of columns at once."""

from __future__ import annotations

from collections.abc import Sequence

from ....ir.tensor import Array
from ..codegen.descriptor import Descriptor, i64
from ..codegen.language import instruction, types
from ..codegen.memory import load_i64, scratch_memory
from ..codegen.vectors import LANES, Emit, Value
from ..threading.parallel import parallel_for, threads
from ..threading.task import UNUSED, Task, each_counted, load_args
from ._pack_square import pack_square
from ._panels import PackedPanels, Panel, allocate_panels
from ._winograd_transforms import TILE_ELEMENTS

__all__ = ["transform_filters"]

# Elements of a filter.
_TAPS = 9


def transform_filters(w: Array, scale: Array) -> PackedPanels:
    """Transform filters into 36 packed matrices ``[C_in, C_out]``.

    Args:
        w: ``[C_out, C_in, 3, 3]``, contiguous; both numbers of channels are multiples of `LANES`.
        scale: multiplies each filter, ``[C_out]``.
    """
    outputs, channels = w.shape[:2]
    panels = allocate_panels(TILE_ELEMENTS, outputs, channels)
    job = TransformJob.fill(
        panels=len(panels) // TILE_ELEMENTS,
        table=panels.table.ctypes.data,
        filters=w.ctypes.data,
        scale=scale.ctypes.data,
        channels=channels,
    )
    parallel_for(_TRANSFORM.address, job, panels.numbers, UNUSED, UNUSED, UNUSED, threads())
    return panels


class TransformJob(Descriptor):
    """The job of `_TRANSFORM`: panels of one matrix, addresses, input channels."""

    panels: i64
    table: i64
    filters: i64
    scale: i64
    channels: i64


def _transform_three(emit: Emit, a: Value, b: Value, c: Value) -> list[Value]:
    """Transform three vectors to six."""
    near, half = emit.multiply(emit.add(a, c), emit.constant(-1 / 6)), emit.multiply(b, emit.constant(1 / 6))
    far = emit.fma(a, emit.constant(1 / 24), emit.multiply(c, emit.constant(1 / 6)))
    twelfth = emit.multiply(b, emit.constant(1 / 12))
    return [
        emit.multiply(a, emit.constant(1 / 4)),
        emit.subtract(near, half),
        emit.add(near, half),
        emit.add(far, twelfth),
        emit.subtract(far, twelfth),
        c,
    ]


def _transposed(rows: Sequence[Sequence[Value]]) -> list[list[Value]]:
    return [list(column) for column in zip(*rows, strict=True)]


@instruction(*[types.int64] * 3)
def _transform_filter(emit: Emit, taps: Value, out: Value, apart: Value) -> None:
    """Transform the filters of a vector of columns, whose taps are in a row, to elements ``apart`` bytes from each other."""
    w = [emit.load(emit.at(taps, 4 * LANES * i)) for i in range(_TAPS)]
    rows = _transposed([_transform_three(emit, *w[b::3]) for b in range(3)])
    for a, row in enumerate(rows):
        for b, value in enumerate(_transform_three(emit, *row)):
            emit.store(value, emit.at(out, emit.builder.mul(apart, emit.i64(6 * a + b))))


def _transform_all(call: int) -> None:
    """Transform filters into panels; a unit is `LANES` input channels of one panel of all matrices."""
    address, out, _, _, _, counter = load_args(call)
    job = TransformJob.at(address)
    panels, table = job.panels, Panel.at(job.table)
    channels = job.channels
    blocks = channels // LANES
    apart = load_i64(table, Panel.words * panels + Panel.start) - table.start
    size = 4 * LANES * LANES
    rows = scratch_memory(_TAPS * size)
    for unit in each_counted(counter, panels * blocks):
        entry, block = Panel.at(table + 8 * Panel.words * (unit // blocks)), unit % blocks
        width, column = entry.vectors * LANES, entry.column
        place = out + entry.start + 4 * block * LANES * width
        for first in range(0, width, LANES):
            source = job.filters
            source += 4 * _TAPS * ((column + first) * channels + block * LANES)
            factors = job.scale + 4 * (column + first)
            for k in range(_TAPS):
                pack_square(rows + k * size, 4 * LANES, source + 4 * LANES * k, 4 * _TAPS * channels, factors)
            for k in range(LANES):
                _transform_filter(rows + 4 * LANES * _TAPS * k, place + 4 * (k * width + first), apart)


_TRANSFORM = Task(_transform_all)
