"""OpenVINO's lists of numbers: ``Strides``, ``Coordinate``, ``CoordinateDiff``, ``AxisVector`` and ``AxisSet``."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator
from typing import SupportsIndex

__all__ = ["AxisSet", "AxisVector", "Coordinate", "CoordinateDiff", "Strides"]


class _Numbers(list[int]):
    """A list of integers that shows its class."""

    __slots__ = ()
    _signed = False

    def __init__(self, numbers: Iterable[SupportsIndex]) -> None:
        """Read the numbers.

        Raises:
            TypeError: if one is not an integer, or is negative where this is meaningless.
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
    """The number of bytes, or elements, from one element to the next along each axis. As OpenVINO's.

    >>> Strides([12, 4]), Strides([12, 4]) == (12, 4)
    (<Strides: (12, 4)>, True)
    """

    __slots__ = ()


class CoordinateDiff(_Numbers):
    """Distances along axes, such as padding; they may be negative. As OpenVINO's.

    >>> from ir_runtime import CoordinateDiff
    >>> list(CoordinateDiff([-1, 2]))
    [-1, 2]
    """

    __slots__ = ()
    _signed = True


class Coordinate(_Numbers):
    """The index of an element. As OpenVINO's.

    >>> from ir_runtime import Coordinate
    >>> list(Coordinate([1, 2]))
    [1, 2]
    """

    __slots__ = ()


class AxisVector(_Numbers):
    """Axes in an order. As OpenVINO's.

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
    """Axes without an order. As OpenVINO's.

    >>> AxisSet([2, 1, 2]), list(AxisSet([2, 1]))
    (<AxisSet {1, 2}>, [1, 2])
    """

    __slots__ = ()

    def __new__(cls, axes: Iterable[SupportsIndex]) -> AxisSet:
        """Read the axes.

        Raises:
            TypeError: if one is not an integer of at least 0.
        """
        axes_set = super().__new__(cls, map(operator.index, axes))
        if axes_set and min(axes_set) < 0:
            raise TypeError(f"AxisSet must not be negative, got {sorted(axes_set)}")
        return axes_set

    def __iter__(self) -> Iterator[int]:
        return iter(sorted(super().__iter__()))

    def __repr__(self) -> str:
        return f"<AxisSet {{{', '.join(map(str, self))}}}>"
