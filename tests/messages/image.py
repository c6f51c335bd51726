"""Messages for invalid image operations."""

from __future__ import annotations

from typing import Any

import numpy as np
from harness.refusals import Refusal, refusal

IMAGE = "f32 1,3,8,9"


def to_sizes(name: str, data: Any, *more: Any, **attributes: Any) -> Refusal:
    how = {"mode": "nearest", "shape_calculation_mode": "sizes"}
    return refusal(name, "Interpolate-11", data, *more, **how | attributes)


def by_scales(name: str, *more: Any) -> Refusal:
    return to_sizes(name, IMAGE, *more, shape_calculation_mode="scales")


def first_version(name: str, data: Any, target: Any, axes: tuple[int, ...] = (2, 3)) -> Refusal:
    return refusal(name, "Interpolate-1", data, target, axes=axes, mode="nearest")


REFUSALS = [
    to_sizes("too few sizes", IMAGE, [2], [2, 3]),
    to_sizes("too few sizes without axes", IMAGE, [2, 3]),
    to_sizes("size below 0", IMAGE, [2, -2], [2, 3]),
    to_sizes("axis below 0", IMAGE, [2, 2], [2, -1]),
    to_sizes("axis beyond the rank", IMAGE, [2, 2], [2, 4]),
    to_sizes("axis named twice", IMAGE, [2, 2], [2, 2]),
    to_sizes("rank of sizes", IMAGE, [[2, 2]], [2, 3]),
    to_sizes("rank of axes", IMAGE, [2, 2], [[2, 3]]),
    to_sizes("scales for sizes", IMAGE, np.float32([2, 2]), [2, 3]),
    to_sizes("nothing to resize", "f32 1,3,0,9", [4, 4], [2, 3]),
    to_sizes("one axis in the way of Pillow", IMAGE, [2], [2], mode="bilinear_pillow"),
    by_scales("sizes for scales", [2, 2], [2, 3]),
    by_scales("scale below 0", np.float32([2, -1]), [2, 3]),
    by_scales("scale that is no number", np.float32([2, np.nan]), [2, 3]),
    refusal(
        "ports of version 4", "Interpolate-4", IMAGE, [2], np.float32([1, 1]), [2, 3],
        mode="nearest", shape_calculation_mode="sizes",
    ),
    first_version("target of version 1", IMAGE, [2]),
    first_version("axis of version 1", IMAGE, [2, 2], (2, 4)),
    first_version("nothing to resize in version 1", "f32 1,3,0,9", [2, 2]),
    refusal("rank to sample", "GridSample-9", "f32 1,2,3", "f32 1,4,4,2"),
    refusal("coordinates", "GridSample-9", IMAGE, "f32 1,4,4,3"),
    refusal("batch size", "GridSample-9", IMAGE, "f32 2,4,4,2"),
    refusal("no pixels", "GridSample-9", "f32 1,2,0,3", "f32 1,4,4,2"),
    refusal("rank of planes", "NV12toRGB-8", "u8 1,6,4"),
    refusal("channels of planes", "NV12toRGB-8", "u8 1,6,4,3"),
    refusal("height of all planes", "NV12toRGB-8", "u8 1,5,4,1"),
    refusal("odd width", "NV12toRGB-8", "u8 1,6,5,1"),
    refusal("batches of planes", "NV12toBGR-8", "u8 1,4,4,1", "u8 2,2,2,2"),
    refusal("heights of planes", "NV12toRGB-8", "u8 1,4,4,1", "u8 1,3,2,2"),
    refusal("two of three planes", "I420toRGB-8", "u8 1,4,4,1", "u8 1,2,2,1"),
    refusal("odd height", "RGBtoNV12-17", "u8 1,3,4,3", _outputs=1),
]  # fmt: skip
