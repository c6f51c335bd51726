"""Shapes whose dimensions or rank may be unknown until a model runs."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import overload

from .._util.escaping import one_line
from ..limits import DEFAULT, current
from .dimension import Dimension, DimensionLike

__all__ = ["PartialShape", "have_same_lengths", "lengths_of"]


# Longer shapes are abbreviated in messages; those of real networks are shorter.
_SHOWN = 120

_RANK = DEFAULT.rank


def lengths_of(dims: tuple[Dimension, ...]) -> tuple[int, ...] | None:
    """Return the lengths of static dimensions, or ``None`` if any is dynamic."""
    lengths = tuple([d.min for d in dims if d.min == d.max])
    return lengths if len(lengths) == len(dims) else None


def _inside(text: str) -> str:
    """Strip the optional brackets around the text of a shape."""
    if text.startswith("[") != text.endswith("]"):
        raise ValueError(f"{text[:40]!r} lacks a bracket")
    return text.removeprefix("[").removesuffix("]").strip()


class PartialShape(Sequence[Dimension]):
    """A sequence of dimensions, any of which may be dynamic; without dimensions if even the rank is unknown.

    >>> PartialShape("?,3,1..4,..8"), PartialShape([1, -1]), PartialShape("...")
    (<PartialShape: [?,3,1..4,..8]>, <PartialShape: [1,?]>, <PartialShape: [...]>)
    >>> shape = PartialShape("?,3")
    >>> shape.is_static, shape.is_dynamic, shape.contains([8, 3]), PartialShape([2, 3]).static
    (False, True, True, (2, 3))
    >>> shape.replace({0: 5}), shape.merge(PartialShape([2, -1])), shape.join(PartialShape([2, 4]))
    (<PartialShape: [5,3]>, <PartialShape: [2,3]>, <PartialShape: [?,3..4]>)
    """

    __slots__ = ("_dims", "_lengths")
    _dims: tuple[Dimension, ...] | None
    _lengths: tuple[int, ...] | None
    """The lengths of a static shape: a cache, since most shapes are static."""

    def __init__(self, dims: Iterable[DimensionLike] | str | None = ()) -> None:
        if isinstance(dims, PartialShape):
            dims = dims._dims
        elif isinstance(dims, str):
            text = _inside(dims.strip())
            dims = None if text == "..." else text.split(",") if text else ()
        self._dims = None if dims is None else tuple(map(Dimension.of, dims))
        if (
            self._dims is not None and len(self._dims) > _RANK
        ):  # a chain of layers can add dimensions without limit
            current().check("rank", len(self._dims))
        self._lengths = None if self._dims is None else lengths_of(self._dims)

    @classmethod
    def dynamic(cls, rank: int | Dimension | None = None) -> PartialShape:
        """Return a shape of ``rank`` unknown dimensions, or of unknown rank by default."""
        return cls(None if rank is None else [-1] * operator.index(rank))

    @property
    def rank(self) -> int | None:
        """The number of dimensions, or ``None`` if unknown."""
        return None if self._dims is None else len(self._dims)

    @property
    def is_static(self) -> bool:
        """Whether the rank and every dimension are known."""
        return self._lengths is not None

    @property
    def is_dynamic(self) -> bool:
        """Whether the rank or some dimension is unknown."""
        return not self.is_static

    @property
    def static(self) -> tuple[int, ...]:
        """The lengths of a static shape. Raises TypeError if the shape is dynamic."""
        return tuple(map(operator.index, self)) if self._lengths is None else self._lengths

    def replace(self, lengths: Mapping[int, DimensionLike]) -> PartialShape:
        """Return the shape with new lengths for some axes, given by axis."""
        return PartialShape([lengths.get(i, d) for i, d in enumerate(self)])

    def merge(self, other: PartialShape) -> PartialShape | None:
        """Return the intersection with another shape, or ``None`` if it is empty."""
        if self._dims is None or (self._lengths is not None and self._lengths == other._lengths):
            return other
        if other._dims is None:
            return self
        if len(self._dims) != len(other._dims):
            return None
        merged = [a.merge(b) for a, b in zip(self._dims, other._dims, strict=True)]
        return None if None in merged else PartialShape([d for d in merged if d is not None])

    def join(self, other: PartialShape) -> PartialShape:
        """Return the most specific shape that covers both shapes."""
        if self._dims is None or not self._has_rank_of(other):
            return PartialShape.dynamic()
        return PartialShape([a.join(b) for a, b in zip(self, other, strict=True)])

    def compatible(self, other: PartialShape) -> bool:
        """Return whether some tensor shape is possible for both."""
        if self._lengths is not None and other._lengths is not None:
            return self._lengths == other._lengths
        if self._dims is None or other._dims is None:
            return True
        pairs = zip(self._dims, other._dims, strict=False)
        return len(self._dims) == len(other._dims) and all(a.compatible(b) for a, b in pairs)

    def contains(self, shape: Sequence[int]) -> bool:
        """Return whether the partial shape allows the static ``shape``."""
        if self._dims is None or shape == self._lengths:
            return True
        return len(self._dims) == len(shape) and all(
            d.contains(n) for d, n in zip(self._dims, shape, strict=True)
        )

    def refines(self, other: PartialShape) -> bool:
        """Return whether ``other`` allows every shape that this shape allows."""
        if other._dims is None:
            return True
        return self._has_rank_of(other) and all(a.refines(b) for a, b in zip(self, other, strict=True))

    def relaxes(self, other: PartialShape) -> bool:
        """Return whether this shape allows every shape that ``other`` allows."""
        return other.refines(self)

    def same_scheme(self, other: PartialShape) -> bool:
        """Return whether both have equal static lengths, and dynamic dimensions on the same axes."""
        if self._dims is None or other._dims is None:
            return self._dims is other._dims
        return len(self) == len(other) and all(a.same_scheme(b) for a, b in zip(self, other, strict=True))

    def _has_rank_of(self, other: PartialShape) -> bool:
        """Return whether both have the same known rank."""
        return self._dims is not None and other._dims is not None and len(self._dims) == len(other._dims)

    def __len__(self) -> int:
        return len(self._known())

    @overload
    def __getitem__(self, index: int) -> Dimension: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Dimension, ...]: ...
    def __getitem__(self, index: int | slice) -> Dimension | tuple[Dimension, ...]:
        return self._known()[index]

    def __iter__(self) -> Iterator[Dimension]:
        return iter(self._known())

    def _known(self) -> tuple[Dimension, ...]:
        if self._dims is None:
            raise TypeError("a shape of unknown rank has no dimensions to look at")
        return self._dims

    def __eq__(self, other: object) -> bool:
        """Return whether both allow the same shapes; symbols are ignored."""
        if isinstance(other, PartialShape):
            if self._lengths is not None or other._lengths is not None:
                return self._lengths == other._lengths
            return self._bounds() == other._bounds()
        if isinstance(other, tuple | list):
            return self._dims is not None and self._is_listed(other)
        return NotImplemented

    def __hash__(self) -> int:
        return hash(self._bounds())

    def _is_listed(self, lengths: Iterable[DimensionLike]) -> bool:
        try:
            return self == PartialShape(lengths)
        except (TypeError, ValueError):
            return False

    def _bounds(self) -> tuple[tuple[int, int | None], ...] | None:
        return None if self._dims is None else tuple((d.min, d.max) for d in self._dims)

    def __str__(self) -> str:
        return "[...]" if self._dims is None else f"[{','.join(map(str, self._dims))}]"

    def __format__(self, spec: str) -> str:
        """Format for messages: the middle of a very long shape is omitted."""
        return format(one_line(str(self), _SHOWN), spec)

    def __repr__(self) -> str:
        return f"<PartialShape: {self!s}>"


def have_same_lengths(one: PartialShape, other: PartialShape) -> bool:
    """Return whether two shapes are static and equal."""
    return one._lengths is not None and one._lengths == other._lengths
