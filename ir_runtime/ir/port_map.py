"""The port map of a layer with bodies: how its inputs and outputs connect to a body's Parameters and Results."""

from __future__ import annotations

from typing import NamedTuple

from .formula import Count, floor

__all__ = ["PORT_MAPS", "BackEdge", "BodyInput", "BodyOutput", "Cut"]

# The attribute of an operation that holds a body, and the XML element that maps its ports.
PORT_MAPS = {"body": "port_map", "then_body": "then_port_map", "else_body": "else_port_map"}


class Cut(NamedTuple):
    """How an input is sliced, or an output concatenated, along ``axis``: one slice per iteration.

    ``start`` and ``end`` are inclusive positions; negative ones count from the end.
    """

    axis: int
    start: int = 0
    end: int = -1
    stride: int = 1
    part_size: int = 1

    def count(self, length: int) -> int:
        """Return the number of slices of an axis of the given length.

        >>> Cut(0).count(5), Cut(0, -1, 0, -2, 2).count(6), Cut(0).count(0)
        (5, 3, 0)
        """
        return self.divide(length)[0]

    def divide(self, length: int) -> tuple[int, int]:
        """Return the number of slices of an axis of the given length, and the number of elements left over.

        >>> Cut(0, stride=2, part_size=2).divide(5), Cut(0, 1, 3).divide(5)
        ((2, 1), (3, 0))
        """
        start, end = self._ends(length)
        return divmod(abs(end - start) + 1, self.part_size) if length else (0, 0)

    def count_of(self, length: Count) -> Count | None:
        """Return the number of slices of an axis whose length may be a formula; ``None`` if it is unknown.

        >>> from ir_runtime.ir.formula import Formula
        >>> Cut(0).count_of(Formula.symbol("time")), Cut(0, 1).count_of(Formula.symbol("time")), Cut(0, 1).count_of(5)
        (time, None, 4)
        """
        if isinstance(length, int):
            return self.count(length)
        if {self.start, self.end} != {0, -1}:
            return None
        return length if self.part_size == 1 else floor(length, self.part_size)

    def part(self, length: int, iteration: int) -> slice:
        """Return the slice that an iteration reads from an axis of the given length.

        >>> [Cut(0, -1, 0, -1).part(3, i) for i in range(2)]
        [slice(2, 3, None), slice(1, 2, None)]
        """
        first = self._ends(length)[0] + iteration * self.stride
        if self.stride < 0:
            first += 1 - self.part_size
        return slice(first, first + self.part_size)

    def _ends(self, length: int) -> tuple[int, int]:
        return (
            self.start + length if self.start < 0 else self.start,
            self.end + length if self.end < 0 else self.end,
        )


class BodyInput(NamedTuple):
    """The input of the layer that feeds a Parameter of the body, whole or one slice per iteration."""

    port: int
    parameter: int
    cut: Cut | None = None


class BodyOutput(NamedTuple):
    """The Result of the body that feeds an output of the layer: its last value, or all values concatenated."""

    port: int
    result: int
    cut: Cut | None = None


class BackEdge(NamedTuple):
    """A loop-carried value: a Result of one iteration feeds a Parameter of the next."""

    result: int
    parameter: int
