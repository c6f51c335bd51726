"""Depthwise transposed convolution in NHWC layout, as for the bilinear upsampling of segmentation networks.

Element ``o`` along an axis reads data at ``(o + cut - k) / stride`` for the kernel offsets ``k`` (multiples
of the dilation) that give an integer inside the data: ``o`` determines the first of them and their number.
Elements one stride apart read the same kernel elements and neighbouring data; such runs are computed several
elements at a time.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ....ir.shape import PartialShape
from ....ir.tensor import Array, TensorType, Value
from ....ops.convolution import GroupConvolutionBackpropData
from ... import Kernel, KernelTemplate
from ...common.kept_memory import empty
from ...common.layout import as_rows, channels_first, channels_last, is_f32
from .._backend import backend
from ..codegen.descriptor import Descriptor, i64
from ..codegen.language import device, instruction, types
from ..codegen.vectors import LANES, Emit
from ..codegen.vectors import Value as Register
from ..threading.parallel import parallel_for, pays_to_share, replayed, threads
from ..threading.task import UNUSED, Task, each_unit
from ._copy import contiguous
from ._epilogue import Epilogue, FusedKernel
from ._packed_epilogue import EpilogueField, PackedEpilogue, apply_epilogue
from ._windows import F32_SIZE, drop_padding, pad_channels

__all__: list[str] = []

# Elements of a run that are computed at a time: enough accumulators to hide the latency of FMA.
AT_ONCE = 8


class SpreadJob(Descriptor):
    """The job of `_spread`.

    Sizes: result rows in all, per unit and per image; result columns and channels; data rows and columns.
    Bytes between the successive kernel elements, data rows and data columns that one result element reads;
    the data go backwards. Addresses: a `SpreadRun` for each row of an image, and those of columns with their
    number; weights ``[height, width, channels]``; bias; epilogue.
    """

    rows: i64
    rows_per_unit: i64
    out_height: i64
    out_width: i64
    channels: i64
    height: i64
    width: i64
    kernel_row_bytes: i64
    kernel_row_step: i64
    kernel_column_step: i64
    data_row_step: i64
    data_column_step: i64
    column_stride: i64
    row_runs: i64
    column_runs: i64
    run_count: i64
    weights: i64
    bias: i64
    epilogue: EpilogueField


class SpreadRun(Descriptor):
    """Elements along an axis that are one stride apart: the first, and their number.

    The first reads ``taps`` elements, starting at ``kernel`` in the kernel and at ``data`` in the data.
    """

    start: i64
    count: i64
    data: i64
    kernel: i64
    taps: i64


class SpreadAxis(NamedTuple):
    """An axis of a transposed convolution: lengths of data and result; ``begin`` elements are cropped at the start."""

    length: int
    out_length: int
    kernel: int
    stride: int
    dilation: int
    begin: int

    @property
    def steps(self) -> tuple[int, int]:
        """The step between kernel elements, and between data elements, that one result element reads."""
        common = math.gcd(self.stride, self.dilation)
        return self.stride // common, self.dilation // common

    def runs(self, joined: bool) -> Array:
        """Return a `SpreadRun` for each element in order, or for the longest possible runs."""
        found = [self._reads(place) for place in range(self.out_length)]
        if not joined:
            return _records([(place, 1, *reads) for place, reads in enumerate(found)])
        runs: list[tuple[int, ...]] = []
        for phase in range(min(self.stride, self.out_length)):
            start = phase
            for place in range(phase, self.out_length, self.stride):
                data, *others = found[place]
                following = place + self.stride
                count = (following - start) // self.stride
                if following >= self.out_length or found[following] != (data + 1, *others):
                    runs.append((start, count, *found[start]))
                    start = following
        return _records(runs)

    def _reads(self, place: int) -> tuple[int, int, int]:
        """Return the first data element, the first kernel element and the number of taps for a result element."""
        place += self.begin
        kernel_step, data_step = self.steps
        for kernel in range(min(kernel_step, self.kernel)):
            data, rest = divmod(place - kernel * self.dilation, self.stride)
            if not rest:
                skipped = max(-(-(data - self.length + 1) // data_step), 0)
                first, start = kernel + skipped * kernel_step, data - skipped * data_step
                inside = min(-(-(self.kernel - first) // kernel_step), start // data_step + 1)
                return (start, first, inside) if inside > 0 else (0, 0, 0)
        return 0, 0, 0


def _records(runs: list[tuple[int, ...]]) -> Array:
    return np.array(runs, np.int64).reshape(-1, SpreadRun.words)


def _emit_sums(  # noqa: PLR0913 (values in registers)
    emit: Emit, number: int, x: Register, step: Register, down: Register, across: Register, w: Register, kernel_down: Register,
    kernel_across: Register, rows: Register, columns: Register, bias: Register, out: Register, out_step: Register,
) -> None:  # fmt: skip
    """Emit the sums of ``number`` elements of a run."""
    builder = emit.builder
    places = [builder.mul(step, emit.i64(j)) for j in range(number)]
    with emit.loop(rows, [x, w, *[emit.load(bias)] * number]) as (_, (line, taps, *sums), below):
        with emit.loop(columns, [line, taps, *sums]) as (_, (place, tap, *now), beside):
            weight = emit.load(tap)
            found = [
                emit.fma(emit.load(emit.at(place, at)), weight, one)
                for at, one in zip(places, now, strict=True)
            ]
            beside += [builder.sub(place, across), emit.at(tap, kernel_across), *found]
        below += [builder.sub(line, down), emit.at(taps, kernel_down), *beside[2:]]
    for j, sum in enumerate(below[2:]):
        emit.store(sum, emit.at(out, builder.mul(out_step, emit.i64(j))))


@instruction(*[types.int64] * 13)
def _sum_taps(emit: Emit, several: Register, *given: Register) -> None:
    """Compute a channel vector of one element of a run, or of `AT_ONCE`.

    Arguments: whether there are several; data, bytes between the elements of a run, between rows and columns (backwards);
    weights, bytes between their rows and columns; numbers of both; initial values; result, bytes between elements.
    """
    is_one = emit.builder.icmp_signed("==", several, emit.i64(0))
    with emit.builder.if_else(is_one) as (one, many):
        with one:
            _emit_sums(emit, 1, *given)
        with many:
            _emit_sums(emit, AT_ONCE, *given)


@device
def _spread_run(job: SpreadJob, run: SpreadRun, x: int, w: int, rows: int, out: int) -> None:
    """Compute a run of columns of a row, given the first data row and kernel row."""
    channels, count = job.channels, run.count
    down, across = job.data_row_step, job.data_column_step
    kernel_down, kernel_across = job.kernel_row_step, job.kernel_column_step
    columns, bias, step = run.taps, job.bias, F32_SIZE * channels
    source, weights = x + run.data * step, w + run.kernel * step
    target, apart = out + run.start * step, job.column_stride * step
    beside = AT_ONCE if count >= AT_ONCE else 1
    for c in range(0, channels, LANES):
        at = F32_SIZE * min(c, channels - LANES)
        for index in range(0, count, beside):
            place = min(index, count - beside)
            _sum_taps(
                beside - 1, source + place * step + at, step, down, across, weights + at, kernel_down, kernel_across,
                rows, columns, bias + at, target + place * apart + at, apart,
            )  # fmt: skip


@Task
def _spread(call: int, job: SpreadJob, y: int, x: int, first: int, second: int) -> None:
    """Compute result rows; a unit is several rows."""
    rows, several = job.rows, job.rows_per_unit
    tall, wide, channels = job.out_height, job.out_width, job.channels
    line = F32_SIZE * channels * job.width
    image = line * job.height
    runs, count = job.column_runs, job.run_count
    units = (rows + several - 1) // several
    for unit in each_unit(call, units):
        for row in range(unit * several, min(unit * several + several, rows)):
            entry = row // tall
            of_row = SpreadRun.at(job.row_runs, (row - entry * tall))
            data = x + entry * image + of_row.data * line
            kernel = of_row.kernel * job.kernel_row_bytes
            w, taps = job.weights + kernel, of_row.taps
            at = F32_SIZE * channels * wide * row
            for index in range(count):
                run = SpreadRun.at(runs, index)
                _spread_run(job, run, data, w, taps, y + at)
            apply_epilogue(job.epilogue, first, second, y, at, 0, wide, channels, F32_SIZE * channels)


# Multiplications of a unit.
WORK_PER_UNIT = 1 << 14


@backend.accelerates(GroupConvolutionBackpropData)
def depthwise_transposed(
    op: GroupConvolutionBackpropData, data: Value, filters: Value, output_shape: Value | None = None
) -> KernelTemplate | None:
    """Support constant f32 filters ``[C, 1, 1, kernel...]`` over one or two spatial axes; an output shape must be constant, too."""
    w, given = filters.known(), () if output_shape is None else (output_shape,)
    if w is None or not is_f32(data, filters) or w.ndim not in (4, 5) or w.shape[1:3] != (1, 1):
        return None
    if not w.size or any(value.known() is None for value in given):
        return None
    kernel = w.shape[3:]

    @lru_cache(maxsize=64)
    def axes(shape: tuple[int, ...]) -> tuple[SpreadAxis, ...]:
        value = Value(TensorType(data.element, PartialShape(shape)))
        lengths = op.infer(value, filters, *given).static[2:]
        begins = op.begins(shape[2:], kernel, lengths, bool(given))
        numbers = zip(shape[2:], lengths, kernel, op.strides, op.dilations, begins, strict=True)
        flat = [SpreadAxis(1, 1, 1, 1, 1, 0)] * (2 - len(kernel))
        return (*flat, *(SpreadAxis(*each) for each in numbers))

    _spread.prepare()
    return FusedKernel(lambda epilogue: _kernel(w, epilogue, len(given), axes), 1)


def _kernel(
    w: Array, epilogue: Epilogue, skipped: int, axes: Callable[[tuple[int, ...]], tuple[SpreadAxis, ...]]
) -> Kernel:
    """Return the kernel for filters; the first ``skipped`` inputs after them are not read."""
    channels, kernel = len(w), (1, *w.shape[3:])[-2:]
    weights = w.reshape(channels, *kernel)
    if epilogue.scale is not None:
        weights = weights * epilogue.scale[:, None, None]
    packed = np.ascontiguousarray(pad_channels(np.moveaxis(weights, 0, -1)))
    wide = packed.shape[-1]
    bias = np.zeros(wide, np.float32)
    if epilogue.shift is not None:
        bias[:channels] = epilogue.shift
    post_ops = PackedEpilogue.of(epilogue, wide)

    @lru_cache(maxsize=16)
    def job_for(shape: tuple[int, ...], sharing: int) -> tuple[Array, tuple[int, ...], bool]:
        down, across = axes(shape)
        rows, columns = down.runs(joined=False), across.runs(joined=True)
        out = shape[0], down.out_length, across.out_length, wide
        (kernel_down, data_down), (kernel_across, data_across) = down.steps, across.steps
        work, lines = _work(rows) * _work(columns) * wide * shape[0], shape[0] * down.out_length
        # At least two units for each thread, where there is enough work.
        several = min(-(-lines * WORK_PER_UNIT // max(work, 1)), -(-lines // (2 * sharing)))
        job = SpreadJob.fill(
            rows=lines, rows_per_unit=max(several, 1), out_height=out[1], out_width=out[2], channels=wide,
            height=down.length, width=across.length, kernel_row_bytes=4 * wide * across.kernel,
            kernel_row_step=4 * wide * across.kernel * kernel_down,
            kernel_column_step=4 * wide * kernel_across, data_row_step=4 * wide * across.length * data_down,
            data_column_step=4 * wide * data_across, column_stride=across.stride, row_runs=rows,
            column_runs=columns, run_count=len(columns), weights=packed, bias=bias, epilogue=post_ops.record,
        )  # fmt: skip
        return job, out, pays_to_share(computed=work)

    def compute(x: Array, _: Array, *others: Array) -> Array:
        job, shape, is_large = job_for(x.shape, threads())
        y, extras = empty(shape, np.float32), others[skipped:]
        if y.size:
            source = contiguous(pad_channels(channels_last(x)))
            partners = [contiguous(as_rows(pad_channels(extras[index], 1), 1)) for index in post_ops.extras]
            first, second = (*partners, UNUSED, UNUSED)[:2]
            parallel_for(_spread.address, job, y, source, first, second, threads() if is_large else 1)
        found = channels_first(drop_padding(y, channels))
        return found[:, :, 0] if x.ndim == 3 else found

    return Kernel(compute, replay=replayed())


def _work(runs: Array) -> int:
    """Return the number of kernel elements read by all elements of runs."""
    found = runs.view(SpreadRun.dtype)
    return int((found["count"] * found["taps"]).sum())
