"""Samples of image operations: sampling at given points."""

from __future__ import annotations

from typing import Any

import numpy as np
from harness.sample import Sample, case, numbers

IMAGE = numbers(1, 2, 4, 5)
GRID = numbers(1, 3, 6, 2, low=-1.6, high=1.6)
FAR = numbers(1, 3, 4, 2, low=-9, high=9)
# The outermost points, and those between two pixels.
EDGES = np.array([-1, -0.75, -0.5, -0.25, 0, 0.25, 0.5, 0.75, 1], "f4")
CORNERS = np.stack(np.meshgrid(EDGES, EDGES), -1)[None]

# What the reference leaves out is asked of the plugin, which computes f64 as f32.
F64 = {"_oracle": "plugin", "_rtol": 1e-6, "_atol": 1e-5, "_differs": "the plugin computes f64 as f32"}


def sample(data: Any, grid: Any, **attributes: Any) -> Sample:
    return case("GridSample-9", data, grid, **attributes)


SAMPLES = [
    *(
        sample(IMAGE, grid, mode=mode, padding_mode=padding, align_corners=align)
        for mode in ("bilinear", "bicubic", "nearest")
        for padding in ("zeros", "border", "reflection")
        for align in (False, True)
        for grid in (GRID, FAR, CORNERS)
    ),
    sample(IMAGE, GRID),
    *(
        sample(numbers(2, 1, 1, 3), numbers(2, 2, 2, 2), padding_mode="reflection", align_corners=align)
        for align in (False, True)
    ),
    sample(numbers(0, 2, 3, 3), numbers(0, 2, 2, 2)),
    sample(IMAGE, numbers(1, 0, 2, 2)),
    sample(IMAGE, np.array([[[[np.nan, 0], [0.2, np.nan]]]], "f4"), mode="bilinear"),
    *(
        sample(numbers(1, 2, 4, 5, dtype=dtype), GRID, mode=mode)
        for dtype in ("f16", "bf16")
        for mode in ("bilinear", "bicubic", "nearest")
    ),
    *(
        sample(numbers(1, 2, 4, 5, dtype=dtype, low=-100, high=100), GRID, mode="nearest")
        for dtype in ("i8", "u8", "i32", "i64", "boolean")
    ),
    *(
        sample(numbers(1, 2, 4, 5, dtype="i32", low=-100, high=100), GRID, mode=mode)
        for mode in ("bilinear", "bicubic")
    ),
    sample(IMAGE, GRID.astype("f2")),
    *(
        sample(numbers(1, 2, 4, 5, dtype="f64"), GRID, mode=mode, **F64)
        for mode in ("bilinear", "bicubic", "nearest")
    ),
]
