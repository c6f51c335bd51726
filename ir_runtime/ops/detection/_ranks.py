"""Inputs of a known number of axes."""

from __future__ import annotations

from ...errors import InferenceError
from ...ir.shape import PartialShape
from ...ir.tensor import Value

__all__ = ["of_rank"]


def of_rank(value: Value, name: str, layout: str) -> PartialShape:
    """Return the shape of an input that must have as many axes as ``layout``, such as ``[N, C]``, has."""
    rank = layout.count(",") + 1
    if value.shape.rank is None:
        return PartialShape.dynamic(rank)
    if value.shape.rank != rank:
        raise InferenceError(f"{name} must have rank {rank}, {layout}, found {value.shape}")
    return value.shape
