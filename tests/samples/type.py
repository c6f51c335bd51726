"""Samples of conversions between all types, in and out of range."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from harness.sample import Sample, case, numbers, scalar

from ir_runtime.ir.element import ElementType as E

TYPES = (
    E.boolean,
    E.bf16,
    E.f16,
    E.f32,
    E.f64,
    E.f8e4m3,
    E.f8e5m2,
    E.i8,
    E.i16,
    E.i32,
    E.i64,
    E.u8,
    E.u16,
    E.u32,
    E.u64,
)
FEW_BITS = (E.u1, E.u2, E.u3, E.u4, E.u6, E.i4)
CODES = (E.nf4, E.f4e2m1, E.f8e8m0)
CORNERS = (
    *(0, 1, 2, 3, 7, 8, 15, 16, 100, 127, 128, 129, 255, 256, 257, 300, 32767, 32768, 40000, 65535, 65536),
    *(2**24 + 1, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1),
    *(-1, -2, -8, -9, -128, -129, -200, -32768, -40000, -(2**31), -(2**31) - 7, -(2**63)),
)
FLOATS = (
    *(0.0, -0.0, 0.5, 0.75, 1.5, 2.5, 3.75, 127.5, 128, 255.5, 256, 300.5, 32768, 65535, 70000),
    *(-0.5, -0.75, -1.5, -128.5, -129, -200.5, -40000, np.inf, -np.inf, np.nan),
)
# What u32 does not have, the reference converts in a way that depends on the length of the tensor.
LARGE = (2147483520, 2147483648, 3e9, 4294967040, 9.2e18, 1e-3, 6e-8)


def corners(element: E) -> np.ndarray:
    """Values that other types may not represent."""
    if element is E.boolean:
        return np.array([True, False])
    if element in FEW_BITS + CODES:
        return np.arange(1 << element.bits, dtype=np.uint8).view(element.dtype)
    if element.real:
        with np.errstate(all="ignore"):
            return np.array(FLOATS if element.bits == 8 else FLOATS + LARGE).astype(element.dtype)
    limits = np.iinfo(element.dtype)
    return np.array([n for n in CORNERS if limits.min <= n <= limits.max], element.dtype)


def conversions() -> list[Sample]:
    found = []
    for source in TYPES:
        for target in TYPES:
            data = corners(source)
            if source.real and target is E.u32:
                data = data[np.isfinite(data.astype("f8"))]
            found.append(case("Convert-1", data, destination_type=target))
    return found


def few_bits() -> Iterator[Sample]:
    """Conversions from and to sub-byte types, with all of their values."""
    for few in FEW_BITS + CODES:
        others = (E.f32, E.f16, E.bf16) if few in CODES else (*TYPES, *FEW_BITS)
        for other in others:
            yield case("Convert-1", corners(few), destination_type=other, _types={0: few})
            if other not in FEW_BITS:
                yield case("Convert-1", corners(other), destination_type=few)


SAMPLES = [
    *conversions(),
    *few_bits(),
    *(
        case("Convert-1", numbers(*shape), destination_type=target)
        for shape in ((), (0, 3), (2, 1, 3), (1, 2, 1, 2, 2))
        for target in ("i32", "f16", "boolean", "f32")
    ),
    case(
        "Convert-1",
        np.array([0, 1, 1.5, 3, 6, 100, -1, np.inf, -np.inf, np.nan, 1e-40], "f4"),
        destination_type="f8e8m0",
    ),
    case("Convert-1", np.array([1, 2, 0.5], E.f8e8m0.dtype), destination_type="f32"),
    case("ConvertLike-1", numbers(2, 3), numbers(4, dtype="i8")),
    case("ConvertLike-1", numbers(2, 3, dtype="i32"), scalar(1.5, "f16")),
    case("ConvertLike-1", numbers(dtype="i64"), numbers(2, dtype="i32")),
    case("ConvertLike-1", numbers(3, dtype="u8"), numbers(2, 2, dtype="boolean")),
    case("ConvertLike-1", numbers(0, 3, dtype="u8"), numbers(0, dtype="bf16")),
    case("ConvertLike-1", numbers(2, 1, 2, dtype="f32"), numbers(2, dtype="f64")),
    case("ConvertLike-1", numbers(2, 2, dtype="i8"), numbers(2, dtype="i8")),
    case("ConvertLike-1", numbers(5, dtype="boolean"), numbers(2, dtype="f32")),
    case("ConvertLike-1", np.array(FLOATS, "f4"), numbers(2, dtype="u8")),
    case("ConvertLike-1", np.array([300, -200], "i4"), numbers(2, dtype="u8")),
    case("ConvertLike-1", corners(E.nf4), numbers(2), _types={0: E.nf4}),
    case("ConvertLike-1", corners(E.u4), numbers(2, dtype="f16")),
    case("ConvertLike-1", corners(E.i8), corners(E.i4)),
    *(
        case(
            "ConvertPromoteTypes-14",
            numbers(2, 3, dtype=a),
            numbers(*((4,) if b != "i16" else ()), dtype=b),
            **attributes,
        )
        for a, b, attributes in (
            ("f16", "f32", {}),
            ("f32", "f32", {}),
            ("i8", "f32", {"promote_unsafe": False}),
            ("i32", "u8", {}),
            ("boolean", "i64", {}),
            ("boolean", "f16", {}),
            ("u8", "u16", {}),
            ("i64", "f16", {"promote_unsafe": True}),
            ("u8", "i8", {"promote_unsafe": True}),
            ("f16", "bf16", {"promote_unsafe": True}),
            ("u64", "i8", {"promote_unsafe": True}),
            ("u64", "i8", {"promote_unsafe": True, "u64_integer_promotion_target": "i64"}),
            ("i32", "i16", {"pytorch_scalar_promotion": True}),
            ("u8", "i16", {"pytorch_scalar_promotion": True, "promote_unsafe": True}),
            ("f32", "i16", {"pytorch_scalar_promotion": True}),
        )
    ),
    case("ConvertPromoteTypes-14", corners(E.u1), numbers(3, dtype="i8"), _types={0: E.u1}, _constant=(0,)),
    case("ConvertPromoteTypes-14", corners(E.i4), numbers(3, dtype="f16")),
]
