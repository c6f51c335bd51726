"""Packing of filters, into the panels that convolutions multiply with: constant ones, and those that a run computes.

The elements of a filter are read as they are stored, ``[C_in, taps]``, in squares that are transposed in registers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ....ir.operation import Operation
from ....ir.tensor import Array, Value
from ..codegen import ir
from ..codegen.descriptor import Descriptor, Job, i64
from ..codegen.language import device, instruction, types
from ..codegen.memory import load_f32, scratch_memory, store_f32
from ..codegen.vectors import LANES, Emit
from ..threading.parallel import parallel_for, pays_to_share, threads, threads_for
from ..threading.recording import workspace
from ..threading.task import UNUSED, Task, each_unit, load_args
from ._epilogue import FusedKernel
from ._pack_square import pack_square
from ._panels import PackedPanels, Panel, allocate_panels

__all__ = ["PACK_FILTERS", "FilterPacking", "FusedOfRun", "packed_filters"]

# How many tensors the post-ops of a product with packed weights can read.
MAX_EXTRAS = 1


class FilterJob(Descriptor):
    """The job of `PACK_FILTERS`: panels, their table, a factor for each column, sizes, and vectors of channels of a unit.

    ``blocks`` units share a panel.
    """

    panels: i64
    table: i64
    scale: i64
    channels: i64
    taps: i64
    blocks: i64


@instruction(*[types.int64] * 6)
def _place_rows(
    emit: Emit, source: ir.Value, target: ir.Value, taps: ir.Value, count: ir.Value, width: ir.Value, depth: ir.Value
) -> None:  # fmt: skip
    """Copy vectors of ``[count, taps]`` to rows of a panel, ``[taps, depth]``, that are ``width`` bytes from each other."""
    builder = emit.builder
    across = builder.mul(width, depth)
    with emit.loop(taps, [source, target]) as (_, (tap, place), following):
        with emit.loop(count, [tap, place]) as (_, (vector, row), inner):
            emit.store(emit.load(vector), row)
            inner += [emit.at(vector, builder.mul(taps, emit.i64(4 * LANES))), emit.at(row, width)]
        following += [emit.at(tap, 4 * LANES), emit.at(place, across)]


@device
def _pack_element_wise(
    job: FilterJob, target: int, width: int, source: int, columns: int, channels: int, factors: int
) -> None:
    """Pack some channels of at most `LANES` columns, and zeros for the other ones."""
    taps, depth = job.taps, job.channels
    for tap in range(taps):
        for channel in range(channels):
            row = target + 4 * (tap * depth + channel) * width
            for j in range(LANES):
                value = np.float32(0)
                if j < columns:
                    value = load_f32(source, (j * depth + channel) * taps + tap) * load_f32(factors, j)
                store_f32(row, j, value)


def _pack_filters(call: int) -> None:
    """Pack filters; a unit is `LANES` channels of a panel."""
    address, out, filters, _, _, _ = load_args(call)
    job = FilterJob.at(address)
    taps, depth = job.taps, job.channels
    blocks = job.blocks
    units = blocks * job.panels
    rows = scratch_memory(4 * LANES * LANES * taps)
    for unit in each_unit(call, units):
        panel = unit // blocks
        channel = (unit - panel * blocks) * LANES
        count = min(depth - channel, LANES)
        entry = Panel.at(job.table + 8 * Panel.words * panel)
        width, column = entry.vectors * LANES, entry.column
        columns = width - LANES + entry.last_columns
        for first in range(0, width, LANES):
            source = filters + 4 * ((column + first) * depth + channel) * taps
            target = out + entry.start + 4 * (channel * width + first)
            factors = job.scale + 4 * (column + first)
            if count == LANES and first + LANES <= columns:
                for k in range(taps):
                    pack_square(
                        rows + 4 * LANES * LANES * k, 4 * LANES, source + 4 * LANES * k, 4 * depth * taps, factors
                    )  # fmt: skip
                _place_rows(rows, target, taps, LANES, 4 * width, depth)
            else:
                _pack_element_wise(job, target, width, source, min(columns - first, LANES), count, factors)


PACK_FILTERS = Task(_pack_filters)
"""Pack filters ``[columns, channels, taps]`` of all groups, A, which is contiguous, into panels."""


def packed_filters(filters: Array, scale: Array | None, bias: Array | None, across: int = 0) -> PackedPanels:
    """Return the panels of contiguous filters ``[G, C_out, C_in, taps]``; the other arguments are those of `pack_panels`."""
    groups, outputs, channels, taps = filters.shape
    panels = allocate_panels(groups, outputs, channels * taps, bias, across)
    job = _job(panels, channels, taps, _factors(scale, groups * outputs))
    count = threads_for(steps=filters.size // 4)
    parallel_for(PACK_FILTERS.address, job, panels.numbers, filters, UNUSED, UNUSED, count)
    return panels


def _job(panels: PackedPanels, channels: int, taps: int, factors: Array) -> Array:
    job = FilterJob.fill(
        panels=len(panels), table=panels.table.ctypes.data, scale=factors.ctypes.data, channels=channels, taps=taps,
        blocks=-(-channels // LANES),
    )  # fmt: skip
    return Job.of(job, panels.table, factors)


def _factors(scale: Array | None, columns: int) -> Array:
    return np.ones(columns, np.float32) if scale is None else np.ascontiguousarray(scale)


@dataclass(frozen=True)
class FilterPacking:
    """How filters of one shape are packed in every run.

    Args:
        panels: where the columns are, and their biases; of the numbers, how many there are, all NaN.
        job: of `PACK_FILTERS`.
        parallel: whether threads share it.
    """

    panels: PackedPanels
    job: Array
    parallel: bool

    @classmethod
    def of(cls, shape: Sequence[int], scale: Array | None, bias: Array | None) -> FilterPacking:
        """Return the packing of filters ``[G, C_out, C_in, kernel...]``, which a scale multiplies, and their biases."""
        groups, outputs, channels, *kernel = shape
        taps = math.prod(kernel)
        panels = allocate_panels(groups, outputs, channels * taps, bias, 8 * taps)
        # In place of numbers that may not be finite, as `PackedPanels.is_finite` then says; they take no memory.
        panels = replace(panels, numbers=np.broadcast_to(np.float32(np.nan), panels.numbers.shape))
        job = _job(panels, channels, taps, _factors(scale, groups * outputs))
        PACK_FILTERS.prepare()
        return cls(panels, job, pays_to_share(steps=groups * outputs * channels * taps // 4))

    def pack(self, filters: Array) -> Array:
        """Return packed filters."""
        packed = workspace(self.panels.numbers.size)
        count = threads() if self.parallel else 1
        parallel_for(PACK_FILTERS.address, self.job, packed, filters, UNUSED, UNUSED, count)
        return packed


@dataclass(frozen=True)
class FusedOfRun(FusedKernel):
    """A product with weights of the run that fuses the layers after it, as long as these read one more tensor at most.

    The packed weights take the place of its second tensor.
    """

    def fuse(self, op: Operation, inputs: Sequence[Value], place: int) -> FusedKernel | None:
        """Return a kernel that also computes ``op``, or ``None``."""
        epilogue = self.epilogue.then(op, inputs, place, self.axis)
        if epilogue is None or sum(post_op.extra >= 0 for post_op in epilogue.post_ops) > MAX_EXTRAS:
            return None
        return super().fuse(op, inputs, place)
