"""OpenVINO's ``Dimension``."""

from __future__ import annotations

import operator
from typing import ClassVar, SupportsIndex

from .._util.absent import ExplainsAbsent
from ..codes import Code
from ..errors import InputError, LengthError
from ..ir import dimension
from ..ir.dimension import DimensionLike, Interval, IntervalLike, Symbol

__all__ = ["Dimension"]


class Dimension(dimension.Dimension, ExplainsAbsent):
    """A length of at least 0: static, bounded or unknown. As OpenVINO's ``Dimension``.

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
        """Create from a length (-1 for any), bounds, or text: ``3``, ``(1, 8)``, ``(2, -1)``, ``"1..8"``.

        Raises:
            InputError: if it is not a length; a RuntimeError, as in OpenVINO.
            LengthError: if it exceeds int64.
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
        """Convert a dimension of another class to this class."""
        copy = cls.__new__(cls)
        Interval.__init__(copy, other.min, other.max, other.symbol)
        return copy

    @classmethod
    def dynamic(cls) -> Dimension:
        """Return a dimension of unknown length."""
        return cls()

    @property
    def min_length(self) -> int:
        """The shortest length."""
        return self.min

    @property
    def max_length(self) -> int:
        """The longest length, or -1 if unbounded."""
        return self.get_max_length()

    def get_symbol(self) -> Symbol | None:
        """Return the symbol that equal dimensions share."""
        return self.symbol

    def set_symbol(self, symbol: Symbol) -> None:
        """Set the symbol; dimensions with the same symbol are equal."""
        self.symbol = symbol

    def compatible(self, other: DimensionLike) -> bool:
        """Return whether some length fits both."""
        return super().compatible(dimension.Dimension.of(other))

    def refines(self, other: DimensionLike) -> bool:
        """Return whether every length this allows is allowed by ``other``."""
        return super().refines(dimension.Dimension.of(other))

    def relaxes(self, other: DimensionLike) -> bool:
        """Return whether every length that ``other`` allows is allowed by this."""
        return dimension.Dimension.of(other).refines(self)

    def same_scheme(self, other: DimensionLike) -> bool:
        """Return whether both are the same length, or both are dynamic."""
        return super().same_scheme(dimension.Dimension.of(other))

    def __len__(self) -> int:
        return self.get_length()

    def __bool__(self) -> bool:
        return self.get_length() != 0

    def __eq__(self, other: object) -> bool:
        """Return whether both allow the same lengths; symbols are ignored."""
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
