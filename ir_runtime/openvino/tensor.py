"""`Tensor`, an array with an element type."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import DTypeLike

from .._util.absent import ExplainsAbsent
from ..codes import Code
from ..errors import InputError
from ..ir.array import Packed
from ..ir.element import ElementType
from ..ir.tensor import Array
from .callers import warn
from .ports import TensorPort
from .shapes import Shape
from .tensor_data import (
    as_numpy,
    as_stored,
    as_text,
    decode_strings,
    element_of,
    encode_strings,
    reinterpret,
    view_as_bf16,
    zeros,
)

if TYPE_CHECKING:
    from .shapes import Strides

__all__ = ["Tensor", "tensor_from_file"]

# The size of std::string, which OpenVINO counts for each element of a string tensor.
_STRING_BYTES = 32


class Tensor(ExplainsAbsent):
    """An array with an element type. As OpenVINO's ``Tensor``.

    It is constructed from an array, from the memory of an array with another type and shape, from an element type
    and a shape, from a port of a model with an optional array, or from a region of another tensor. It supports
    NumPy's array interface and DLPack.

    >>> Tensor(np.ones((2, 3), np.float32)), Tensor(ElementType.i64, [4]).shape
    (<Tensor: shape[2,3] type: f32>, <Shape: [4]>)
    >>> tensor = Tensor(ElementType.f32, [2])
    >>> tensor.copy_from(np.ones(3, np.float32))
    >>> tensor.copy_to(other := Tensor(ElementType.f32, [1]))
    >>> other.set_shape([1, 3])
    >>> other
    <Tensor: shape[1,3] type: f32>
    >>> Tensor.of(np.zeros(2, np.uint8), ElementType.u4)
    <Tensor: shape[2] type: u4>
    >>> import ir_runtime as ov
    >>> tensor = ov.Tensor(np.float32([[1, 2, 3]]))
    >>> tensor.data, tensor.element_type, tensor.size, tensor.byte_size, tensor.strides, tensor.is_continuous()
    (array([[1., 2., 3.]], dtype=float32), <Type: 'float32'>, 3, 12, <Strides: (12, 4)>, True)
    >>> text = ov.Tensor(np.array(["a", "b"]))
    >>> text.str_data, text.bytes_data
    (array(['a', 'b'], dtype='<U1'), array([b'a', b'b'], dtype='|S1'))

    ``data`` holds sub-byte elements packed, and types that NumPy lacks as bits. ``elements`` holds their values:

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
    """The array or packed bytes allocated for the tensor, which limit the size of a new shape."""
    _is_shared: bool
    """Whether the memory belongs to an array of the caller."""

    @overload
    def __init__(
        self, array: object, /, shared_memory: bool = False, *, type: ElementType | None = None
    ) -> None: ...
    @overload
    def __init__(self, array: object, /, shape: Sequence[int], type: ElementType = ...) -> None: ...
    @overload
    def __init__(self, array: object, /, *, shape: Sequence[int], shared_memory: bool = False) -> None: ...
    @overload
    def __init__(self, port: TensorPort, /, array: object = None) -> None: ...
    @overload
    def __init__(self, other: Tensor, /, begin: Sequence[int], end: Sequence[int]) -> None: ...
    @overload
    def __init__(self, **keywords: object) -> None: ...
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Create a tensor.

        Args:
            args: the arguments described above, in that order.
            kwargs: the same by OpenVINO's names: ``array``, ``shape``, ``type``, ``shared_memory``, ``port``,
                ``other``, ``begin``, ``end``. With ``shared_memory``, the array itself is used, not a copy. With a
                shape or a port, it always is.

        Raises:
            InputError: if there is no element type for the array's dtype, or the array is too small.
        """
        source, rest = _source(args, kwargs)
        if isinstance(source, TensorPort):
            self._init_of_port(source, *rest, **kwargs)
        elif isinstance(source, Tensor):
            self._init_of_region(source, *rest, **kwargs)
        elif _is_type(source) or (isinstance(source, str) and (rest or "shape" in kwargs)):
            self._init_of_type(source, *rest, **kwargs)
        else:
            self._init_of_array(as_numpy(source), *rest, **kwargs)

    @classmethod
    def of(cls, array: Array, element: ElementType) -> Tensor:
        """Return a tensor that wraps an array without a copy.

        Args:
            array: the contents, whose memory is shared.
            element: the element type, which may have fewer bits than the dtype.
        """
        tensor = cls.__new__(cls)
        tensor._element = element
        tensor._hold(array, is_shared=False)
        return tensor

    def _init_of_port(self, port: TensorPort, array: object = None) -> None:
        self._element = port.element_type
        shape = port._type.shape
        lengths = shape.static if shape.is_static else (0,)  # as in OpenVINO
        if array is None:
            self._hold(zeros(self._element, lengths), is_shared=False)
            return
        source = as_numpy(array)
        bits = view_as_bf16(source, self._element, "the port")
        source = source if bits is None else bits
        if source.dtype not in (self._element.dtype, self._element.stored_dtype):
            warn(
                f"an array of {source.dtype.name} is cast to {self._element.label}, the type of the port",
                RuntimeWarning,
            )
            source = source.astype(self._element.dtype)
        needed = math.prod(lengths)
        if source.size > needed:
            warn(
                f"of an array of shape {list(source.shape)}, a port of shape {shape} takes {needed} elements",
                RuntimeWarning,
            )
        self._hold(reinterpret(source, self._element, lengths), is_shared=True)

    def _init_of_region(
        self,
        other: Tensor,
        begin: Sequence[int] | None = None,
        end: Sequence[int] = (),
        shared_memory: bool = False,
    ) -> None:
        if begin is None:
            self._init_of_array(other._data, shared_memory, type=other._element)
            return
        if other._element.is_packed:
            raise _packed_error(other._element, "regions")
        first, last = Shape(begin), Shape(end)
        if not len(first) == len(last) == other._data.ndim or any(
            not a <= b <= n for a, b, n in zip(first, last, other._data.shape, strict=True)
        ):
            raise InputError(f"{other!r} has no region from {first} to {last}", code=Code.BAD_REQUEST)
        self._element = other._element
        self._hold(other._data[tuple(map(slice, first, last))], is_shared=True)

    def _init_of_type(self, type: object, shape: Sequence[int] = ()) -> None:
        self._element = type if isinstance(type, ElementType) else ElementType.from_dtype(type)
        self._hold(zeros(self._element, Shape(shape)), is_shared=False)

    def _init_of_array(
        self,
        array: Array,
        shape: Sequence[int] | bool | None = None,
        type: ElementType | None = None,
        shared_memory: bool = False,
    ) -> None:
        if not isinstance(shape, bool | None):
            is_typed = type not in (None, ElementType.dynamic)
            self._element = type if is_typed and type is not None else element_of(array)
            self._hold(reinterpret(array, self._element, Shape(shape)), is_shared=True)
            return
        native = array.astype(array.dtype.newbyteorder("="), copy=False)
        self._element = type if type not in (None, ElementType.dynamic) else element_of(native)
        if native.dtype != self._element.dtype and self._element is not ElementType.string:
            raise _mismatch(self._element, native)
        is_shared = bool(shape or shared_memory)
        self._hold(native if is_shared else np.array(native, order="C"), is_shared)

    @property
    def shape(self) -> Shape:
        """The shape. Assignment calls `set_shape`."""
        return Shape(self._held.shape)

    @shape.setter
    def shape(self, shape: Sequence[int]) -> None:
        self.set_shape(shape)

    def set_shape(self, shape: Sequence[int]) -> None:
        """Change the shape, and reallocate the memory if it is too small.

        Raises:
            InputError: if the memory is too small, and belongs to an array of the caller.
        """
        lengths = tuple(Shape(shape))
        if lengths == self._held.shape:
            return
        memory, count = self._memory, math.prod(lengths)
        needed = self._element.nbytes(count) if self._element.is_packed else count
        if needed <= memory.size and memory.flags.c_contiguous:
            part = memory.reshape(-1)[:needed]
            self._held = (
                Packed(part, self._element, lengths) if self._element.is_packed else part.reshape(lengths)
            )
        elif not self._is_shared:
            self._hold(zeros(self._element, lengths), is_shared=False)
        else:
            raise InputError(
                f"a tensor that shares {memory.nbytes} bytes of memory cannot have shape {list(lengths)}",
                code=Code.BAD_REQUEST,
                hint="give it an array of that shape, or let it have its own memory",
            )

    def copy_from(self, source: object) -> None:
        """Set contents and shape to those of an array or tensor of the same element type.

        A tensor of dynamic type takes over the element type, too.

        Raises:
            InputError: if the element types differ.
        """
        array = source._data if isinstance(source, Tensor) else as_numpy(source)
        element = source._element if isinstance(source, Tensor) else None
        if self._element is ElementType.dynamic:
            self._element = element_of(array) if element in (None, ElementType.dynamic) else element
            self._hold(np.array(array), is_shared=False)
            return
        if self._element is ElementType.string and array.dtype.kind in "SUTO":
            self._hold(decode_strings(array).astype(object), is_shared=False)
            return
        # An array of bytes could also be packed elements.
        is_ambiguous = element is None and self._element.is_encoded
        if array.dtype != self._element.dtype or element not in (None, self._element) or is_ambiguous:
            raise InputError(
                f"a tensor of {self._element.label} cannot take "
                + (f"an array of {array.dtype.name}" if element is None else f"one of {element.label}"),
                code=Code.BAD_REQUEST,
                hint="assign tensor.elements an entry for each element"
                if is_ambiguous
                else f"array.astype({self._element.dtype.name!r}) converts the values",
            )
        self.set_shape(array.shape)
        self.elements = array

    def copy_to(self, target: Tensor) -> None:
        """Copy the contents and shape to another tensor of the same element type."""
        target.copy_from(self)

    def _hold(self, contents: Array | Packed, is_shared: bool) -> None:
        if self._element.is_packed and not isinstance(contents, Packed):
            contents = Packed.of(contents, self._element)
        self._held = contents
        self._memory = contents.raw if isinstance(contents, Packed) else contents
        self._is_shared = is_shared

    @property
    def _data(self) -> Array:
        """The array with one entry per element: the memory itself, or an unpacked copy."""
        memory = self._held
        return memory.unpack() if isinstance(memory, Packed) else memory

    @property
    def data(self) -> Array:
        """The writable memory as OpenVINO exposes it, or a copy of strings as UTF-8 bytes.

        Sub-byte elements are packed and one-dimensional; types that NumPy lacks appear as bits, in float16
        for bf16 and otherwise in uint8. `elements` has one entry per element.
        """
        memory = self._held
        if isinstance(memory, Packed):
            return memory.raw.view(self._element.stored_dtype)
        return as_stored(memory, self._element)

    @property
    def elements(self) -> Array:
        """The array with one entry per element, of a type of ml_dtypes if NumPy lacks the type. It can be assigned.

        It is the memory itself, except for sub-byte elements, which are unpacked into a read-only copy.
        """
        array = self._data
        if self._element.is_packed:
            array.flags.writeable = False
        return array

    @elements.setter
    def elements(self, values: object) -> None:
        array = np.asarray(values)
        if array.shape != self._held.shape:
            raise InputError(
                f"expected elements of shape {list(self._held.shape)}, got {list(array.shape)}",
                code=Code.BAD_REQUEST,
            )
        if self._element is ElementType.string:
            self._fill(array)
        elif isinstance(memory := self._held, Packed):
            memory.raw[...] = Packed.of(_exact(array, self._element), self._element).raw
        else:
            memory[...] = array

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
        """The size in bytes, in packed form for sub-byte elements."""
        if self._element is ElementType.string:
            return self._held.size * _STRING_BYTES
        return self._element.nbytes(self._held.size)

    @property
    def strides(self) -> Strides:
        """The number of bytes from one element to the next along each axis.

        Raises:
            InputError: if elements take less than a byte.
        """
        from .shapes import Strides

        if self._element.is_packed:
            raise _packed_error(self._element, "strides")
        if self._element is ElementType.string:
            return Strides(stride // self._data.itemsize * _STRING_BYTES for stride in self._data.strides)
        return Strides(self._data.strides)

    @property
    def str_data(self) -> Array:
        """The contents of a string tensor as `str`. Assignment keeps the shape."""
        return as_text(self._strings())

    @str_data.setter
    def str_data(self, strings: object) -> None:
        self._fill(strings)

    @property
    def bytes_data(self) -> Array:
        """The contents of a string tensor as UTF-8 bytes. Assignment keeps the shape."""
        return encode_strings(self._strings())

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
        source, memory = np.asarray(strings), self._strings()
        if source.size != memory.size or source.dtype.kind not in "SUTO":
            raise InputError(
                f"expected {memory.size} strings, got {source.size} of {source.dtype.name}",
                code=Code.BAD_REQUEST,
            )
        self._hold(decode_strings(source).astype(object).reshape(memory.shape), is_shared=False)

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
        """Return the size in bytes, in packed form for sub-byte elements."""
        return self.byte_size

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> Array:
        return np.array(self._data, dtype, copy=copy)

    @property
    def __array_interface__(self) -> dict[str, Any]:
        # The array interface cannot express types of ml_dtypes, but __array__ can.
        if self._element.dtype.isbuiltin != 1:
            raise AttributeError(name="__array_interface__", obj=self)
        return self._data.__array_interface__

    def __dlpack__(self, **how: Any) -> object:
        from .dlpack import to_dlpack

        return to_dlpack(self._data, **how)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._data.__dlpack_device__()

    def __repr__(self) -> str:
        return f"<Tensor: shape{self.shape} type: {self._element.label}>"


def _source(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, tuple[Any, ...]]:
    """Return the argument that a tensor is constructed from, and the remaining positional arguments."""
    if args:
        return args[0], args[1:]
    for name in ("array", "port", "other", "list", "image", "type"):
        if name in kwargs and not (name == "array" and "port" in kwargs):
            return kwargs.pop(name), ()
    raise TypeError("a tensor must be made of an array, an element type and a shape, a port, or a tensor")


def _is_type(source: object) -> bool:
    return isinstance(source, ElementType | np.dtype | type)


def _mismatch(element: ElementType, array: Array) -> InputError:
    return InputError(
        f"a tensor of {element.label} is an array of {element.dtype.name}, not of {array.dtype.name}",
        code=Code.BAD_REQUEST,
        hint=f"array.astype({element.dtype.name!r}) converts the values; array.view reinterprets the bytes",
    )


def _packed_error(element: ElementType, what: str) -> InputError:
    """Return the error for a property that tensors of packed elements lack."""
    return InputError(
        f"tensors of {element.label} have no {what}: elements of {element.bits} bits share bytes",
        code=Code.BAD_REQUEST,
        hint="tensor.elements is an array with an entry for each element",
    )


def _exact(values: Array, element: ElementType) -> Array:
    """Convert values exactly to the dtype of an element type.

    Raises:
        InputError: if the type cannot represent a value. For ``nf4``, the values are its codes.
    """
    converted = values.astype(element.dtype)
    highest = (1 << element.bits) - 1
    if not np.array_equal(converted.astype(values.dtype), values) or (
        element.is_encoded and converted.max(initial=0) > highest
    ):
        raise InputError(f"the array has values that {element.label} cannot represent", code=Code.BAD_REQUEST)
    return converted


def tensor_from_file(path: str | os.PathLike[str]) -> Tensor:
    """Read a file into a ``u8`` tensor.

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
