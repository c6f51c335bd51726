"""Arithmetic with nodes: ``a + b`` is an Add, as with OpenVINO's nodes."""

from __future__ import annotations

from abc import abstractmethod
from typing import Generic, TypeVar

__all__ = ["Operators"]

_Node = TypeVar("_Node")


class Operators(Generic[_Node]):
    """The operators of nodes and their outputs, each of which creates a node."""

    # NumPy would else apply ``array + node`` to each element.
    __array_ufunc__ = None

    @abstractmethod
    def _binary(self, type: str, left: object, right: object) -> _Node:
        """Create an operation on two tensors, nodes or numbers."""

    def __add__(self, other: object) -> _Node:
        return self._binary("Add", self, other)

    def __radd__(self, other: object) -> _Node:
        return self._binary("Add", other, self)

    def __sub__(self, other: object) -> _Node:
        return self._binary("Subtract", self, other)

    def __rsub__(self, other: object) -> _Node:
        return self._binary("Subtract", other, self)

    def __mul__(self, other: object) -> _Node:
        return self._binary("Multiply", self, other)

    def __rmul__(self, other: object) -> _Node:
        return self._binary("Multiply", other, self)

    def __truediv__(self, other: object) -> _Node:
        return self._binary("Divide", self, other)

    def __rtruediv__(self, other: object) -> _Node:
        return self._binary("Divide", other, self)
