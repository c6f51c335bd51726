"""Samples of Broadcast in every mode, and of Tile."""

from __future__ import annotations

from typing import Any

from harness.sample import Sample, case, ints, numbers

TYPES = ("f64", "f32", "f16", "bf16", "i64", "i32", "i16", "i8", "u64", "u32", "u16", "u8", "boolean")

ONE_WAY = [
    ((16, 1, 1), (1, 16, 3, 2)),
    ((3,), (2, 3)),
    ((2, 1), (2, 3)),
    ((2, 3), (2, 3)),
    ((1, 3), (0, 3)),
    ((1,), (5,)),
    ((), (2, 3)),
    ((), ()),
    ((2, 1, 3, 1, 1), (2, 2, 3, 1, 2)),
]
BOTH_WAYS = [
    ((16, 1, 1), (1, 1, 3, 2)),
    ((2, 3), (3,)),
    ((2, 3), (1,)),
    ((2, 3), ()),
    ((3, 1), (2, 1, 4)),
    ((2, 1), (1, 0)),
]
MAPPED = [
    ((4,), (1, 4, 3, 2), (1,)),
    ((4, 3), (1, 4, 3, 2), (1, 2)),
    ((2, 3), (2, 5, 3), (0, 2)),
    ((1, 3), (2, 5, 3), (0, 2)),
    ((2, 3), (2, 3), (0, 1)),
    ((), (2, 3), ()),
]
LEADING = [((2, 3), (2, 3)), ((2, 1), (2, 3)), ((2, 3), (1, 3)), ((2, 3), (2, 1))]
REPEATS = [
    ((2, 3), (1, 2)),
    ((2, 3), (2, 1, 2)),
    ((2, 3), (2,)),
    ((2, 3), (0, 2)),
    ((2, 3), (-1, 2)),
    ((2, 3), (1, 1)),
    ((2, 3), ()),
    ((3,), (4,)),
    ((), (3,)),
    ((), (2, 3)),
    ((1, 2, 1, 2, 1), (2, 1, 3, 1, 1)),
]


def empty(
    op: str, shape: tuple[int, ...], target: tuple[int, ...], *result: int, **attributes: Any
) -> Sample:
    """Tile of an empty tensor: OpenVINO's reference divides by zero, or reads past the end."""
    told = {"_oracle": "none", "_differs": "OpenVINO crashes", "_expect": (numbers(*result),)}
    return case(op, numbers(*shape), ints(*target), **attributes, **told)


SAMPLES = [
    *(
        case(name, numbers(*shape), ints(*target), mode="numpy", _constant=fixed)
        for name in ("Broadcast-1", "Broadcast-3")
        for shape, target in ONE_WAY
        for fixed in ((1,), ())
    ),
    *(
        case(name, numbers(*shape), ints(*target), ints(*mapping), mode="explicit", _constant=fixed)
        for name in ("Broadcast-1", "Broadcast-3")
        for shape, target, mapping in MAPPED
        for fixed in ((1, 2), (2,), ())
    ),
    *(
        case("Broadcast-3", numbers(*shape), ints(*target), mode="bidirectional", _constant=fixed)
        for shape, target in ONE_WAY + BOTH_WAYS
        for fixed in ((1,), ())
    ),
    *(case("Broadcast-3", numbers(*x), ints(*t), mode="pdpd", _constant=(1,)) for x, t in LEADING),
    empty("Broadcast-1", (0, 1), (2, 0, 4), 2, 0, 4),
    empty("Broadcast-3", (0, 1), (2, 0, 4), 2, 0, 4),
    empty("Broadcast-3", (0, 1), (1, 4), 0, 4, mode="bidirectional"),
    empty("Tile-1", (0, 3), (2, 2), 0, 6),
    empty("Tile-1", (0,), (2, 1), 2, 0),
    empty("Tile-1", (), ()),
    case("Broadcast-1", numbers(3), ints(2, 3), mode="explicit"),
    case("Broadcast-1", numbers(3), ints(2, 3)),
    case("Broadcast-3", numbers(3), ints(2, 3)),
    *(
        case(name, numbers(3, 1, dtype=t), ints(3, 2, dtype=i), mode="numpy", _constant=(1,))
        for name in ("Broadcast-1", "Broadcast-3")
        for t, i in zip(TYPES, ("i64", "i32", "i16", "i8", "u8") * 3, strict=False)
    ),
    *(
        case("Tile-1", numbers(*shape), ints(*repeats), _constant=fixed)
        for shape, repeats in REPEATS
        for fixed in ((1,), ())
    ),
    *(case("Tile-1", numbers(2, 3, dtype=t), ints(2, 1, dtype="i32")) for t in TYPES),
]
