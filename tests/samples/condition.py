"""Choosing by a condition, finding what is not zero, sorting into buckets."""

from __future__ import annotations

from harness.sample import case, ints, numbers, scalar


def truths(*shape: int):
    return numbers(*shape, dtype="boolean")


SELECT = [
    case("Select-1", truths(2, 3), numbers(2, 3), numbers(2, 3, seed=1)),
    case("Select-1", truths(2, 3), numbers(2, 3), numbers(2, 3, seed=1), auto_broadcast="none"),
    case("Select-1", truths(3), numbers(2, 3), numbers(2, 1, seed=1)),
    case("Select-1", truths(2, 1, 3), numbers(4, 1, dtype="i64"), numbers(dtype="i64", seed=1)),
    case("Select-1", truths(2, 3, 4), numbers(), numbers(1)),
    case("Select-1", truths(), numbers(3, dtype="i32"), numbers(3, dtype="i32", seed=1)),
    case("Select-1", truths(), numbers(), numbers(seed=1)),
    case("Select-1", truths(2, 0), numbers(1, dtype="u8"), numbers(2, 1, dtype="u8")),
    case("Select-1", truths(4), numbers(4, dtype="boolean"), numbers(4, dtype="boolean", seed=1)),
    case("Select-1", truths(4), numbers(4, dtype="f16"), numbers(dtype="f16", seed=1)),
    case("Select-1", truths(4), numbers(4, dtype="bf16"), numbers(4, dtype="bf16", seed=1)),
    case("Select-1", truths(4), numbers(4, dtype="f64"), numbers(4, dtype="f64", seed=1)),
    case("Select-1", truths(5), numbers(5, dtype="i8"), scalar(-1, "i8")),
    case("Select-1", [False, True, False], ints(1, 1, 1), ints(2, -1, 4)),
    case("Select-1", truths(2, 3), numbers(2, 3, 4), numbers(2, 3, seed=1), auto_broadcast="pdpd"),
    case("Select-1", truths(2), numbers(2, 3), numbers(2, 3, seed=1), auto_broadcast="pdpd"),
    case("Select-1", truths(1, 3), numbers(2, 3, 4), numbers(seed=1), auto_broadcast="pdpd"),
    case("Select-1", truths(2, 3, 1, 1, 2), numbers(2, 3, 2, 1, 2), numbers(1, 1, 2, 2, 1, seed=1)),
    case("Select-1", truths(4), numbers(4, dtype="u16"), numbers(4, dtype="u16", seed=1)),
    case("Select-1", truths(4), numbers(4, dtype="u64"), numbers(4, dtype="u64", seed=1)),
]

SAMPLES = SELECT
