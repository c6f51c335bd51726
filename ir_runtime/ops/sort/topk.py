"""TopK: the largest or smallest elements along an axis."""

from __future__ import annotations

from typing import Literal

import numpy as np

from ...errors import InferenceError, ValidationError
from ...ir.dimension import Dimension, Interval
from ...ir.element import ElementType
from ...ir.shape import PartialShape
from ...ir.tensor import Array, Value
from .._define.operation import T_INDEX, T_PLAIN, Input, Op, Output, attr, check_index_types, op
from .._lengths import check_scalar, normalize_axis


class TopKBase(Op):
    """Base of the versions of TopK.

    Of equal elements the one with the lower index comes first, and is chosen first, as in the
    reference; so the order is always a stable one. NaN counts as larger than any number. The page has
    numbers only; OpenVINO also infers booleans, which its plugin orders as 0 and 1.
    """

    decisions = (
        "of equal elements, the one with the lower index is first, also with sort none, where the pages allow any order",
    )

    bounded = True
    flops_per_element = 0
    flops_per_input = {"data": 1}

    data = Input(T_PLAIN, "tensor to choose from")
    k = Input(T_INDEX, "scalar: how many elements to choose, at least 1")
    values = Output(T_PLAIN, "k elements along axis")
    indices = Output("index_element_type", "where they are along axis")

    axis: int = attr(default_with_warning="0", doc="axis to choose along; a negative one counts from the end")
    mode: Literal["max", "min"] = attr(
        default_with_warning="max", doc="whether to choose the largest or the smallest"
    )
    sort: Literal["value", "index", "none"] = attr(
        default_with_warning="none",
        doc="value: best first; index: in the order of the data; none: in any order, here as value",
    )
    index_element_type: ElementType = attr(ElementType.i32, doc="element type of the indices, i64 or i32")

    def verify(self) -> None:
        """Require an index type."""
        check_index_types(index_element_type=self.index_element_type)

    def infer(self, data: Value, k: Value) -> tuple[PartialShape, PartialShape]:
        check_scalar(k, "k")
        if data.shape.rank is None:
            return data.shape, data.shape
        axis = normalize_axis(self.axis, data.shape.rank, "attribute 'axis'")
        numbers = k.numbers()
        shape = data.shape.replace({axis: _chosen(data.shape, axis, numbers[0] if numbers else Interval())})
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

    stable: bool = attr(False, doc="whether equal elements keep their order; here they always do")

    def verify(self) -> None:
        """Require an index type, and an order that can be stable."""
        super().verify()
        if self.stable and self.sort == "none":
            raise ValidationError(
                "attribute 'stable' asks for an order, but 'sort' is none",
                clause="attribute 'stable' is not true if 'sort' is none",
            )


def _chosen(data: PartialShape, axis: int, k: int | Interval) -> Dimension:
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
    """Return the indices along an axis, best first, with ties in ascending order."""
    keys = data.astype(np.float32) if data.dtype.kind == "V" else data
    if not descending:
        return np.argsort(keys, axis, kind="stable")
    order = np.argsort(np.flip(keys, axis), axis, kind="stable")
    return np.asarray(data.shape[axis] - 1 - np.flip(order, axis))
