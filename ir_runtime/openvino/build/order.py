"""The orders in which OpenVINO lists the nodes of a model."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Protocol, TypeVar

__all__ = ["Order", "depth_first", "topological"]

_Node = TypeVar("_Node", bound=Hashable)


class Order(Protocol):
    """A function that orders nodes and their dependencies."""

    def __call__(self, ends: Iterable[_Node], sources: Callable[[_Node], Sequence[_Node]], /) -> list[_Node]:
        """Return ``ends`` and all their dependencies in order."""


def depth_first(ends: Iterable[_Node], sources: Callable[[_Node], Sequence[_Node]]) -> list[_Node]:
    """Return the ends and their dependencies, starting with the last end, consumers first.

    >>> depth_first("ab", {"a": "xy", "b": "x", "x": "", "y": ""}.__getitem__)
    ['b', 'x', 'a', 'y']
    """
    stack, order = list(ends), dict[_Node, None]()
    while stack:
        node = stack.pop()
        if node not in order:
            order[node] = None
            stack += sources(node)
    return list(order)


def topological(ends: Iterable[_Node], sources: Callable[[_Node], Sequence[_Node]]) -> list[_Node]:
    """Return the ends and their dependencies, starting with the last end, producers first.

    An edge that closes a cycle is ignored.

    >>> topological("ab", {"a": "xy", "b": "x", "x": "", "y": ""}.__getitem__)
    ['x', 'b', 'y', 'a']
    """
    stack, opened, order = list(ends), set[_Node](), dict[_Node, None]()
    while stack:
        node = stack[-1]
        if node not in opened:
            opened.add(node)
            if waiting := [source for source in reversed(sources(node)) if source not in opened]:
                stack += waiting
                continue
        order[stack.pop()] = None
    return list(order)
