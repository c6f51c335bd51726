"""Data movement and adaptive pooling."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...io.reader.replacing import Tensor
from ...ir.element import ElementType
from .place import Lowered, Place, lowers

__all__: list[str] = []


@lowers("Gather-8")
def gather(place: Place, op: Any) -> Lowered:
    """Make negative indices non-negative: Gather-7 does not take them."""
    data, indices, axis = place.inputs
    known = place.numbers(1)
    if known is None or bool(known.size and known.min() < 0):
        indices = _wrap_negative(place, place.constant_ints(2, "axis")[0])
    return place.op("Gather-7", data, indices, axis, batch_dims=op.batch_dims)


def _wrap_negative(place: Place, axis: int) -> Tensor:
    """Add the length of an axis to negative indices."""
    data, indices, _ = place.inputs
    element = place.values[1].element
    zero = place.constant(0, element)
    length = place.op("ShapeOf-3", data, output_type=ElementType.i64)
    length = place.op("Gather-1", length, place.constant(axis % place.rank()), place.constant(0))
    wrapped = place.op("Add-1", indices, place.convert(length, element))
    return place.op("Select-1", place.op("Less-1", indices, zero), wrapped, indices)


@lowers("GatherND-8")
def gather_nd(place: Place, op: Any) -> Lowered:
    """Restore the batch dims that GatherND-5 flattens."""
    flat = place.op("GatherND-5", *place.inputs, batch_dims=op.batch_dims)
    if op.batch_dims < 2:
        return flat
    shape = op.infer_types(*place.values)[0].shape
    if not shape.is_static:
        place.refuse("GatherND-5 makes one dim of those of batches, and the others are dynamic")
    return place.reshape(flat, shape.static, keep=False)


@lowers("Slice-8")
def slice_(place: Place, op: Any) -> Lowered:
    """Slice all axes up to the last sliced one, with masks for those between."""
    rank = max(place.rank(), 1)
    sliced = place.constant_ints(4, "axes") if len(place.inputs) > 4 else range(place.dims(1)[0])
    axes = [axis % rank for axis in sliced]
    steps = place.constant_ints(3, "steps")
    if any(step < 0 for step in steps) and any(place.numbers(index) is None for index in (1, 2)):
        place.refuse("it goes backwards between bounds that are not constant")
    begin, end, stride = (
        _expand_bounds(place, index, axes, fill) for index, fill in ((1, 0), (2, 0), (3, 1))
    )
    kept = tuple(int(axis not in axes) for axis in range(max(axes, default=-1) + 1))
    return place.op("StridedSlice-1", place.inputs[0], begin, end, stride, begin_mask=kept, end_mask=kept)


def _expand_bounds(place: Place, index: int, axes: list[int], fill: int) -> Tensor:
    """Expand bounds of the sliced axes to all axes up to the last."""
    if axes == list(range(len(axes))):
        return place.inputs[index]
    element = place.values[index].element
    whole = np.full(max(axes) + 1, fill, element.dtype)
    numbers = place.numbers(index)
    if numbers is not None:
        whole[axes] = numbers
        return place.constant(whole, element)
    at, along = place.constant(axes), place.constant(0)
    return place.op("ScatterElementsUpdate-3", place.constant(whole, element), at, place.inputs[index], along)


@lowers("AdaptiveAvgPool-8")
def adaptive_average(place: Place, op: Any) -> Lowered:
    """Use the mean over all elements for a single window, otherwise average pooling with equal windows.

    Sums may add their terms in another order.
    """
    if not place.values[0].element.is_real():
        place.refuse("means of integers would be rounded otherwise")
    sizes = place.constant_ints(1, "output lengths")
    if all(size == 1 for size in sizes):
        axes = place.constant(np.arange(2, 2 + len(sizes)), name="axes")
        return place.op("ReduceMean-1", place.inputs[0], axes, keep_dims=True)
    return place.op("AvgPool-1", place.inputs[0], **_windows(place, sizes), exclude_pad=True)


@lowers("AdaptiveMaxPool-8")
def adaptive_maximum(place: Place, op: Any) -> Lowered:
    """Use max pooling with equal windows."""
    if place.is_read[1]:
        place.refuse("MaxPool-1 has no indices")
    sizes = place.constant_ints(1, "output lengths")
    return place.op("MaxPool-1", place.inputs[0], **_windows(place, sizes))


def _windows(place: Place, sizes: Sequence[int]) -> dict[str, Any]:
    """Return pooling attributes for that many equal windows along each axis."""
    lengths = place.dims()[2:]
    pairs = list(zip(lengths, sizes, strict=True))
    if any(size == 0 or length % size for length, size in pairs):
        place.refuse(f"{list(lengths)} cannot be divided into {list(sizes)} windows of equal lengths")
    kernel = tuple(length // size for length, size in pairs)
    none = (0,) * len(kernel)
    return {"kernel": kernel, "strides": kernel, "pads_begin": none, "pads_end": none}
