"""Operations whose previous version gives the same results if the attributes added since are at their defaults."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...ir.element import ElementType
from .place import Lowered, Place, as_former, lowers

__all__: list[str] = []

lowers(
    "AvgPool-14",
    "AvgPool-16",
    "DeformableConvolution-8",
    "MaxPool-8",
    "MaxPool-14",
    "MulticlassNms-9",
    "NonMaxSuppression-9",
    "OneHot-16",
    "PriorBox-8",
    "ROIAlign-9",
    "ScatterNDUpdate-15",
    "Squeeze-15",
    "TopK-11",
)(as_former)


@lowers("SoftMax-8")
def soft_max(place: Place, op: Any) -> Lowered:
    """Make a negative axis non-negative."""
    if place.rank() == 0:
        place.refuse("SoftMax-1 takes no scalars")
    return place.op("SoftMax-1", *place.inputs, axis=op.axis % place.rank())


@lowers("Pad-12")
def pad(place: Place, op: Any) -> Lowered:
    """Refuse negative padding, which crops: Pad-1 has none."""
    for index in (1, 2):
        if min(place.constant_ints(index, "numbers of padding"), default=0) < 0:
            place.refuse("Pad-1 has no negative padding")
    return place.op("Pad-1", *place.inputs, pad_mode=op.pad_mode)


@lowers("ScatterElementsUpdate-12")
def scatter_elements_update(place: Place, op: Any) -> Lowered:
    """Refuse reductions: ScatterElementsUpdate-3 only replaces elements."""
    if op.reduction != "none":
        place.refuse(f"ScatterElementsUpdate-3 has no reduction {op.reduction!r}")
    return place.op("ScatterElementsUpdate-3", *place.inputs)


@lowers("EmbeddingBagOffsets-15")
def embedding_bag_offsets(place: Place, op: Any) -> Lowered:
    """Refuse reductions other than the sum."""
    return _sum_bags(place, op, "EmbeddingBagOffsetsSum-3")


@lowers("EmbeddingBagPacked-15")
def embedding_bag_packed(place: Place, op: Any) -> Lowered:
    """Refuse reductions other than the sum."""
    return _sum_bags(place, op, "EmbeddingBagPackedSum-3")


def _sum_bags(place: Place, op: Any, former: str) -> Lowered:
    if op.reduction != "sum":
        place.refuse(f"{former} has no reduction {op.reduction!r}")
    return place.op(former, *place.inputs)


@lowers("DetectionOutput-8")
def detection_output(place: Place, op: Any) -> Lowered:
    """Compute the number of classes, an attribute of the previous version, from the lengths of the inputs."""
    priors = place.dims(2)[-1] // (4 if op.normalized else 5)
    classes = place.dims(1)[-1] // max(priors, 1)
    return place.op("DetectionOutput-1", *place.inputs, num_classes=classes, **op.attributes())


@lowers("Interpolate-11")
def interpolate(place: Place, op: Any) -> Lowered:
    """Pass ones as the sizes or scales that the mode does not use: Interpolate-4 takes both."""
    if op.mode in ("bilinear_pillow", "bicubic_pillow"):
        place.refuse(f"Interpolate-4 has no mode {op.mode!r}")
    data, target, *axes = place.inputs
    count = place.dims(1)[0]
    if op.shape_calculation_mode == "sizes":
        sizes, scales = target, place.constant(np.ones(count), ElementType.f32, "scales")
    else:
        sizes, scales = place.constant(np.ones(count, np.int64), name="sizes"), target
    return place.op("Interpolate-4", data, sizes, scales, *axes, **op.attributes())
