"""Samples of region features: sampling ratios, modes, regions outside the image, malformed and rotated ones."""

from __future__ import annotations

from typing import Any

import numpy as np
from harness.sample import Sample, case, ints, numbers

from ir_runtime.ir.element import ElementType
from ir_runtime.ir.tensor import Array

REGIONS = np.array(
    [[0, 0, 4, 4], [1.3, 2.1, 6.7, 7.9], [-3, -2, 3, 3], [5, 5, 20, 20], [3, 3, 2, 1], [2, 2, 2, 2]], "f4"
)
ROTATED = np.array(
    [[4, 4, 4, 3, 0], [3.3, 4.1, 6, 2, 0.7], [1, 1, 8, 8, -1.2], [7, 5, 3, 9, 3], [4, 4, 0.5, 0.2, 0.3]], "f4"
)
WHERE = ints(0, 1, 0, 1, 0, 1)
LOW: dict[str, Any] = {"_oracle": "plugin"}
# f32 is as good as the reference's and the plugin's f16 may be: they take coordinates in it, too.


def align(name: str, data: Array, rois: Array, where: Array, **changed: Any) -> Sample:
    plain: dict[str, Any] = {"pooled_h": 3, "pooled_w": 2, "sampling_ratio": 2, "spatial_scale": 1.0}
    if name != "ROIAlignRotated-15":
        plain["mode"] = "avg"
    return case(name, data, rois, where, **plain | changed)


def common(name: str, rois: Array) -> list[Sample]:
    data, where = numbers(2, 3, 8, 9), WHERE[: len(rois)]
    holed = data.copy()
    holed[1, 1, 3, 3] = np.nan  # not in the corner, which OpenVINO takes times 0 for points outside
    short = [ElementType.parse(e).dtype for e in ("f16", "bf16")]
    return [
        *(align(name, data, rois, where, sampling_ratio=ratio) for ratio in (0, 1, 2, 3)),
        *(
            align(name, data, rois, where, spatial_scale=scale, sampling_ratio=0)
            for scale in (0.5, 2.0, 0.0625)
        ),
        align(name, data, rois, where.astype("i4"), pooled_h=1, pooled_w=1),
        align(name, data, rois, where.astype("u1"), pooled_h=7, pooled_w=7, sampling_ratio=1),
        align(name, data[:1, :, :1, :1], rois[:2], ints(0, 0)),
        align(name, data[:1, :, :1], rois[:2], ints(0, 0)),
        align(name, data, rois[:1], where[:1]),
        align(name, holed, rois, where),
        *(align(name, data.astype(t), rois.astype(t), where, **LOW) for t in short if rois.shape[1] == 4),
    ]


def in_f64(name: str) -> Sample:
    """A sample in f64, which the plugin computes in f32."""
    data = numbers(2, 3, 8, 9, dtype="f64")
    return align(name, data, REGIONS.astype("f8"), WHERE, **LOW, _rtol=1e-5, _atol=1e-5)


def modes(name: str) -> list[Sample]:
    data = numbers(2, 3, 8, 9, seed=1)
    return [
        *(align(name, data, REGIONS, WHERE, mode="max", sampling_ratio=ratio) for ratio in (0, 1, 2)),
        align(name, -np.abs(data), REGIONS, WHERE, mode="max"),
    ]


ALIGNED = [
    align("ROIAlign-9", numbers(2, 3, 8, 9), REGIONS[:4], WHERE[:4], aligned_mode=aligned, **more)
    for aligned in ("asymmetric", "half_pixel_for_nn", "half_pixel")
    for more in (
        {},
        {"sampling_ratio": 0, "spatial_scale": 0.5},
        {"mode": "max", "spatial_scale": 1.5},
        {"mode": "max", "sampling_ratio": 0},
    )
]
TURNED = [
    align("ROIAlignRotated-15", numbers(2, 3, 8, 9), ROTATED, WHERE[:5], clockwise_mode=clockwise, **more)
    for clockwise in (True, False)
    for more in ({"pooled_h": 4}, {"sampling_ratio": 0, "spatial_scale": 0.5})
]

# Columns of a map that holds the number of its column; a bin 2 wide has 2.5 or 4.5 in its middle.
RAMP = np.broadcast_to(np.arange(9.0), (1, 1, 8, 9))
TURNED += [
    align(
        "ROIAlignRotated-15",
        RAMP.astype(dtype),
        np.array([[4, 4, 4, 4, 0]], dtype),
        ints(0),
        _oracle="none",
        _differs="the plugin takes f32 only: with less, it corrupts memory",
        _expect=(np.broadcast_to(np.array([2.5, 4.5]), (1, 1, 3, 2)).astype(dtype),),
    )
    for dtype in (ElementType.parse(e).dtype for e in ("f16", "bf16", "f64"))
]

# Regions of 2 by 2 whose only point is as far outside of a map of 8 by 9 as one may be, on one side or on two; the last two beyond.
EDGES = np.array(
    [(3, -1), (3, 9), (-1, 4), (8, 4), (-1, -1), (8, 9), (3, -1.0625), (8.0625, 4)], "f4"
)  # rows and columns


def at_the_edges(name: str) -> Sample:
    y, x = EDGES.T
    corners = np.stack([x - 1, y - 1, x + 1, y + 1], 1)
    turned = np.stack([x + 0.5, y + 0.5, *np.broadcast_to(np.float32([[2], [2], [0]]), (3, len(x)))], 1)
    rois = turned if name == "ROIAlignRotated-15" else corners
    where = ints(*[0, 1] * 4)
    return align(name, numbers(2, 3, 8, 9, seed=2), rois, where, pooled_h=1, pooled_w=1, sampling_ratio=1)


SAMPLES = [
    *map(at_the_edges, ("ROIAlign-3", "ROIAlign-9", "ROIAlignRotated-15")),
    *(
        s
        for name in ("ROIAlign-3", "ROIAlign-9")
        for s in (*common(name, REGIONS), *modes(name), in_f64(name))
    ),
    *ALIGNED,
    *common("ROIAlignRotated-15", ROTATED),
    *TURNED,
]
