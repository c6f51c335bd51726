"""Quantization: limits that do not fit, and what limits tell of the data."""

from __future__ import annotations

import pytest
from harness.sample import value

from ir_runtime.errors import InferenceError, ValidationError
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


@pytest.mark.parametrize(
    ("data", "limit", "rule", "message"),
    [
        ("2,3", "2", "numpy", "shape [2] does not broadcast to [2,3]: dims must be equal to those, or 1"),
        ("1,3", "2,3", "numpy", "shape [2,3] does not broadcast to [1,3]: dims must be equal to those, or 1"),
        ("3", "2,3", "numpy", "shape [2,3] does not broadcast to [3]: dims must be equal to those, or 1"),
        ("2,3", "3", "pdpd", "shape [3] does not fit into [2,3], as auto_broadcast pdpd requires"),
        ("2,3", "1,3", "none", "shapes [2,3] and [1,3] differ, and auto_broadcast is none"),
    ],
)
def test_limits_that_do_not_fit(data: str, limit: str, rule: str, message: str) -> None:
    with pytest.raises(InferenceError) as caught:
        inferred(f"f32 {data}", *[f"f32 {limit}"] * 4, rule=rule)
    assert caught.value.message == message


def test_at_least_two_levels() -> None:
    with pytest.raises(ValidationError, match="attribute 'levels' must be an integer at least 2, not '1'"):
        FakeQuantize.parse({"levels": "1"})


def test_scale_tells_of_the_data() -> None:
    assert converted("f32 ?,?", "f32 3") == "f32[?,3]"
    assert converted("bf16 ...", "bf16 3,1") == "bf16[...]"
    assert converted("f16 ?,?,?", "f16 ?,1", "f16 3,?") == "f16[?,3,?]"


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        (("f32 2,3", "f32 2"), "shape [2] does not broadcast to [2,3]: dims must be equal to those, or 1"),
        (("f32 2,3", "f32 1,1,1"), "scale [1,1,1] has more dimensions than data [2,3]"),
        (("f32 2,3", "f32 3", "f32"), "shift has shape [], scale [3]; they must be equal"),
        (("f64 2", "f64 1"), "input 'data' is f64; allowed are f32, f16, bf16"),
    ],
)
def test_contradictions(inputs: tuple[str, ...], message: str) -> None:
    with pytest.raises((InferenceError, ValidationError)) as caught:
        converted(*inputs)
    assert caught.value.message == message
