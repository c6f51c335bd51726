"""The default backend: numba where it is installed, its kernels are compiled, and the model is large enough."""

from __future__ import annotations

import warnings
from importlib import import_module
from importlib.util import find_spec

__all__ = ["TYPES", "default_backend", "eventual_backend"]

TYPES = (
    "Add", "AvgPool", "Clamp", "Concat", "Convert", "Convolution", "Gather", "GroupConvolution", "MatMul", "MaxPool",
    "Multiply", "MVN", "ReLU", "ReduceMean", "Reshape", "Sigmoid", "Slice", "SoftMax", "Split", "Transpose",
)  # fmt: skip
"""Operations that most models have."""


def eventual_backend(large: bool) -> str:
    """Return what `default_backend` returns once kernels are compiled."""
    if not large or not find_spec("llvmlite"):
        return "numpy"
    try:
        import_module(".numba.machine_code.build_all", __package__.rpartition(".")[0]).ready()
    except (ImportError, OSError):  # a broken installation, of which `default_backend` warns
        return "numpy"
    return "numba"


def default_backend(large: bool, begin: bool = True) -> str:
    """Return the name of the backend for a model for which none was asked.

    Args:
        large: whether the model is worth loading machine code for, which takes 50 ms.
        begin: whether to start compiling missing kernels in the background; numpy serves until that ends.
            Without, nothing is started, and no warning given.
    """
    if not large or not (find_spec("llvmlite") and find_spec("platformdirs")):
        return "numpy"
    try:
        build = import_module(".numba.machine_code.build_all", __package__.rpartition(".")[0])
        if build.ready():
            return "numba"
        if begin:
            build.in_background()
    except (ImportError, OSError) as reason:  # a broken installation
        if begin:
            warnings.warn(f"numba cannot be used, so numpy is: {reason}", RuntimeWarning, stacklevel=2)
    return "numpy"
