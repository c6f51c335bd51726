"""Matrices with ones on one diagonal."""

from __future__ import annotations

import numpy as np

from ...ir.dimension import Dimension, Interval
from ...ir.element import ElementType
from ...ir.shape import PartialShape
from ...ir.tensor import Array, Value
from .._axes import check_list
from .._define import Element, InferenceError, Input, Op, Output, attr, op
from .._lengths import count_of
from .._types import NUMBERS

INDEX = (ElementType.i64, ElementType.i32)


@op("Eye-9")
class Eye(Op):
    """Matrices, or batches of them, with ones on one diagonal and zeros elsewhere."""

    num_rows = Input(Element("T_ROWS", INDEX, "i64 or i32"), "number of rows, one number")
    num_columns = Input(Element("T_COLUMNS", INDEX, "i64 or i32"), "number of columns, one number")
    diagonal_index = Input(
        Element("T_DIAGONAL", INDEX, "i64 or i32"),
        "column of the one in the first row, one number; below 0, it is the row of the one in the first column, "
        "negated",
    )
    batch_shape = Input(
        Element("T_BATCH", INDEX, "i64 or i32"),
        "axes before the matrices, 1-D; none when absent",
        optional=True,
    )
    output = Output("output_type", "the batch axes, then rows and columns")

    output_type: ElementType = attr(doc="element type of the output, a numeric one")

    def verify(self) -> None:
        """Require a numeric type."""
        if self.output_type not in NUMBERS:
            raise ValueError(f"output_type must be a numeric type, not {self.output_type}")

    def infer(
        self, num_rows: Value, num_columns: Value, diagonal_index: Value, batch_shape: Value | None = None
    ) -> PartialShape:
        _one("diagonal_index", diagonal_index)
        sides = [_length("num_rows", num_rows), _length("num_columns", num_columns)]
        if batch_shape is None:
            return PartialShape(sides)
        if batch_shape.shape.rank not in (None, 1):
            raise InferenceError(f"batch_shape must be 1-D, found {batch_shape.shape}")
        if (numbers := batch_shape.numbers()) is not None:
            return PartialShape([*(_length_of("batch_shape", n) for n in numbers), *sides])
        if (count := count_of(batch_shape)) is None:
            return PartialShape.dynamic()
        return PartialShape([*PartialShape.dynamic(count), *sides])

    def evaluate(
        self, num_rows: Array, num_columns: Array, diagonal_index: Array, batch_shape: Array | None = None
    ) -> Array:
        sides = (num_rows.item(), num_columns.item())
        batch = () if batch_shape is None else tuple(batch_shape.tolist())
        # A diagonal far outside is none at all; NumPy wants to index with it.
        diagonal = int(np.clip(diagonal_index.item(), -sides[0], sides[1]))
        matrix = np.eye(*sides, diagonal, dtype=self.output_type.dtype)
        return np.array(np.broadcast_to(matrix, (*batch, *sides)))


def _one(name: str, value: Value) -> None:
    check_list(value, name)
    if not value.count.contains(1):
        raise InferenceError(f"{name} must be one number, found shape {value.shape}")


def _length(name: str, value: Value) -> Dimension:
    _one(name, value)
    numbers = value.numbers()
    return _length_of(name, numbers[0]) if numbers else Dimension()


def _length_of(name: str, number: int | Interval) -> Dimension:
    highest = number.max if isinstance(number, Interval) else number
    if highest is not None and highest < 0:
        raise InferenceError(f"{name} holds {number}; 0 or more is expected")
    return Dimension.of(number)
