"""Messages for invalid shape operations."""

from __future__ import annotations

import numpy as np
from harness.refusals import refusal
from harness.sample import ints

REFUSALS = [
    refusal("Reshape: too many elements", "Reshape-1", "f32 2,3", [4], special_zero=False),
    refusal("Reshape: no length for -1", "Reshape-1", "f32 2,3", [4, -1], special_zero=False),
    refusal("Reshape: no length for -1 beside 0", "Reshape-1", "f32 2,3", [0, -1], special_zero=False),
    refusal("Reshape: at most so many elements", "Reshape-1", "f32 2,1..3", [5, 2], special_zero=False),
    refusal("Reshape: two of -1", "Reshape-1", "f32 2,3", [-1, -1], special_zero=False),
    refusal("Reshape: a negative length", "Reshape-1", "f32 2,3", [-2, 3], special_zero=False),
    refusal("Reshape: nothing to copy", "Reshape-1", "f32 2,3", [2, 3, 0], special_zero=True),
    refusal("Reshape: shape of two axes", "Reshape-1", "f32 2,3", "i64 1,2", special_zero=False),
    refusal("Reshape: type of shape", "Reshape-1", "f32 2,3", "f32 1", special_zero=False),
    refusal("Squeeze: axis", "Squeeze-1", "f32 1,3", [2]),
    refusal("Squeeze: axes of two axes", "Squeeze-15", "f32 1,3", "i64 1,2"),
    refusal("Unsqueeze: axis", "Unsqueeze-1", "f32 1,3", [4]),
    refusal("Unsqueeze: an axis twice", "Unsqueeze-1", "f32 1,3", [0, -4]),
    refusal("Unsqueeze: no axes", "Unsqueeze-1", "f32 1,3", ints()),
    refusal("Reshape: a batch baked in", "Reshape-1", "f32 8,1280,1,1", [1, 1280], special_zero=False),
    refusal(
        "Reshape: a batch baked in that a 0 could copy",
        "Reshape-1",
        "f32 8,1280,1,1",
        [1, 1280],
        special_zero=True,
    ),
    refusal(
        "Reshape: too many elements when run",
        "Reshape-1",
        np.zeros(6, np.float32),
        [4],
        special_zero=False,
        _run=True,
    ),
    refusal("ShapeOf: type", "ShapeOf-3", "f32 2,3", output_type="u8"),
]
