"""Adaptive pooling into a given number of windows."""

from __future__ import annotations

import math

import numpy as np

from ...errors import InferenceError
from ...ir.dimension import Dimension
from ...ir.element import ElementType
from ...ir.shape import PartialShape
from ...ir.tensor import Array, Value
from .._define.operation import T_INDEX_64, Input, Op, Output, T, attr, check_index_types, op
from .._lengths import count_of, lengths_of
from ..kernels.adaptive import largest, totals, windows
from ..kernels.pooling import sum_dtype


class AdaptivePooling(Op):
    """Base of both operations: windows as equal as possible, which overlap where lengths do not divide.

    The pages require floats; OpenVINO also accepts integers.
    """

    flops_per_element = 0
    flops_per_input = {"data": 1}

    data = Input(T, "[N, C, spatial...]")
    output_size = Input(T_INDEX_64, "1-D; the number of windows along each spatial axis")
    output = Output(T, "[N, C, windows...]")

    def pooled(self, data: Value, output_size: Value) -> PartialShape:
        """Return the shape of the output."""
        counts, spatial = lengths_of(output_size, "output_size"), count_of(output_size)
        shape = data.shape
        if shape.rank is None:
            if spatial is None or counts is None:
                return PartialShape.dynamic()
            shape = PartialShape.dynamic(spatial + 2)
        if not 3 <= len(shape) <= 5:
            raise InferenceError(
                f"data must have rank 3, 4 or 5, [N, C, spatial...], found {shape}",
                clause="data has rank 3, 4 or 5, [N, C, spatial...]",
            )
        if spatial not in (None, len(shape) - 2):
            raise InferenceError(
                f"output_size must hold a number for each spatial axis of data {shape}, {len(shape) - 2} in all, found {spatial}",
                hint="output_size has no numbers for N and C" if spatial == len(shape) else "",
                clause="output_size has a number for each spatial axis",
            )
        counts = counts or (Dimension(),) * (len(shape) - 2)
        for axis, (length, count) in enumerate(zip(shape[2:], counts, strict=True)):
            if length == 0 and count.min:
                raise InferenceError(
                    f"dim {axis + 2} of data {shape} is 0, so there is nothing to pool into the {count} that "
                    f"output_size asks for",
                    clause="data is not empty along spatial axes, unless the output is",
                )
        return PartialShape([*shape[:2], *counts])


@op("AdaptiveAvgPool-8")
class AdaptiveAvgPool(AdaptivePooling):
    """Mean of ``data`` over each of ``output_size`` windows.

    Integers are rounded, halves to even: so does the plugin for all of them, and the reference for
    8 bits only.
    """

    def infer(self, data: Value, output_size: Value) -> PartialShape:
        return self.pooled(data, output_size)

    def evaluate(self, data: Array, output_size: Array) -> Array:
        shape = self.infer(Value.constant(data), Value.constant(output_size)).static
        if 0 in shape:
            return np.zeros(shape, data.dtype)
        sums = totals(data.astype(sum_dtype(data.dtype), copy=False), shape[2:])
        sizes = np.ones((), np.int64)
        for length, count in zip(data.shape[2:], shape[2:], strict=True):
            start, end = windows(length, count)
            sizes = sizes[..., None] * (end - start)
        if data.dtype.kind in "iu":
            return np.asarray(np.rint(sums / sizes)).astype(data.dtype)
        return np.asarray(sums / sizes.astype(sums.dtype)).astype(data.dtype, copy=False)


@op("AdaptiveMaxPool-8")
class AdaptiveMaxPool(AdaptivePooling):
    """Maximum of ``data`` over each of ``output_size`` windows, and its index."""

    indices = Output(
        "index_element_type", "where in its channel, flattened, each was found: the first, if many"
    )

    index_element_type: ElementType = attr(ElementType.i64, doc="type of the indices, i64 or i32")

    def verify(self) -> None:
        """Require an index type that the page allows."""
        check_index_types(index_element_type=self.index_element_type)

    def infer(self, data: Value, output_size: Value) -> tuple[PartialShape, PartialShape]:
        shape = self.pooled(data, output_size)
        return shape, shape

    def evaluate(self, data: Array, output_size: Array) -> tuple[Array, Array]:
        shape = self.pooled(Value.constant(data), Value.constant(output_size)).static
        dtype = self.index_element_type.dtype
        if not math.prod(shape):
            return np.zeros(shape, data.dtype), np.zeros(shape, dtype)
        maxima, places = largest(data, shape[2:])
        return maxima, places.astype(dtype)
