"""Parameters of normalizations: one number per channel."""

from __future__ import annotations

from ..errors import InferenceError
from ..ir.dimension import Dimension
from ..ir.shape import PartialShape
from ..ir.tensor import Array, Value
from ._lengths import check_vector
from .kernels.statistics import compute_dtype

__all__ = ["per_channel", "with_channels"]


def with_channels(data: Value, settings: dict[str, Value]) -> PartialShape:
    """Return the shape of the data, whose channels must match the length of each parameter."""
    shape = data.shape
    if shape.rank is not None and shape.rank < 2:
        raise InferenceError(
            f"data has shape {shape}; at least two axes are expected, [N, C, ...]",
            clause="data has at least two axes, [N, C, ...]",
        )
    channels = Dimension() if shape.rank is None else shape[1]
    for name, value in settings.items():
        check_vector(value, name)
        if value.shape.rank == 1:
            both = channels.merge(value.shape[0])
            if both is None:
                has_rank = shape.rank is not None and shape[1] == channels
                subject = f"data {shape} has" if has_rank else "by the inputs before it there are"
                raise InferenceError(
                    f"{name} has length {value.shape[0]}, but {subject} {channels} channels",
                    clause=f"{name} has one number for each channel",
                )
            channels = both
    if channels == 0:
        raise InferenceError(
            f"axis 1 of data {shape}, the channels, has length 0; at least 1 is expected",
            clause="data has at least one channel",
        )
    return shape if shape.rank is None else shape.replace({1: channels})


def per_channel(numbers: Array, rank: int) -> Array:
    """Reshape one number per channel to broadcast along the second axis."""
    return numbers.astype(compute_dtype(numbers.dtype), copy=False).reshape(-1, *[1] * (rank - 2))
