"""Inputs whose known elements must be in a range from 0."""

from __future__ import annotations

from ..errors import InferenceError
from ..ir.dimension import Dimension
from ..ir.tensor import Value

__all__ = ["check_at_most", "check_below"]


def check_below(value: Value, name: str, count: Dimension, things: str) -> None:
    """Require indices from 0 to below ``count``."""
    if (wrong := _outside(value, None if count.max is None else count.max - 1)) is not None:
        raise InferenceError(
            f"{name} holds {wrong}, but there are {count} {things}, counted from 0",
            clause=f"{name} is at least 0 and less than the number of {things}",
        )


def check_at_most(value: Value, name: str, most: Dimension, what: str) -> None:
    """Require numbers up to and including ``most``."""
    if (wrong := _outside(value, most.max)) is not None:
        raise InferenceError(
            f"{name} holds {wrong}; from 0 to {most}, {what}, is expected",
            clause=f"{name} is at least 0 and at most the maximum, {what}",
        )


def _outside(value: Value, highest: int | None) -> int | None:
    contents = value.known()
    if contents is None:
        return None
    wrong = contents[contents < 0] if highest is None else contents[(contents < 0) | (contents > highest)]
    return int(wrong.flat[0]) if wrong.size else None
