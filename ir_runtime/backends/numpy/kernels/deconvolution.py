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
from ....ops.convolution import ConvolutionBackpropData
from ... import KernelTemplate
from ...common.epilogue import RowEpilogue, RowKernel
from ...common.layout import as_rows, channels_first, is_f32
from .._backend import backend
from ..math.gemm import apply_epilogue, gemm, own_matrix

__all__: list[str] = []


@backend.accelerates(ConvolutionBackpropData)
def transposed_convolution(
    op: ConvolutionBackpropData, data: Value, filters: Value, output_shape: Value | None = None
) -> KernelTemplate | None:
    """Return a kernel for constant f32 filters, and an output shape that is constant or not given."""
    w = filters.known()
    if w is None or not w.size or not is_f32(data, filters):
        return None
    if output_shape is not None and output_shape.known() is None:
        return None
    outputs, kernel = w.shape[1], w.shape[2:]
    blocks = set(op.dilations) == {1} and not any(k % s for k, s in zip(kernel, op.strides, strict=True))
    columns = _by_blocks(w, op.strides) if blocks else np.moveaxis(w, 1, -1)
    matrix = own_matrix(columns.reshape(len(w), -1), w)
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
        check_array_size(len(rows) * matrix.shape[1], x.itemsize)
        products = np.empty((len(rows), matrix.shape[1]), np.float32)
        gemm(rows, matrix, products, lambda block, first: None)
        windows = products.reshape(len(x), *x.shape[2:], *columns.shape[1:])
        if blocks:
            y = _add_blocks(windows, begins, lengths)
        else:
            y = _col2im(windows, op.strides, op.dilations, begins, lengths)
        apply_epilogue(y.reshape(-1, outputs), epilogue)
        return channels_first(y)

    return RowKernel(compute, 2 + len(shape_input), 1)


def _by_blocks(w: Array, strides: tuple[int, ...]) -> Array:
    """Return filters ``[inputs, outputs, kernel...]`` as ``[inputs, block..., phase..., outputs]``: the kernel in blocks."""
    axes = len(strides)
    lengths = (n for k, s in zip(w.shape[2:], strides, strict=True) for n in (k // s, s))
    order = (*range(2, 2 * axes + 2, 2), *range(3, 2 * axes + 2, 2))
    return w.reshape(*w.shape[:2], *lengths).transpose(0, *order, 1)


def _add_blocks(windows: Array, begins: tuple[int, ...], lengths: tuple[int, ...]) -> Array:
    """Add ``windows[N, spatial..., block..., phase..., outputs]`` at their positions, as `_col2im`.

    Blocks have the lengths of the strides, so those of other windows start at the same positions, and each is added at once.
    """
    axes = len(lengths)
    counts, blocks, strides = (windows.shape[1 + n * axes : 1 + (n + 1) * axes] for n in range(3))
    reach = [
        max(n + k - 1, -(-(b + m) // s))
        for n, k, s, b, m in zip(counts, blocks, strides, begins, lengths, strict=True)
    ]
    lined_up = (axis + more for axis in range(1, axes + 1) for more in (0, 2 * axes))
    windows = windows.transpose(*range(axes + 1, 2 * axes + 1), 0, *lined_up, 3 * axes + 1)
    whole = [n * s for n, s in zip(reach, strides, strict=True)]
    check_array_size(windows.shape[axes] * math.prod(whole) * windows.shape[-1], windows.itemsize)
    if math.prod(blocks) == 1 and tuple(reach) == counts:
        y = np.ascontiguousarray(windows[(0,) * axes])  # no windows overlap
    else:
        shape = (n for both in zip(reach, strides, strict=True) for n in both)
        y = np.zeros((windows.shape[axes], *shape, windows.shape[-1]), windows.dtype)
        for block in product(*map(range, blocks)) if windows.size else ():
            target = (
                places
                for b, n in zip(block, counts, strict=True)
                for places in (slice(b, b + n), slice(None))
            )
            inside = y[(slice(None), *target)]
            np.add(inside, windows[block], out=inside)
    y = y.reshape(len(y), *whole, y.shape[-1])
    cropped = y[(slice(None), *(slice(b, b + m) for b, m in zip(begins, lengths, strict=True)))]
    return np.ascontiguousarray(cropped)


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
