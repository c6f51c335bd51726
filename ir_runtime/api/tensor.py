"""Tensors that inference requests hold."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import InputError
from ..ir.element import ElementType
from ..ir.tensor import Array

__all__ = ["Tensor"]


class Tensor:
    """An array with an element type. As OpenVINO's ``Tensor``.

    Args:
        array: the contents, or an element type for a tensor of zeros.
        shape: the shape, if an element type is given; or an array's ``shared_memory``.
        shared_memory: use the array itself, not a copy.

    >>> Tensor(np.ones((2, 3), np.float32))
    <Tensor: shape[2,3] type: f32>
    """

    def __init__(
        self,
        array: Any = None,
        shape: Sequence[int] | bool | None = None,
        *,
        shared_memory: bool = False,
        type: ElementType | None = None,
    ) -> None:
        if isinstance(array, ElementType):
            array, type = None, array
        if array is None:
            element = type or ElementType.f32
            self._data: Array = np.zeros(
                tuple(shape or ()) if not isinstance(shape, bool) else (), element.dtype
            )
            self._element = element
            return
        shared = shared_memory or shape is True
        self._data = np.asarray(array) if shared else np.array(array)
        self._element = type or ElementType.from_dtype(self._data.dtype)

    @property
    def data(self) -> Array:
        """The array itself, to read and to write."""
        return self._data

    @data.setter
    def data(self, values: Any) -> None:
        self.copy_from(values)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape."""
        return self._data.shape

    @property
    def element_type(self) -> ElementType:
        """The element type."""
        return self._element

    @property
    def size(self) -> int:
        """The number of elements."""
        return self._data.size

    @property
    def byte_size(self) -> int:
        """The number of bytes, packed."""
        return self._element.nbytes(self._data.size)

    def get_shape(self) -> tuple[int, ...]:
        """The shape."""
        return self.shape

    def get_element_type(self) -> ElementType:
        """The element type."""
        return self.element_type

    def get_size(self) -> int:
        """The number of elements."""
        return self.size

    def get_byte_size(self) -> int:
        """The number of bytes, packed."""
        return self.byte_size

    def set_shape(self, shape: Sequence[int]) -> None:
        """Give it another shape; contents are kept only where the number of elements is the same."""
        same = math.prod(shape) == self._data.size
        self._data = self._data.reshape(tuple(shape)) if same else np.zeros(tuple(shape), self._data.dtype)

    def copy_from(self, source: Any) -> None:
        """Take the contents of an array or tensor of the same element type and shape."""
        array = source.data if isinstance(source, Tensor) else np.asarray(source)
        if array.dtype != self._data.dtype or array.shape != self._data.shape:
            raise InputError(
                f"a tensor of {self._element}{list(self.shape)} cannot take "
                f"{array.dtype.name}{list(array.shape)}",
                hint="set_shape changes the shape, astype the type",
            )
        self._data[...] = array

    def copy_to(self, target: Tensor) -> None:
        """Give the contents to another tensor of the same element type and shape."""
        target.copy_from(self)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.array(self._data, dtype, copy=copy)

    def __repr__(self) -> str:
        return f"<Tensor: shape[{','.join(map(str, self.shape))}] type: {self._element}>"
