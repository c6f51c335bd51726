"""Output contracts: check results against inferred types."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..codes import Code
from ..errors import ExecutionError
from ..ir.element import ElementType
from ..ir.graph import Layer
from ..ir.tensor import Array, TensorType

__all__ = ["OutputContract"]


@dataclass(frozen=True, slots=True)
class OutputContract:
    """The inferred type of an output of a layer."""

    layer: Layer
    type: TensorType
    dtype: np.dtype[np.generic] | None
    shape: tuple[int, ...] | None
    """The shape, if all of it is known."""

    @classmethod
    def of(cls, layer: Layer, type: TensorType) -> OutputContract:
        """Return the contract of an output from its inferred type."""
        dtype = None if type.element is ElementType.dynamic else type.element.dtype
        return cls(layer, type, dtype, type.shape.static if type.shape.is_static else None)

    def check(self, array: Array) -> None:
        """Check a result.

        Raises:
            ExecutionError: if the result differs; it names the layer.
        """
        fits = array.shape == self.shape or self.type.shape.contains(array.shape)
        if fits and (self.dtype is None or array.dtype == self.dtype):
            return
        raise ExecutionError(
            f"gave {_describe(array)} where {self.type} was inferred",
            code=Code.LAYER_FAILED,
            where=self.layer.where,
            hint="what the file says of the layer contradicts what it computes",
        )


def _describe(array: Array) -> str:
    try:
        element = ElementType.from_dtype(array.dtype).label
    except ValueError:  # an operation may give what has no element type
        element = array.dtype.name
    return f"{element}[{','.join(map(str, array.shape))}]"
