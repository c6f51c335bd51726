"""The orders in which OpenVINO lists the nodes of a model."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Protocol, TypeVar

__all__ = ["Order", "depth_first", "topological"]

_Node = TypeVar("_Node", bound=Hashable)


class Order(Protocol):
    """Lists ends, and all that they need."""

    def __call__(self, ends: Iterable[_Node], sources: Callable[[_Node], Sequence[_Node]], /) -> list[_Node]:
        """Return the nodes in the order."""


def depth_first(ends: Iterable[_Node], sources: Callable[[_Node], Sequence[_Node]]) -> list[_Node]:
    """Return the ends and all that they need: from the last end on, each node before what it reads.

    >>> depth_first("ab", {"a": "xy", "b": "x", "x": "", "y": ""}.__getitem__)
    ['b', 'x', 'a', 'y']
    """
    stack, found = list(ends), dict[_Node, None]()
    while stack:
        node = stack.pop()
        if node not in found:
            found[node] = None
            stack += sources(node)
    return list(found)


def topological(ends: Iterable[_Node], sources: Callable[[_Node], Sequence[_Node]]) -> list[_Node]:
    """Return the ends and all that they need: from the last end on, each node after what it reads.

    An edge that closes a cycle is ignored.

    >>> topological("ab", {"a": "xy", "b": "x", "x": "", "y": ""}.__getitem__)
    ['x', 'b', 'y', 'a']
    """
    stack, opened, found = list(ends), set[_Node](), dict[_Node, None]()
    while stack:
        node = stack[-1]
        if node in found:
            stack.pop()
            continue
        if node not in opened:
            opened.add(node)
            waiting = [s for s in reversed(sources(node)) if s not in found and s not in opened]
            if waiting:
                stack += waiting
                continue
        found[stack.pop()] = None
    return list(found)
