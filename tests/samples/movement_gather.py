"""Samples of Gather: all axes and batch dims, indices of all ranks, negative and out of range."""

from __future__ import annotations

from harness.sample import Sample, case, ints, numbers, scalar

TYPES = ("f32", "f16", "bf16", "i64", "i32", "i16", "i8", "u64", "u32", "u16", "u8", "boolean")


def plain(name: str) -> list[Sample]:
    """Samples shared by all versions."""
    found = [
        case(name, numbers(3, 4, 5), ints(0, 2, 1), scalar(axis), _constant=fixed)
        for axis in (0, 1, 2, -1, -3)
        for fixed in ((2,), (), (1, 2))
    ]
    found += [
        case(name, numbers(4), ints(0, 0, 3), scalar(0)),
        case(name, numbers(4, 2), scalar(1), scalar(0), _constant=(2,)),
        case(name, numbers(4, 2), scalar(1), ints(-1), _constant=(2,)),
        case(name, numbers(4), scalar(2), scalar(0), _constant=(1, 2)),
        case(name, numbers(4, 2), ints(0, 1, 3, 2).reshape(2, 2), scalar(0), _constant=(2,)),
        case(name, numbers(2, 4, 3), ints(*range(4)).reshape(2, 1, 2), scalar(1), _constant=(2,)),
        case(name, numbers(4, 2), ints(), scalar(0), _constant=(2,)),
        case(name, numbers(4, 0), ints(1, 3), scalar(0), _constant=(2,)),
        case(name, numbers(2, 3), ints(1, 0, dtype="i32"), scalar(1, "i32"), _constant=(2,)),
        case(name, numbers(1, 2, 3, 2, 2), ints(2, 0), scalar(2), _constant=(2,)),
    ]
    # The plugin computes f64 as f32, and is asked, as the reference leaves it out.
    found += [case(name, numbers(4, 2).astype("f8"), ints(3, 0), scalar(0), _constant=(2,))]
    return found + [case(name, numbers(4, 2, dtype=t), ints(3, 0), scalar(0), _constant=(2,)) for t in TYPES]


def outside(name: str) -> list[Sample]:
    """Negative and out-of-range indices."""
    return [
        case(name, numbers(5), ints(0, -2, -1, -5), scalar(0), _constant=(2,)),
        case(name, numbers(5), ints(3, 10, -20, 5, -6), scalar(0), _constant=(2,)),
        case(name, numbers(2, 3, 2), ints(-1, 3, -4, 1).reshape(2, 2), scalar(1), _constant=(1, 2)),
        case(name, numbers(5, dtype="i64", low=1), ints(-1, 7), scalar(0), _constant=(1, 2)),
        case(name, numbers(0, 2), ints(0, 1), scalar(0), _constant=(2,)),
    ]


def batched(name: str) -> list[Sample]:
    """Batch dims shared by data and indices."""
    two, four = ints(0, 0, 4, 4, 0, 0).reshape(2, 3), ints(*range(5), *range(5), 0, 1).reshape(2, 2, 3)
    return [
        *(
            case(name, numbers(2, 5), two, scalar(1), batch_dims=b, _constant=f)
            for b in (1, -1)
            for f in ((2,), ())
        ),
        *(
            case(name, numbers(2, 2, 5), four, scalar(-1), batch_dims=b, _constant=(2,))
            for b in (0, 1, 2, -1, -2)
        ),
        case(name, numbers(2, 1, 5, 4), two, scalar(2), batch_dims=1, _constant=(2,)),
        case(name, numbers(2, 3, 5, 4), two, scalar(2), batch_dims=1, _constant=(1, 2)),
        case(name, numbers(2, 3, 5, 2), two, scalar(2), batch_dims=2, _constant=(2,)),
        case(name, numbers(2, 3, 5, 2), two, scalar(3), batch_dims=2),
        case(name, numbers(2, 5), ints(1, 4), scalar(1), batch_dims=1, _constant=(2,)),
        case(name, numbers(0, 5), ints().reshape(0, 3), scalar(1), batch_dims=1, _constant=(2,)),
        case(name, numbers(2, 5), ints(-1, 5, -6, 0).reshape(2, 2), scalar(1), batch_dims=1, _constant=(2,)),
        case(
            name, numbers(2, 3, 5), ints(-1, 5, -6, 0).reshape(2, 2), scalar(2), batch_dims=-1, _constant=(2,)
        ),
    ]


SAMPLES = [
    *plain("Gather-1"),
    *plain("Gather-7"),
    *plain("Gather-8"),
    *(s for name in ("Gather-1", "Gather-7", "Gather-8") for s in outside(name)),
    *(s for name in ("Gather-7", "Gather-8") for s in batched(name)),
]
