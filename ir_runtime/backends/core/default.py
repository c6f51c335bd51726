"""Which backend runs a model if nobody says: numba where it is installed, has its kernels, and is worth it."""

from __future__ import annotations

import warnings
from importlib import import_module
from importlib.util import find_spec

__all__ = ["TYPES", "settled", "usual"]

TYPES = (
    "Add", "AvgPool", "Clamp", "Concat", "Convert", "Convolution", "Gather", "GroupConvolution", "MatMul", "MaxPool",
    "Multiply", "MVN", "ReLU", "ReduceMean", "Reshape", "Sigmoid", "Slice", "SoftMax", "Split", "Transpose",
)  # fmt: skip
"""Operations that most models have."""


def settled(large: bool) -> str:
    """The name of the backend that is `usual` once its kernels are compiled."""
    if not large or not find_spec("numba"):
        return "numpy"
    try:
        import_module(".numba.jit.build_all", __package__.rpartition(".")[0]).ready()
    except (ImportError, OSError):  # an installation that is broken, of which `usual` warns
        return "numpy"
    return "numba"


def usual(large: bool, begin: bool = True) -> str:
    """The name of a backend.

    Args:
        large: whether the model is worth loading machine code for, which takes 50 ms.
        begin: whether kernels that numba has not made yet are begun in the background; what is compiled
            until they are there runs on numpy. Without, things are left as they are, and nothing is said.
    """
    if not large or not (find_spec("numba") and find_spec("platformdirs")):
        return "numpy"
    try:
        making = import_module(".numba.jit.build_all", __package__.rpartition(".")[0])
        if making.ready():
            return "numba"
        if begin:
            making.in_background()
    except (ImportError, OSError) as reason:  # an installation that is broken
        if begin:
            warnings.warn(f"numba cannot be used, so numpy is: {reason}", RuntimeWarning, stacklevel=2)
    return "numpy"
