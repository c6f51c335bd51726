"""The content of a tensor: its data, type and shape."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike

from ..absent import ExplainsAbsent
from ..codes import Code
from ..errors import InputError
from ..ir.element import ElementType
from ..ir.tensor import Array
from .shapes import Shape
from .tensor_data import as_text, decoded, encoded

if TYPE_CHECKING:
    from .vectors import Strides

__all__ = ["TensorContent"]

# What std::string takes, which OpenVINO counts for each string of a tensor.
_STRING_BYTES = 32


class TensorContent(ExplainsAbsent):
    """An array with an element type, and the memory that it may fill.

    What a tensor holds:

    >>> import numpy as np
    >>> import ir_runtime as ov
    >>> tensor = ov.Tensor(np.float32([[1, 2, 3]]))
    >>> tensor.data, tensor.element_type, tensor.size, tensor.byte_size, tensor.strides, tensor.is_continuous()
    (array([[1., 2., 3.]], dtype=float32), <Type: 'float32'>, 3, 12, <Strides: (12, 4)>, True)
    >>> text = ov.Tensor(np.array(["a", "b"]))
    >>> text.str_data, text.bytes_data
    (array(['a', 'b'], dtype='<U1'), array([b'a', b'b'], dtype='|S1'))
    """

    __slots__ = ("__weakref__", "_data", "_element", "_is_shared", "_memory")
    _data: Array
    _element: ElementType
    _memory: Array
    """What it may fill when its shape changes."""
    _is_shared: bool
    """Whether the memory is another's."""

    def _hold(self, array: Array, is_shared: bool) -> None:
        self._data = self._memory = array
        self._is_shared = is_shared

    @property
    def data(self) -> Array:
        """The array itself, to read and to write; of strings, a copy as bytes in UTF-8."""
        return encoded(self._data) if self._element is ElementType.string else self._data

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
        if self._element is ElementType.string:
            return self._data.size * _STRING_BYTES
        return self._element.nbytes(self._data.size)

    @property
    def strides(self) -> Strides:
        """The number of bytes from one element to the next along each axis."""
        from .vectors import Strides

        if self._element is ElementType.string:
            return Strides(stride // self._data.itemsize * _STRING_BYTES for stride in self._data.strides)
        return Strides(self._data.strides)

    @property
    def str_data(self) -> Array:
        """The contents of a tensor of strings, as text; setting them keeps the shape."""
        return as_text(self._strings())

    @str_data.setter
    def str_data(self, strings: object) -> None:
        self._fill(strings)

    @property
    def bytes_data(self) -> Array:
        """The contents of a tensor of strings, as bytes in UTF-8; setting them keeps the shape."""
        return encoded(self._strings())

    @bytes_data.setter
    def bytes_data(self, strings: object) -> None:
        self._fill(strings)

    def _strings(self) -> Array:
        if self._element is not ElementType.string:
            raise InputError(
                f"a tensor of {self._element.label} does not hold strings", code=Code.BAD_REQUEST
            )
        return self._data

    def _fill(self, strings: object) -> None:
        """Replace all strings."""
        given, held = np.asarray(strings), self._strings()
        if given.size != held.size or given.dtype.kind not in "SUTO":
            raise InputError(
                f"expected {held.size} strings, got {given.size} of {given.dtype.name}", code=Code.BAD_REQUEST
            )
        self._hold(decoded(given).astype(object).reshape(held.shape), is_shared=False)

    def is_continuous(self) -> bool:
        """Return whether the elements are contiguous."""
        return self._data.flags.c_contiguous

    def get_strides(self) -> Strides:
        """Return the number of bytes from one element to the next along each axis."""
        return self.strides

    def get_shape(self) -> Shape:
        """Return the shape."""
        return self.shape

    def get_element_type(self) -> ElementType:
        """Return the element type."""
        return self.element_type

    def get_size(self) -> int:
        """Return the number of elements."""
        return self.size

    def get_byte_size(self) -> int:
        """Return the number of bytes, packed."""
        return self.byte_size

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> Array:
        return np.array(self._data, dtype, copy=copy)

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return self._data.__array_interface__

    def __dlpack__(self, **how: Any) -> object:
        from .dlpack import to_dlpack

        return to_dlpack(self._data, **how)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._data.__dlpack_device__()
