"""Samples of image operations: colour conversions."""

from __future__ import annotations

from typing import Any

import numpy as np
from harness.sample import Sample, case, numbers

from ir_runtime.ir.tensor import Array


def plane(*shape: int, dtype: str = "u8") -> Array:
    return numbers(*shape, dtype=dtype, low=0, high=255)


NV12 = ("NV12toRGB-8", "NV12toBGR-8")
I420 = ("I420toRGB-8", "I420toBGR-8")
BACK = ("RGBtoNV12-17", "BGRtoNV12-17")
DTYPES = ("u8", "f32", "f16", "bf16")

# OpenVINO declares conversions to NV12, but implements them neither in its reference nor in the plugin.
NOT_RUN = "OpenVINO cannot run it"
# The reference is not part of OpenVINO; the plugin computes f64 as f32.
F64 = {"_oracle": "plugin", "_rtol": 1e-6, "_atol": 1e-4, "_differs": "the plugin computes f64 as f32"}


def rounded(x: float, whole: bool) -> float:
    limited = min(max(x, 0.0), 255.0)
    return float(int(limited + 0.5)) if whole else limited


def back(op: str, pixels: Array, **attributes: Any) -> Sample:
    """A conversion to NV12, computed pixel by pixel."""
    n, h, w, _ = pixels.shape
    whole = pixels.dtype.kind == "u"
    y, uv = np.zeros((n, h, w, 1)), np.zeros((n, h // 2, w // 2, 2))
    for i, row, column in np.ndindex(n, h, w):
        r, g, b = map(float, pixels[i, row, column][:: -1 if op.startswith("B") else 1])
        y[i, row, column, 0] = rounded(0.257 * r + 0.504 * g + 0.098 * b + 16, whole)
        u = rounded(-0.148 * r - 0.291 * g + 0.439 * b + 128, whole)
        v = rounded(0.439 * r - 0.368 * g - 0.071 * b + 128, whole)
        uv[i, row // 2, column // 2] += np.array([u, v]) / 4
    uv = np.floor(uv + 0.5) if whole else uv
    planes = (
        (y, uv)
        if attributes.get("single_plane") is False
        else (np.concatenate([y, uv.reshape(n, h // 2, w, 1)], 1),)
    )
    expected = tuple(p.astype(pixels.dtype) for p in planes)
    return case(op, pixels, **attributes, _oracle="none", _differs=NOT_RUN, _expect=expected)


SAMPLES = [
    *(
        case(op, plane(n, 3 * h, 2 * w, 1))
        for op in NV12 + I420
        for n, h, w in ((1, 2, 3), (2, 4, 1), (1, 1, 1), (0, 2, 2))
    ),
    *(case(op, plane(2, 6, 4, 1, dtype=dtype)) for op in NV12 + I420 for dtype in DTYPES[1:]),
    *(
        case(op, plane(2, 4, 6, 1, dtype=dtype), plane(2, 2, 3, 2, dtype=dtype))
        for op in NV12
        for dtype in DTYPES
    ),
    *(
        case(
            op,
            plane(2, 4, 6, 1, dtype=dtype),
            plane(2, 2, 3, 1, dtype=dtype),
            numbers(2, 2, 3, 1, dtype=dtype, low=0, high=255, seed=1),
        )
        for op in I420
        for dtype in DTYPES
    ),
    *(case(op, plane(1, 3, 2, 1, dtype="f64"), **F64) for op in NV12 + I420),
    *(
        case(
            op,
            np.full((1, 3, 2, 1), np.nan, "f4"),
            _oracle="none",
            _differs="the plugin makes 0 of NaN, the reference's arithmetic keeps it",
            _expect=(np.full((1, 2, 2, 3), np.nan, "f4"),),
        )
        for op in NV12 + I420
    ),
    *(case(op, numbers(1, 3, 2, 1, low=-400, high=600)) for op in NV12 + I420),
    *(
        back(op, plane(n, h, w, 3, dtype=dtype), single_plane=single)
        for op in BACK
        for n, h, w in ((1, 2, 2), (2, 4, 6))
        for dtype in (*DTYPES, "f64")
        for single in (True, False)
    ),
    *(back(op, numbers(1, 4, 2, 3, low=-400, high=600)) for op in BACK),
    *(back(op, np.zeros((0, 4, 2, 3), "u1"), single_plane=single) for op in BACK for single in (True, False)),
]
