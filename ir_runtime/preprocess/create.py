"""Create the nodes that steps consist of."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ir.element import ElementType
from ..ir.tensor import Array
from ..openvino.node import Node, Output

__all__ = ["create", "i32", "i64", "numbers"]


def create(type: str, *inputs: Output | Array, opset: int = 8, **attributes: Any) -> Output:
    """Create an operation with one output, and return that. Arrays are Constants."""
    return Node.create(type, opset, inputs, attributes).output(0)


def i32(values: Any) -> Array:
    """Return integers as an array of ``i32``."""
    return np.asarray(values, np.int32)


def i64(values: Any) -> Array:
    """Return integers as an array of ``i64``."""
    return np.asarray(values, np.int64)


def numbers(values: Any, element: ElementType) -> Array:
    """Return numbers of ``f32``, which is what steps take, as an array of another type."""
    return np.asarray(values, np.float32).astype(element.dtype)
