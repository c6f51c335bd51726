"""One-hot encoding of classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np

from ...ir.dimension import Dimension
from ...ir.shape import PartialShape
from ...ir.tensor import Array, Value
from .._define.operation import INTEGERS, T_ANY, Element, InferenceError, Input, Op, Output, attr, op
from .._lengths import check_scalar, normalize_axis


class OneHotBase(Op):
    """Base of the versions of OneHot. Indices may be any integers, as in OpenVINO; the specification allows i32 and i64."""

    flops_per_element = 0

    indices = Input(Element("T_INDICES", INTEGERS, "any integer type"), "the class of each element")
    depth = Input(Element("T_DEPTH", INTEGERS, "any integer type"), "number of classes, a scalar")
    on_value = Input(T_ANY, "value at the class, a scalar")
    off_value = Input(T_ANY, "value elsewhere, a scalar")
    output = Output(T_ANY, "the shape of indices, with an axis of length depth inserted")

    axis: int = attr(
        default_with_warning="0",
        doc="position of the new axis in the output; a negative one counts from the end",
    )

    def shown(self, inputs: Sequence[PartialShape], output: PartialShape) -> Mapping[str, object]:
        """Return the nonnegative axis."""
        return {"axis": self.axis % output.rank} if output.rank else {}

    def infer(self, indices: Value, depth: Value, on_value: Value, off_value: Value) -> PartialShape:
        for name, scalar in (("depth", depth), ("on_value", on_value), ("off_value", off_value)):
            check_scalar(scalar, name)
        if (depths := depth.ints()) is not None and depths[0] < 0:
            raise InferenceError(f"depth is {depths[0]}; 0 or more is expected", clause="depth is at least 0")
        if indices.shape.rank is None:
            return PartialShape.dynamic()
        axis = normalize_axis(self.axis, indices.shape.rank + 1, "attribute 'axis'")
        dims = list(indices.shape)
        classes = depth.dims()
        return PartialShape([*dims[:axis], classes[0] if classes else Dimension(), *dims[axis:]])

    def evaluate(self, indices: Array, depth: Array, on_value: Array, off_value: Array) -> Array:
        axis, length = normalize_axis(self.axis, indices.ndim + 1), max(depth.item(), 0)
        encoded = np.empty((*indices.shape[:axis], length, *indices.shape[axis:]), off_value.dtype)
        encoded[...] = off_value
        classes = self.classes(indices, length)
        inside = (classes >= 0) & (classes < length)
        places = np.nonzero(np.atleast_1d(inside)) if indices.ndim else ()
        if indices.ndim or inside:
            encoded[(*places[:axis], classes[inside], *places[axis:])] = on_value
        return encoded

    def classes(self, indices: Array, depth: int) -> Array:
        """Return the class of each element; classes outside [0, depth) set nothing."""
        return indices


@op("OneHot-1")
class OneHot1(OneHotBase):
    """One-hot vectors of ``indices``: ``on_value`` at the class, and ``off_value`` elsewhere."""

    decisions = (
        "classes out of range, also negative ones, set nothing; the page leaves negative ones undefined",
    )


@op("OneHot-16")
class OneHot16(OneHotBase):
    """The same as version 1, except that negative classes may count from the end."""

    negative_indices_mode: Literal["ignore_negative", "normalize", "ignore-negative"] = attr(
        "ignore_negative",
        doc="normalize: negative classes count from the end; ignore_negative (ignore-negative in the specification): "
        "they set nothing",
    )

    def classes(self, indices: Array, depth: int) -> Array:
        """Return the class of each element; classes outside [0, depth) set nothing."""
        if self.negative_indices_mode != "normalize" or indices.dtype.kind == "u":
            return indices
        return np.where(indices < 0, indices.astype(np.int64) + depth, indices)
