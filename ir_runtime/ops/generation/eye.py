"""Identity matrices: ones on one diagonal."""

from __future__ import annotations

import numpy as np

from ...errors import ValidationError
from ...ir.element import ElementType
from ...ir.shape import PartialShape
from ...ir.tensor import Array, Value
from .._define.operation import NUMBERS, Element, Input, Op, Output, attr, op
from .._lengths import check_one_number, length_of, lengths_of

INDEX = (ElementType.i64, ElementType.i32)


@op("Eye-9")
class Eye(Op):
    """Matrices, or batches of them, with ones on one diagonal and zeros elsewhere."""

    flops_per_element = 0

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
            raise ValidationError(
                f"attribute 'output_type' must be a numeric type, not {self.output_type.label}",
                clause="attribute 'output_type' is a numeric type",
            )

    def infer(
        self, num_rows: Value, num_columns: Value, diagonal_index: Value, batch_shape: Value | None = None
    ) -> PartialShape:
        check_one_number(diagonal_index, "diagonal_index")
        sides = [length_of(num_rows, "num_rows"), length_of(num_columns, "num_columns")]
        if batch_shape is None:
            return PartialShape(sides)
        batch = lengths_of(batch_shape, "batch_shape")
        return PartialShape.dynamic() if batch is None else PartialShape([*batch, *sides])

    def evaluate(
        self, num_rows: Array, num_columns: Array, diagonal_index: Array, batch_shape: Array | None = None
    ) -> Array:
        sides = (num_rows.item(), num_columns.item())
        batch = () if batch_shape is None else tuple(batch_shape.tolist())
        # A diagonal far outside is empty; NumPy would index with it.
        diagonal = int(np.clip(diagonal_index.item(), -sides[0], sides[1]))
        matrix = np.eye(*sides, diagonal, dtype=self.output_type.dtype)
        return np.array(np.broadcast_to(matrix, (*batch, *sides))) if batch else matrix
