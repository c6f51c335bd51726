"""Messages for invalid normalizations and quantizations."""

from __future__ import annotations

from typing import Any

from harness.refusals import Refusal, refusal

NORM: dict[str, Any] = {"eps": 1e-9, "eps_mode": "add"}
MEAN: dict[str, Any] = {"eps": 1e-9, "eps_mode": "inside_sqrt", "normalize_variance": True}
WINDOW: dict[str, Any] = {"alpha": 1, "beta": 1, "bias": 1, "size": 3}


def groups(name: str, *inputs: str) -> Refusal:
    return refusal(f"GroupNormalization: {name}", "GroupNormalization-12", *inputs, num_groups=2, epsilon=1)


def batch(name: str, *inputs: str) -> Refusal:
    return refusal(f"BatchNormInference: {name}", "BatchNormInference-5", *inputs, epsilon=1)


def quantized(name: str, data: str, limit: str, **attributes: Any) -> Refusal:
    return refusal(
        f"FakeQuantize: {name}", "FakeQuantize-1", data, *[limit] * 4, **{"levels": 2} | attributes
    )


REFUSALS = [
    refusal("NormalizeL2: axis", "NormalizeL2-1", "f32 2,3", [2], **NORM),
    refusal("NormalizeL2: an axis twice", "NormalizeL2-1", "f32 2,3", [1, -1], **NORM),
    refusal("NormalizeL2: axes of two axes", "NormalizeL2-1", "f32 2,3", [[1]], **NORM),
    refusal("NormalizeL2: eps", "NormalizeL2-1", "f32 2,3", [1], **NORM | {"eps": 0}),
    refusal("MVN: axis", "MVN-6", "f32 2,3", [2], **MEAN),
    refusal("MVN: too many axes", "MVN-6", "f32 2,3", "i64 3", **MEAN),
    refusal("MVN: axes without a list", "MVN-6", "f32 2,3", 1, **MEAN),
    refusal(
        "MVN: axes in an attribute", "MVN-1", "f32 2,3", reduction_axes=(2,), normalize_variance=True, eps=1
    ),
    refusal("LRN: axis", "LRN-1", "f32 2,3", [-3], **WINDOW),
    refusal("GRN: rank", "GRN-1", "f32 1,2,3,4,5", bias=1),
    groups("rank", "f32 4", "f32 4", "f32 4"),
    groups("scale of two axes", "f32 1,4", "f32 4,1", "f32 4"),
    groups("scale", "f32 1,4", "f32 3", "f32 4"),
    groups("bias", "f32 ...", "f32 4", "f32 2"),
    groups("groups", "f32 1,3,8", "f32 3", "f32 ?"),
    groups("too few channels", "f32 1,..1,8", "f32 ?", "f32 ?"),
    batch("rank", "f32 4", "f32 4", "f32 4", "f32 4", "f32 4"),
    batch("variance", "f32 1,4", "f32 4", "f32 4", "f32 4", "f32 3"),
    batch("no channels", "f32 1,0", "f32 ?", "f32 ?", "f32 ?", "f32 ?"),
    quantized("lengths of limits", "f32 2,3", "f32 2"),
    quantized("limits that would stretch the data", "f32 1,3", "f32 2,3"),
    quantized("too many axes of limits", "f32 3", "f32 2,3"),
    quantized("lengths of pdpd", "f32 2,3", "f32 3", auto_broadcast="pdpd"),
    quantized("lengths without broadcasting", "f32 2,3", "f32 1,3", auto_broadcast="none"),
    quantized("levels", "f32 2,3", "f32", levels=1),
    refusal("FakeConvert: scale", "FakeConvert-13", "f32 2,3", "f32 2", destination_type="f8e4m3"),
    refusal(
        "FakeConvert: axes of the scale", "FakeConvert-13", "f32 2,3", "f32 1,1,1", destination_type="f8e4m3"
    ),
    refusal("FakeConvert: shift", "FakeConvert-13", "f32 2,3", "f32 3", "f32", destination_type="f8e4m3"),
    refusal("FakeConvert: type", "FakeConvert-13", "f32 2,3", "f32", destination_type="f8e4m2"),
]
