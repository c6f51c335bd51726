"""Symbols of dimensions."""

from __future__ import annotations

__all__ = ["Symbol"]


class Symbol:
    """An identity: two dimensions that carry the same symbol are equal at run time.

    >>> from ir_runtime import Symbol
    >>> batch = Symbol()
    >>> batch == batch, batch == Symbol()
    (True, False)
    """

    __slots__ = ("name",)

    def __init__(self, name: str = "") -> None:
        self.name: str = name

    def __repr__(self) -> str:
        return self.name
