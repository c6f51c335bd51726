"""Abstract values for shape inference: the type of a tensor and, where known, its contents."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from .array import Array
from .dimension import Dimension, Interval
from .element import ElementType
from .quantized_weights import QuantizedWeights
from .shape import PartialShape, have_same_lengths

if TYPE_CHECKING:
    from ..diagnostics import Location
    from ..limits import Limits

__all__ = [
    "Array",
    "Bounds",
    "TensorType",
    "Value",
    "bytes_of",
    "check_lengths",
    "elements_of",
    "empty_results",
    "span_of",
]


@dataclass(frozen=True, slots=True)
class TensorType:
    """Element type and shape of a tensor."""

    element: ElementType
    shape: PartialShape

    def join(self, other: TensorType) -> TensorType:
        """Return the most specific type that covers both types (least upper bound)."""
        same = self.element is other.element
        return TensorType(self.element if same else ElementType.dynamic, self.shape.join(other.shape))

    def __str__(self) -> str:
        return f"{self.element.label}{self.shape}"


@dataclass(frozen=True, slots=True, eq=False)
class Bounds:
    """Elementwise lower and upper bounds of a floating-point tensor, as arrays of its dtype."""

    lower: Array
    """Minus infinity where unbounded."""
    upper: Array
    """Infinity where unbounded."""

    def where(self, certain: Array) -> Bounds:
        """Return the bounds where ``certain`` is true, and infinite bounds elsewhere."""
        element = self.lower.dtype
        return Bounds(
            np.where(certain, self.lower, -np.inf).astype(element),
            np.where(certain, self.upper, np.inf).astype(element),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """A tensor type and, where known, the contents.

    Known contents are an ordinary array. Integer contents that are partly unknown are an array of ``dtype=object``
    with `int` and `Interval` elements. Unknown floating-point contents may have ``bounds``.
    """

    type: TensorType
    data: Array | None = None
    bounds: Bounds | None = None
    quantized: QuantizedWeights | None = None
    """The quantized form of weights, for kernels that dequantize them on the fly."""

    @classmethod
    def constant(cls, data: ArrayLike, element: ElementType | None = None) -> Value:
        """Return the value of a tensor with known contents."""
        array = np.asarray(data)
        return cls(
            TensorType(element or ElementType.from_dtype(array.dtype), PartialShape(array.shape)), array
        )

    @classmethod
    def unknown(cls, element: ElementType, shape: PartialShape) -> Value:
        """Return a value with unknown contents."""
        return cls(TensorType(element, shape))

    @classmethod
    def bounded(cls, element: ElementType, numbers: Array) -> Value:
        """Return a value with integers or intervals as contents; an ordinary array if every element is known."""
        shape = PartialShape(numbers.shape)
        if all(isinstance(n, int | np.integer) or n.is_static for n in numbers.flat):
            numbers = np.array([int(n) for n in numbers.flat], element.dtype).reshape(numbers.shape)
        return cls(TensorType(element, shape), numbers)

    @property
    def shape(self) -> PartialShape:
        """The partial shape."""
        return self.type.shape

    @property
    def element(self) -> ElementType:
        """The element type."""
        return self.type.element

    @property
    def count(self) -> Dimension:
        """The number of elements of the tensor, which may be dynamic."""
        if self.shape.rank is None:
            return Dimension()
        if self.shape.is_static:
            return Dimension(math.prod(self.shape.static))
        count: Interval = Dimension(1)
        for dim in self.shape:
            count = count * dim
        return Dimension.of(count)

    def is_same(self, other: Value) -> bool:
        """Return whether both have the same static type and the same known contents, or both unknown contents."""
        if self.element is not other.element or not have_same_lengths(self.shape, other.shape):
            return False
        if self.bounds is not None or other.bounds is not None:
            return False
        if self.data is None or other.data is None:
            return self.data is other.data
        return np.array_equal(self.data, other.data)

    def known(self) -> Array | None:
        """Return the contents if every element is known, or else ``None``."""
        bounded = self.data is not None and self.data.dtype == object
        return None if bounded and self.element is not ElementType.string else self.data

    @property
    def is_known(self) -> bool:
        """Whether every element is known."""
        return self.known() is not None

    def ints(self) -> tuple[int, ...] | None:
        """Return the contents as a flat tuple of integers if every element is known, or else ``None``."""
        known = self.known()
        return None if known is None else tuple(int(n) for n in known.flat)

    def numbers(self) -> tuple[int | Interval, ...] | None:
        """Return integer contents as a flat tuple of integers and intervals; ``None`` if nothing is known."""
        if self.data is None or self.data.dtype.kind not in "iuO" or self.element is ElementType.string:
            return None
        return tuple(n if isinstance(n, Interval) and n.is_dynamic else int(n) for n in self.data.flat)

    def dims(self) -> tuple[Dimension, ...] | None:
        """Return integer contents as dimensions, negative ones as dynamic; ``None`` if nothing is known."""
        numbers = self.numbers()
        return None if numbers is None else tuple(map(Dimension.of, numbers))

    def symbolic(self) -> Array | None:
        """Return integer contents as an array of ``dtype=object`` for interval arithmetic, or ``None`` if unknown."""
        numbers = self.numbers()
        return None if self.data is None or numbers is None else objects(numbers, self.data.shape)


def objects(numbers: Iterable[int | str | Interval], shape: tuple[int, ...]) -> Array:
    """Return an array of ``dtype=object``, without NumPy's attempt to iterate over the elements."""
    flat = list(numbers)
    array = np.empty(len(flat), object)
    array[:] = flat
    return array.reshape(shape)


def elements_of(type: TensorType) -> int:
    """Return the minimum number of elements of a tensor."""
    if type.shape.is_static:
        return math.prod(type.shape.static)
    return 0 if type.shape.rank is None else math.prod([dim.min for dim in type.shape])


def bytes_of(type: TensorType) -> int:
    """Return the minimum size of a tensor in bytes."""
    return elements_of(type) * max(type.element.dtype.itemsize, 1)


def span_of(shape: PartialShape) -> int:
    """Return the product of the lengths, with a length of 0 counted as 1 and dynamic dimensions as their minimum.

    For a nonempty tensor this is the number of elements. Empty tensors are limited alike, since kernels may loop over
    their other lengths, or need scratch memory for them, such as an index for each position along an axis.

    >>> span_of(PartialShape([2, 3])), span_of(PartialShape([0, 3])), span_of(PartialShape([-1, 3]))
    (6, 3, 3)
    """
    return 1 if shape.rank is None else math.prod([max(dim.min, 1) for dim in shape])


def check_lengths(type: TensorType, limits: Limits, where: Location | None = None) -> None:
    """Check the size of a tensor against the limits; for an empty tensor, check the product of its other lengths.

    Raises:
        LimitError: if the tensor is too large for every value of its dynamic dimensions.
    """
    span = span_of(type.shape)
    limits.check("elements", span, where)
    if not elements_of(type):
        limits.check("memory", span * max(type.element.dtype.itemsize, 1), where, f"lengths of {type}")


def empty_results(types: Sequence[TensorType]) -> tuple[Array, ...] | None:
    """Return empty arrays of the given types if all are known to have no elements, or else ``None``.

    No kernel needs to run for such outputs. Returns ``None`` also for lengths that NumPy cannot represent, so that the
    limits report them.
    """
    if not types or any(elements_of(t) or not t.shape.is_static or t.element is _DYNAMIC for t in types):
        return None
    if any(span_of(t.shape) * max(t.element.dtype.itemsize, 1) > _MOST for t in types):
        return None
    return tuple([np.empty(t.shape.static, t.element.dtype) for t in types])


_DYNAMIC, _MOST = ElementType.dynamic, np.iinfo(np.intp).max
