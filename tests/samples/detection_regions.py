"""Samples of ROI and PSROI pooling and YOLO layers: modes, bins, regions outside the image, offsets, strides."""

from __future__ import annotations

from typing import Any

import numpy as np
from harness.sample import Sample, case, numbers

from ir_runtime.ir.element import ElementType
from ir_runtime.ir.tensor import Array

PLUGIN: dict[str, Any] = {"_oracle": "plugin"}
F64 = PLUGIN | {"_rtol": 1e-5, "_atol": 1e-5}
REGIONS = np.array(
    [
        [0, 0, 0, 7, 7],
        [1, 1.3, 2.6, 6.7, 5.9],
        [0, 2, 3, 3, 4],
        [1, 4, 4, 12, 14],
        [0, 5, 5, 3, 2],
        [1, 2.5, 3.5, 6.5, 7.5],
    ],
    "f4",
)
# In parts of the image.
PARTS = np.array(
    [[0, 0, 0, 1, 1], [1, 0.1, 0.2, 0.7, 0.9], [0, 0.25, 0.25, 0.5, 0.75], [1, 0.4, 0.3, 0.4, 0.3]], "f4"
)


def typed(op: str, *inputs: Array, dtype: str = "f32", **attributes: Any) -> Sample:
    to = ElementType.parse(dtype).dtype
    return case(op, *(x.astype(to) for x in inputs), **(F64 if dtype == "f64" else PLUGIN), **attributes)


def pool(rois: Array = REGIONS, data: Array | None = None, dtype: str = "f32", **changed: Any) -> Sample:
    plain: dict[str, Any] = {"pooled_h": 3, "pooled_w": 2, "spatial_scale": 1.0, "method": "max"} | changed
    data = numbers(2, 3, 8, 9) if data is None else data
    return typed("ROIPooling-1", data, rois, dtype=dtype, **plain)


HOLED = numbers(2, 3, 8, 9)
HOLED[1, 1, 3, 3] = np.nan
ENDED = np.array([[0, 0, 0, 7, 7], [-1, 0, 0, 0, 0], [0, 0, 0, 7, 7]], "f4")
POOLED = [
    pool(),
    pool(spatial_scale=0.5),
    pool(spatial_scale=0.0625),
    pool(pooled_h=1, pooled_w=1),
    pool(pooled_h=7, pooled_w=7),
    pool(data=-np.abs(numbers(2, 3, 8, 9)) - 1),
    pool(rois=ENDED),
    pool(rois=PARTS, method="bilinear"),
    pool(rois=PARTS, method="bilinear", pooled_h=1, pooled_w=1),
    pool(rois=PARTS, method="bilinear", pooled_h=5, pooled_w=4),
    pool(rois=PARTS[:1] * 1.5, method="bilinear"),
    *(pool(dtype=dtype) for dtype in ("f16", "bf16", "f64")),
    pool(rois=PARTS, method="bilinear", dtype="f64"),
    pool(pooled_h=2, output_size=(2, 2), output_roi=(2, 2)),
    # Bins that are empty along one axis only.
    pool(rois=np.array([[0, 7, 0, 20, 3], [1, 0, 6, 3, 20]], "f4"), _always=True),
]


def sensitive(
    rois: Array = REGIONS,
    dtype: str = "f32",
    bins: tuple[int, int] = (1, 1),
    height: int = 8,
    **changed: Any,
) -> Sample:
    plain: dict[str, Any] = {"output_dim": 2, "group_size": 3, "spatial_scale": 1.0, "mode": "average"}
    plain |= {"spatial_bins_x": bins[0], "spatial_bins_y": bins[1]} | changed
    parts = bins[0] * bins[1] if plain["mode"] == "bilinear" else plain["group_size"] ** 2
    data = numbers(2, plain["output_dim"] * parts, height, 9)
    return typed("PSROIPooling-1", data, rois, dtype=dtype, **plain)


BETWEEN: dict[str, Any] = {"mode": "bilinear", "bins": (2, 3), "rois": PARTS}
# With 9 rows and columns, points at -1 and 9, of which none counts.
AROUND = np.array([[0, -0.125, 0.25, 1.125, 0.5], [1, 0.25, -0.125, 0.5, 1.125]], "f4")
SENSITIVE = [
    sensitive(REGIONS[:3]),
    sensitive(REGIONS[:3], spatial_scale=0.5),
    sensitive(REGIONS[:2], group_size=1, output_dim=4),
    sensitive(REGIONS[:2], group_size=5),
    sensitive(REGIONS[5:]),
    sensitive(**BETWEEN),
    sensitive(**BETWEEN, group_size=1),
    sensitive(**BETWEEN | {"bins": (1, 1)}, group_size=4),
    sensitive(**BETWEEN | {"bins": (3, 1)}, spatial_scale=0.5),
    *(sensitive(REGIONS[:2], dtype=dtype) for dtype in ("f16", "bf16", "f64")),
    sensitive(REGIONS[:2], output_dim=1, bins=(0, 0)),
    sensitive(AROUND, mode="bilinear", height=9, _always=True),
]


def deformed(rois: Array = REGIONS, moves: int = 0, dtype: str = "f32", **changed: Any) -> Sample:
    plain: dict[str, Any] = {
        "output_dim": 4,
        "group_size": 3,
        "spatial_scale": 1.0,
        "mode": "bilinear_deformable",
    }
    plain |= {"spatial_bins_x": 2, "spatial_bins_y": 3, "trans_std": 0.2, "part_size": 3} | changed
    inputs = [numbers(2, plain["output_dim"] * plain["group_size"] ** 2, 8, 9), rois]
    if moves:
        inputs.append(numbers(len(rois), moves * 2, plain["part_size"], plain["part_size"], seed=3))
    return typed("DeformablePSROIPooling-1", *inputs, dtype=dtype, **plain)


DEFORMED = [
    deformed(),
    deformed(spatial_bins_x=1, spatial_bins_y=1),
    deformed(spatial_scale=0.5),
    deformed(moves=1),
    deformed(moves=2),
    deformed(moves=4, trans_std=1.0),
    deformed(moves=2, part_size=2),
    deformed(moves=1, part_size=1, group_size=2),
    deformed(moves=2, group_size=4, part_size=2, output_dim=2),
    *(deformed(REGIONS[:3], moves=1, dtype=dtype) for dtype in ("f16", "bf16", "f64")),
    deformed(output_dim=1, group_size=1),
    # Points half an element behind the last row and column, which count.
    deformed(
        np.array([[0, 5, 4, 12, 11]], "f4"), group_size=2, spatial_bins_x=1, spatial_bins_y=1, _always=True
    ),
]


def region(channels: int, dtype: str = "f32", **changed: Any) -> Sample:
    plain: dict[str, Any] = {
        "axis": 1,
        "end_axis": 3,
        "coords": 4,
        "classes": 3,
        "num": 2,
        "do_softmax": True,
    }
    return typed("RegionYolo-1", numbers(2, channels, 3, 4), dtype=dtype, **plain | changed)


MASKED: dict[str, Any] = {"do_softmax": False, "mask": (0, 1, 2)}
YOLO = [
    region(16),
    region(16, anchors=(1.5, 2.0, 3.0, 4.0)),
    region(16, end_axis=2),
    region(16, axis=0, end_axis=-1),
    region(16, axis=2, end_axis=3),
    region(16, axis=1, end_axis=1),
    region(24, **MASKED),
    region(16, do_softmax=False, mask=(3, 5)),
    region(18, coords=4, classes=1, num=3),
    region(27, coords=5, **MASKED),
    *(region(16, dtype=dtype) for dtype in ("f16", "bf16", "f64")),
    region(3, coords=2, classes=0, num=1),
]
REORG = [
    typed("ReorgYolo-1", numbers(1, 8, 4, 6), dtype="f64", stride=2),
    *(
        case("ReorgYolo-1", numbers(2, c, 2 * s, 3 * s), stride=s)
        for c, s in ((4, 2), (8, 2), (9, 3), (18, 3), (2, 1), (5, 2), (11, 3))
    ),
    *(
        case("ReorgYolo-1", numbers(1, 8, 4, 6, dtype=dtype), stride=2)
        for dtype in ("f16", "bf16", "i64", "i32", "i8", "u8", "boolean")
    ),
]

SAMPLES = [*POOLED, *SENSITIVE, *DEFORMED, *YOLO, *REORG]
