"""The operations that opset10 added, as functions that create them. Written by ``make index``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..api.building.factories import NodeInput, TypeLike, make
from ..api.nodes import Node

__all__ = [
    "interpolate",
    "is_finite",
    "is_inf",
    "is_nan",
    "unique",
]


def interpolate(
    image: NodeInput,
    output_shape: NodeInput,
    scales: NodeInput,
    mode: str,
    shape_calculation_mode: str,
    pads_begin: Sequence[int] | None = None,
    pads_end: Sequence[int] | None = None,
    coordinate_transformation_mode: str = "half_pixel",
    nearest_mode: str = "round_prefer_floor",
    antialias: bool = False,
    cube_coeff: float = -0.75,
    axes: NodeInput | None = None,
    name: str | None = None,
) -> Node:
    """Interpolate-4: Resize ``data`` along ``axes`` to given ``sizes`` or by given ``scales``.

    Args:
        image: tensor to resize.
        output_shape: new lengths, for shape_calculation_mode sizes; else ignored.
        scales: factors of lengths, for shape_calculation_mode scales; else ignored.
        mode: how to compute elements between those there are: as the nearest one; from the nearest two along
            each axis, as TensorFlow or ONNX do; or from four.
        shape_calculation_mode: whether lengths are given, or what to multiply those of the padded data with;
            rounded down.
        pads_begin: zeros to add before each axis; none where it ends.
        pads_end: zeros to add behind each axis; none where it ends.
        coordinate_transformation_mode: where on the data an element lies; ignored by the pillow modes.
        nearest_mode: which element is nearest, for mode nearest; simple: the next one where the data shrinks,
            else the one before.
        antialias: for mode linear: wider averages where the data shrinks.
        cube_coeff: steepness of the curve of modes cubic and bicubic_pillow.
        axes: axes to resize, from 0; all when absent.
        name: the name of the node.
    """
    return make(
        "Interpolate",
        4,
        [image, output_shape, scales, axes],
        {
            "mode": mode,
            "shape_calculation_mode": shape_calculation_mode,
            "pads_begin": pads_begin,
            "pads_end": pads_end,
            "coordinate_transformation_mode": coordinate_transformation_mode,
            "nearest_mode": nearest_mode,
            "antialias": antialias,
            "cube_coeff": cube_coeff,
        },
        name,
    )


def is_finite(
    data: NodeInput,
    name: str | None = None,
) -> Node:
    """IsFinite-10: Whether ``data`` is neither infinite nor NaN.

    Args:
        data: numbers to look at.
        name: the name of the node.
    """
    return make(
        "IsFinite",
        10,
        [data],
        {},
        name,
    )


def is_inf(
    data: NodeInput,
    attributes: Mapping[str, Any] | None = None,
    name: str | None = None,
) -> Node:
    """IsInf-10: Whether ``data`` is infinite, on either side or on one.

    Args:
        data: numbers to look at.
        attributes: the attributes by name.
        name: the name of the node.
    """
    return make(
        "IsInf",
        10,
        [data],
        {
            **(attributes or {}),
        },
        name,
    )


def is_nan(
    data: NodeInput,
    name: str | None = None,
) -> Node:
    """IsNaN-10: Whether ``data`` is not a number.

    Args:
        data: numbers to look at.
        name: the name of the node.
    """
    return make(
        "IsNaN",
        10,
        [data],
        {},
        name,
    )


def unique(
    data: NodeInput,
    axis: NodeInput | None = None,
    sorted: bool = True,
    index_element_type: TypeLike = "i64",
    count_element_type: TypeLike = "i64",
    name: str | None = None,
) -> Node:
    """Unique-10: The different elements of ``data``, or the different slices of it along ``axis``.

    Args:
        data: tensor to look through.
        axis: one number; absent, elements of the flattened data are compared.
        sorted: whether unique is in ascending order; otherwise in that of the data.
        index_element_type: type of indices and inverse, i64 or i32.
        count_element_type: type of counts, i64 or i32.
        name: the name of the node.
    """
    return make(
        "Unique",
        10,
        [data, axis],
        {
            "sorted": sorted,
            "index_element_type": index_element_type,
            "count_element_type": count_element_type,
        },
        name,
    )
