"""The declarations of legacy layers, in the groups of the operations that they become."""

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
