"""Tensors that inference requests hold."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..codes import Code
from ..errors import InputError
from ..ir.array import Packed
from ..ir.element import ElementType
from ..ir.tensor import Array
from .shapes import Shape

__all__ = ["Tensor", "unpacked"]


class Tensor:
    """An array with an element type. As OpenVINO's ``Tensor``.

    Args:
        array: the contents, or an element type for a tensor of zeros. Beside a shape and a type of
            less than a byte, the packed bytes.
        shape: the shape; or, as in OpenVINO, an array's ``shared_memory``.
        type: the element type, where the array's dtype does not say.
        shared_memory: use the array itself, not a copy.

    >>> Tensor(np.ones((2, 3), np.float32))
    <Tensor: shape[2,3] type: f32>
    """

    def __init__(
        self,
        array: Any,
        shape: Sequence[int] | bool | None = None,
        type: ElementType | None = None,
        *,
        shared_memory: bool = False,
    ) -> None:
        shared, lengths = (shape, None) if isinstance(shape, bool) else (shared_memory, shape)
        if isinstance(array, ElementType):
            self._element = array
            self._data: Array = np.zeros(tuple(lengths or ()), array.dtype)
            return
        self._data = np.asarray(array) if shared else np.array(array, order="C")
        if lengths is not None and type is not None and 0 < type.bits < 8:
            self._data = unpacked(self._data, type, lengths)
        elif lengths is not None:
            self._data = self._data.reshape(tuple(lengths))
        try:
            said = None if type is ElementType.dynamic else type
            self._element = said or ElementType.from_dtype(self._data.dtype)
        except ValueError as reason:
            raise InputError(str(reason), code=Code.BAD_REQUEST) from None
        if self._data.dtype != self._element.dtype and self._element is not ElementType.string:
            raise InputError(
                f"a tensor of {self._element} is an array of {self._element.dtype.name}, "
                f"not of {self._data.dtype.name}",
                code=Code.BAD_REQUEST,
                hint=f"array.astype({self._element.dtype.name!r}) converts the values; "
                "array.view reinterprets the bytes",
            )

    @property
    def data(self) -> Array:
        """The array itself, to read and to write."""
        return self._data

    @property
    def shape(self) -> Shape:
        """The shape."""
        return Shape(self._data.shape)

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

    @property
    def strides(self) -> tuple[int, ...]:
        """How many bytes lie from one element to the next along each axis."""
        return self._data.strides

    @property
    def str_data(self) -> Array:
        """The contents of a tensor of strings, as text."""
        return self._strings().astype(np.str_)

    @property
    def bytes_data(self) -> Array:
        """The contents of a tensor of strings, as bytes in UTF-8."""
        return np.char.encode(self.str_data, "utf-8")

    def _strings(self) -> Array:
        if self._element is not ElementType.string:
            raise InputError(f"a tensor of {self._element} does not hold strings", code=Code.BAD_REQUEST)
        return self._data

    def is_continuous(self) -> bool:
        """Whether the elements lie side by side."""
        return self._data.flags.c_contiguous

    def get_strides(self) -> tuple[int, ...]:
        """How many bytes lie from one element to the next along each axis."""
        return self.strides

    def get_shape(self) -> Shape:
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
        if tuple(shape) == self._data.shape:
            return
        same = math.prod(shape) == self._data.size
        self._data = self._data.reshape(tuple(shape)) if same else np.zeros(tuple(shape), self._data.dtype)

    def copy_from(self, source: Any) -> None:
        """Take the contents of an array or tensor of the same element type, and its shape.

        Raises:
            InputError: if it has another element type.
        """
        array = source.data if isinstance(source, Tensor) else np.asarray(source)
        if self._element is ElementType.dynamic:
            self._data, self._element = np.array(array), ElementType.from_dtype(array.dtype)
            return
        if array.dtype != self._data.dtype:
            raise InputError(
                f"a tensor of {self._element} cannot take an array of {array.dtype.name}",
                code=Code.BAD_REQUEST,
                hint=f"array.astype({self._data.dtype.name!r}) converts the values",
            )
        self.set_shape(array.shape)
        self._data[...] = array

    def copy_to(self, target: Tensor) -> None:
        """Give the contents to another tensor of the same element type, and the shape."""
        target.copy_from(self)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.array(self._data, dtype, copy=copy)

    def __repr__(self) -> str:
        return f"<Tensor: shape{self.shape} type: {self._element}>"


def unpacked(raw: Array, element: ElementType, shape: Sequence[int]) -> Array:
    """The numbers that OpenVINO has packed into bytes.

    Raises:
        InputError: if they do not take that many bytes.
    """
    needed = element.nbytes(math.prod(shape))
    if raw.nbytes != needed:
        raise InputError(
            f"{element}{list(shape)} takes {needed} packed bytes, not {raw.nbytes}",
            code=Code.BAD_REQUEST,
            hint="an array of unpacked values has a shape of its own: omit the shape",
        )
    flat = np.ascontiguousarray(raw).reshape(-1).view(np.uint8)
    return Packed(flat, element, tuple(shape)).unpack()
