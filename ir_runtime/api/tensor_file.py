"""Tensors of the bytes of a file."""

from __future__ import annotations

import os

import numpy as np

from .tensor import Tensor

__all__ = ["tensor_from_file"]


def tensor_from_file(path: str | os.PathLike[str]) -> Tensor:
    """Return a tensor of the bytes of a file, which are read.

    Raises:
        OSError: if the file cannot be read.
    """
    return Tensor(np.fromfile(path, np.uint8))
