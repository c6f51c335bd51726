"""Messages for invalid conversions, and for invalid packed strings."""

from __future__ import annotations

from harness.refusals import Refusal, refusal


def promoted(name: str, a: str, b: str, **attributes: bool) -> Refusal:
    how = {"promote_unsafe": False, "pytorch_scalar_promotion": False} | attributes
    return refusal(
        f"ConvertPromoteTypes: {name}",
        "ConvertPromoteTypes-14",
        a,
        b,
        u64_integer_promotion_target="f32",
        **how,
    )


REFUSALS = [
    refusal("Convert: to texts", "Convert-1", "f32 2", destination_type="string"),
    refusal("Convert: to what is no type", "Convert-1", "f32 2", destination_type="float32"),
    promoted("narrow reals", "f16 2", "i64 2"),
    promoted("u64", "u64 2", "i8 2"),
    promoted("another type", "u8 2", "i8 2"),
    promoted("another real type", "f16 2", "bf16 2"),
    promoted("a scalar", "i64", "u8 2", pytorch_scalar_promotion=True),
    refusal("StringTensorPack: shapes", "StringTensorPack-15", "i64 2", "i64 3", "u8 8"),
    refusal("StringTensorPack: bytes of two axes", "StringTensorPack-15", "i64 2", "i64 2", "u8 2,2"),
    refusal("StringTensorPack: behind the end", "StringTensorPack-15", [0, 4], [4, 9], "u8 8"),
    refusal("StringTensorPack: before the beginning", "StringTensorPack-15", [-1], [4], "u8 ?"),
    refusal("StringTensorPack: end before the beginning", "StringTensorPack-15", [[3]], [[2]], "u8 ?"),
]
