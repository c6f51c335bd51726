"""Convolutions as matrix products (im2col + GEMM) over channels-last rows."""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from ....ir.tensor import Array, Value
from ....ops.convolution.forward import Convolution, ForwardConvolution, GroupConvolution
from ... import KernelTemplate
from ...common.epilogue import RowEpilogue, RowKernel
from ...common.layout import as_rows, channels_first, is_f32
from ...common.window_fit import window_fit
from ...core.lengths import Accepts, filter_lengths
from .._backend import backend
from ..math.gemm import gemm, own_matrix
from ._depthwise import Depthwise
from ._im2col import Im2Col
from ._shifted_products import shifted_products
from ._winograd import suits_winograd, winograd

__all__: list[str] = []


@backend.accelerates(Convolution)
def convolution(op: Convolution, data: Value, filters: Value) -> KernelTemplate | None:
    """Return a kernel for constant f32 filters over one to three spatial axes."""
    w = filters.known()
    if w is None or not w.size or not is_f32(data, filters):
        return None
    if math.prod(w.shape[2:]) == 1 and not any(map(any, op.pads((1,) * (w.ndim - 2), w.shape[2:]))):
        return _one_position(w) if _is_one_position(data) else _pointwise(op, w)
    lengths = _spatial_lengths(data)
    if (shifted := shifted_products(op, w, lengths)) is not None:
        return RowKernel(shifted, 2, 1, accepts=_accepts(op, w[None]))
    if suits_winograd(op, w, lengths):
        few = w.copy()  # which are read again when the file may be gone
        direct = cache(lambda: Im2Col(op, few[None]).compute)
        return RowKernel(winograd(op, w, direct), 2, 1, accepts=_accepts(op, w[None]))
    return RowKernel(Im2Col(op, w[None]).compute, 2, 1, accepts=_accepts(op, w[None]))


def _accepts(op: ForwardConvolution, w: Array) -> Accepts:
    """Return which lengths suit filters ``[G, C_out, C_in, kernel...]``."""
    extents = [op.extent(axis, length) for axis, length in enumerate(w.shape[3:])]
    return filter_lengths(w.shape[0] * w.shape[2], extents)


def _is_one_position(data: Value) -> bool:
    """Return whether the data are one image of one position."""
    shape = data.shape
    return shape.is_static and shape.static[0] == 1 and set(shape.static[2:]) == {1}


def _spatial_lengths(data: Value) -> tuple[int | None, ...]:
    """Return the lengths of the spatial axes, where they are known."""
    return () if data.shape.rank is None else tuple(n.min if n.is_static else None for n in data.shape)[2:]


def _one_position(w: Array) -> RowKernel:
    """Return a pointwise convolution of maps of one position: a product of one row, which reads each weight once."""
    matrix = own_matrix(w.reshape(w.shape[:2]).T, w)

    def compute(x: Array, _: Array, epilogue: RowEpilogue) -> Array:
        y = np.empty((1, matrix.shape[1]), np.float32)
        np.dot(x.reshape(1, -1), matrix, y)
        epilogue(y, 0)
        return y.reshape(1, -1, *x.shape[2:])

    return RowKernel(compute, 2, 1)


def _pointwise(op: Convolution, w: Array) -> RowKernel:
    """Return a pointwise (1x1) convolution, which is one product."""
    columns = len(w)
    matrix = own_matrix(w.reshape(w.shape[:2]).T, w)
    steps = (slice(None), slice(None), *(slice(None, None, s) for s in op.strides))
    strided = any(s != 1 for s in op.strides)
    fit = window_fit(op, w.shape[2:])

    def compute(x: Array, _: Array, epilogue: RowEpilogue) -> Array:
        fit(x.shape[2:])  # raises if no window fits
        sampled = x[steps] if strided else x
        y = np.empty((len(sampled), *sampled.shape[2:], columns), np.float32)
        gemm(as_rows(sampled, 1), matrix, y.reshape(-1, columns), epilogue)
        return channels_first(y)

    return RowKernel(compute, 2, 1, accepts=_accepts(op, w[None]))


@backend.accelerates(GroupConvolution)
def group_convolution(op: GroupConvolution, data: Value, filters: Value) -> KernelTemplate | None:
    """Return a kernel for constant f32 filters, depthwise or of several channels for each group."""
    w = filters.known()
    if w is None or not w.size or not is_f32(data, filters):
        return None
    if w.shape[1:3] == (1, 1):
        return RowKernel(Depthwise(op, w).compute, 2, 1, accepts=_accepts(op, w))
    return RowKernel(Im2Col(op, w).compute, 2, 1, accepts=_accepts(op, w))
