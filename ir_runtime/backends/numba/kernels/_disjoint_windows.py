"""Transposed convolutions whose windows do not overlap: one product, which stores each line of a window where it belongs.

Elements of the data are rows of the product, all elements of the kernel are its columns.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ....ir.tensor import Array
from ....ops.convolution.backward import ConvolutionBackpropData
from ... import Kernel, named
from ...common.layout import channels_first, channels_last
from ..threading.capture import replayed
from ..threading.task import UNUSED
from ._epilogue import Epilogue
from ._few_channels import repeated
from ._gemm import NO_OFFSET, Gemm, Rows
from ._gemm_job import OutputLines
from ._products import Products
from ._window_geometry import Layout
from .contiguous import contiguous

__all__ = ["are_disjoint", "disjoint_kernel"]


def are_disjoint(op: ConvolutionBackpropData, kernel: Sequence[int], sized: bool) -> bool:
    """Return whether windows of ``kernel`` cover the result, whose shape is not given if not ``sized``, once each."""
    cuts = (*op.pads_begin, *op.pads_end) if op.auto_pad == "explicit" else ()
    return tuple(kernel) == tuple(op.strides) and not (sized or any(cuts) or any(op.output_padding))


def disjoint_kernel(w: Array, epilogue: Epilogue, products: Products) -> Kernel:
    """Return the kernel for filters ``[C_in, C_out, kernel...]``."""
    (channels, outputs), kernel = w.shape[:2], w.shape[2:]
    deep, tall, wide = (1, 1, 1, *kernel)[-3:]
    words, count = products.words(channels), math.prod(kernel)
    filters = (
        w.reshape(channels, outputs, count)
        .transpose(2, 1, 0)
        .reshape(deep * tall, wide * outputs, 1, channels)
    )
    every = repeated(epilogue, count)
    panels = products.pack(filters, every.scale, every.shift)
    dense = Gemm(panels, every, count * outputs, 1, words, UNUSED, products.task)
    rows_of = products.rows_of(channels)

    def compute(x: Array, *_: Array) -> Array:
        lengths = x.shape[2:]
        y = np.empty((len(x), *map(math.prod, zip(lengths, kernel, strict=True)), outputs), epilogue.dtype)

        def describe() -> Rows:
            height, width = (1, *lengths)[-2:]
            lines = OutputLines.fill(
                width=width, height=height, columns=wide * outputs, planes=deep, lines=tall
            )  # fmt: skip
            return Rows(len(x) * math.prod(lengths), Layout.MATRIX, 4 * words, NO_OFFSET, None, lines)

        if y.size:
            dense.run(rows_of(contiguous(channels_last(x))), y, (), 1, x.shape, describe)
        return channels_first(y)

    return replayed(named(compute, products.name))
