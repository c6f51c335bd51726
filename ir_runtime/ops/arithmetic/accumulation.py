"""Cumulative sums along an axis, and maxima over segments of one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np

from ...errors import InferenceError
from ...ir.dimension import Dimension
from ...ir.shape import PartialShape
from ...ir.tensor import Array, Value
from .._define.operation import SIGNED, T_INDEX_64, T_PLAIN, Element, Input, Op, Output, T, attr, op
from .._lengths import check_scalar, check_vector, normalize_axis
from ..kernels.statistics import compute_dtype, lowest

T_COUNT = Element("T_IDX2", SIGNED[:2], "i64 or i32")


@op("CumSum-3", spec="arithmetic/cumsum-3")
class CumSum(Op):
    """Cumulative sums of ``data`` along ``axis``."""

    decisions = (
        "the sum of booleans is whether one of them is true, as in OpenVINO; the page asks for numbers",
        "axes 0 and -1 of a scalar, which is its own sum, are read, as in OpenVINO",
    )

    bounded = True
    flops_per_element = 1

    data = Input(T_PLAIN, "tensor to sum, of rank 1 or more")
    axis = Input(T_INDEX_64, "axis to sum along, a scalar; 0 when absent", optional=True)
    output = Output(T_PLAIN, "the sums")

    exclusive: bool = attr(False, doc="exclude each element from its own sum")
    reverse: bool = attr(False, doc="sum from the end")

    def infer(self, data: Value, axis: Value | None = None) -> PartialShape:
        if axis is not None and not axis.count.contains(1):
            raise InferenceError(
                f"axis must be one number, not of shape {axis.shape}", clause="axis is one number"
            )
        axes = (0,) if axis is None else axis.ints()
        if data.shape.rank is not None and axes is not None:
            normalize_axis(axes[0], data.shape.rank, least=1)
        return data.shape

    def evaluate(self, data: Array, axis: Array | None = None) -> Array:
        if not data.ndim:
            return np.zeros_like(data) if self.exclusive else data
        along = 0 if axis is None else int(axis.reshape(()))
        ordered = np.flip(data, along) if self.reverse else data
        sums = np.cumsum(ordered, along, dtype=compute_dtype(data.dtype)).astype(data.dtype, copy=False)
        if self.exclusive:
            sums = np.roll(sums, 1, along)
            np.moveaxis(sums, along, 0)[:1] = 0
        return np.flip(sums, along) if self.reverse else sums


@op("SegmentMax-16")
class SegmentMax(Op):
    """Maximum of ``data`` over segments: runs of slices with the same number in ``segment_ids``."""

    flops_per_element = 0
    flops_per_input = {"data": 1}

    data = Input(T, "slices, of rank 1 or more")
    segment_ids = Input(T_INDEX_64, "the segment of each slice, ascending")
    num_segments = Input(T_COUNT, "how many segments to return; all when absent", optional=True)
    output = Output(T, "the largest elements in each segment")

    fill_mode: Literal["ZERO", "LOWEST"] = attr(
        default_with_warning="ZERO", doc="what empty segments hold: zero, or the lowest number"
    )

    def shown(self, inputs: Sequence[PartialShape], output: PartialShape) -> Mapping[str, object]:
        """Return the mode in small letters."""
        return {"fill_mode": self.fill_mode.lower()}

    def infer(self, data: Value, segment_ids: Value, num_segments: Value | None = None) -> PartialShape:
        if data.shape.rank == 0:
            raise InferenceError(
                "data is a scalar; at least one axis is expected", clause="data has at least one axis"
            )
        check_vector(segment_ids, "segment_ids")
        if num_segments is not None:
            check_scalar(num_segments, "num_segments")
        segments = segment_ids.ints()
        if segments is not None and list(segments) != sorted(segments):
            drop = next(i for i in range(1, len(segments)) if segments[i] < segments[i - 1])
            raise InferenceError(
                f"segment_ids must be in ascending order, but element {drop} is {segments[drop]}, after {segments[drop - 1]}",
                clause="segment_ids are in ascending order",
            )
        if data.shape.rank is None:
            return PartialShape.dynamic()
        if segment_ids.shape.rank is not None and not data.shape[0].compatible(segment_ids.shape[0]):
            raise InferenceError(
                f"segment_ids has length {segment_ids.shape[0]}, but axis 0 of data {data.shape} has length "
                f"{data.shape[0]}",
                clause="segment_ids has one number for each entry of axis 0 of data",
            )
        return data.shape.replace({0: _count(segment_ids, num_segments)})

    def evaluate(self, data: Array, segment_ids: Array, num_segments: Array | None = None) -> Array:
        needed = int(segment_ids.max(initial=-1)) + 1
        count = needed if num_segments is None else int(num_segments)
        valid = segment_ids < count
        output = np.full((count, *data.shape[1:]), lowest(data.dtype), data.dtype)
        np.fmax.at(
            output, segment_ids[valid], data[valid]
        )  # comparisons with NaN are false in the reference, too
        if self.fill_mode == "ZERO":
            output[np.isin(np.arange(count), segment_ids, invert=True)] = 0
        return output


def _count(segment_ids: Value, num_segments: Value | None) -> Dimension:
    if num_segments is not None:
        counts = num_segments.dims()
        return Dimension() if counts is None else counts[0]
    ids = segment_ids.numbers()
    if ids is None:
        return Dimension()
    return Dimension.of(ids[-1] + 1) if ids else Dimension(0)
