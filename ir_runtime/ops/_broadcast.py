"""Broadcasting rules: ``none``, ``numpy`` and ``pdpd``."""

from __future__ import annotations

from typing import Literal, TypeAlias

from ..errors import InferenceError
from ..ir.dimension import Dimension
from ..ir.shape import PartialShape
from ..ir.tensor import Array

__all__ = ["NAMES", "Rule", "align", "broadcast_dims", "broadcast_onto", "broadcast_shapes"]

Rule: TypeAlias = Literal["none", "numpy", "pdpd"]
Names: TypeAlias = tuple[str, str]

NAMES = ("shape", "shape")
"""The default names of two inputs in messages."""


def broadcast_shapes(
    a: PartialShape, b: PartialShape, rule: Rule = "numpy", names: Names = NAMES
) -> PartialShape:
    """Return the shape of an elementwise operation on two inputs, which are named for messages.

    Raises:
        InferenceError: if the shapes cannot be broadcast.
    """
    if rule == "none":
        return _equal(a, b, names)
    if rule == "pdpd":
        return _onto(a, b, names)
    if a.rank is None or b.rank is None:
        return PartialShape.dynamic()
    if a.is_static and b.is_static:  # of most layers, one input has the shape of the output
        if _fits(b.static, a.static):
            return a
        if _fits(a.static, b.static):
            return b
    rank = max(a.rank, b.rank)
    left = [Dimension(1)] * (rank - a.rank) + list(a)
    right = [Dimension(1)] * (rank - b.rank) + list(b)
    dims = [broadcast_dims(x, y) for x, y in zip(left, right, strict=True)]
    if None in dims:
        axis = dims.index(None) - rank
        raise InferenceError(
            f"{names[0]} {a} and {names[1]} {b} do not broadcast: along axis {axis}, {left[axis]} meets "
            f"{right[axis]}, where both must be equal or one of them 1"
        )
    return PartialShape([d for d in dims if d is not None])


def _fits(lengths: tuple[int, ...], into: tuple[int, ...]) -> bool:
    """Return whether a tensor is repeated to the lengths of another one."""
    if len(lengths) > len(into):
        return False
    pairs = zip(lengths, into[len(into) - len(lengths) :], strict=True)
    return lengths == into or all(own in (1, length) for own, length in pairs)


def broadcast_dims(a: Dimension, b: Dimension) -> Dimension | None:
    """Return the broadcast of two dimensions, or ``None`` if they are incompatible.

    >>> broadcast_dims(Dimension(1), Dimension(2, 8)), broadcast_dims(Dimension(), Dimension(4))
    (<Dimension: 2..8>, <Dimension: 4>)
    >>> broadcast_dims(Dimension(3), Dimension(4)) is None
    True
    """
    if a == 1 or (a.symbol is not None and a.symbol is b.symbol):
        return b
    if b == 1:
        return a
    if not a.contains(1) and not b.contains(1):
        return a.merge(b)
    if not a.contains(1):
        return a if b.contains(1) or a.compatible(b) else None
    if not b.contains(1):
        return b
    low = max(a.min, b.min) if a.min and b.min else 0
    high = None if a.max is None or b.max is None else max(a.max, b.max)
    return Dimension.between(low, high)


def broadcast_onto(
    a: PartialShape, b: PartialShape, rule: Rule = "numpy", names: Names = NAMES
) -> PartialShape:
    """Return the shape ``a`` refined by ``b``, which must broadcast to it.

    >>> broadcast_onto(PartialShape("?,?,4"), PartialShape("1,3,1"))
    <PartialShape: [?,3,4]>
    """
    if rule != "numpy":
        return _onto(a, b, names) if rule == "pdpd" else _equal(a, b, names)
    if a.rank is None or b.rank is None:
        return a
    extra = max(len(b) - a.rank, 0)
    dims = [Dimension(1)] * (a.rank - len(b)) + list(b)[extra:]
    fitted = [_stretch(x, y) for x, y in zip(a, dims, strict=True)]
    if None in fitted or not all(d.contains(1) for d in b[:extra]):
        raise InferenceError(
            f"{names[1]} {b} does not broadcast to {names[0]} {a}: counted from the last axis, each length must "
            f"be equal or 1"
        )
    return PartialShape([d for d in fitted if d is not None])


def align(b: Array, rank: int, axis: int = 0) -> Array:
    """Append axes to ``b`` so that it aligns with a tensor of ``rank`` from ``axis`` on.

    Excess trailing axes of length 1 are dropped.
    """
    start = rank - b.ndim if axis < 0 else axis
    return b.reshape((b.shape + (1,) * rank)[: rank - start])


def _equal(a: PartialShape, b: PartialShape, names: Names) -> PartialShape:
    merged = a.merge(b)
    if merged is None:
        raise InferenceError(
            f"{names[0]} {a} and {names[1]} {b} differ, and auto_broadcast is none",
            hint="auto_broadcast numpy stretches lengths of 1",
        )
    return merged


def _onto(a: PartialShape, b: PartialShape, names: Names) -> PartialShape:
    """Broadcast by PDPD with axis 0, as in files: ``b`` aligns with the first axes of ``a``."""
    if a.rank is None or b.rank is None:
        return a
    dims = list(b)
    while dims and dims[-1] == 1 and len(dims) > a.rank:
        dims.pop()
    padded = [*dims, *[Dimension(1)] * (a.rank - len(dims))]
    fitted = [_stretch(x, y) for x, y in zip(a, padded, strict=False)]
    if len(padded) > a.rank or None in fitted:
        raise InferenceError(
            f"{names[1]} {b} does not fit into {names[0]} {a}, as auto_broadcast pdpd requires: counted from the "
            f"first axis, each length must be equal or 1"
        )
    return PartialShape([d for d in fitted if d is not None])


def _stretch(a: Dimension, b: Dimension) -> Dimension | None:
    return a if b.contains(1) else a.merge(b)
