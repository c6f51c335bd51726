"""The declarations of legacy layers, grouped by the operations that replace them."""

from . import (
    activation,
    arithmetic,
    convolution,
    detection,
    ends,
    image,
    movement,
    normalization,
    recurrent,
    reduction,
    shape,
    sparse,
    uncertain,
)

__all__ = [
    "activation",
    "arithmetic",
    "convolution",
    "detection",
    "ends",
    "image",
    "movement",
    "normalization",
    "recurrent",
    "reduction",
    "shape",
    "sparse",
    "uncertain",
]
