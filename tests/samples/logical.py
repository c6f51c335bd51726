"""Samples of logical operations: all combinations, all kinds of broadcasting."""

from __future__ import annotations

from harness.sample import case, numbers


def truths(*shape: int, seed: int = 0):
    return numbers(*shape, dtype="boolean", seed=seed)


SAMPLES = [
    sample
    for name in ("LogicalAnd-1", "LogicalOr-1", "LogicalXor-1", "Xor-1")
    for sample in (
        case(name, [True, True, False, False], [True, False, True, False]),
        case(name, truths(2, 3), truths(2, 3, seed=1), auto_broadcast="none"),
        case(name, truths(2, 3, 4), truths(3, 1, seed=1)),
        case(name, truths(3), truths(2, 1, 2, 1, 3, seed=1), auto_broadcast="numpy"),
        case(name, truths(), truths(seed=1)),
        case(name, truths(2, 0), truths(seed=1)),
        case(name, truths(2, 3, 4), truths(2, 3, seed=1), auto_broadcast="pdpd"),
        case(name, truths(2, 3, 4), truths(1, 3, 1, seed=1), auto_broadcast="pdpd"),
    )
] + [
    case("LogicalNot-1", truths(*shape))
    for shape in ((), (7,), (1,), (0,), (2, 3), (2, 0, 3), (2, 3, 1, 2), (1, 2, 2, 3, 2))
]
