"""Deformable convolutions of one group with constant filters: the samples form patches, which one GEMM multiplies."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ...._util import deadline
from ....ir.tensor import Array, Value
from ....ops.convolution import DeformableConvolution1, DeformableConvolution8, DeformableConvolutionBase
from ... import KernelTemplate
from ...common.epilogue import RowEpilogue, RowKernel
from ...common.layout import channels_first, channels_last
from ...common.windows import WindowFit, filters_of, window_fit
from .._backend import backend
from ._gemm import is_finite, own_matrix

__all__: list[str] = []

# Elements of a block of samples, and of its patches, so that both stay in the L2 cache.
SAMPLES, PATCHES = 1 << 16, 1 << 19


@backend.accelerates(DeformableConvolution1, DeformableConvolution8)
def deformable(op: DeformableConvolutionBase, data: Value, *others: Value) -> KernelTemplate | None:
    """Return a kernel for f32, constant filters and a single group, else ``None``."""
    if (w := filters_of(op, data, *others)) is None:
        return None
    return RowKernel(_Deformable(op, w, len(others) > 2).compute, 1 + len(others), 1)


class _Corners(NamedTuple):
    """The four pixels around each sample, and their bilinear weights: ``[corner, part, kernel element, position]``."""

    places: Array
    """The index of each pixel, in row-major order."""
    weights: Array

    @classmethod
    def around(cls, y: Array, x: Array, lengths: tuple[int, ...], zeros: bool) -> _Corners:
        """Return the corners of sample points, as `kernels.deformable` defines them.

        Args:
            y: the row of each point, ``[part, kernel element, position]``.
            x: the column of each point.
            lengths: the height and the width of the image.
            zeros: whether pixels outside of the image count as 0 in the interpolation of points near its edges.
        """
        height, width = lengths
        least: np.ufunc = np.greater if zeros else np.greater_equal
        edge = -1 if zeros else 0
        inside = least(y, edge) & least(x, edge) & (y < height) & (x < width)
        y, x = np.where(inside, y, 0), np.where(inside, x, 0)
        top, left = np.floor(y), np.floor(x)
        down = ((top, 1 - (y - top)), (np.ceil(y), y - top))
        along = ((left, 1 - (x - left)), (np.ceil(x), x - left))
        places = np.empty((4, *y.shape), np.intp)
        weights = np.empty(places.shape, np.float32)
        for corner, ((row, of_row), (column, of_column)) in enumerate((a, b) for a in down for b in along):
            r, c = row.clip(0, height - 1), column.clip(0, width - 1)
            seen = inside & (r == row) & (c == column) if zeros else inside
            places[corner] = r * width + c
            weights[corner] = of_row * of_column * seen
        return cls(places, weights)


class _Deformable:
    """A deformable convolution by filters ``[outputs, C, height, width]``."""

    def __init__(self, op: DeformableConvolutionBase, w: Array, has_mask: bool) -> None:
        self._op, self._has_mask = op, has_mask
        self._outputs, self._channels, *self._kernel = w.shape
        self._fit = window_fit(op, tuple(self._kernel))
        self._zeros = isinstance(op, DeformableConvolution8) and op.bilinear_interpolation_pad
        self._matrix = own_matrix(w.transpose(2, 3, 1, 0).reshape(-1, self._outputs), w)

    def compute(self, x: Array, offsets: Array, w: Array, *others: Any) -> Array:
        """Return the result for data ``x``, and offsets; ``others`` are the mask, if there is one, and the epilogue."""
        *mask, epilogue = others
        fit = self._fit(x.shape[2:])
        y = np.empty((len(x), *fit.out, self._outputs), np.float32)
        if not y.size:
            return channels_first(y)
        rows = y.reshape(len(x), math.prod(fit.out), self._outputs)
        for image, out in enumerate(rows):
            parts = self._parts(x[image])
            if not is_finite(parts.reshape(-1)):
                return self._special(x, offsets, w, *mask, out=y, epilogue=epilogue)
            corners = self._corners(x.shape[2:], offsets[image], *(m[image] for m in mask), fit=fit)
            self._image(parts, corners, out, image * len(out), epilogue)
        return channels_first(y)

    def _special(self, *inputs: Array, out: Array, epilogue: RowEpilogue) -> Array:
        """Compute the result by the reference, for data that are not finite: a weight of 0 times infinity would be NaN."""
        out[...] = channels_last(self._op.evaluate(*inputs))
        epilogue(out.reshape(-1, self._outputs), 0)
        return channels_first(out)

    def _parts(self, image: Array) -> Array:
        """Return an image ``[C, height, width]`` as pixels ``[part, pixel, C / parts]``, one part for each deformable group."""
        pixels = channels_last(image[None]).reshape(-1, self._op.deformable_group, self._of_part)
        return np.ascontiguousarray(pixels.transpose(1, 0, 2))

    @property
    def _of_part(self) -> int:
        """The number of channels that share their offsets."""
        return int(self._channels // self._op.deformable_group)

    def _corners(
        self, lengths: tuple[int, ...], offsets: Array, mask: Array | None = None, *, fit: WindowFit
    ) -> _Corners:
        """Return the corners of all samples of an image of the spatial ``lengths``, with weights multiplied by the mask, if any."""
        shape = self._op.deformable_group, *self._kernel, *fit.out
        moved = offsets.reshape(shape[0], shape[1], shape[2], 2, *fit.out)
        down, across = (
            (np.arange(count) * stride - before) + (np.arange(size) * dilation)[:, None]
            for count, stride, (before, _), size, dilation in zip(
                fit.out, self._op.strides, fit.pads, self._kernel, self._op.dilations, strict=True
            )
        )
        y = down[:, None, :, None] + moved[:, :, :, 0]
        x = across[:, None, :] + moved[:, :, :, 1]
        flat = shape[0], shape[1] * shape[2], math.prod(fit.out)
        corners = _Corners.around(y.reshape(flat), x.reshape(flat), lengths, self._zeros)
        if mask is not None:
            np.multiply(corners.weights, mask.reshape(flat), out=corners.weights)
        return corners

    def _image(self, parts: Array, corners: _Corners, out: Array, first: int, epilogue: RowEpilogue) -> None:
        """Compute the rows ``out`` of an image, and apply the epilogue.

        Args:
            parts: the pixels of the image, from `_parts`.
            corners: the corners of its samples.
            out: the rows of the result, ``[position, output]``.
            first: the index of the first row in the whole result.
            epilogue: the epilogue.
        """
        elements, width = math.prod(self._kernel), self._of_part
        step = max(min(PATCHES // (elements * self._channels), SAMPLES // width), 1)
        patches = np.empty((min(step, len(out)), elements, len(parts), width), np.float32)
        sampled = np.empty((2, len(patches), width), np.float32)
        for start in range(0, len(out), step):
            deadline.check()
            block = slice(start, start + step)
            rows = out[block]
            samples = patches[: len(rows)]
            for part, pixels in enumerate(parts):
                for element in range(elements):
                    _sample(
                        pixels,
                        corners,
                        (part, element, block),
                        sampled[:, : len(rows)],
                        samples[:, element, part],
                    )
            np.matmul(samples.reshape(len(rows), -1), self._matrix, rows)
            epilogue(rows, first + start)


def _sample(
    pixels: Array, corners: _Corners, place: tuple[int, int, slice], scratch: Array, out: Array
) -> None:
    """Interpolate pixels ``[pixel, C]`` into ``out``, at the samples with the index ``place`` in each array of ``corners``."""
    total, more = scratch
    for corner, (places, weights) in enumerate(zip(corners.places, corners.weights, strict=True)):
        to = more if corner else total
        pixels.take(places[place], 0, out=to, mode="clip")
        np.multiply(to, weights[place][:, None], out=to)
        if corner:
            np.add(total, more, out=out if corner == 3 else total)
