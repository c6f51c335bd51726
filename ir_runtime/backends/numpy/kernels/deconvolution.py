"""Transposed convolution: one GEMM over channels-last rows, then the sum of overlapping windows (col2im)."""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np

from ....ir.shape import PartialShape
from ....ir.tensor import Array, TensorType, Value
from ....limits import check_array_size
from ....ops.convolution.backward import ConvolutionBackpropData
from ... import Kernel
from ...common.epilogue import RowEpilogue, RowKernel
from ...common.layout import as_rows, channels_first, is_f32
from .._backend import backend
from ..math.gemm import apply_epilogue, gemm
from ..math.panels import Panels

__all__: list[str] = []


@backend.accelerates(ConvolutionBackpropData)
def transposed_convolution(
    op: ConvolutionBackpropData, data: Value, filters: Value, output_shape: Value | None = None
) -> Kernel | None:
    """Return a kernel for constant f32 filters, and an output shape that is constant or not given."""
    w = filters.known()
    if w is None or not w.size or not is_f32(data, filters):
        return None
    if output_shape is not None and output_shape.known() is None:
        return None
    outputs, kernel = w.shape[1], w.shape[2:]
    packed = Panels.of(np.moveaxis(w, 1, -1).reshape(len(w), -1), w)
    shape_input = () if output_shape is None else (output_shape,)

    @lru_cache(maxsize=64)
    def fit(shape: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return how many elements are cropped before each axis, and the lengths of the output."""
        value = Value(TensorType(data.element, PartialShape(shape)))
        lengths = op.infer(value, filters, *shape_input).static[2:]
        return tuple(op.begins(shape[2:], kernel, lengths, bool(shape_input))), lengths

    def compute(x: Array, w: Array, *rest: object) -> Array:
        epilogue: RowEpilogue = rest[-1]  # type: ignore[assignment]
        begins, lengths = fit(x.shape)
        rows = np.ascontiguousarray(as_rows(x, 1))
        check_array_size(len(rows) * packed.columns, x.itemsize)
        products = np.empty((len(rows), packed.columns), np.float32)
        gemm(rows, packed, products, lambda block, first: None)
        windows = products.reshape(len(x), *x.shape[2:], *kernel, outputs)
        y = _col2im(windows, op.strides, op.dilations, begins, lengths)
        apply_epilogue(y.reshape(-1, outputs), epilogue)
        return channels_first(y)

    return RowKernel(compute, 2 + len(shape_input), 1)


def _col2im(
    windows: Array,
    strides: tuple[int, ...],
    dilations: tuple[int, ...],
    begins: tuple[int, ...],
    lengths: tuple[int, ...],
) -> Array:
    """Add ``windows[N, spatial..., kernel..., outputs]`` at their positions, and crop the output."""
    axes = len(strides)
    counts, kernel = windows.shape[1 : axes + 1], windows.shape[axes + 1 : -1]
    reach = [
        max((n - 1) * s + (k - 1) * d + 1, b + m)
        for n, s, k, d, b, m in zip(counts, strides, kernel, dilations, begins, lengths, strict=True)
    ]
    check_array_size(len(windows) * math.prod(reach) * windows.shape[-1], windows.itemsize)
    y = np.zeros((len(windows), *reach, windows.shape[-1]), windows.dtype)
    for element in product(*map(range, kernel)) if windows.size else ():
        target = tuple(
            slice(e * d, e * d + (n - 1) * s + 1, s)
            for e, d, n, s in zip(element, dilations, counts, strides, strict=True)
        )
        index: Any = (..., *element, slice(None))
        inside = y[(slice(None), *target)]
        np.add(inside, windows[index], out=inside)
    cropped = y[(slice(None), *(slice(b, b + m) for b, m in zip(begins, lengths, strict=True)))]
    return np.ascontiguousarray(cropped)
