"""Predicates on matched outputs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from ...ir.dimension import Dimension
from ...ir.element import ElementType
from ..node import Output
from .symbols import Symbols, match_shape

__all__ = [
    "Condition",
    "Predicate",
    "attrs_match",
    "consumers_count",
    "has_static_dim",
    "has_static_dims",
    "has_static_rank",
    "has_static_shape",
    "rank_equals",
    "rank_more_than",
    "shape_matches",
    "type_matches",
    "type_matches_any",
]


class Predicate:
    """A condition on an output. As OpenVINO's ``Predicate``.

    Args:
        predicate: a function of the output, or of the symbols so far and the output; by default, every output fits.
    """

    def __init__(self, predicate: Callable[..., object] | None = None) -> None:
        self._predicate = predicate
        code = getattr(predicate, "__code__", None)
        bound = 1 if hasattr(predicate, "__self__") else 0
        self._wants_symbols = code is not None and code.co_argcount - bound == 2

    def __call__(self, output: Output, symbols: Symbols | None = None) -> bool:
        """Return whether an output fits."""
        if self._predicate is None:
            return True
        if self._wants_symbols:
            return bool(self._predicate({} if symbols is None else symbols, output))
        return bool(self._predicate(output))


Condition: TypeAlias = "Predicate | Callable[[Output], object]"


def consumers_count(count: int) -> Predicate:
    """Match an output with this many consumers."""
    return Predicate(lambda output: len(output.target_inputs) == count)


def has_static_dim(index: int) -> Predicate:
    """Match an output with a static dimension at this index."""
    return has_static_dims([index])


def has_static_dims(indices: Iterable[int]) -> Predicate:
    """Match an output with static dimensions at these indices."""
    axes = list(indices)

    def holds(output: Output) -> bool:
        shape = output._type.shape
        return shape.rank is not None and all(
            -shape.rank <= index < shape.rank and shape[index].is_static for index in axes
        )

    return Predicate(holds)


def has_static_rank() -> Predicate:
    """Match an output of static rank."""
    return Predicate(lambda output: output._type.shape.rank is not None)


def has_static_shape() -> Predicate:
    """Match an output of static shape."""
    return Predicate(lambda output: output._type.shape.is_static)


def rank_equals(rank: int | Dimension) -> Predicate:
    """Match an output with this many dimensions."""
    return Predicate(lambda output: output._type.shape.rank == rank)


def rank_more_than(rank: int | Dimension) -> Predicate:
    """Match an output with more dimensions than this."""
    most = rank if isinstance(rank, int) else rank.get_length()
    return Predicate(lambda output: (output._type.shape.rank or 0) > most)


def type_matches(type: ElementType) -> Predicate:
    """Match an output of that element type."""
    return Predicate(lambda output: output.element_type is type)


def type_matches_any(types: Iterable[ElementType]) -> Predicate:
    """Match an output of one of these element types."""
    elements = list(types)
    return Predicate(lambda output: output.element_type in elements)


def attrs_match(attributes: Mapping[str, object]) -> Predicate:
    """Match an operation with these attributes."""

    def holds(output: Output) -> bool:
        actual = output.node.get_attributes()
        return all(name in actual and actual[name] == value for name, value in attributes.items())

    return Predicate(holds)


def shape_matches(shape: str) -> Predicate:
    """Match an output with a shape such as ``"[N,3,?,...]"``; equal names stand for equal lengths."""

    def holds(symbols: Symbols, output: Output) -> bool:
        return match_shape(shape, output._type.shape, symbols)

    return Predicate(holds)
