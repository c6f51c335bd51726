"""Inputs with named axes; equal names mean equal lengths."""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import InferenceError
from ..ir.dimension import Dimension
from ..ir.shape import PartialShape

__all__ = ["fit_axes"]


def fit_axes(name: str, axes: Sequence[str], shape: PartialShape, lengths: dict[str, Dimension]) -> None:
    """Require an input to have these axes, and merge their lengths into ``lengths``.

    >>> lengths = {"time": Dimension(4)}
    >>> fit_axes("data", ("batch", "time"), PartialShape("2,?"), lengths)
    >>> lengths
    {'time': <Dimension: 4>, 'batch': <Dimension: 2>}
    >>> fit_axes("mask", ("time", "batch"), PartialShape("4,3"), lengths)
    Traceback (most recent call last):
    ir_runtime.errors.InferenceError: error[IR301]: mask has shape [4,3]; [time 4, batch 2] is expected
      clause: mask has the shape [time, batch], with the same lengths as other inputs
    """
    if shape.rank is None:
        return
    merged = [d.merge(lengths.get(a, d)) for a, d in zip(axes, shape, strict=False)]
    if len(axes) != shape.rank or None in merged:
        expected = ", ".join(f"{axis} {lengths[axis]}" if axis in lengths else axis for axis in axes)
        raise InferenceError(
            f"{name} has shape {shape}; [{expected}] is expected",
            clause=f"{name} has the shape [{', '.join(axes)}], with the same lengths as other inputs",
        )
    lengths |= {axis: dim for axis, dim in zip(axes, merged, strict=True) if dim is not None}
