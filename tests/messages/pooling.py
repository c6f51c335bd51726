"""Messages for invalid pooling layers."""

from __future__ import annotations

from typing import Any

from harness.refusals import Refusal, refusal

LINE: dict[str, Any] = {"kernel": (3,), "strides": (1,), "pads_begin": (0,), "pads_end": (0,)}
PLANE: dict[str, Any] = {"kernel": (1, 3), "strides": (1, 1), "pads_begin": (0, 0), "pads_end": (0, 0)}


def largest(name: str, data: str, **attributes: Any) -> Refusal:
    return refusal(name, "MaxPool-8", data, **LINE | attributes)


REFUSALS = [
    largest("kernel too long", "f32 1,2,2"),
    largest("kernel too long by dilation", "f32 1,2,9,..8", **PLANE | {"dilations": (1, 4)}),
    largest("rank of the attributes", "f32 1,2,8,8"),
    largest("rank of the data", "f32 2,8"),
    largest("axis", "f32 1,2,8", axis=3),
    largest("kernel and strides", "f32 1,2,8", kernel=(2, 2)),
    largest("dilations", "f32 1,2,8", dilations=(1, 1)),
    largest("type of the indices", "f32 1,2,8", index_element_type="u8"),
    largest("rounding of later versions", "f32 1,2,8", rounding_type="ceil_torch"),
    refusal("padding alone", "AvgPool-14", "f32 1,2,8", **LINE | {"exclude-pad": "true", "pads_end": (3,)}),
    refusal("adaptive: rank of the data", "AdaptiveAvgPool-8", "f32 1,2", [3]),
    refusal("adaptive: too many windows", "AdaptiveAvgPool-8", "f32 ...", [3, 3, 3, 3]),
    refusal("adaptive: windows", "AdaptiveAvgPool-8", "f32 1,2,5", [3, 3]),
    refusal("adaptive: windows for N and C", "AdaptiveMaxPool-8", "f32 1,2,5", [1, 2, 3]),
    refusal("adaptive: nothing to pool", "AdaptiveMaxPool-8", "f32 1,2,0", [3]),
    refusal("adaptive: below 0", "AdaptiveAvgPool-8", "f32 1,2,5", [-1]),
    refusal("adaptive: type of the indices", "AdaptiveMaxPool-8", "f32 1,2,5", [3], index_element_type="u8"),
]
