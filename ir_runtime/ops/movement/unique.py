"""Unique elements of a tensor."""

from __future__ import annotations

import numpy as np

from ...errors import InferenceError
from ...ir.dimension import Dimension
from ...ir.element import ElementType
from ...ir.shape import PartialShape
from ...ir.tensor import Array, Value
from .._define.operation import SIGNED, T_ANY, Element, Input, Op, Output, attr, check_index_types, op
from ._indices import axis_input

T_AXIS = Element("T_AXIS", SIGNED[:2], "i64 or i32")


@op("Unique-10")
class Unique(Op):
    """Unique elements of ``data``, or unique slices along ``axis``."""

    flops_per_element = 0

    data = Input(T_ANY, "tensor to look through")
    axis = Input(T_AXIS, "one number; absent, elements of the flattened data are compared", optional=True)
    unique = Output(T_ANY, "different elements or slices")
    indices = Output("index_element_type", "1-D: where in data each of them comes first")
    inverse = Output("index_element_type", "1-D: for each element or slice of data its place in unique")
    counts = Output("count_element_type", "1-D: how often each of them occurs")

    sorted: bool = attr(True, doc="whether unique is in ascending order; otherwise in that of the data")
    index_element_type: ElementType = attr(ElementType.i64, doc="type of indices and inverse, i64 or i32")
    count_element_type: ElementType = attr(ElementType.i64, doc="type of counts, i64 or i32")

    def verify(self) -> None:
        """Require index types."""
        check_index_types(
            index_element_type=self.index_element_type, count_element_type=self.count_element_type
        )

    def infer(self, data: Value, axis: Value | None = None) -> tuple[PartialShape, ...]:
        along = None if axis is None else axis_input(axis, data.shape.rank)
        if axis is None:
            total = data.count
            shape = PartialShape([_some(total)])
        elif data.shape.rank == 0:
            raise InferenceError(
                "data is a scalar, which has no axis for input 'axis' to name",
                clause="data has at least one axis if there is an axis",
            )
        elif data.shape.rank is None or along is None:
            total = Dimension()
            shape = (
                PartialShape.dynamic() if data.shape.rank is None else PartialShape(map(_some, data.shape))
            )
        else:
            total = data.shape[along]
            shape = data.shape.replace({along: _some(total)})
        found = PartialShape([_some(total)])
        return shape, found, PartialShape([total]), found

    def evaluate(self, data: Array, axis: Array | None = None) -> tuple[Array, ...]:
        along = None if axis is None else int(axis.item()) % data.ndim
        slices = data.reshape(data.size, 1) if along is None else np.moveaxis(data, along, 0)
        first, inverse, counts = _groups(slices.reshape(len(slices), -1 if slices.size else 0), self.sorted)
        return (
            data.ravel()[first] if along is None else data.take(first, along),
            first.astype(self.index_element_type.dtype),
            inverse.astype(self.index_element_type.dtype),
            counts.astype(self.count_element_type.dtype),
        )


def _some(count: Dimension) -> Dimension:
    """Return the possible numbers of distinct elements among ``count``."""
    return Dimension.between(min(count.min, 1), count.max)


def _groups(rows: Array, ordered: bool) -> tuple[Array, Array, Array]:
    """Group equal rows: return the first row of each group, the group of each row, and group sizes."""
    if len(rows) == 0:
        return (np.zeros(0, np.int64),) * 3
    if rows.shape[1] > 1:  # ranks represent elements of any type
        rows = np.unique(rows, return_inverse=True, equal_nan=False)[1].reshape(rows.shape)
        order = np.lexsort(rows.T[::-1])
    else:
        order = np.argsort(rows.ravel(), kind="stable") if rows.size else np.arange(len(rows))
    ranked = rows[order]  # NaN is unequal to everything, as in the reference
    starts = np.concatenate([[True], (ranked[1:] != ranked[:-1]).any(axis=1)])
    inverse = np.empty(len(rows), np.int64)
    inverse[order] = np.cumsum(starts) - 1
    first, counts = order[starts], np.bincount(inverse)
    if not ordered:
        by_first = np.argsort(first)
        first, counts, inverse = first[by_first], counts[by_first], np.argsort(by_first)[inverse]
    return first, inverse, counts
