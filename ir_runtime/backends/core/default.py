"""The default backend: native if there is a library for the processor, otherwise numpy."""

from __future__ import annotations

import warnings
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from ...errors import InputError

if TYPE_CHECKING:
    from ..native.machine_code.library import Library

__all__ = ["TYPES", "default_backend", "native_library", "silent_default"]

TYPES = (
    "Add", "AvgPool", "Clamp", "Concat", "Convert", "Convolution", "Gather", "GroupConvolution", "MatMul", "MaxPool",
    "Multiply", "MVN", "ReLU", "ReduceMean", "Reshape", "Sigmoid", "Slice", "SoftMax", "Split", "Transpose",
)  # fmt: skip
"""Operations that most models have."""


def native_library() -> Library:
    """Return the library of the native backend, loading it if needed.

    Raises:
        InputError: if no library is usable.
    """
    module = import_module(".native.machine_code.library", __package__.rpartition(".")[0])
    found: Library = module.library()
    return found


def default_backend() -> str:
    """Return the default backend; the first time, warn if it is numpy, with the reason."""
    if (message := _lack()) is None:
        return "native"
    _warn_once(message)
    return "numpy"


def silent_default() -> str:
    """Return what `default_backend` returns, without a warning."""
    return "native" if _lack() is None else "numpy"


@cache
def _lack() -> str | None:
    """Return why the native backend is unusable, or ``None``."""
    try:
        native_library()
    except InputError as reason:
        return f"the backend 'numpy' is used, as {reason.message}: {reason.hint}"
    return None


@cache
def _warn_once(message: str) -> None:
    warnings.warn(message, RuntimeWarning, stacklevel=3)
