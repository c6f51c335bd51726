"""Axes that count from the end, and shapes with axes removed."""

from __future__ import annotations

from collections.abc import Iterable

from ..errors import InferenceError
from ..ir.dimension import Dimension
from ..ir.shape import PartialShape
from ..ir.tensor import Array, Value

__all__ = ["axes_of", "check_list", "normalize_axes", "normalize_axis", "reduced_shape"]


def normalize_axis(axis: int, rank: int, name: str = "axis", of: str = "rank", least: int = 0) -> int:
    """Count an axis from the front; raise if it is out of range.

    Args:
        axis: the axis; a negative one counts from the end.
        rank: the number of axes.
        name: the source of the axis, for messages.
        of: the tensor of that rank, for messages.
        least: 1 if OpenVINO accepts axes 0 and -1 for a scalar, which the operation then leaves unchanged.
    """
    count = max(rank, least)
    if not -count <= axis < count:
        allowed = f"{-count} to {count - 1} are allowed" if count else "a scalar has no axes"
        raise InferenceError(f"{name} {axis} is out of range for {of} {rank}: {allowed}")
    return axis % count


def normalize_axes(
    axes: Iterable[int], rank: int, name: str = "axis", of: str = "rank", least: int = 0
) -> tuple[int, ...]:
    """Count axes from the front; raise if one is out of range or repeated; see `normalize_axis`."""
    listed = tuple(axes)
    normalized = tuple(normalize_axis(axis, rank, name, of, least) for axis in listed)
    twice = next((axis for axis in normalized if normalized.count(axis) > 1), None)
    if twice is not None:
        raise InferenceError(f"axes {list(listed)} name axis {twice} twice, where each may be named once")
    return normalized


def axes_of(axes: Array) -> tuple[int, ...]:
    """Return the axes in a scalar or 1-D array as a tuple."""
    return tuple(axes.ravel().tolist())


def check_list(value: Value, name: str) -> None:
    """Require a scalar or a 1-D tensor."""
    if value.shape.rank is not None and value.shape.rank > 1:
        raise InferenceError(f"{name} must be a scalar or 1-D, not of shape {value.shape}")


def reduced_shape(shape: PartialShape, axes: Value, keep_dims: bool, least: int = 0) -> PartialShape:
    """Return the shape after reducing ``axes``, possibly unknown; ``least`` is as in `normalize_axis`."""
    check_list(axes, "axes")
    values = axes.ints()
    if shape.rank is None:
        return PartialShape.dynamic()
    if values is not None:
        gone = set(normalize_axes(values, shape.rank, least=least))
        if shape.rank and keep_dims:
            return shape.replace(dict.fromkeys(gone, 1))
        return PartialShape([d for i, d in enumerate(shape) if i not in gone])
    if axes.count.min > max(shape.rank, least):
        raise InferenceError(f"axes has length {axes.count}, but data {shape} has rank {shape.rank}")
    if axes.count == 0 or not shape.rank:
        return shape
    if keep_dims:
        return PartialShape([d.join(Dimension(1)) for d in shape])
    if not axes.count.is_static:
        return PartialShape.dynamic()
    return _some_of(shape, shape.rank - axes.count.__index__())


def _some_of(shape: PartialShape, left: int) -> PartialShape:
    """Return ``left`` dimensions of a shape, in order, if it is unknown which ones."""
    places = [shape[i : len(shape) - left + i + 1] for i in range(left)]
    joined = []
    for candidates in places:
        dim = candidates[0]
        for other in candidates[1:]:
            dim = dim.join(other)
        joined.append(dim)
    return PartialShape(joined)
