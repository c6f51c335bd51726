"""What inputs must be that set an activation function."""

from __future__ import annotations

from ...errors import InferenceError
from ...ir.tensor import Value

__all__ = ["require_one", "require_scalar"]


def require_scalar(value: Value, name: str) -> None:
    """Require a 0-D tensor."""
    if value.shape.rank not in (None, 0):
        raise InferenceError(f"{name} must be a scalar, not of shape {value.shape}")


def require_one(value: Value, name: str) -> None:
    """Require a single number, in a tensor of at most one dimension."""
    if value.shape.rank not in (None, 0, 1) or not value.count.contains(1):
        raise InferenceError(f"{name} must be one number, not of shape {value.shape}")
