"""Scatter operations: copies of a tensor in which updates replace elements, or are reduced with them."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

from ..._util.arrays import DType
from ...errors import InferenceError
from ...ir.dimension import Interval
from ...ir.element import ElementType
from ...ir.formula import Count
from ...ir.operation import Operands, size
from ...ir.shape import PartialShape
from ...ir.tensor import Array, Value, objects
from .._define.bounds import Number, maximum, minimum
from .._define.operation import INTEGERS, T_INDEX, T_INDEX_64, T_PLAIN, Element, Input, Op, Output, attr, op
from ..kernels.statistics import highest, lowest
from .gather import axis_input, check_inside, check_tuples, flat_positions, positions

# Reductions of updates with the data.

_COMBINE = {"sum": np.add, "sub": np.subtract, "prod": np.multiply, "min": np.minimum, "max": np.maximum}
_COMBINE_BOOLEAN = {
    "sum": np.logical_or,
    "sub": np.logical_xor,
    "prod": np.logical_and,
    "min": np.logical_and,
    "max": np.logical_or,
}
_COMBINE_BOUNDS: dict[str, Callable[[Number, Number], Number]] = {
    "sum": operator.add,
    "sub": operator.sub,
    "prod": operator.mul,
    "min": minimum,
    "max": maximum,
}
_BEYOND = 2**64
"""An integer above all of any type, as ``-_BEYOND`` is below them."""


def writable_copy(data: Array, updates: Array) -> Array:
    """Return a copy of ``data`` in C order, with a dtype that can also hold ``updates``, which may be intervals."""
    return data.astype(np.result_type(data.dtype, updates.dtype), order="C")


def apply_updates(target: Array, where: tuple[Array, ...], updates: Array, reduction: str) -> None:
    """Apply updates to ``target``, in order, at positions given by one array of indices per axis."""
    if reduction == "none":
        target[where] = updates
    elif target.dtype == object:
        np.frompyfunc(_COMBINE_BOUNDS[reduction], 2, 1).at(target, where, updates)
    else:
        combine = _COMBINE_BOOLEAN if target.dtype == np.bool_ else _COMBINE
        combine[reduction].at(target, where, updates)


def neutral(dtype: DType, reduction: str) -> Any:
    """Return the neutral element of a reduction, which is finite for floats, as in OpenVINO's reference."""
    if reduction in ("sum", "prod", "mean"):
        return dtype.type(reduction == "prod")
    if dtype == np.bool_:
        return reduction == "min"
    if dtype.hasobject:
        return _BEYOND if reduction == "min" else -_BEYOND
    return highest(dtype) if reduction == "min" else lowest(dtype)


def quotient(sums: Array, counts: Array) -> Array:
    """Return ``sums / counts`` in the dtype of the sums; integers are rounded down."""
    if sums.dtype == object:  # sums may wrap around before the division
        return objects([Interval()] * sums.size, sums.shape)
    if sums.dtype.kind in "iu":
        return np.asarray(
            np.floor_divide(sums, counts.astype(np.result_type(sums.dtype, np.uint8))), sums.dtype
        )
    return np.asarray(
        np.true_divide(sums.astype(np.promote_types(sums.dtype, np.float32)), counts), sums.dtype
    )


# The Scatter operations.

T_AXIS = Element("T_AXIS", INTEGERS, "any integer type")


class ScatterNDUpdateBase(Op):
    """Base of the versions of ScatterNDUpdate."""

    decisions = (
        "of several updates of one place the last one counts, as in OpenVINO's reference; the page leaves the order open",
    )

    bounded = True
    flops_per_element = 0

    data = Input(T_PLAIN, "tensor to copy")
    indices = Input(
        T_INDEX_64, "index tuples along the last axis, each of which selects an element or a slice"
    )
    updates = Input(T_PLAIN, "an element or a slice for each index tuple")
    updated = Output(T_PLAIN, "the updated copy of data")

    symbolic = True

    def infer(self, data: Value, indices: Value, updates: Value) -> PartialShape:
        if 0 in (data.shape.rank, indices.shape.rank):
            name = "data" if data.shape.rank == 0 else "indices"
            raise InferenceError(
                f"{name} is a scalar; at least one axis is expected", clause=f"{name} has at least one axis"
            )
        if data.shape.rank is None or indices.shape.rank is None or indices.shape[-1].is_dynamic:
            return data.shape
        selected = int(indices.shape[-1])
        if selected > data.shape.rank:
            raise InferenceError(
                f"indices {indices.shape} has length {selected} along its last axis, and so names {selected} axes of data "
                f"{data.shape}, which has rank {data.shape.rank}",
                clause="the last axis of indices names at most all axes of data",
            )
        expected = PartialShape([*indices.shape[:-1], *data.shape[selected:]])
        check_tuples(indices.known(), data.shape[:selected])
        fits = updates.shape.compatible(expected) or (not expected and updates.count.contains(1))
        if not fits:
            raise InferenceError(
                f"updates has shape {updates.shape}; data {data.shape} and indices {indices.shape} ask for {expected}",
                clause="updates has the axes of indices except the last, then the axes of data that indices do not select",
            )
        return data.shape

    @staticmethod
    def places(indices: Array, shape: Sequence[int]) -> Array:
        """Convert index tuples to positions along the flattened leading axes of a tensor.

        Raises:
            InferenceError: if an index is out of range.
        """
        return flat_positions(indices, shape[: indices.shape[-1]]).ravel()

    def scatter(self, data: Array, indices: Array, updates: Array, reduction: str) -> Array:
        """Return a copy of ``data`` with the updates applied in order, so that the last of equal indices wins."""
        selected = indices.shape[-1]
        whole, slices = math.prod(data.shape[:selected]), data.shape[selected:]
        where = self.places(indices, data.shape)
        updated = writable_copy(data, updates)
        target = updated.reshape(whole, *slices)
        apply_updates(target, (where,), updates.reshape(len(where), *slices), reduction)
        return updated


@op("ScatterNDUpdate-4", spec="movement/scatter-nd-update-3")
class ScatterNDUpdate4(ScatterNDUpdateBase):
    """Replace the elements or slices of ``data`` at ``indices`` by ``updates``.

    The specification calls this version 3, but it is in opset4. Negative indices count from the end, as in OpenVINO's
    reference.
    """

    decisions = (
        "a negative index counts from the end, as in OpenVINO's reference; the page does not mention it",
    )

    def evaluate(self, data: Array, indices: Array, updates: Array) -> Array:
        return self.scatter(data, indices, updates, "none")


@op("ScatterNDUpdate-15")
class ScatterNDUpdate15(ScatterNDUpdateBase):
    """Replace the elements or slices of ``data`` at ``indices`` by ``updates``, or reduce them with ``updates``."""

    decisions = (
        "an update of NaN changes neither minimum nor maximum, as in OpenVINO's reference; the page does not mention it",
    )

    monotonicity = "unknown"

    reduction: Literal["none", "sum", "sub", "prod", "min", "max"] = attr(
        "none", doc="reduction of an update with the element that it updates; none replaces the element"
    )

    def evaluate(self, data: Array, indices: Array, updates: Array) -> Array:
        if self.reduction in ("min", "max") and data.dtype.kind in "fV":
            # Replace NaN by an update that changes nothing.
            neutral = math.inf if self.reduction == "min" else -math.inf
            updates = np.where(np.isnan(updates), updates.dtype.type(neutral), updates)
        return self.scatter(data, indices, updates, self.reduction)

    def flops(self, operands: Operands) -> Count:
        """Return one FLOP for each update, if updates are reduced with the data."""
        return 0 if self.reduction == "none" else size(operands.inputs[2])


@op("ScatterUpdate-3")
class ScatterUpdate(Op):
    """Replace the slices of ``data`` at ``indices`` along ``axis`` by ``updates``."""

    decisions = (
        "of several updates of one place the last one counts, as in OpenVINO's reference; the page leaves the order open",
    )

    bounded = True
    flops_per_element = 0

    data = Input(T_PLAIN, "tensor to copy")
    indices = Input(T_INDEX, "nonnegative indices along the axis; of equal indices, the last wins")
    updates = Input(T_PLAIN, "new slices, of the shape of data with the axis replaced by the axes of indices")
    axis = Input(T_AXIS, "the axis, one number; a negative one counts from the end")
    updated = Output(T_PLAIN, "the updated copy of data")

    symbolic = True

    def infer(self, data: Value, indices: Value, updates: Value, axis: Value) -> PartialShape:
        along = axis_input(axis, data.shape.rank)
        if data.shape.rank is None or indices.shape.rank is None:
            return data.shape
        if along is not None:
            check_inside(indices.known(), data.shape[along], along, negative=False)
            before, after = data.shape[:along], data.shape[along + 1 :]
            expected = PartialShape([*before, *indices.shape, *after])
        else:
            expected = PartialShape.dynamic(max(data.shape.rank + indices.shape.rank - 1, 0))
        if not updates.shape.compatible(expected):
            raise InferenceError(
                f"updates has shape {updates.shape}; data {data.shape} and indices {indices.shape} ask for {expected}",
                clause="updates has the shape of data, with the axes of indices in place of the axis",
            )
        return data.shape

    def evaluate(self, data: Array, indices: Array, updates: Array, axis: Array) -> Array:
        along = int(axis.item()) % data.ndim
        where = (slice(None),) * along + (positions(indices, data.shape[along], along, negative=False),)
        updated = writable_copy(data, updates)
        updated[where] = updates
        return updated


class ScatterElementsUpdateBase(Op):
    """Base of the versions of ScatterElementsUpdate."""

    bounded = True
    flops_per_element = 0

    data = Input(T_PLAIN, "tensor to copy")
    indices = Input(T_INDEX, "index along the axis of each update; a negative one counts from the end")
    updates = Input(
        T_PLAIN, "the updates, of the shape of indices; along other axes, they are aligned with data"
    )
    axis = Input(T_AXIS, "the axis, one number; a negative one counts from the end")
    updated = Output(T_PLAIN, "the updated copy of data")

    symbolic = True

    def infer(self, data: Value, indices: Value, updates: Value, axis: Value) -> PartialShape:
        along = axis_input(axis, data.shape.rank)
        if not indices.shape.compatible(updates.shape):
            raise InferenceError(
                f"updates has shape {updates.shape}, but indices {indices.shape}; both must be equal",
                clause="updates has the shape of indices",
            )
        if data.shape.rank is None or indices.shape.rank is None:
            return data.shape
        if data.shape.rank != indices.shape.rank:
            raise InferenceError(
                f"indices has shape {indices.shape}, but data {data.shape}; both must have as many axes",
                clause="indices has the rank of data",
            )
        if along is not None:
            check_inside(indices.known(), data.shape[along], along)
        for i, (have, want) in enumerate(zip(data.shape, indices.shape, strict=True)):
            if along is not None and i != along and have.max is not None and want.min > have.max:
                raise InferenceError(
                    f"indices {indices.shape} has length {want} along axis {i}, but data {data.shape} only {have}; "
                    f"only along axis {along} may it be longer",
                    clause="indices is not longer than data, except along the axis",
                )
        return data.shape

    def scatter(self, target: Array, where: tuple[Array, ...], updates: Array) -> None:
        """Apply updates to ``target`` at positions given by one array of indices per axis."""
        raise NotImplementedError

    def evaluate(self, data: Array, indices: Array, updates: Array, axis: Array) -> Array:
        along = int(axis.item()) % data.ndim
        where: list[Array] = list(np.indices(indices.shape, sparse=True))
        where[along] = positions(indices, data.shape[along], along)
        updated = writable_copy(data, updates)
        self.scatter(updated, tuple(where), updates)
        return updated


@op("ScatterElementsUpdate-3")
class ScatterElementsUpdate3(ScatterElementsUpdateBase):
    """Replace the elements of ``data`` at ``indices`` along ``axis`` by ``updates``."""

    decisions = (
        "of several updates of one place the last one counts, as in OpenVINO's reference; the page leaves the order open",
    )

    def scatter(self, target: Array, where: tuple[Array, ...], updates: Array) -> None:
        target[where] = updates


@op("ScatterElementsUpdate-12")
class ScatterElementsUpdate12(ScatterElementsUpdateBase):
    """Replace the elements of ``data`` at ``indices`` along ``axis`` by ``updates``, or reduce them with ``updates``."""

    decisions = (
        "of several updates of one place the last one counts, as in OpenVINO's reference; the page leaves the order open with reduction none",
        "where data is NaN, minimum and maximum are those of the updates alone, as in OpenVINO's reference; the page does not mention NaN",
    )

    monotonicity = "unknown"

    reduction: Literal["none", "sum", "prod", "min", "max", "mean"] = attr(
        "none",
        doc="reduction of updates with the element that they update; none replaces the element, and means of integers "
        "are rounded down",
    )
    use_init_val: bool = attr(True, doc="whether the elements of data take part in the reduction")

    def infer(self, data: Value, indices: Value, updates: Value, axis: Value) -> PartialShape:
        if self.reduction == "mean" and data.element is ElementType.boolean:
            raise InferenceError(
                "data is boolean, for which reduction mean is not defined",
                clause="data is not boolean with reduction mean",
            )
        return super().infer(data, indices, updates, axis)

    def scatter(self, target: Array, where: tuple[Array, ...], updates: Array) -> None:
        if self.reduction == "none":
            target[where] = updates
            return
        if not self.use_init_val:
            target[where] = neutral(target.dtype, self.reduction)
        elif self.reduction in ("min", "max") and target.dtype.kind in "fV":
            # Where data is NaN, the updates alone decide.
            touched = target[where]
            target[where] = np.where(np.isnan(touched), neutral(target.dtype, self.reduction), touched)
        apply_updates(target, where, updates, "sum" if self.reduction == "mean" else self.reduction)
        if self.reduction == "mean":
            counts = np.zeros(target.shape, np.int64)
            np.add.at(counts, where, 1)
            used = counts > 0
            target[used] = quotient(target[used], counts[used] + int(self.use_init_val))

    def flops(self, operands: Operands) -> Count:
        """Return one FLOP for each update, if updates are reduced with the data."""
        return 0 if self.reduction == "none" else size(operands.inputs[2])
