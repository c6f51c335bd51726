"""TopK, ExperimentalDetectronTopKROIs and SearchSorted."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from ...errors import InferenceError, ValidationError
from ...ir.dimension import Dimension, Interval
from ...ir.element import ElementType
from ...ir.formula import Count, log2
from ...ir.operation import Operands
from ...ir.shape import PartialShape
from ...ir.tensor import Array, Value
from .._define.operation import T_FLOAT, T_INDEX, T_PLAIN, Input, Op, Output, T, attr, check_index_types, op
from .._lengths import check_scalar, normalize_axis
from ..kernels.boxes import descending

# TopK: the largest or smallest elements along an axis.


class TopKBase(Op):
    """Base of the versions of TopK.

    Of equal elements, the one with the lower index comes first and is selected first, as in OpenVINO's reference, so the
    order is always stable. NaN counts as larger than any number. Booleans count as 0 and 1, as in OpenVINO's plugin; the
    specification only allows numbers.
    """

    decisions = (
        "of equal elements, the one with the lower index is first, also with sort none, where the pages allow any order",
    )

    bounded = True
    flops_per_element = 0
    flops_per_input = {"data": 1}

    data = Input(T_PLAIN, "tensor to select from")
    k = Input(T_INDEX, "number of elements to select, a scalar of at least 1")
    values = Output(T_PLAIN, "the selected elements, of length k along the axis")
    indices = Output("index_element_type", "their indices along the axis")

    axis: int = attr(default_with_warning="0", doc="axis to select along; a negative one counts from the end")
    mode: Literal["max", "min"] = attr(
        default_with_warning="max", doc="whether to select the largest or the smallest elements"
    )
    sort: Literal["value", "index", "none"] = attr(
        default_with_warning="none",
        doc="order of the selected elements: best first (value), as in data (index), or any (none, here as value)",
    )
    index_element_type: ElementType = attr(ElementType.i32, doc="element type of the indices, i64 or i32")

    def verify(self) -> None:
        """Require that the indices are i64 or i32."""
        check_index_types(index_element_type=self.index_element_type)

    def infer(self, data: Value, k: Value) -> tuple[PartialShape, PartialShape]:
        check_scalar(k, "k")
        if data.shape.rank is None:
            return data.shape, data.shape
        axis = normalize_axis(self.axis, data.shape.rank, "attribute 'axis'")
        numbers = k.numbers()
        shape = data.shape.replace(
            {axis: _selected_length(data.shape, axis, numbers[0] if numbers else Interval())}
        )
        return shape, shape

    def evaluate(self, data: Array, k: Array) -> tuple[Array, Array]:
        shape, _ = self.infer(Value.constant(data), Value.constant(k))  # raises if there are fewer elements
        axis = self.axis % data.ndim
        best = _ranking(data, axis, self.mode == "max").take(range(shape.static[axis]), axis)
        if self.sort == "index":
            best = np.sort(best, axis)
        return np.take_along_axis(data, best, axis), best.astype(self.index_element_type.dtype)


@op("TopK-1")
class TopK1(TopKBase):
    """The ``k`` largest or smallest elements of ``data`` along an axis, and their indices."""


@op("TopK-3")
class TopK3(TopKBase):
    """The ``k`` largest or smallest elements of ``data`` along an axis, and their indices."""


@op("TopK-11")
class TopK11(TopKBase):
    """The ``k`` largest or smallest elements of ``data`` along an axis, and their indices."""

    stable: bool = attr(False, doc="whether equal elements keep their order, which they always do here")

    def verify(self) -> None:
        """Require that the indices are i64 or i32, and an order if ``stable`` is true."""
        super().verify()
        if self.stable and self.sort == "none":
            raise ValidationError(
                "attribute 'stable' asks for an order, but 'sort' is none",
                clause="attribute 'stable' is not true if 'sort' is none",
            )


def _selected_length(data: PartialShape, axis: int, k: int | Interval) -> Dimension:
    length = data[axis]
    low, high = (k.min, k.max) if isinstance(k, Interval) else (k, k)
    if high is not None and high < 1:
        most_of = "at most " if isinstance(k, Interval) else ""
        raise InferenceError(f"k is {most_of}{high}; at least 1 is expected", clause="k is at least 1")
    if low is not None and length.max is not None and low > length.max:
        raise InferenceError(
            f"k asks for {low} elements along axis {axis}, but data {data} has {length} there",
            hint="attribute 'axis' may be wrong" if _fits_elsewhere(data, low) else "",
            clause="k is at most the length of the axis",
        )
    most = min((n for n in (high, length.max) if n is not None), default=None)
    return Dimension.between(max(low or 0, 1) if length.min or low else 0, most)


def _fits_elsewhere(data: PartialShape, k: int) -> bool:
    return any(d.max is None or d.max >= k for d in data)


def _ranking(data: Array, axis: int, descending: bool) -> Array:
    """Return the indices that sort along an axis, best first, with those of equal elements ascending."""
    keys = data.astype(np.float32) if data.dtype.kind == "V" else data
    if not descending:
        return np.argsort(keys, axis, kind="stable")
    order = np.argsort(np.flip(keys, axis), axis, kind="stable")
    return np.asarray(data.shape[axis] - 1 - np.flip(order, axis))


# ExperimentalDetectronTopKROIs.


@op("ExperimentalDetectronTopKROIs-6", spec="sort/experimental-detectron-top-krois-6")
class TopKROIs(Op):
    """The ``rois`` with the largest ``probs``, best first, padded with zeros."""

    decisions = (
        "of equal scores the one with the lower index is first, as in OpenVINO's reference; the page does not say",
    )

    flops_per_element = 0
    flops_per_input = {"probs": 1}

    rois = Input(T_FLOAT, "[regions, 4]")
    probs = Input(T_FLOAT, "[regions]: their scores")
    best = Output(T_FLOAT, "[max_rois, 4]")

    max_rois: int = attr(0, ge=0, doc="number of regions to select")

    def infer(self, rois: Value, probs: Value) -> PartialShape:
        if not rois.shape.compatible(PartialShape([-1, 4])):
            raise InferenceError(
                f"rois must be of shape [regions, 4], found {rois.shape}", clause="rois is [regions, 4]"
            )
        regions = -1 if rois.shape.rank is None else rois.shape[0]
        one_each = PartialShape([regions])
        if not probs.shape.compatible(one_each):
            raise InferenceError(
                f"probs must be of shape {one_each}, a score for each of rois, found {probs.shape}",
                clause="probs has a score for each region",
            )
        return PartialShape([self.max_rois, 4])

    def evaluate(self, rois: Array, probs: Array) -> Array:
        scores = probs.astype(np.float32) if probs.dtype.kind == "V" else probs
        order = descending(scores, most=self.max_rois)
        best = np.zeros((self.max_rois, 4), rois.dtype)
        best[: len(order)] = rois[order]
        return best


# SearchSorted.


@op("SearchSorted-15")
class SearchSorted(Op):
    """Positions at which to insert ``values`` so that ``sorted_sequence`` stays sorted.

    In files, the attribute right of the specification is named right_mode, and there may be an output_type.
    """

    decisions = (
        "NaN is put before all numbers, as in OpenVINO's reference, in which comparisons with it fail; the page does not say",
    )

    sorted_sequence = Input(
        T, "ascending along the last axis; 1-D, or of the shape of values except along the last axis"
    )
    values = Input(T, "values to search for")
    indices = Output("output_type", "insertion position of each value, of the shape of values")

    right_mode: bool = attr(False, doc="whether to insert after equal elements, instead of before them")
    output_type: ElementType = attr(ElementType.i64, doc="element type of the indices, i64 or i32")

    def verify(self) -> None:
        """Require that the indices are i64 or i32."""
        check_index_types(output_type=self.output_type)

    def infer(self, sorted_sequence: Value, values: Value) -> PartialShape:
        sequence, shape = sorted_sequence.shape, values.shape
        if sequence.rank == 0:
            raise InferenceError(
                "sorted_sequence must have rank 1 or more, found a scalar",
                clause="sorted_sequence has at least one axis",
            )
        if sequence.rank is None or sequence.rank == 1:
            return shape
        expected = sequence.replace({sequence.rank - 1: -1})
        merged = shape.merge(expected)
        if merged is None:
            raise InferenceError(
                f"values {shape} must be of shape {expected}, as sorted_sequence {sequence} but for the last axis",
                hint="one sorted_sequence for all values must be 1-D",
                clause="values has the shape of sorted_sequence except along the last axis, or any shape if that is 1-D",
            )
        return merged

    def evaluate(self, sorted_sequence: Array, values: Array) -> Array:
        side: Literal["left", "right"] = "right" if self.right_mode else "left"
        rows, queries_as_numbers = (
            x.astype(np.float32) if x.dtype.kind == "V" else x for x in (sorted_sequence, values)
        )
        if rows.ndim == 1:
            indices = np.searchsorted(rows, queries_as_numbers, side)
        else:
            count = math.prod(rows.shape[:-1])
            rows, queries = (x.reshape(count, x.shape[-1]) for x in (rows, queries_as_numbers))
            positions = [np.searchsorted(row, query, side) for row, query in zip(rows, queries, strict=True)]
            indices = np.array(positions, np.int64).reshape(values.shape)
        if queries_as_numbers.dtype.kind == "f":
            indices = np.where(np.isnan(queries_as_numbers), 0, indices)  # no number is less than NaN
        return np.asarray(indices, self.output_type.dtype)

    def flops(self, operands: Operands) -> Count:
        """Return the number of comparisons of a binary search for each value."""
        return operands.result * log2(operands.inputs[0][-1])
