"""Depthwise transposed convolution in NHWC layout: also the bilinear upsampling of segmentation networks."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from ....ir.shape import PartialShape
from ....ir.tensor import Array, TensorType, Value
from ....ops.convolution.backward import GroupConvolutionBackpropData
from ... import Kernel, KernelTemplate
from ...common.kept_memory import empty
from ...common.layout import as_rows, channels_first, channels_last, is_f32
from .._backend import backend
from ..codegen.descriptor import Job
from ..threading.capture import replayed
from ..threading.parallel import parallel_for, pays_to_share, threads
from ..threading.task import UNUSED
from ._epilogue import Epilogue, FusedKernel
from ._packed_epilogue import PackedEpilogue
from ._spread_rows import SPREAD, SpreadAxis, SpreadJob, SpreadRun
from ._windows import drop_padding, pad_channels
from .contiguous import contiguous

__all__: list[str] = []

# Multiplications of a unit.
WORK_PER_UNIT = 1 << 14


@backend.accelerates(GroupConvolutionBackpropData)
def depthwise_transposed(
    op: GroupConvolutionBackpropData, data: Value, filters: Value, output_shape: Value | None = None
) -> KernelTemplate | None:
    """Constant f32 filters ``[C, 1, 1, kernel...]`` over one or two spatial axes; an output shape is constant, too."""
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

    SPREAD.prepare()
    return FusedKernel(lambda epilogue: _kernel(w, epilogue, len(given), axes), 1)


def _kernel(
    w: Array, epilogue: Epilogue, skipped: int, axes: Callable[[tuple[int, ...]], tuple[SpreadAxis, ...]]
) -> Kernel:
    """Return the kernel for filters; of its inputs after them, it does not read the first ``skipped``."""
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
            kernel_row_step=4 * wide * across.kernel * kernel_down, kernel_column_step=4 * wide * kernel_across,
            data_row_step=4 * wide * across.length * data_down, data_column_step=4 * wide * data_across,
            column_stride=across.stride, row_runs=rows.ctypes.data, column_runs=columns.ctypes.data,
            run_count=len(columns), weights=packed.ctypes.data, bias=bias.ctypes.data,
            epilogue_words=post_ops.words.ctypes.data, epilogue_numbers=post_ops.numbers.ctypes.data,
        )  # fmt: skip
        return Job.of(job, rows, columns, packed, bias, post_ops), out, pays_to_share(computed=work)

    def compute(x: Array, _: Array, *others: Array) -> Array:
        job, shape, is_large = job_for(x.shape, threads())
        y, extras = empty(shape, np.float32), others[skipped:]
        if y.size:
            source = contiguous(pad_channels(channels_last(x)))
            partners = [contiguous(as_rows(pad_channels(extras[index], 1), 1)) for index in post_ops.extras]
            first, second = (*partners, UNUSED, UNUSED)[:2]
            parallel_for(SPREAD.address, job, y, source, first, second, threads() if is_large else 1)
        found = channels_first(drop_padding(y, channels))
        return found[:, :, 0] if x.ndim == 3 else found

    return Kernel(compute, replay=replayed())


def _work(runs: Array) -> int:
    """Return how many elements of the kernel all elements of runs read."""
    found = runs.view(SpreadRun.dtype)
    return int((found["count"] * found["taps"]).sum())
