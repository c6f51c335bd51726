"""Convolutions as implicit GEMMs over windows of NHWC maps, with packed filters."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ....ir.tensor import Array
from ....ops.convolution.forward import ForwardConvolution
from ...common.kept_memory import empty
from ...common.layout import channels_first, moveaxis
from ...common.window_fit import window_fit
from ..codegen.vectors import LANES
from ..packed_memory import aligned_empty
from ..threading.task import Task
from ._copied_windows import are_better_copied
from ._epilogue import Epilogue
from ._gemm import Gemm, Rows
from ._panels import PackedPanels
from ._products import Products
from ._window_geometry import Layout, Windows, tap_offsets
from .contiguous import contiguous

__all__ = ["WindowProduct", "flat"]

# Layouts of windows that are kept, one for each lengths of the data.
MAX_GEOMETRIES = 64


class WindowProduct:
    """The product of windows with filters ``[G, C_out, C_in, kernel...]``, and its epilogue."""

    def __init__(
        self, op: ForwardConvolution, shape: Sequence[int], panels: PackedPanels, epilogue: Epilogue,
        products: Products, task: Task | None = None,
    ) -> None:  # fmt: skip
        """Prepare the product.

        Args:
            op: the convolution.
            shape: of the filters.
            panels: the packed filters: a matrix for each group.
            epilogue: is applied to the product.
            products: how rows are multiplied.
            task: multiplies them, if not that of ``products``.
        """
        self._groups, outputs, channels, *kernel = shape
        self._op, self._kernel, self._dtype = op, tuple(kernel), epilogue.dtype
        self._outputs, self._words = self._groups * outputs, products.words(channels)
        # Neighbouring elements without a gap are one tap.
        self._merged = self._groups == 1 and op.dilations[-1] == 1
        self._rows, self._fit = products.rows_of(self._groups * channels), window_fit(op, self._kernel)
        zeros = aligned_empty(self._groups * channels)
        zeros[...] = 0
        used, taps, wide = task or products.task, math.prod(kernel), kernel[-1]
        self._padded = Gemm(panels, epilogue, self._outputs, taps, self._words, zeros, used)
        self._inside = (
            Gemm(panels, epilogue, self._outputs, taps // wide, self._words * wide, zeros, used)
            if self._merged
            else self._padded
        )
        self._known: dict[tuple[int, ...], tuple[Gemm, Layout, Windows]] = {}

    def __call__(self, x: Array, extras: Sequence[Array], weights: Array | None = None) -> Array:
        """Return the result; ``weights`` are the packed filters, if they were packed in this run."""
        gemm, layout, geometry = self._windows(x.shape[2:])
        y = empty((len(x), *geometry.out, self._outputs), self._dtype)

        def describe() -> Rows:
            offsets = tap_offsets(geometry, layout, self._merged, self._groups, self._words)
            return Rows(math.prod(y.shape[:-1]), layout, 0, offsets, geometry)

        if y.size:
            gemm.run(self._rows(flat(x)), y, extras, 1, x.shape, describe, weights)
        return channels_first(y)

    def _windows(self, lengths: tuple[int, ...]) -> tuple[Gemm, Layout, Windows]:
        """Return what multiplies windows of data of some lengths, and how they are read."""
        if (found := self._known.get(lengths)) is None:
            if len(self._known) >= MAX_GEOMETRIES:
                self._known.clear()
            found = self._known[lengths] = self._described(lengths)
        return found

    def _described(self, lengths: tuple[int, ...]) -> tuple[Gemm, Layout, Windows]:
        op, pixel = self._op, 4 * self._groups * self._words
        pads, out = self._fit(lengths)
        geometry = Windows(
            lengths, out, op.strides, [before for before, _ in pads], self._kernel, op.dilations, pixel,
            pixel * math.prod(lengths),
        )  # fmt: skip
        if not any(map(any, pads)):
            return self._inside, Layout.VALID, geometry
        share = geometry.share_inside() if self._padded.can_skip(geometry) else 1.0
        if self._merged and are_better_copied(geometry, -(-self._outputs // LANES), share):
            return self._inside, Layout.COPIED, geometry
        return self._padded, Layout.PADDED, geometry


def flat(x: Array) -> Array:
    """Return the elements of a map in NHWC order, contiguous."""
    return contiguous(moveaxis(x, 1, -1))
