"""Samples of Pad: all modes, negative and mixed pads, empty axes, all types."""

from __future__ import annotations

from harness.sample import case, ints, numbers, scalar

FILLED = ("constant", "edge", "reflect", "symmetric")

SAMPLES = [
    sample
    for name in ("Pad-1", "Pad-12")
    for sample in (
        *(case(name, numbers(3, 4), ints(0, 1), ints(2, 3), pad_mode=mode) for mode in FILLED),
        *(case(name, numbers(3, 4), ints(-1, -1), ints(-1, -1), pad_mode=mode) for mode in FILLED),
        *(case(name, numbers(3, 4), ints(2, -1), ints(-1, 3), pad_mode=mode) for mode in FILLED),
        *(case(name, numbers(2, 5), ints(0, -3), ints(0, 2), pad_mode=mode) for mode in FILLED),
        *(case(name, numbers(2, 3, 3, 4), ints(0, 0, 2, 1), ints(0, 0, 1, 2), pad_mode=m) for m in FILLED),
        case(name, numbers(2, 3), ints(1, 0), ints(0, 2), scalar(7.5, "f32"), pad_mode="constant"),
        case(name, numbers(2, 3), ints(1, 0), ints(0, 2), scalar(7.5, "f32"), pad_mode="edge"),
        case(name, numbers(2, 3, dtype="i8"), ints(1, 0), ints(0, 2), scalar(-5, "i8"), pad_mode="constant"),
        case(name, numbers(2, 3, dtype="u8"), ints(1, 0), ints(0, 2), scalar(200, "u8"), pad_mode="constant"),
        case(name, numbers(3, dtype="i64"), ints(2, dtype="i32"), ints(1), pad_mode="symmetric"),
        case(name, numbers(3, dtype="f64"), ints(2), ints(1, dtype="i8"), pad_mode="reflect"),
        case(name, numbers(3, dtype="f16"), ints(2), ints(0), scalar(0.1, "f16"), pad_mode="constant"),
        case(name, numbers(3, dtype="bf16"), ints(1), ints(1), scalar(0.1, "bf16"), pad_mode="constant"),
        case(name, numbers(3, dtype="boolean"), ints(2), ints(1), pad_mode="constant"),
        case(name, numbers(0, 3), ints(2, 0), ints(0, 1), scalar(1, "f32"), pad_mode="constant"),
        case(name, numbers(2, 3), ints(-2, 0), ints(0, 1), pad_mode="constant"),
        case(name, numbers(2, 0), ints(1, 0), ints(0, 0), pad_mode="edge"),
        case(name, numbers(4), ints(-6), ints(4), scalar(2, "f32"), pad_mode="constant", _constant=(1, 2)),
        case(name, numbers(4), ints(-5), ints(3), pad_mode="edge", _constant=(1, 2)),
        case(name, numbers(1, 2, 3, 2, 2), ints(0, 1, 0, -1, 0), ints(1, 0, 2, 0, 0), pad_mode="constant"),
        case(name, numbers(), ints(), ints(), pad_mode="constant", _constant=(1, 2)),
    )
]
