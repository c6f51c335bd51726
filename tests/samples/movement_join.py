"""Samples of Concat, Split, VariadicSplit and Transpose."""

from __future__ import annotations

from harness.sample import case, ints, numbers, scalar

TYPES = ("f64", "f32", "f16", "bf16", "i64", "i32", "i16", "i8", "u64", "u32", "u16", "u8", "boolean")

SAMPLES = [
    case("Concat-1", numbers(2, 3), numbers(2, 3, seed=1), axis=0),
    case("Concat-1", numbers(2, 3), numbers(2, 1), numbers(2, 4), axis=1),
    case("Concat-1", numbers(2, 3), numbers(1, 3), axis=-2),
    case("Concat-1", numbers(2, 3, 4), numbers(2, 3, 1), axis=-1),
    case("Concat-1", numbers(2, 3), axis=1),
    case("Concat-1", numbers(5), numbers(0), numbers(1), axis=0),
    case("Concat-1", numbers(0, 3), numbers(2, 3), axis=0),
    case("Concat-1", numbers(2, 0), numbers(1, 0), axis=0),
    case("Concat-1", numbers(2, 3), numbers(2, 3, seed=1), axis=0, _constant=(0,)),
    case("Concat-1", *(numbers(1, 2, seed=i) for i in range(9)), axis=0),
    case("Concat-1", numbers(1, 2, 1, 3, 2), numbers(1, 2, 2, 3, 2), axis=2),
    *(case("Concat-1", numbers(2, 3, dtype=t), numbers(2, 1, dtype=t), axis=1) for t in TYPES),
    *(
        case("Split-1", numbers(4, 6, 2), scalar(axis), num_splits=n, _constant=fixed)
        for axis, n in ((0, 2), (1, 3), (-2, 6), (-1, 2), (2, 1))
        for fixed in ((1,), ())
    ),
    case("Split-1", numbers(6), scalar(0, "i32"), num_splits=2, _constant=(1,)),
    case("Split-1", numbers(0, 6), scalar(1), num_splits=2, _constant=(1,)),
    case("Split-1", numbers(2, 1, 4, 1, 2), scalar(2), num_splits=4, _constant=(1,)),
    *(case("Split-1", numbers(4, 2, dtype=t), scalar(0), num_splits=2, _constant=(1,)) for t in TYPES),
    *(
        case("VariadicSplit-1", numbers(6, 5), axis, ints(*lengths), _constant=fixed)
        for axis, lengths in (
            (scalar(0), (1, 2, 3)),
            (scalar(0), (-1, 2)),
            (scalar(-2), (2, -1, 1)),
            (ints(1), (0, 5, 0)),
            (ints(-1), (5, -1)),
            (scalar(1), (5,)),
            (scalar(1, "i64"), (-1,)),
        )
        for fixed in ((1, 2), (2,))
    ),
    case("VariadicSplit-1", numbers(6, 5), scalar(0, "i32"), ints(4, 2, dtype="i32"), _constant=(1, 2)),
    case("VariadicSplit-1", numbers(0, 5), scalar(0), ints(0, -1), _constant=(1, 2)),
    *(case("VariadicSplit-1", numbers(5, dtype=t), scalar(0), ints(3, 2), _constant=(1, 2)) for t in TYPES),
    *(
        case("Transpose-1", numbers(*shape), ints(*order), _constant=fixed)
        for shape, order in (
            ((2, 3), (1, 0)),
            ((2, 3), (0, 1)),
            ((2, 3), ()),
            ((2, 3, 4), (1, 2, 0)),
            ((2, 3, 4), ()),
            ((2, 3, 4, 5), (0, 2, 3, 1)),
            ((2, 1, 3, 1, 2), (4, 2, 0, 1, 3)),
            ((2, 0, 4), (2, 1, 0)),
            ((3,), (0,)),
            ((), ()),
        )
        for fixed in ((1,), ())
    ),
    *(case("Transpose-1", numbers(3, 2, dtype=t), ints(1, 0)) for t in TYPES),
    *(case("Transpose-1", numbers(2, 3), ints(1, 0, dtype=t), _constant=(1,)) for t in ("i32", "i8", "u8")),
]
