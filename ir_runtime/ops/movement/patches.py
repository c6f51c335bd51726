"""Image patches (im2col) and their inverse (col2im)."""

from __future__ import annotations

import itertools
import math
from typing import Literal

import numpy as np

from ...errors import InferenceError, ValidationError
from ...ir.dimension import Dimension
from ...ir.shape import PartialShape
from ...ir.tensor import Array, Value
from ...limits import check_array_size
from .._define.operation import T_INDEX_64, T_PLAIN, Input, Op, Output, T, attr, op
from .._lengths import check_vector, count_of, lengths_of, listed, product
from ..kernels.convolution import pad_spatial, windows_of
from .blocks import divided


class ImagePatches(Op):
    """An operation on images, whose attributes have one number for rows and one for columns."""

    def verify(self) -> None:
        """Require two numbers of each list."""
        for name, numbers in self.attributes().items():
            if isinstance(numbers, tuple) and len(numbers) != 2:
                raise ValidationError(
                    f"attribute {name!r} must have a number for rows and one for columns, not {listed(numbers)}",
                    clause=f"attribute {name!r} has two numbers, for rows and columns",
                )


@op("ExtractImagePatches-3")
class ExtractImagePatches(ImagePatches):
    """Extract patches of ``data``, and flatten each into the channels."""

    flops_per_element = 0

    data = Input(T_PLAIN, "[batch, channels, rows, columns]")
    patches = Output(T_PLAIN, "[batch, patch rows * patch columns * channels, rows, columns]")

    sizes: tuple[int, ...] = attr(gt=0, doc="rows and columns of a patch")
    strides: tuple[int, ...] = attr(gt=0, doc="distance between patches")
    rates: tuple[int, ...] = attr(gt=0, doc="distance between the elements of a patch")
    auto_pad: Literal["valid", "same_upper", "same_lower"] = attr(
        doc="valid: whole patches only; same: pad with zeros, an odd one at the end (upper) or the beginning (lower)"
    )

    def infer(self, data: Value) -> PartialShape:
        if data.shape.rank is None:
            return PartialShape.dynamic(4)
        if data.shape.rank != 4:
            raise InferenceError(
                f"data has shape {data.shape}; [batch, channels, rows, columns] is expected",
                clause="data is [batch, channels, rows, columns]",
            )
        batch, channels, *lengths = data.shape
        counts = [self._count(axis, length) for axis, length in enumerate(lengths)]
        return PartialShape([batch, channels * math.prod(self.sizes), *counts])

    def _extent(self, axis: int) -> int:
        return (self.sizes[axis] - 1) * self.rates[axis] + 1

    def _count(self, axis: int, length: Dimension) -> Dimension:
        stride = self.strides[axis]
        lost = self._extent(axis) - 1 if self.auto_pad == "valid" else 0
        if stride == 1 and not lost:
            return length
        return Dimension.of(length.map(lambda n: -(-max(n - lost, 0) // stride)))

    def _pads(self, axis: int, length: int, count: int) -> tuple[int, int]:
        if self.auto_pad == "valid":
            return 0, 0
        total = max((count - 1) * self.strides[axis] + self._extent(axis) - length, 0)
        small, large = total // 2, total - total // 2
        return (small, large) if self.auto_pad == "same_upper" else (large, small)

    def evaluate(self, data: Array) -> Array:
        shape = self.infer(Value.constant(data)).static
        if 0 in shape:
            return np.zeros(shape, data.dtype)
        pads = [self._pads(axis, data.shape[2 + axis], shape[2 + axis]) for axis in (0, 1)]
        windows = windows_of(pad_spatial(data, pads), self.sizes, self.strides, self.rates)
        return windows.transpose(0, 4, 5, 1, 2, 3).reshape(shape)


@op("Col2Im-15")
class Col2Im(ImagePatches):
    """Combine the columns of ``data``, flattened patches, into an image; overlapping elements are added."""

    flops_per_element = 0
    flops_per_input = {"data": 1}

    data = Input(T, "[batch, channels * patch elements, patches], or without batch")
    output_size = Input(T_INDEX_64, "rows and columns of the image")
    kernel_size = Input(T_INDEX_64, "rows and columns of a patch")
    image = Output(T, "[batch, channels, rows, columns], or without batch")

    strides: tuple[int, ...] = attr((1, 1), gt=0, doc="distance between patches")
    dilations: tuple[int, ...] = attr((1, 1), gt=0, doc="distance between the elements of a patch")
    pads_begin: tuple[int, ...] = attr(
        (0, 0), ge=0, doc="rows and columns by which patches start before the image"
    )
    pads_end: tuple[int, ...] = attr(
        (0, 0), ge=0, doc="rows and columns by which patches end behind the image"
    )

    def infer(self, data: Value, output_size: Value, kernel_size: Value) -> PartialShape:
        for name, value in (("output_size", output_size), ("kernel_size", kernel_size)):
            check_vector(value, name)
            if count_of(value, name) not in (None, 2):
                raise InferenceError(
                    f"{name} has length {value.count}; a number for rows and one for columns are expected",
                    clause=f"{name} has two numbers, for rows and columns",
                )
        if data.shape.rank not in (None, 2, 3):
            raise InferenceError(
                f"data has shape {data.shape}; [batch, channels * patch elements, patches] is expected, or without "
                f"batch",
                clause="data is [batch, channels * patch elements, patches], or without batch",
            )
        if data.shape.rank is None:
            return PartialShape.dynamic()
        *batch, columns, patches = data.shape
        size = lengths_of(output_size, "output_size") or (Dimension(), Dimension())
        kernel = lengths_of(kernel_size, "kernel_size") or (Dimension(), Dimension())
        if 0 in kernel:
            raise InferenceError(
                f"kernel_size is {listed(kernel)}; lengths of at least 1 are expected",
                clause="kernel_size is at least 1",
            )
        if all(d.is_static for d in (*size, *kernel)):
            expected = math.prod(self._counts([int(d) for d in size], [int(d) for d in kernel]))
            if not patches.contains(expected):
                raise InferenceError(
                    f"data {data.shape} holds {patches} patches, but an image of {listed(size)} with patches of "
                    f"{listed(kernel)} has {expected}",
                    clause="data has as many patches as output_size, kernel_size, strides, dilations and pads ask for",
                )
        return PartialShape(
            [*batch, divided(columns, product(kernel), "the axis of channels of data"), *size]
        )

    def _counts(self, size: list[int], kernel: list[int]) -> list[int]:
        counts = []
        for axis in (0, 1):
            length = size[axis] + self.pads_begin[axis] + self.pads_end[axis]
            extent = self.dilations[axis] * (kernel[axis] - 1) + 1
            if extent > length:
                raise InferenceError(
                    f"patches cover {extent} elements along spatial axis {axis}, but output_size with pads has only "
                    f"{length}",
                    clause="patches are not larger than output_size with pads",
                )
            counts.append((length - extent) // self.strides[axis] + 1)
        return counts

    def evaluate(self, data: Array, output_size: Array, kernel_size: Array) -> Array:
        *lead, rows, columns = shape = self.infer(
            *map(Value.constant, (data, output_size, kernel_size))
        ).static
        kernel = kernel_size.tolist()
        counts = self._counts([rows, columns], kernel)
        taps = data.reshape(*lead, *kernel, *counts)
        around = [b + e for b, e in zip(self.pads_begin, self.pads_end, strict=True)]
        check_array_size(math.prod(lead) * (rows + around[0]) * (columns + around[1]), data.itemsize)
        image = np.zeros((*lead, rows + around[0], columns + around[1]), data.dtype)
        for row, column in itertools.product(*map(range, kernel)):
            places = [
                slice(start * d, start * d + (count - 1) * s + 1, s)
                for start, d, s, count in zip(
                    (row, column), self.dilations, self.strides, counts, strict=True
                )
            ]
            image[..., places[0], places[1]] += taps[..., row, column, :, :]
        top, left = self.pads_begin
        return image[..., top : top + rows, left : left + columns].reshape(shape)
