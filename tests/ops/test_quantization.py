"""Quantization: invalid limits, and bounds on the data that follow from limits."""

from __future__ import annotations

from harness.sample import value

from ir_runtime.ops.quantization import FakeConvert, FakeQuantize


def inferred(data: str, *limits: str, rule: str = "numpy") -> str:
    (found,) = FakeQuantize(levels=4, auto_broadcast=rule).infer_types(*map(value, (data, *limits)))
    return str(found)


def converted(*inputs: str) -> str:
    (found,) = FakeConvert(destination_type="f8e5m2").infer_types(*map(value, inputs))
    return str(found)


def test_limits_tell_of_the_data() -> None:
    assert inferred("f32 ?,?,?", "f32 3,1", "f32", "f32 ?,1,1", "f32 1,4") == "f32[?,3,4]"
    assert inferred("f32 ?,?,?", "f32 2,3", *["f32 2"] * 3, rule="pdpd") == "f32[2,3,?]"
    assert inferred("f16 ...", *["f16 1,3,1"] * 4) == "f16[...]"
    assert inferred("f32 ...", *["f32 1,?,3"] * 4, rule="none") == "f32[1,?,3]"
    assert inferred("f32 2,3", *["f32 1,1,1,?"] * 4) == "f32[2,3]"


def test_scale_tells_of_the_data() -> None:
    assert converted("f32 ?,?", "f32 3") == "f32[?,3]"
    assert converted("bf16 ...", "bf16 3,1") == "bf16[...]"
    assert converted("f16 ?,?,?", "f16 ?,1", "f16 3,?") == "f16[?,3,?]"
