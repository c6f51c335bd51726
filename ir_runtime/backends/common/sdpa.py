"""What the kernels of scaled dot product attention (SDPA) share."""

from __future__ import annotations

from ...ir.element import ElementType
from ...ir.tensor import Value
from .layout import is_f32

__all__ = ["supports_sdpa"]


def supports_sdpa(query: Value, key: Value, value: Value, *others: Value) -> bool:
    """Return whether inputs are f32 of rank 4, with a mask of f32 or boolean; the scale may be anything."""
    if not is_f32(query, key, value, *others[1:]) or any(v.shape.rank != 4 for v in (query, key, value)):
        return False
    return not others or others[0].element in (ElementType.f32, ElementType.boolean)
