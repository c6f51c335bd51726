"""The operations that opset11 added, as functions that create them. Written by ``make index``."""

from __future__ import annotations

from collections.abc import Sequence

from ..api.building.factories import NodeInput, TypeLike, make
from ..api.nodes import Node

__all__ = [
    "interpolate",
    "topk",
]


def interpolate(
    image: NodeInput,
    scales_or_sizes: NodeInput,
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
    """Interpolate-11: As version 4, with two modes more, and sizes or scales on one port.

    Args:
        image: tensor to resize.
        scales_or_sizes: new lengths or factors of lengths, as shape_calculation_mode says.
        mode: how to compute elements between those there are: as the nearest one; from the nearest two along
            each axis, as TensorFlow or ONNX do; from four; or as the library Pillow, from all that become
            one, along exactly two axes.
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
        11,
        [image, scales_or_sizes, axes],
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


def topk(
    data: NodeInput,
    k: NodeInput,
    axis: int,
    mode: str,
    sort: str,
    index_element_type: TypeLike = "i32",
    stable: bool = False,
    name: str | None = None,
) -> Node:
    """TopK-11: The ``k`` largest or smallest elements of ``data`` along an axis, and their indices.

    Args:
        data: tensor to choose from.
        k: scalar: how many elements to choose, at least 1.
        axis: axis to choose along; a negative one counts from the end.
        mode: whether to choose the largest or the smallest.
        sort: value: best first; index: in the order of the data; none: in any order, here as value.
        index_element_type: element type of the indices, i64 or i32.
        stable: whether equal elements keep their order; here they always do.
        name: the name of the node.
    """
    return make(
        "TopK",
        11,
        [data, k],
        {
            "axis": axis,
            "mode": mode,
            "sort": sort,
            "index_element_type": index_element_type,
            "stable": stable,
        },
        name,
    )
