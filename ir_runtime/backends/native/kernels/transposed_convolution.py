"""Transposed convolutions with constant filters, as products that compute all phases of the strides at once.

Result element ``o`` reads data at ``(o + cut - k) / stride`` for the kernel elements ``k`` that give an
integer inside the data. So the elements of a block, those with the same ``(o + cut) // stride``, read the
same data window, each with a different part of the kernel, selected by the phase ``(o + cut) % stride`` (Shi
et al. 2016, "Is the deconvolution layer the same as a convolutional layer?", arXiv:1609.07009). They are the
columns of one product, which stores each line of a block in its place in the result, so no windows are
accumulated. If the kernel is not a multiple of the stride, some phases read one element less; they form a
separate product, so that no zeros are multiplied. Blocks at the border are computed whole and cropped.

Depthwise transposed convolutions, as for the bilinear upsampling of segmentation networks, have a separate kernel
in NHWC layout: ``o`` determines the first kernel element that it reads, and how many follow. Result elements one
stride apart read the same kernel elements and neighbouring data; several elements of such a run are computed at a
time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from typing import NamedTuple

import numpy as np

from ....ir.operation import Operation
from ....ir.shape import PartialShape
from ....ir.tensor import Array, TensorType, Value
from ....ops.convolution import ConvolutionBackpropData, GroupConvolutionBackpropData
from ... import Kernel, KernelTemplate
from ...common.kept_memory import empty
from ...common.layout import as_rows, channels_first, channels_last, is_f32
from .._backend import backend
from ..codegen.descriptor import Descriptor, i64
from ..codegen.language import device, instruction, types
from ..codegen.vectors import LANES, Emit
from ..codegen.vectors import Value as Register
from ..packed_memory import aligned_empty
from ..threading.capture import replayed
from ..threading.parallel import parallel_for, pays_to_share, threads
from ..threading.task import UNUSED, Task, each_unit
from ._copy import contiguous
from ._epilogue import Epilogue, EpilogueField, FusedKernel, PackedEpilogue, apply_epilogue
from ._gemm import NO_OFFSET, Gemm, Rows
from ._gemm_kernel import Layout, Products, Windows, requested_products, tap_offsets
from ._gemm_tile import OutputLines
from ._windows import F32_SIZE, drop_padding, pad_channels
from .convolution import repeat_columns

_Axes = tuple[int, ...]
"""One integer for each of three spatial axes."""


def _volume(sizes: Sequence[int], missing: int = 1) -> _Axes:
    """Extend sizes of one to three spatial axes to three axes; leading axes have size ``missing``."""
    return (*[missing] * (3 - len(sizes)), *sizes)


def _is_whole(op: ConvolutionBackpropData, kernel: Sequence[int], sized: bool) -> bool:
    """Return whether the result consists of whole blocks, one per data element.

    A ``sized`` result, for which an output shape is given, may be cropped.
    """
    cuts = (*op.pads_begin, *op.pads_end) if op.auto_pad == "explicit" else ()
    return tuple(kernel) == tuple(op.strides) and not (sized or any(cuts) or any(op.output_padding))


class _Blocks(NamedTuple):
    """The blocks of a result: their number along each axis, and the last data element that the first block reads.

    ``begins`` and ``lengths`` select the part of the blocks that is the result.
    """

    counts: _Axes
    firsts: _Axes
    begins: _Axes
    lengths: _Axes

    @classmethod
    def of(cls, begins: Sequence[int], lengths: Sequence[int], strides: _Axes) -> _Blocks:
        """Return the blocks for a result of these lengths, cropped by ``begins`` elements at the start."""
        begins, lengths = _volume(begins, 0), _volume(lengths)
        firsts = tuple(begin // stride for begin, stride in zip(begins, strides, strict=True))
        counts = (
            -(-(begin + length) // stride) - first
            for begin, length, stride, first in zip(begins, lengths, strides, firsts, strict=True)
        )
        rest = (begin % stride for begin, stride in zip(begins, strides, strict=True))
        return cls(tuple(counts), firsts, tuple(rest), lengths)

    @property
    def inside(self) -> tuple[slice, ...]:
        """The slices that crop the blocks to the result."""
        ends = (begin + length for begin, length in zip(self.begins, self.lengths, strict=True))
        return (slice(None), *map(slice, self.begins, ends))


class _Phases(NamedTuple):
    """A range of phases along an axis that read equally many kernel elements: first phase, size, and that number."""

    first: int
    size: int
    taps: int

    @classmethod
    def ranges(cls, kernel: int, stride: int) -> list[_Phases]:
        """Divide the phases of an axis into ranges that read equally many kernel elements."""
        taps, longer = divmod(kernel, stride)
        ranges = [cls(0, longer, taps + 1), cls(longer, stride - longer, taps)]
        return [phases for phases in ranges if phases.size]

    def elements(self, stride: int) -> Array:
        """Return the kernel elements ``[phase, tap]``, in the order of the data that they multiply."""
        return self.first + np.arange(self.size)[:, None] + stride * np.arange(self.taps)[::-1]


class _Product(NamedTuple):
    """The matrix product for a range of phases of each axis; ``strides`` are those of the convolution."""

    phases: tuple[_Phases, ...]
    strides: _Axes
    gemm: Gemm

    @classmethod
    def of(
        cls, w: Array, phases: tuple[_Phases, ...], strides: _Axes, epilogue: Epilogue, products: Products
    ) -> _Product:
        """Pack the part of filters ``w[C_in, C_out, kernel...]``, over three axes, that these phases read."""
        channels, outputs = w.shape[:2]
        for axis, (phase_range, stride) in enumerate(zip(phases, strides, strict=True)):
            w = w.take(phase_range.elements(stride), 2 + 2 * axis)
        deep, tall, wide = (phase_range.size for phase_range in phases)
        filters = w.transpose(2, 4, 6, 1, 3, 5, 7, 0).reshape(deep * tall, wide * outputs, -1, channels)
        every = repeat_columns(epilogue, deep * tall * wide)
        panels = products.pack(filters, every.scale, every.shift)
        words, zeros = products.words(channels), aligned_empty(channels)
        zeros[...] = 0
        columns, taps = deep * tall * wide * outputs, filters.shape[2]
        return cls(phases, strides, Gemm(panels, every, columns, taps, words, zeros, products.task))

    def run(self, rows: Array, shape: tuple[int, ...], y: Array, blocks: _Blocks) -> None:
        """Multiply data of this shape, and store the results of these phases in the blocks ``y``."""
        firsts = (slice(each.first, None) for each in self.phases)
        self.gemm.run(rows, y[(slice(None), *firsts)], (), 1, shape, lambda: self._rows(shape, blocks))

    def _rows(self, shape: tuple[int, ...], blocks: _Blocks) -> Rows:
        """Describe the windows of the data, and the lines of the result."""
        words, outputs = self.gemm.depth, self.gemm.columns // math.prod(p.size for p in self.phases)
        lengths, taps, ones = _volume(shape[2:]), [p.taps for p in self.phases], (1, 1, 1)
        pads = [length - 1 - first for length, first in zip(taps, blocks.firsts, strict=True)]
        geometry = Windows(
            lengths, blocks.counts, ones, pads, taps, ones, 4 * words, 4 * words * math.prod(lengths)
        )
        last = [n - pad + k - 1 for n, pad, k in zip(blocks.counts, pads, taps, strict=True)]
        valid = not any(pads) and all(n <= length for n, length in zip(last, lengths, strict=True))
        layout = Layout.VALID if valid else Layout.PADDED
        (_, tall, wide), (_, height, width) = self.phases, blocks.counts
        lines = OutputLines.fill(
            width=width, height=height, columns=wide.size * outputs, pitch=self.strides[2] * outputs,
            planes=self.strides[0], lines=self.strides[1], group_lines=tall.size,
        )  # fmt: skip
        if valid and blocks.counts == lengths and self.gemm.taps == 1:
            return Rows(shape[0] * math.prod(lengths), Layout.MATRIX, 4 * words, NO_OFFSET, None, lines)
        offsets = tap_offsets(geometry, layout, False, 1, words)
        return Rows(shape[0] * math.prod(blocks.counts), layout, 0, offsets, geometry, lines)


def _products(w: Array, strides: _Axes, epilogue: Epilogue, products: Products) -> list[_Product]:
    """Return the products for all phases of filters ``[C_in, C_out, kernel...]``."""
    kernel = _volume(w.shape[2:])
    w = w.reshape(*w.shape[:2], *kernel)
    axes = (_Phases.ranges(length, stride) for length, stride in zip(kernel, strides, strict=True))
    return [_Product.of(w, phases, strides, epilogue, products) for phases in product(*axes)]


@dataclass(frozen=True)
class _TransposedKernel(FusedKernel):
    """A `FusedKernel` that only fuses layers without extra tensors.

    The rows of its products are not contiguous in the result.
    """

    def fuse(self, op: Operation, inputs: Sequence[Value], place: int) -> _TransposedKernel | None:
        """Return a kernel that also applies ``op``, or ``None`` if it cannot be fused."""
        epilogue = self.epilogue.then(op, inputs, place, self.axis)
        if epilogue is None or any(post_op.extra >= 0 for post_op in epilogue.post_ops):
            return None
        return replace(self, epilogue=epilogue)


@backend.accelerates(ConvolutionBackpropData)
def dense_transposed(
    op: ConvolutionBackpropData, data: Value, filters: Value, output_shape: Value | None = None
) -> KernelTemplate | None:
    """Return a ConvolutionBackpropData kernel for constant f32 filters without dilation, no shorter than the strides.

    An output shape must be constant, too.
    """
    w, sizes = filters.known(), () if output_shape is None else (output_shape,)
    if w is None or not w.size or not is_f32(data, filters) or any(value.known() is None for value in sizes):
        return None
    kernel = w.shape[2:]
    if any(n != 1 for n in op.dilations) or any(k < s for k, s in zip(kernel, op.strides, strict=True)):
        return None

    @lru_cache(maxsize=64)
    def blocks(shape: tuple[int, ...]) -> _Blocks:
        value = Value(TensorType(data.element, PartialShape(shape)))
        lengths = op.infer(value, filters, *sizes).static[2:]
        begins = op.begins(shape[2:], kernel, lengths, bool(sizes))
        return _Blocks.of(begins, lengths, _volume(op.strides))

    products = requested_products()

    def make(epilogue: Epilogue) -> Kernel:
        parts = _products(w, _volume(op.strides), epilogue, products)

        def compute(x: Array, *_: Array) -> Array:
            whole = blocks(x.shape)
            steps = zip(whole.counts, _volume(op.strides), strict=True)
            y = empty((len(x), *map(math.prod, steps), w.shape[1]), epilogue.dtype)
            if y.size:
                rows = products.rows_of(w.shape[0])(contiguous(channels_last(x)))
                for part in parts:
                    part.run(rows, x.shape, y, whole)
            inside = contiguous(y[whole.inside])
            return channels_first(inside.reshape(len(x), *whole.lengths[-len(kernel) :], w.shape[1]))

        return Kernel(compute, name=products.name, replay=replayed())

    tensors = products.bf16_tensors(w.shape[0])
    stored = tensors.result and _is_whole(op, kernel, bool(sizes))
    return _TransposedKernel(make, 1, bf16=tensors._replace(residual=False, result=stored))


# Elements of a run that are computed at a time: enough accumulators to hide the latency of FMA.
AT_ONCE = 8


class SpreadJob(Descriptor):
    """Parameters of `_spread`.

    Sizes: result rows in all, per unit and per image; result columns and channels; data rows and columns.
    Steps in bytes between the successive kernel rows, kernel columns, data rows and data columns that one result
    element reads; data is read backwards. Addresses: a `SpreadRun` for each row of an image, and those of columns
    with their number; weights ``[height, width, channels]``; bias; epilogue.
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
    """Result elements along an axis that are one stride apart: the first, and their number.

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
        """Return the `SpreadRun`s of the result: the longest possible if ``joined``, else one for each element."""
        reads = [self._reads(place) for place in range(self.out_length)]
        if not joined:
            return _records([(place, 1, *read) for place, read in enumerate(reads)])
        runs: list[tuple[int, ...]] = []
        for phase in range(min(self.stride, self.out_length)):
            start = phase
            for place in range(phase, self.out_length, self.stride):
                data, *others = reads[place]
                following = place + self.stride
                count = (following - start) // self.stride
                if following >= self.out_length or reads[following] != (data + 1, *others):
                    runs.append((start, count, *reads[start]))
                    start = following
        return _records(runs)

    def _reads(self, place: int) -> tuple[int, int, int]:
        """Return the first data element, the first kernel element and the number of taps for a result element.

        All are 0 if it reads no data.
        """
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
    """Emit the sums of products for ``number`` result elements of a run; `_sum_taps` describes the other arguments."""
    builder = emit.builder
    places = [builder.mul(step, emit.i64(j)) for j in range(number)]
    with emit.loop(rows, [x, w, *[emit.load(bias)] * number]) as (_, (line, taps, *sums), below):
        with emit.loop(columns, [line, taps, *sums]) as (_, (place, tap, *now), beside):
            weight = emit.load(tap)
            after = [
                emit.fma(emit.load(emit.at(place, at)), weight, sum)
                for at, sum in zip(places, now, strict=True)
            ]
            beside += [builder.sub(place, across), emit.at(tap, kernel_across), *after]
        below += [builder.sub(line, down), emit.at(taps, kernel_down), *beside[2:]]
    for j, sum in enumerate(below[2:]):
        emit.store(sum, emit.at(out, builder.mul(out_step, emit.i64(j))))


@instruction(*[types.int64] * 13)
def _sum_taps(emit: Emit, several: Register, *arguments: Register) -> None:
    """Compute a channel vector of one element of a run, or, if ``several``, of `AT_ONCE` elements.

    The other arguments are those of `_emit_sums`: the data, and the bytes between elements of the run, and between
    rows and columns, which are read backwards; the weights, and the bytes between their rows and columns; the
    numbers of rows and columns; the initial values; the result, and the bytes between its elements.
    """
    is_one = emit.builder.icmp_signed("==", several, emit.i64(0))
    with emit.builder.if_else(is_one) as (one, many):
        with one:
            _emit_sums(emit, 1, *arguments)
        with many:
            _emit_sums(emit, AT_ONCE, *arguments)


@device
def _spread_run(job: SpreadJob, run: SpreadRun, x: int, w: int, rows: int, out: int) -> None:
    """Compute a run of columns of a result row.

    ``x`` and ``w`` are the addresses of the first data row and kernel row that it reads, ``rows`` is their number.
    """
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
    """Compute result rows; a work unit is several rows."""
    rows, unit_rows = job.rows, job.rows_per_unit
    tall, wide, channels = job.out_height, job.out_width, job.channels
    line = F32_SIZE * channels * job.width
    image = line * job.height
    runs, count = job.column_runs, job.run_count
    units = (rows + unit_rows - 1) // unit_rows
    for unit in each_unit(call, units):
        for row in range(unit * unit_rows, min(unit * unit_rows + unit_rows, rows)):
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
    """Return a GroupConvolutionBackpropData kernel for constant f32 filters ``[C, 1, 1, kernel...]``.

    It supports one or two spatial axes. An output shape must be constant, too.
    """
    w, sizes = filters.known(), () if output_shape is None else (output_shape,)
    if w is None or not is_f32(data, filters) or w.ndim not in (4, 5) or w.shape[1:3] != (1, 1):
        return None
    if not w.size or any(value.known() is None for value in sizes):
        return None
    kernel = w.shape[3:]

    @lru_cache(maxsize=64)
    def axes(shape: tuple[int, ...]) -> tuple[SpreadAxis, ...]:
        value = Value(TensorType(data.element, PartialShape(shape)))
        lengths = op.infer(value, filters, *sizes).static[2:]
        begins = op.begins(shape[2:], kernel, lengths, bool(sizes))
        settings = zip(shape[2:], lengths, kernel, op.strides, op.dilations, begins, strict=True)
        flat = [SpreadAxis(1, 1, 1, 1, 1, 0)] * (2 - len(kernel))
        return (*flat, *(SpreadAxis(*setting) for setting in settings))

    _spread.prepare()
    return FusedKernel(lambda epilogue: _kernel(w, epilogue, len(sizes), axes), 1)


def _kernel(
    w: Array, epilogue: Epilogue, skipped: int, axes: Callable[[tuple[int, ...]], tuple[SpreadAxis, ...]]
) -> Kernel:
    """Return a kernel for depthwise filters; the first ``skipped`` inputs after the filters are ignored."""
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
        # At least two units for each thread if there is enough work.
        unit_rows = min(-(-lines * WORK_PER_UNIT // max(work, 1)), -(-lines // (2 * sharing)))
        job = SpreadJob.fill(
            rows=lines, rows_per_unit=max(unit_rows, 1), out_height=out[1], out_width=out[2], channels=wide,
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
        result = channels_first(drop_padding(y, channels))
        return result[:, :, 0] if x.ndim == 3 else result

    return Kernel(compute, replay=replayed())


def _work(runs: Array) -> int:
    """Return the total number of kernel elements that the result elements of runs read."""
    records = runs.view(SpreadRun.dtype)
    return int((records["count"] * records["taps"]).sum())
