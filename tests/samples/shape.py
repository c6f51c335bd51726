"""Samples of shape operations: all ranks, empty tensors, all types."""

from __future__ import annotations

from harness.sample import Sample, case, ints, numbers, scalar

TYPES = ("f64", "f32", "f16", "bf16", "i64", "i32", "i16", "i8", "u64", "u32", "u16", "u8", "boolean")

RESHAPES = [
    ((2, 3, 4), (2, 12), False),
    ((2, 3, 4), (24,), False),
    ((2, 3, 4), (-1,), True),
    ((2, 3, 4), (0, -1), True),
    ((2, 3, 4), (4, 0, -1), True),
    ((2, 3, 4), (0, 0, 0), True),
    ((2, 3, 4), (0, 0, 2, -1), True),
    ((2, 3, 4), (-1, 3, 1, 2), False),
    ((2, 3, 4), (1, 2, 1, 3, 4), True),
    ((2, 1, 1), (0, -1), True),
    ((5,), (1, 5, 1), False),
    ((), (1,), False),
    ((), (-1, 1), False),
    ((), (), False),
    ((1, 1), (), True),
    ((0, 3), (0, 4), False),
    ((0, 3), (0, -1), True),
    ((5, 0, 3), (7, -1), False),
    ((0, 0), (0, -1), True),
    ((3, 0), (0, -1), True),
]

# OpenVINO refuses these where the pattern is known and the data's lengths are not.
NOTHING_LEFT = [((0, 3), (0, -1)), ((0, 3), (-1, 0)), ((5, 0, 3), (5, 0, -1)), ((5, 0, 3), (7, 0, -1))]

SQUEEZES: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
    ((1, 3, 1, 2), (0, 2)),
    ((1, 3, 1, 2), (2,)),
    ((1, 3, 1, 2), (-2, 0)),
    ((1, 3, 1, 2), (0, 0)),
    ((1, 3, 1, 2), ()),
    ((1, 1), (0, 1)),
    ((1, 1), (-1,)),
    ((1,), (0,)),
    ((1, 0), (0,)),
    ((2, 3), ()),
    ((), ()),
]

UNSQUEEZES: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
    ((2, 3), (0, 3)),
    ((2, 3), (1,)),
    ((2, 3), (-1,)),
    ((2, 3), (-1, 0, 2)),
    ((2, 3), (3, 0)),
    ((2, 3), (1, 1)),
    ((2, 0), (1,)),
    ((), (0,)),
    ((), (0, 1, 2)),
]

# The page has i64 as the default; OpenVINO wants the type to be given.
MEASURED = [("ShapeOf-1", {}), ("ShapeOf-3", {"output_type": "i64"}), ("ShapeOf-3", {"output_type": "i32"})]


def reshapes() -> list[Sample]:
    found = [
        case("Reshape-1", numbers(*shape), ints(*target), special_zero=zero, _constant=fixed)
        for shape, target, zero in RESHAPES
        for fixed in ((1,), ())
    ]
    found += [case("Reshape-1", numbers(*x), ints(*t), special_zero=False) for x, t in NOTHING_LEFT]
    found.append(case("Reshape-1", numbers(2, 3, 16, 24), ints(6, 384), special_zero=False))
    found += [case("Reshape-1", numbers(2, 3, dtype=t), ints(3, -1), special_zero=False) for t in TYPES]
    return found + [
        case("Reshape-1", numbers(2, 3), ints(0, 3, 1, dtype=t), special_zero=True, _constant=(1,))
        for t in ("i32", "i16", "i8", "u64", "u32", "u16", "u8")
    ]


def squeezes(name: str) -> list[Sample]:
    found = [
        case(name, numbers(*shape), ints(*axes), _constant=fixed)
        for shape, axes in SQUEEZES
        for fixed in ((1,), ())
    ]
    found += [case(name, numbers(1, 3, 1, 2)), case(name, numbers(2, 3)), case(name, numbers())]
    found += [case(name, numbers(1, 3, 1), scalar(-1, t), _constant=(1,)) for t in ("i64", "i32", "i8")]
    return found + [case(name, numbers(1, 3, 1, dtype=t), ints(0), _constant=(1,)) for t in TYPES]


SAMPLES = [
    *reshapes(),
    *squeezes("Squeeze-1"),
    *squeezes("Squeeze-15"),
    *(
        case("Squeeze-15", numbers(*shape), ints(*axes), allow_axis_skip=skip, _constant=(1,))
        for shape, axes in SQUEEZES
        for skip in (False, True)
    ),
    case("Squeeze-15", numbers(1, 3, 1), allow_axis_skip=True),
    *(
        case("Unsqueeze-1", numbers(*shape), ints(*axes), _constant=fixed)
        for shape, axes in UNSQUEEZES
        for fixed in ((1,), ())
    ),
    *(case("Unsqueeze-1", numbers(2, 3, dtype=t), scalar(1)) for t in TYPES),
    *(case("Unsqueeze-1", numbers(2, 3), ints(-2, dtype=t), _constant=(1,)) for t in ("i32", "i16", "i8")),
    *(
        case(name, numbers(*shape), **output)
        for name, output in MEASURED
        for shape in ((), (5,), (2, 3), (0, 3), (2, 3, 4), (1, 2, 0, 4), (2, 1, 3, 1, 2))
    ),
    *(case(name, numbers(4, 1, dtype=t), **output) for name, output in MEASURED for t in TYPES),
]
