"""Convolutions with filters that the run computes, as of generators that modulate them: packed first, then as constant ones."""

from __future__ import annotations

from collections.abc import Sequence

from ....ir.tensor import Array, Value
from ....ops.convolution.forward import Convolution, ForwardConvolution, GroupConvolution
from ... import Kernel, KernelTemplate
from ...common.layout import is_f32
from ...core.lengths import Accepts, filter_lengths
from .._backend import backend
from ..threading.capture import replayed
from ._epilogue import Epilogue
from ._filter_packing import FilterPacking, FusedOfRun
from ._gemm_kernel import GEMM_OF_RUN
from ._products import F32_PRODUCTS
from ._window_product import WindowProduct
from .contiguous import contiguous

__all__: list[str] = []


@backend.accelerates(Convolution)
def computed_dense(op: Convolution, data: Value, filters: Value) -> KernelTemplate | None:
    """f32 filters of known lengths over one to three spatial axes."""
    return _offer(op, data, filters, (1, *filters.shape.static) if filters.shape.is_static else None)


@backend.accelerates(GroupConvolution)
def computed_groups(op: GroupConvolution, data: Value, filters: Value) -> KernelTemplate | None:
    """f32 filters of known lengths, of several channels each."""
    shape = filters.shape.static if filters.shape.is_static else None
    return None if shape is None or shape[1:3] == (1, 1) else _offer(op, data, filters, shape)


def _offer(
    op: ForwardConvolution, data: Value, filters: Value, shape: tuple[int, ...] | None
) -> KernelTemplate | None:
    """Return a kernel for filters ``[G, C_out, C_in, kernel...]``, or ``None``."""
    if shape is None or 0 in shape or filters.known() is not None or not is_f32(data, filters):
        return None
    return FusedOfRun(
        lambda epilogue: _kernel(op, shape, epilogue), 1, accepts=_accepts(op, filters.shape.static, shape)
    )


def _accepts(op: ForwardConvolution, given: tuple[int, ...], shape: Sequence[int]) -> Accepts:
    """Accept filters of this shape, and data that they fit."""
    extents = [op.extent(axis, length) for axis, length in enumerate(shape[3:])]
    fits = filter_lengths(shape[0] * shape[2], extents)
    return lambda x, w, *_: w.shape == given and fits(x)


def _kernel(op: ForwardConvolution, shape: tuple[int, ...], epilogue: Epilogue) -> Kernel:
    packing = FilterPacking.of(shape, epilogue.scale, epilogue.shift)
    product = WindowProduct(op, shape, packing.panels, epilogue, F32_PRODUCTS, GEMM_OF_RUN)

    def compute(x: Array, w: Array, *extras: Array) -> Array:
        return product(x, extras, packing.pack(contiguous(w)))

    return Kernel(compute, replay=replayed())
