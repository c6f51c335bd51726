"""Tensors of the bytes of a file."""

from __future__ import annotations

import os

import numpy as np

from .tensor import Tensor

__all__ = ["tensor_from_file"]


def tensor_from_file(path: str | os.PathLike[str]) -> Tensor:
    """Return a tensor of the bytes of a file, which are read.

    >>> import tempfile
    >>> from pathlib import Path
    >>> import ir_runtime as ov
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     count = (path := Path(folder) / "numbers.bin").write_bytes(bytes([1, 2, 3]))
    ...     ov.tensor_from_file(path).data.tolist()
    [1, 2, 3]

    Raises:
        OSError: if the file cannot be read.
    """
    return Tensor(np.fromfile(path, np.uint8))
