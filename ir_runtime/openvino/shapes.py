"""OpenVINO's classes of dimensions, shapes and index lists: ``Dimension``, ``Shape``, ``PartialShape``, ``Strides`` etc."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator
from typing import ClassVar, SupportsIndex, TypeAlias, overload

from .._util.absent import ExplainsAbsent
from ..codes import Code
from ..errors import InputError, LengthError
from ..ir import dimension, shape
from ..ir.dimension import DimensionLike, Interval, IntervalLike, Symbol, is_number

__all__ = [
    "AxisSet",
    "AxisVector",
    "Coordinate",
    "CoordinateDiff",
    "Dimension",
    "PartialShape",
    "Shape",
    "ShapeLike",
    "Strides",
]


# OpenVINO's ``Dimension``.


class Dimension(dimension.Dimension, ExplainsAbsent):
    """The length of an axis: static, bounded or unknown. As OpenVINO's ``Dimension``.

    >>> Dimension(3) == 3, Dimension() == -1, Dimension(1, 8) + 2, Dimension("..8")
    (True, True, <Dimension: 3..10>, <Dimension: ..8>)
    >>> batch = Dimension(1, 8)
    >>> batch.min_length, batch.max_length, batch.compatible(4), batch.relaxes(4), batch.refines("1..16")
    (1, 8, True, True, True)
    >>> batch.set_symbol(Symbol())
    >>> batch.get_symbol() == batch.symbol, batch.same_scheme(-1), Dimension.dynamic()
    (True, True, <Dimension: ?>)
    >>> Dimension.copy_of(batch) == batch
    True
    """

    __slots__ = ()
    symbol: Symbol | None
    __hash__: ClassVar[None] = None  # type: ignore[assignment]

    def __init__(
        self, min: SupportsIndex | str = -1, max: SupportsIndex | None = None, symbol: Symbol | None = None
    ) -> None:
        """Create a dimension from a length (-1 for any), bounds, or a string: ``3``, ``(1, 8)``, ``(2, -1)``, ``"1..8"``.

        Raises:
            InputError: if the arguments are not a valid length; a RuntimeError, as in OpenVINO.
            LengthError: if the length exceeds int64.
        """
        low = min if isinstance(min, str) else operator.index(min)
        high = None if max is None else operator.index(max)
        if high is not None and not isinstance(low, str) and low < 0:
            low = 0
        try:
            super().__init__(low, high, symbol)
        except LengthError:
            raise
        except ValueError as reason:
            raise InputError(str(reason), code=Code.BAD_REQUEST) from None

    @classmethod
    def copy_of(cls, other: dimension.Dimension) -> Dimension:
        """Convert a dimension from the immutable class of the graph to this class."""
        copy = cls.__new__(cls)
        Interval.__init__(copy, other.min, other.max, other.symbol)
        return copy

    @classmethod
    def dynamic(cls) -> Dimension:
        """Return a dimension of unknown length."""
        return cls()

    @property
    def min_length(self) -> int:
        """The lower bound of the length."""
        return self.min

    @property
    def max_length(self) -> int:
        """The upper bound of the length, or -1 if unbounded."""
        return self.get_max_length()

    def get_symbol(self) -> Symbol | None:
        """Return the symbol, which dimensions known to be equal share."""
        return self.symbol

    def set_symbol(self, symbol: Symbol) -> None:
        """Set the symbol. Dimensions with the same symbol are equal."""
        self.symbol = symbol

    def compatible(self, other: DimensionLike) -> bool:
        """Return whether both dimensions allow a common length."""
        return super().compatible(dimension.Dimension.of(other))

    def refines(self, other: DimensionLike) -> bool:
        """Return whether ``other`` allows every length that this dimension allows."""
        return super().refines(dimension.Dimension.of(other))

    def relaxes(self, other: DimensionLike) -> bool:
        """Return whether this dimension allows every length that ``other`` allows."""
        return dimension.Dimension.of(other).refines(self)

    def same_scheme(self, other: DimensionLike) -> bool:
        """Return whether both dimensions are dynamic, or both are the same static length."""
        return super().same_scheme(dimension.Dimension.of(other))

    def __len__(self) -> int:
        return self.get_length()

    def __bool__(self) -> bool:
        return self.get_length() != 0

    def __eq__(self, other: object) -> bool:
        """Return whether both dimensions have the same bounds. Symbols are ignored."""
        if isinstance(other, dimension.Dimension):
            return (self.min, self.max) == (other.min, other.max)
        if isinstance(other, int):
            return (self.min, self.max) == ((0, None) if other == -1 else (other, other))
        return NotImplemented

    def __add__(self, other: IntervalLike) -> Interval:
        return _public(super().__add__(other))

    def __sub__(self, other: IntervalLike) -> Interval:
        return _public(super().__sub__(other))

    def __mul__(self, other: IntervalLike) -> Interval:
        return _public(super().__mul__(other))

    def __floordiv__(self, divisor: int) -> Interval:
        return _public(super().__floordiv__(divisor))

    __radd__ = __add__
    __rmul__ = __mul__


def _public(number: Interval) -> Interval:
    return Dimension.copy_of(number) if isinstance(number, dimension.Dimension) else number


# The mutable ``Shape`` and ``PartialShape``.
#
# The shapes of models, in `ir_runtime.ir.shape`, are immutable and hashed by caches. Programs get copies of these
# classes, which are unhashable, so that they cannot end up in a cache.


# The upper bound that OpenVINO reports for an unbounded dimension.
_FAR = (1 << 63) - 1


class Shape(list[int], ExplainsAbsent):
    """A static shape. As OpenVINO's ``Shape``.

    >>> Shape([1, 3]), str(Shape("1,3")), Shape([1, 3]) == (1, 3), Shape([1, 2, 3])[1:]
    (<Shape: [1,3]>, '[1,3]', True, <Shape: [2,3]>)
    >>> Shape([1, 3]).to_string()
    '[1,3]'
    """

    __slots__ = ()

    def __init__(self, lengths: Iterable[SupportsIndex] | str = ()) -> None:
        """Create a shape from lengths, or from a string such as ``"1,3"``.

        Raises:
            TypeError: if a length is not a non-negative integer.
            InputError: if a string is not a shape.
        """
        try:
            super().__init__(_parse(lengths) if isinstance(lengths, str) else map(operator.index, lengths))
        except TypeError:
            raise TypeError(f"a Shape must be integers or text, got {lengths!r}") from None
        if self and min(self) < 0:
            raise TypeError(f"the lengths of a Shape must be at least 0, got {list(self)}")

    def to_string(self) -> str:
        """Return the shape as files spell it."""
        return str(self)

    @overload
    def __getitem__(self, index: SupportsIndex) -> int: ...
    @overload
    def __getitem__(self, index: slice) -> Shape: ...
    def __getitem__(self, index: SupportsIndex | slice) -> int | Shape:
        part = super().__getitem__(index)
        return Shape(part) if isinstance(part, list) else part

    @overload
    def __setitem__(self, index: SupportsIndex, length: SupportsIndex) -> None: ...
    @overload
    def __setitem__(self, index: slice, length: Iterable[SupportsIndex]) -> None: ...
    def __setitem__(
        self, index: SupportsIndex | slice, length: SupportsIndex | Iterable[SupportsIndex]
    ) -> None:
        if isinstance(index, slice):
            super().__setitem__(index, Shape(length))  # type: ignore[arg-type]
        elif isinstance(length, dimension.Dimension):
            super().__setitem__(index, length.get_length())
        else:
            super().__setitem__(index, Shape([length])[0])  # type: ignore[list-item]

    def __eq__(self, other: object) -> bool:
        return super().__eq__(list(other) if isinstance(other, tuple) else other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __str__(self) -> str:
        return f"[{','.join(map(str, self))}]"

    def __repr__(self) -> str:
        return f"<Shape: {self}>"


def _parse(text: str) -> list[int]:
    inside = text.strip().removeprefix("[").removesuffix("]").strip()
    lengths = [part.strip() for part in inside.split(",")] if inside else []
    if not all(map(is_number, lengths)):
        raise _error(f"{text!r} is not a shape of known lengths")
    return list(map(int, lengths))


class PartialShape(shape.PartialShape, ExplainsAbsent):
    """A shape with static or dynamic dimensions, or of unknown rank. As OpenVINO's ``PartialShape``.

    >>> found = PartialShape("?,3,1..4,..8")
    >>> found[0] = 2
    >>> found, found[1:], PartialShape([1, -1]), PartialShape("..."), PartialShape.dynamic().rank
    (<PartialShape: [2,3,1..4,..8]>, <PartialShape: [3,1..4,..8]>, <PartialShape: [1,?]>, <PartialShape: [...]>, <Dimension: ?>)
    >>> shape = PartialShape("1..4,3")
    >>> shape.get_min_shape(), shape.get_max_shape(), shape.get_dimension(0), shape.to_string()
    (<Shape: [1,3]>, <Shape: [4,3]>, <Dimension: 1..4>, '[1..4,3]')
    >>> shape.compatible([2, 3]), shape.relaxes([2, 3]), shape.refines("?,3"), shape.same_scheme("?,3")
    (True, True, True, True)
    >>> PartialShape([2, 3]).to_shape(), PartialShape([2, 3]).get_shape(), PartialShape.copy_of(shape) == shape
    (<Shape: [2,3]>, <Shape: [2,3]>, True)
    """

    __slots__ = ()
    __hash__: ClassVar[None] = None  # type: ignore[assignment]
    all_non_negative = True

    def __init__(self, dims: Iterable[DimensionLike] | str | None = ()) -> None:
        """Create a shape from dimensions, or from a string such as ``"?,3,1..8"``.

        Raises:
            InputError: if the argument is not a valid shape; a RuntimeError, as in OpenVINO.
        """
        try:
            super().__init__(dims)
        except TypeError:
            if isinstance(dims, Iterable):
                raise
            raise TypeError(f"a PartialShape must be lengths or text, got {dims!r}") from None
        except ValueError as reason:
            raise _error(reason) from None

    @classmethod
    def copy_of(cls, other: shape.PartialShape) -> PartialShape:
        """Convert a shape from the immutable class of the graph to this class."""
        copy = cls.__new__(cls)
        copy._dims, copy._lengths = other._dims, other._lengths
        return copy

    @classmethod
    def dynamic(cls, rank: SupportsIndex | dimension.Dimension | None = None) -> PartialShape:
        """Return a shape of ``rank`` dynamic dimensions, or of unknown rank."""
        if rank is None or (isinstance(rank, dimension.Dimension) and rank.is_dynamic):
            return cls(None)
        count = operator.index(rank)
        return cls(None if count < 0 else [-1] * count)

    @property
    def rank(self) -> Dimension:  # type: ignore[override]
        """The number of dimensions, as a `Dimension`."""
        return Dimension() if self._dims is None else Dimension(len(self._dims))

    def to_shape(self) -> Shape:
        """Return the static shape.

        Raises:
            InputError: if a dimension is dynamic.
        """
        if self.is_dynamic:
            raise InputError(f"not every length is known: the shape is {self}", code=Code.BAD_REQUEST)
        return Shape(self.static)

    def get_shape(self) -> Shape:
        """Return the static shape, like `to_shape`."""
        return self.to_shape()

    def get_min_shape(self) -> Shape:
        """Return the lower bound of each dimension."""
        return Shape(d.min for d in self._dims or ())

    def get_max_shape(self) -> Shape:
        """Return the upper bound of each dimension, which is the largest int64 if unbounded."""
        return Shape(_FAR if d.max is None else d.max for d in self._dims or ())

    def get_dimension(self, index: int) -> Dimension:
        """Return a dimension."""
        return self[index]

    def to_string(self) -> str:
        """Return the shape as files spell it."""
        return str(self)

    def compatible(self, other: ShapeLike) -> bool:
        """Return whether both shapes allow a common static shape."""
        return super().compatible(_shape_of(other))

    def refines(self, other: ShapeLike) -> bool:
        """Return whether ``other`` allows every static shape that this shape allows."""
        return super().refines(_shape_of(other))

    def relaxes(self, other: ShapeLike) -> bool:
        """Return whether this shape allows every static shape that ``other`` allows."""
        return _shape_of(other).refines(self)

    def same_scheme(self, other: ShapeLike) -> bool:
        """Return whether both shapes have the same static lengths, and dynamic dimensions at the same indices."""
        return super().same_scheme(_shape_of(other))

    @overload  # type: ignore[override]
    def __getitem__(self, index: SupportsIndex) -> Dimension: ...
    @overload
    def __getitem__(self, index: slice) -> PartialShape: ...
    def __getitem__(self, index: SupportsIndex | slice) -> Dimension | PartialShape:
        dims = self._known()
        if isinstance(index, slice):
            return PartialShape(dims[index])
        return Dimension.copy_of(dims[self._position(index)])

    def __setitem__(self, index: SupportsIndex, length: DimensionLike) -> None:
        position, dims = self._position(index), list(self._known())
        dims[position] = PartialShape([length])._known()[0]
        self._dims, self._lengths = tuple(dims), shape.lengths_of(tuple(dims))

    def _position(self, index: SupportsIndex) -> int:
        position, count = operator.index(index), len(self._known())
        if not -count <= position < count:
            raise _error(f"dimension {position} is out of range: the shape {self} has {count}")
        return position

    def _known(self) -> tuple[dimension.Dimension, ...]:
        if self._dims is None:
            raise _error("a shape of unknown rank has no dimensions to look at")
        return self._dims

    def __iter__(self) -> Iterator[Dimension]:
        return map(Dimension.copy_of, self._known())

    def __copy__(self) -> PartialShape:
        return PartialShape.copy_of(self)

    def __deepcopy__(self, memo: object) -> PartialShape:
        return PartialShape.copy_of(self)


ShapeLike: TypeAlias = "Iterable[DimensionLike] | str"
"""A `PartialShape`, a string such as ``"?,3"``, or a sequence of lengths."""


def _shape_of(other: ShapeLike) -> shape.PartialShape:
    return other if isinstance(other, shape.PartialShape) else PartialShape(other)


def _error(reason: object) -> InputError:
    return InputError(str(reason), code=Code.BAD_REQUEST)


# Index lists.


class _Numbers(list[int]):
    """Base class of lists of integers whose ``repr`` shows their class."""

    __slots__ = ()
    _signed = False

    def __init__(self, numbers: Iterable[SupportsIndex]) -> None:
        """Create the list from integers.

        Raises:
            TypeError: if an item is not an integer, or is negative unless the class allows it.
        """
        super().__init__(map(operator.index, numbers))
        if not self._signed and self and min(self) < 0:
            raise TypeError(f"{type(self).__name__} must not be negative, got {list(self)}")

    def __eq__(self, other: object) -> bool:
        return super().__eq__(list(other) if isinstance(other, tuple) else other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __str__(self) -> str:
        return ", ".join(map(str, self))

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: ({self})>"


class Strides(_Numbers):
    """The distance between consecutive elements along each axis, in bytes or elements. As OpenVINO's ``Strides``.

    >>> Strides([12, 4]), Strides([12, 4]) == (12, 4)
    (<Strides: (12, 4)>, True)
    """

    __slots__ = ()


class CoordinateDiff(_Numbers):
    """Distances along axes, such as padding, which may be negative. As OpenVINO's ``CoordinateDiff``.

    >>> from ir_runtime import CoordinateDiff
    >>> list(CoordinateDiff([-1, 2]))
    [-1, 2]
    """

    __slots__ = ()
    _signed = True


class Coordinate(_Numbers):
    """The index of an element along each axis. As OpenVINO's ``Coordinate``.

    >>> from ir_runtime import Coordinate
    >>> list(Coordinate([1, 2]))
    [1, 2]
    """

    __slots__ = ()


class AxisVector(_Numbers):
    """An ordered list of axes. As OpenVINO's ``AxisVector``.

    >>> from ir_runtime import AxisVector
    >>> list(AxisVector([0, 2]))
    [0, 2]
    """

    __slots__ = ()

    def __str__(self) -> str:
        return repr(self)

    def __repr__(self) -> str:
        return f"<AxisVector {{{', '.join(map(str, self))}}}>"


class AxisSet(frozenset[int]):
    """A set of axes. As OpenVINO's ``AxisSet``.

    >>> AxisSet([2, 1, 2]), list(AxisSet([2, 1]))
    (<AxisSet {1, 2}>, [1, 2])
    """

    __slots__ = ()

    def __new__(cls, axes: Iterable[SupportsIndex]) -> AxisSet:
        """Create the set from axes.

        Raises:
            TypeError: if an axis is not a non-negative integer.
        """
        axes_set = super().__new__(cls, map(operator.index, axes))
        if axes_set and min(axes_set) < 0:
            raise TypeError(f"AxisSet must not be negative, got {sorted(axes_set)}")
        return axes_set

    def __iter__(self) -> Iterator[int]:
        return iter(sorted(super().__iter__()))

    def __repr__(self) -> str:
        return f"<AxisSet {{{', '.join(map(str, self))}}}>"
