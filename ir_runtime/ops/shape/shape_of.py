"""The shape of a tensor, as a tensor: where shape arithmetic begins."""

from __future__ import annotations

import numpy as np

from ...ir.element import ElementType
from ...ir.shape import PartialShape
from ...ir.tensor import Array, Value, objects
from .._define.bounds import fit
from .._define.operation import T_ANY, Input, Op, Output, attr, check_index_types, op


class ShapeOfBase(Op):
    """Base of the versions; only the shape of the data is used."""

    flops_per_element = 0

    data = Input(T_ANY, "tensor to measure")

    def infer(self, data: Value) -> PartialShape:
        rank = data.shape.rank
        return PartialShape([-1 if rank is None else rank])

    def refuses_lengths(self) -> bool:
        return True  # of any length

    def propagate(self, *inputs: Value) -> Array | None:
        shape = inputs[0].shape
        if shape.rank is None:
            return None
        (output,) = self.infer_types(*inputs)
        return objects(
            (d if d.is_dynamic else fit(d.get_length(), output.element) for d in shape), (shape.rank,)
        )


@op("ShapeOf-3")
class ShapeOf(ShapeOfBase):
    """Lengths of ``data`` along each axis."""

    shape = Output("output_type", "as many numbers as the data has axes")

    output_type: ElementType = attr(ElementType.i64, doc="element type of the result, i64 or i32")

    def verify(self) -> None:
        check_index_types(output_type=self.output_type)

    def evaluate(self, data: Array) -> Array:
        return np.array(data.shape, np.int64).astype(self.output_type.dtype)


@op("ShapeOf-1")
class ShapeOf1(ShapeOfBase):
    """Lengths of ``data`` along each axis, always as i64."""

    shape = Output(ElementType.i64, "as many numbers as the data has axes")

    def evaluate(self, data: Array) -> Array:
        return np.array(data.shape, np.int64)
