"""SearchSorted: insertion points in sorted sequences."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from ...errors import InferenceError
from ...ir.element import ElementType
from ...ir.formula import Count, log2
from ...ir.operands import Operands
from ...ir.shape import PartialShape
from ...ir.tensor import Array, Value
from .._define.operation import Input, Op, Output, T, attr, check_index_types, op


@op("SearchSorted-15")
class SearchSorted(Op):
    """Positions at which to insert ``values`` so that ``sorted_sequence`` stays sorted.

    Files call the attribute right_mode that the page calls right, and may have output_type.
    """

    sorted_sequence = Input(T, "1-D, or shaped as values but along the last axis; ascending along it")
    values = Input(T, "numbers to find places for")
    indices = Output("output_type", "of the shape of values")

    right_mode: bool = attr(False, doc="insert behind equal elements instead of before them")
    output_type: ElementType = attr(ElementType.i64, doc="element type of the indices, i64 or i32")

    def verify(self) -> None:
        """Require an index type."""
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
                clause="values has the shape of sorted_sequence, but for the last axis, or any if that is 1-D",
            )
        return merged

    def evaluate(self, sorted_sequence: Array, values: Array) -> Array:
        side: Literal["left", "right"] = "right" if self.right_mode else "left"
        rows, queries_as_numbers = (
            x.astype(np.float32) if x.dtype.kind == "V" else x for x in (sorted_sequence, values)
        )
        if rows.ndim == 1:
            places = np.searchsorted(rows, queries_as_numbers, side)
        else:
            count = math.prod(rows.shape[:-1])
            rows, queries = (x.reshape(count, x.shape[-1]) for x in (rows, queries_as_numbers))
            positions = [np.searchsorted(row, query, side) for row, query in zip(rows, queries, strict=True)]
            places = np.array(positions, np.int64).reshape(values.shape)
        if queries_as_numbers.dtype.kind == "f":
            places = np.where(np.isnan(queries_as_numbers), 0, places)  # no number is less than NaN
        return np.asarray(places, self.output_type.dtype)

    def flops(self, operands: Operands) -> Count:
        """Return the comparisons of a binary search for each value."""
        return operands.result * log2(operands.inputs[0][-1])
