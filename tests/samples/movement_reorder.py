"""Samples of Roll, Reverse, ReverseSequence and ShuffleChannels: axes, shifts, lengths, groups, all types."""

from __future__ import annotations

import numpy as np
from harness.sample import case, ints, numbers, scalar

# Whole numbers in f64, as the plugin computes it as f32.
TYPES = ("f64", "f32", "f16", "bf16", "i64", "i32", "i8", "u8", "boolean")

ROLL = [
    case("Roll-7", numbers(4, 3), scalar(1), scalar(0)),
    case("Roll-7", numbers(4, 3), ints(-1, 2), ints(0, 1)),
    case("Roll-7", numbers(4, 3), ints(1, 2, 1), ints(0, 1, 0)),
    case(
        "Roll-7",
        np.arange(6).reshape(3, 2),
        scalar(1, "i32"),
        ints(0, -1),
        _oracle="none",
        _differs="the plugin wants as many shifts as axes, the page one for all",
        _expect=(np.array([[5, 4], [1, 0], [3, 2]]),),
    ),
    case("Roll-7", numbers(2, 3, 4, 2), ints(-7, 9, dtype="i32"), ints(1, -2, dtype="i32")),
    case("Roll-7", numbers(1, 4, 4, 3), ints(-2, -2), ints(1, 2)),
    case("Roll-7", numbers(2, 24, 48), ints(-5, 11), ints(1, 2)),
    case("Roll-7", numbers(5), ints(3, dtype="i32"), ints(0)),
    case("Roll-7", numbers(5), scalar(0), scalar(-1)),
    case("Roll-7", numbers(2, 0, 3), ints(1, 1), ints(1, 2)),
    case("Roll-7", numbers(2, 1, 2, 3, 2), ints(1, 1, 1), ints(4, 3, 0)),
    case("Roll-7", np.arange(6.0).reshape(3, 2), ints(1, 1), ints(0, 1)),
    *(case("Roll-7", numbers(3, 2, dtype=t), ints(1, 1), ints(0, 1)) for t in TYPES[1:]),
]

REVERSE = [
    case("Reverse-1", numbers(3, 4), ints(0), mode="index"),
    case("Reverse-1", numbers(2, 3, 4), ints(-1, 0, dtype="i32"), mode="index"),
    case("Reverse-1", numbers(2, 3, 4), ints(), mode="index"),
    case("Reverse-1", numbers(2, 3, 4), ints(1, 2, dtype="u8"), mode="index"),
    case("Reverse-1", numbers(2, 3, 4), np.array([True, False, True]), mode="mask"),
    case("Reverse-1", numbers(2, 3), np.array([False, False]), mode="mask"),
    case("Reverse-1", numbers(2, 0, 3), ints(1, 2), mode="index"),
    case("Reverse-1", numbers(2, 1, 2, 3, 2), ints(4, 3, 0), mode="index"),
    case("Reverse-1", numbers(5, dtype="i64"), ints(0), mode="index"),
    *(case("Reverse-1", numbers(3, 2, dtype=t), ints(0, 1), mode="index") for t in TYPES),
]

REVERSE_SEQUENCE = [
    case("ReverseSequence-1", numbers(3, 4), ints(2, 4, 1)),
    case("ReverseSequence-1", numbers(4, 3, 2), ints(2, 4, 3), batch_axis=1, seq_axis=0),
    case("ReverseSequence-1", numbers(2, 3, 4), ints(1, 3, 2, 2, dtype="i32"), batch_axis=-1, seq_axis=-2),
    case("ReverseSequence-1", numbers(2, 3, 2, 4), ints(4, 2), batch_axis=2, seq_axis=3),
    case("ReverseSequence-1", numbers(2, 3), ints(0, 3)),
    case("ReverseSequence-1", numbers(2, 4), np.array([2.0, 3.0], np.float32)),
    case("ReverseSequence-1", numbers(0, 3), ints()),
    case("ReverseSequence-1", numbers(2, 3, 1, 2, 2), ints(1, 2), batch_axis=4, seq_axis=1),
    case("ReverseSequence-1", np.arange(6.0).reshape(2, 3), ints(3, 2)),
    *(case("ReverseSequence-1", numbers(2, 3, dtype=t), ints(3, 2)) for t in TYPES[1:]),
]

SHUFFLE = [
    case("ShuffleChannels-1", numbers(2, 6, 2, 2), group=3),
    case("ShuffleChannels-1", numbers(2, 6, 2), group=2, axis=1),
    case("ShuffleChannels-1", numbers(2, 3, 8), group=4, axis=-1),
    case("ShuffleChannels-1", numbers(6, 2), group=6, axis=0),
    case("ShuffleChannels-1", numbers(2, 3)),
    case("ShuffleChannels-1", numbers(9), group=3, axis=0),
    case("ShuffleChannels-1", numbers(1, 2, 4, 2, 2), group=2, axis=-3),
    case("ShuffleChannels-1", numbers(0, 4, 2), group=2),
    *(case("ShuffleChannels-1", numbers(1, 4, 2, 1, dtype=t), group=2) for t in TYPES),
]

SAMPLES = [*ROLL, *REVERSE, *REVERSE_SEQUENCE, *SHUFFLE]
