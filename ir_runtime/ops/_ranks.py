"""Inputs that must have an expected number of axes."""

from __future__ import annotations

from ..errors import InferenceError
from ..ir.shape import PartialShape
from ..ir.tensor import Value

__all__ = ["check_one_number", "check_scalar", "check_vector", "of_rank"]


def check_scalar(value: Value, name: str) -> None:
    """Require a 0-D tensor."""
    if value.shape.rank not in (None, 0):
        raise InferenceError(f"{name} must be a scalar, not of shape {value.shape}")


def check_vector(value: Value, name: str) -> None:
    """Require a 1-D tensor."""
    if value.shape.rank not in (None, 1):
        raise InferenceError(f"{name} must be 1-D, not of shape {value.shape}")


def check_one_number(value: Value, name: str) -> None:
    """Require a single number, in a tensor of at most one dimension."""
    if value.shape.rank not in (None, 0, 1) or not value.count.contains(1):
        raise InferenceError(f"{name} must be one number, not of shape {value.shape}")


def of_rank(value: Value, name: str, layout: str) -> PartialShape:
    """Return the shape of an input that must have the rank of a ``layout`` such as ``[N, C]``."""
    rank = layout.count(",") + 1
    if value.shape.rank is None:
        return PartialShape.dynamic(rank)
    if value.shape.rank != rank:
        raise InferenceError(f"{name} must have rank {rank}, {layout}, found {value.shape}")
    return value.shape
