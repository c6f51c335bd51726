"""Tensors that inference requests hold."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, overload

import numpy as np

from ..codes import Code
from ..errors import InputError
from ..ir.array import Packed
from ..ir.element import ElementType
from ..ir.tensor import Array
from .callers import warn
from .ports import TensorPort
from .shapes import Shape
from .tensor_content import TensorContent, packed_error
from .tensor_data import as_numpy, decoded, element_of, reinterpreted, view_as_bf16, zeros

__all__ = ["Tensor"]


class Tensor(TensorContent):
    """An array with an element type. As OpenVINO's ``Tensor``.

    It is constructed from an array, the memory of an array as another type and shape, an element type and a shape, the port of
    a model (and an array), or a region of another tensor. It supports the array interface and DLPack.

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
    """

    __slots__ = ()

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
    def __init__(self, **named: object) -> None: ...
    def __init__(self, *given: Any, **named: Any) -> None:
        """Make a tensor.

        Args:
            given: what the class says, in that order.
            named: the same by OpenVINO's names: ``array``, ``shape``, ``type``, ``shared_memory``, ``port``, ``other``,
                ``begin``, ``end``. ``shared_memory`` uses the array itself, not a copy; with a shape or a port,
                memory is always shared.

        Raises:
            InputError: if the array has no element type, or not enough memory.
        """
        source, rest = _source(given, named)
        if isinstance(source, TensorPort):
            self._init_of_port(source, *rest, **named)
        elif isinstance(source, Tensor):
            self._init_of_region(source, *rest, **named)
        elif _is_type(source) or (isinstance(source, str) and (rest or "shape" in named)):
            self._init_of_type(source, *rest, **named)
        else:
            self._init_of_array(as_numpy(source), *rest, **named)

    @classmethod
    def of(cls, array: Array, element: ElementType) -> Tensor:
        """Return a tensor that holds an array of its element type itself.

        Args:
            array: the contents, whose memory is shared.
            element: the element type, which may be narrower than the dtype.
        """
        made = cls.__new__(cls)
        made._element = element
        made._hold(array, is_shared=False)
        return made

    def _init_of_port(self, port: TensorPort, array: object = None) -> None:
        self._element = port.element_type
        shape = port._type.shape
        lengths = shape.static if shape.is_static else (0,)  # as OpenVINO
        if array is None:
            self._hold(zeros(self._element, lengths), is_shared=False)
            return
        given = as_numpy(array)
        bits = view_as_bf16(given, self._element, "the port")
        given = given if bits is None else bits
        if given.dtype not in (self._element.dtype, self._element.stored_dtype):
            warn(
                f"an array of {given.dtype.name} is cast to {self._element.label}, the type of the port",
                RuntimeWarning,
            )
            given = given.astype(self._element.dtype)
        needed = math.prod(lengths)
        if given.size > needed:
            warn(
                f"of an array of shape {list(given.shape)}, a port of shape {shape} takes {needed} elements",
                RuntimeWarning,
            )
        self._hold(reinterpreted(given, self._element, lengths), is_shared=True)

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
            raise packed_error(other._element, "regions")
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
            known = type not in (None, ElementType.dynamic)
            self._element = type if known and type is not None else element_of(array)
            self._hold(reinterpreted(array, self._element, Shape(shape)), is_shared=True)
            return
        native = array.astype(array.dtype.newbyteorder("="), copy=False)
        self._element = type if type not in (None, ElementType.dynamic) else element_of(native)
        if native.dtype != self._element.dtype and self._element is not ElementType.string:
            raise _mismatch(self._element, native)
        is_shared = bool(shape or shared_memory)
        self._hold(native if is_shared else np.array(native, order="C"), is_shared)

    @property
    def shape(self) -> Shape:
        """The shape; setting it is `set_shape`."""
        return super().shape

    @shape.setter
    def shape(self, shape: Sequence[int]) -> None:
        self.set_shape(shape)

    def set_shape(self, shape: Sequence[int]) -> None:
        """Give it another shape: of the same memory, as far as that suffices, else of new memory.

        Raises:
            InputError: if the memory belongs to an array of the caller, and does not suffice.
        """
        wanted = tuple(Shape(shape))
        if wanted == self._held.shape:
            return
        memory, count = self._memory, math.prod(wanted)
        needed = self._element.nbytes(count) if self._element.is_packed else count
        if needed <= memory.size and memory.flags.c_contiguous:
            part = memory.reshape(-1)[:needed]
            self._held = (
                Packed(part, self._element, wanted) if self._element.is_packed else part.reshape(wanted)
            )
        elif not self._is_shared:
            self._hold(zeros(self._element, wanted), is_shared=False)
        else:
            raise InputError(
                f"a tensor that shares {memory.nbytes} bytes of memory cannot have shape {list(wanted)}",
                code=Code.BAD_REQUEST,
                hint="give it an array of that shape, or let it have its own memory",
            )

    def copy_from(self, source: object) -> None:
        """Take the contents of an array or tensor of the same element type, and its shape.

        Raises:
            InputError: if it has another element type.
        """
        array = source._data if isinstance(source, Tensor) else as_numpy(source)
        said = source._element if isinstance(source, Tensor) else None
        if self._element is ElementType.dynamic:
            self._element = element_of(array) if said in (None, ElementType.dynamic) else said
            self._hold(np.array(array), is_shared=False)
            return
        if self._element is ElementType.string and array.dtype.kind in "SUTO":
            self._hold(decoded(array).astype(object), is_shared=False)
            return
        is_ambiguous = said is None and self._element.is_encoded  # bytes might be packed
        if array.dtype != self._element.dtype or said not in (None, self._element) or is_ambiguous:
            raise InputError(
                f"a tensor of {self._element.label} cannot take "
                + (f"an array of {array.dtype.name}" if said is None else f"one of {said.label}"),
                code=Code.BAD_REQUEST,
                hint="assign tensor.elements an entry for each element"
                if is_ambiguous
                else f"array.astype({self._element.dtype.name!r}) converts the values",
            )
        self.set_shape(array.shape)
        self.elements = array

    def copy_to(self, target: Tensor) -> None:
        """Give the contents to another tensor of the same element type, and the shape."""
        target.copy_from(self)

    def __repr__(self) -> str:
        return f"<Tensor: shape{self.shape} type: {self._element.label}>"


def _source(given: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, tuple[Any, ...]]:
    """Return the source of a tensor, and the other positional arguments."""
    if given:
        return given[0], given[1:]
    for name in ("array", "port", "other", "list", "image", "type"):
        if name in named and not (name == "array" and "port" in named):
            return named.pop(name), ()
    raise TypeError("a tensor must be made of an array, an element type and a shape, a port, or a tensor")


def _is_type(source: object) -> bool:
    return isinstance(source, ElementType | np.dtype | type)


def _mismatch(element: ElementType, array: Array) -> InputError:
    return InputError(
        f"a tensor of {element.label} is an array of {element.dtype.name}, not of {array.dtype.name}",
        code=Code.BAD_REQUEST,
        hint=f"array.astype({element.dtype.name!r}) converts the values; array.view reinterprets the bytes",
    )
