"""Sparse matrices in COO format: fill empty rows."""

from __future__ import annotations

import numpy as np

from ...errors import InferenceError
from ...ir.dimension import Dimension
from ...ir.element import ElementType
from ...ir.shape import PartialShape
from ...ir.tensor import Array, Value
from .._define.operation import NUMBERS, T_INDEX_64, Element, Input, Op, Output, op
from .._lengths import check_scalar, check_vector, lengths_of
from .._within import check_below

T_VALUE = Element("T", (*NUMBERS, ElementType.string), "any numeric type or string")


@op("SparseFillEmptyRows-16", spec="sparse/fill-empty-rows-16")
class SparseFillEmptyRows(Op):
    """Put ``default_value`` at the start of each row of a sparse matrix that has no elements."""

    flops_per_element = 0

    values = Input(T_VALUE, "1-D: the elements")
    dense_shape = Input(T_INDEX_64, "rows and columns of the matrix")
    indices = Input(T_INDEX_64, "[elements, 2]: row and column of each element")
    default_value = Input(T_VALUE, "scalar for empty rows", mixed=True)
    output_indices = Output(T_INDEX_64, "[elements, 2]: row and column of each element, in row-major order")
    output_values = Output(T_VALUE, "1-D: the elements in that order")
    empty_row_indicator = Output(ElementType.boolean, "1-D: for each row whether it was empty")

    def infer(
        self, values: Value, dense_shape: Value, indices: Value, default_value: Value
    ) -> tuple[PartialShape, PartialShape, PartialShape]:
        check_vector(values, "values")
        check_scalar(default_value, "default_value")
        lengths = lengths_of(dense_shape, "dense_shape")
        lengths = (Dimension(), Dimension()) if lengths is None else lengths
        if len(lengths) != 2:
            raise InferenceError(
                f"dense_shape must hold 2 numbers, of rows and of columns, found {len(lengths)}",
                clause="dense_shape has 2 numbers",
            )
        places = indices.shape.merge(PartialShape([values.count, 2]))
        if places is None:
            raise InferenceError(
                f"indices must be {PartialShape([values.count, 2])}, a row and a column for each of values, found {indices.shape}",
                clause="indices is [values, 2], a row and a column for each of values",
            )
        total = self._total(places[0], *lengths, indices.known())
        return PartialShape([total, 2]), PartialShape([total]), PartialShape([lengths[0]])

    def _total(
        self, count: Dimension, rows: Dimension, columns: Dimension, positions: Array | None
    ) -> Dimension:
        """Return the number of elements after filling empty rows."""
        if positions is not None and positions.size:
            for axis, (length, name) in enumerate(((rows, "row"), (columns, "column"))):
                places = Value.constant(positions[:, axis])
                check_below(places, f"column {axis} of indices", length, f"{name}s in dense_shape")
        if positions is not None:
            return Dimension.of(rows - len(np.unique(positions[:, 0])) + len(positions))
        # Each row gets at most one element, and if there are elements, one row at least needs none.
        most = None if count.max is None or rows.max is None else count.max + rows.max - (count.min > 0)
        return Dimension.between(max(count.min, rows.min), most)

    def evaluate(
        self, values: Array, dense_shape: Array, indices: Array, default_value: Array
    ) -> tuple[Array, Array, Array]:
        self.infer(
            *map(Value.constant, (values, dense_shape, indices, default_value))
        )  # raises if out of range
        occupied = np.zeros(int(dense_shape[0]), bool)
        occupied[indices[:, 0]] = True
        added = np.zeros((np.count_nonzero(~occupied), 2), indices.dtype)
        added[:, 0] = np.flatnonzero(~occupied)
        places = np.concatenate([indices, added])
        filled = np.concatenate([values, np.full(len(added), default_value, values.dtype)])
        order = np.lexsort((places[:, 1], places[:, 0]))
        return places[order], filled[order], ~occupied
