"""Deformable convolutions of one group with constant filters: what filters see becomes columns, which are multiplied by them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ....ir.tensor import Array, Value
from ....ops.convolution.deformable import (
    DeformableConvolution1,
    DeformableConvolution8,
    DeformableConvolutionBase,
)
from ... import Kernel, KernelTemplate
from ...common.deformed_windows import filters_of
from ...common.kept_memory import empty
from ...common.layout import channels_first, channels_last
from ...common.window_fit import WindowFit, window_fit
from .._backend import backend
from ..codegen.descriptor import Job
from ..codegen.vectors import LANES
from ..threading.capture import replayed
from ..threading.parallel import parallel_for, threads_for
from ..threading.recording import workspace
from ..threading.task import UNUSED
from ._deformed_columns import DEFORMED_COLUMNS, DeformedColumnsJob
from ._epilogue import Epilogue, FusedKernel
from ._gemm import Gemm
from ._pack_panels import pack_panels
from .contiguous import contiguous

__all__: list[str] = []

# Numbers of the columns that are made and multiplied at once, so that they stay in the cache.
BLOCK = 1 << 20


@backend.accelerates(DeformableConvolution1, DeformableConvolution8)
def deformable(op: DeformableConvolutionBase, data: Value, *others: Value) -> KernelTemplate | None:
    """f32."""
    if (w := filters_of(op, data, *others)) is None:
        return None
    return FusedKernel(lambda epilogue: _kernel(op, w, len(others) > 2, epilogue), 1)


class _Block(NamedTuple):
    """Rows of the columns that are made and multiplied at once, and the job that makes them."""

    first: int
    end: int
    job: Array


def _blocks(
    op: DeformableConvolutionBase, kernel: Sequence[int], channels: int, has_mask: bool, images: int,
    lengths: Sequence[int], fit: WindowFit,
) -> list[_Block]:  # fmt: skip
    """Return the blocks for data of some lengths."""
    down, across = _starts(op, fit)
    positions, parts = down.size, op.deformable_group
    vectors = -(-positions // LANES)
    together = max(1, BLOCK // (LANES * math.prod(kernel) * channels))

    def block(unit: int) -> _Block:
        end = min(unit + together, images * vectors)
        first, last = (
            image * positions + min(vector * LANES, positions)
            for image, vector in (divmod(place, vectors) for place in (unit, end))
        )
        job = DeformedColumnsJob.fill(
            units=end - unit, first_unit=unit, first_row=first, height=lengths[0], width=lengths[1], parts=parts,
            part_channels=channels // parts, positions=positions, kernel_height=kernel[0], kernel_width=kernel[1],
            dilation_down=op.dilations[0], dilation_across=op.dilations[1], down=down.ctypes.data,
            across=across.ctypes.data, has_mask=int(has_mask),
        )  # fmt: skip
        return _Block(first, last, Job.of(job, down, across))

    return [block(unit) for unit in range(0, images * vectors, together)]


def _starts(op: DeformableConvolutionBase, fit: WindowFit) -> tuple[Array, Array]:
    """Return where the window of each position begins, down and across."""
    rows, columns = (
        np.arange(count, dtype=np.float64) * stride - before
        for count, stride, (before, _) in zip(fit.out, op.strides, fit.pads, strict=True)
    )
    return np.repeat(rows, len(columns)), np.tile(columns, len(rows))


def _kernel(op: DeformableConvolutionBase, w: Array, has_mask: bool, epilogue: Epilogue) -> Kernel:
    outputs, channels, *kernel = w.shape
    row = math.prod(kernel) * channels
    panels = pack_panels(w.transpose(0, 2, 3, 1).reshape(1, outputs, 1, row), epilogue.scale, epilogue.shift)
    product, fit = Gemm(panels, epilogue, outputs, 1, row, UNUSED), window_fit(op, tuple(kernel))
    task = DEFORMED_COLUMNS[isinstance(op, DeformableConvolution8) and op.bilinear_interpolation_pad]
    task.prepare()

    @lru_cache(maxsize=64)
    def blocks(images: int, lengths: tuple[int, ...]) -> list[_Block]:
        return _blocks(op, kernel, channels, has_mask, images, lengths, fit(lengths))

    def compute(x: Array, offsets: Array, _: Array, *others: Array) -> Array:
        y = empty((len(x), *fit(x.shape[2:]).out, outputs), np.float32)
        if not y.size:
            return channels_first(y)
        pixels, offsets, rows = contiguous(channels_last(x)), contiguous(offsets), y.reshape(-1, outputs)
        mask, extras = (contiguous(others[0]), others[1:]) if has_mask else (UNUSED, others)
        tensors = {
            index: contiguous(channels_last(extras[index])).reshape(-1, outputs)
            for index in product.packed_epilogue.extras
        }
        some = blocks(len(x), x.shape[2:])
        columns = workspace(max(block.end - block.first for block in some) * row)
        for first, end, job in some:
            part = columns[: (end - first) * row]
            shared = threads_for(steps=part.size // 4)
            parallel_for(task.address, job, part, pixels, offsets, mask, shared)
            pieces = [tensors[i][first:end] if i in tensors else extra for i, extra in enumerate(extras)]
            product.multiply(part, rows[first:end], pieces)
        return channels_first(y)

    return Kernel(compute, replay=replayed())
