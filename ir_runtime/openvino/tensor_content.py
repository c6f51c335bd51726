"""The content of a tensor: its data, type and shape."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike

from .._util.absent import ExplainsAbsent
from ..codes import Code
from ..errors import InputError
from ..ir.array import Packed
from ..ir.element import ElementType
from ..ir.tensor import Array
from .shapes import Shape
from .tensor_data import as_stored, as_text, decoded, encoded

if TYPE_CHECKING:
    from .vectors import Strides

__all__ = ["TensorContent", "packed_error"]

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

    Elements of less than a byte are packed, and those that NumPy lacks are shown by their bits; ``elements`` has them:

    >>> weights = ov.Tensor(ov.Type.i4, [3])
    >>> weights.elements = np.array([1, -2, 3])
    >>> weights.data, weights.elements
    (array([-31,   3], dtype=int8), array([1, -2, 3], dtype=int4))
    >>> half = ov.Tensor(ov.Type.bf16, [2])
    >>> half.elements[:] = 1
    >>> half.data.view(np.uint16), half.elements
    (array([16256, 16256], dtype=uint16), array([1, 1], dtype=bfloat16))
    """

    __slots__ = ("__weakref__", "_element", "_held", "_is_shared", "_memory")
    _held: Array | Packed
    _element: ElementType
    _memory: Array
    """The array, or the packed bytes, that it may fill when its shape changes."""
    _is_shared: bool
    """Whether the memory is another's."""

    def _hold(self, contents: Array | Packed, is_shared: bool) -> None:
        if self._element.is_packed and not isinstance(contents, Packed):
            contents = Packed.of(contents, self._element)
        self._held = contents
        self._memory = contents.raw if isinstance(contents, Packed) else contents
        self._is_shared = is_shared

    @property
    def _data(self) -> Array:
        """An array with an entry for each element: the memory itself, but a copy where elements are packed."""
        held = self._held
        return held.unpack() if isinstance(held, Packed) else held

    @property
    def data(self) -> Array:
        """The memory, to read and to write, as OpenVINO shows it; of strings, a copy as bytes in UTF-8.

        Elements of less than a byte are packed, of one dimension; those that NumPy lacks are shown by their bits, in
        float16 for bf16 and else in uint8. `elements` has an entry for each.
        """
        held = self._held
        if isinstance(held, Packed):
            return held.raw.view(self._element.stored_dtype)
        return as_stored(held, self._element)

    @property
    def elements(self) -> Array:
        """An array with an entry for each element, of ml_dtypes where NumPy lacks the type; it can be assigned.

        It is the memory itself; but elements of less than a byte are unpacked into a copy, which cannot be written to.
        """
        found = self._data
        if self._element.is_packed:
            found.flags.writeable = False
        return found

    @elements.setter
    def elements(self, values: object) -> None:
        given = np.asarray(values)
        if given.shape != self._held.shape:
            raise InputError(
                f"expected elements of shape {list(self._held.shape)}, got {list(given.shape)}",
                code=Code.BAD_REQUEST,
            )
        if self._element is ElementType.string:
            self._fill(given)
        elif isinstance(held := self._held, Packed):
            held.raw[...] = Packed.of(_exact(given, self._element), self._element).raw
        else:
            held[...] = given

    @property
    def shape(self) -> Shape:
        """The shape."""
        return Shape(self._held.shape)

    @property
    def element_type(self) -> ElementType:
        """The element type."""
        return self._element

    @property
    def size(self) -> int:
        """The number of elements."""
        return self._held.size

    @property
    def byte_size(self) -> int:
        """The number of bytes, packed."""
        if self._element is ElementType.string:
            return self._held.size * _STRING_BYTES
        return self._element.nbytes(self._held.size)

    @property
    def strides(self) -> Strides:
        """The number of bytes from one element to the next along each axis.

        Raises:
            InputError: if elements take less than a byte.
        """
        from .vectors import Strides

        if self._element.is_packed:
            raise packed_error(self._element, "strides")
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
        return isinstance(self._held, Packed) or self._held.flags.c_contiguous

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
        if self._element.dtype.isbuiltin != 1:  # the interface cannot name types of ml_dtypes; __array__ can
            raise AttributeError(name="__array_interface__", obj=self)
        return self._data.__array_interface__

    def __dlpack__(self, **how: Any) -> object:
        from .dlpack import to_dlpack

        return to_dlpack(self._data, **how)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._data.__dlpack_device__()


def packed_error(element: ElementType, what: str) -> InputError:
    """Return the error for a question that has no answer where elements share bytes."""
    return InputError(
        f"tensors of {element.label} have no {what}: elements of {element.bits} bits share bytes",
        code=Code.BAD_REQUEST,
        hint="tensor.elements is an array with an entry for each element",
    )


def _exact(values: Array, element: ElementType) -> Array:
    """Return values in the dtype of an element type.

    Raises:
        InputError: if the type cannot represent one of them; codes of ``nf4`` count as values.
    """
    found = values.astype(element.dtype)
    highest = (1 << element.bits) - 1
    if not np.array_equal(found.astype(values.dtype), values) or (
        element.is_encoded and found.max(initial=0) > highest
    ):
        raise InputError(f"the array has values that {element.label} cannot represent", code=Code.BAD_REQUEST)
    return found
