"""The operations that opset10 added, as functions that create them. Written by ``make index``."""

from __future__ import annotations

from collections.abc import Sequence

from ..api.building.factories import NodeInput, make
from ..api.nodes import Node

__all__ = [
    "interpolate",
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
