"""Refusal cases: a model that must be refused for each clause of each operation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from harness.clauses import violations

from ir_runtime.conformance.case import Case
from ir_runtime.ops._define.operation import cite

__all__ = ["refusal_cases"]


def refusal_cases(operations: Iterable[str]) -> Iterator[Case]:
    """Yield a violating model for each clause: reading, compiling, or running on the inputs must fail."""
    for operation in operations:
        for number, violation in enumerate(violations(operation), 1):
            net, feeds = violation.net, list(violation.feeds)
            types = list(violation.types)
            yield Case(
                f"{operation}/refusal-C{number}", operation, "refusal", net.xml(), net.weights, feeds, [], types, [],
                [], "page", clauses=[cite(operation, violation.clause)],
            )  # fmt: skip
