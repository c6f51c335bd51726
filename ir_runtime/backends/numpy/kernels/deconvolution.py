"""Transposed convolutions: one product of rows of channels, then sums of its parts."""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np

from ....ir.shape import PartialShape
from ....ir.tensor import Array, TensorType, Value
from ....limits import room
from ....ops.convolution.backward import ConvolutionBackpropData
from ... import Kernel
from ...common.epilogue import RowEpilogue, RowKernel
from ...common.layout import as_rows, channels_first, is_f32
from .._backend import backend
from ..math.gemm import apply_epilogue, gemm
from ..math.panels import Panels

__all__: list[str] = []


@backend.accelerates(ConvolutionBackpropData)
def spread_out(
    op: ConvolutionBackpropData, data: Value, filters: Value, output_shape: Value | None = None
) -> Kernel | None:
    """Constant f32 filters, and a shape of the output that is constant or left open."""
    w = filters.known()
    if w is None or not w.size or not is_f32(data, filters):
        return None
    if output_shape is not None and output_shape.known() is None:
        return None
    outputs, kernel = w.shape[1], w.shape[2:]
    packed = Panels.of(np.moveaxis(w, 1, -1).reshape(len(w), -1), w)
    more = () if output_shape is None else (output_shape,)

    @lru_cache(maxsize=64)
    def fit(shape: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Elements cut off before each axis, and the lengths of the output."""
        seen = Value(TensorType(data.element, PartialShape(shape)))
        lengths = op.infer(seen, filters, *more).static[2:]
        return tuple(op.begins(shape[2:], kernel, lengths, bool(more))), lengths

    def compute(x: Array, w: Array, *rest: object) -> Array:
        epilogue: RowEpilogue = rest[-1]  # type: ignore[assignment]
        begins, lengths = fit(x.shape)
        rows = np.ascontiguousarray(as_rows(x, 1))
        room(len(rows) * packed.columns, x.itemsize)
        parts = np.empty((len(rows), packed.columns), np.float32)
        gemm(rows, packed, parts, lambda block, first: None)
        places = parts.reshape(len(x), *x.shape[2:], *kernel, outputs)
        y = _sums(places, op.strides, op.dilations, begins, lengths)
        apply_epilogue(y.reshape(-1, outputs), epilogue)
        return channels_first(y)

    return RowKernel(compute, 2 + len(more), 1)


def _sums(
    places: Array,
    strides: tuple[int, ...],
    dilations: tuple[int, ...],
    begins: tuple[int, ...],
    lengths: tuple[int, ...],
) -> Array:
    """Add ``places[N, spatial..., kernel..., outputs]`` to where they lie in the output, and cut that out."""
    axes = len(strides)
    counts, kernel = places.shape[1 : axes + 1], places.shape[axes + 1 : -1]
    reach = [
        max((n - 1) * s + (k - 1) * d + 1, b + m)
        for n, s, k, d, b, m in zip(counts, strides, kernel, dilations, begins, lengths, strict=True)
    ]
    room(len(places) * math.prod(reach) * places.shape[-1], places.itemsize)
    y = np.zeros((len(places), *reach, places.shape[-1]), places.dtype)
    for element in product(*map(range, kernel)) if places.size else ():
        target = tuple(
            slice(e * d, e * d + (n - 1) * s + 1, s)
            for e, d, n, s in zip(element, dilations, counts, strides, strict=True)
        )
        where: Any = (..., *element, slice(None))
        inside = y[(slice(None), *target)]
        np.add(inside, places[where], out=inside)
    wanted = y[(slice(None), *(slice(b, b + m) for b, m in zip(begins, lengths, strict=True)))]
    return np.ascontiguousarray(wanted)
