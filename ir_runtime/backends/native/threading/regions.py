"""Regions of memory that recorded calls read and write, and the lookup of an array's region.

Only regions still in use are searched, and their arrays are not kept alive: a recorded run needs no extra
memory, a later array may reuse the memory of an earlier one, and lookups do not slow down with the number of
steps.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

import numpy as np

from ...._util.arrays import DType
from ....ir.tensor import Array
from ...common.kept_memory import is_kept

__all__ = ["Located", "Region", "Regions", "UnknownArrayError", "View"]

_Layout: TypeAlias = tuple[tuple[int, ...], tuple[int, ...], DType]
Located: TypeAlias = "tuple[Region | None, int]"
"""The location of an array: byte offset in a region's array, or an address that is the same in all runs."""


class UnknownArrayError(Exception):
    """An array is in unknown memory."""


@dataclass(eq=False, slots=True)
class Region:
    """The memory of an array: an input or an allocation.

    The fields are the array's memory and lifetime, for planning.

    Args:
        address: the address of the array's first element.
        start: the lowest address of its memory, which differs if strides are negative.
        stop: the end of its memory.
        layout: its shape, strides and dtype.
        order: its axes in memory order, if it has no gaps and can be viewed; else ``None``.
        first: the first call that uses it.
        last: the last call that uses it.
        slot: the slot of an input, or ``~place`` for a result of `HostSteps`; ``None`` for an allocation.
        users: the number of slots that hold arrays in it.
    """

    address: int
    start: int
    stop: int
    layout: _Layout
    order: tuple[int, ...] | None
    first: int
    last: int
    slot: int | None
    users: int = 0


class View(NamedTuple):
    """An array in a region, by its byte offset from the region's array."""

    region: Region
    offset: int
    layout: _Layout

    @property
    def is_whole(self) -> bool:
        """Whether it is the region's array itself."""
        return not self.offset and self.layout == self.region.layout


@dataclass(eq=False, slots=True)
class _Intervals:
    """Disjoint address intervals, sorted."""

    starts: list[int] = field(default_factory=list)
    stops: list[int] = field(default_factory=list)

    def holding(self, start: int, stop: int) -> int:
        """Return the start of the interval that contains another; 0 if there is none."""
        index = bisect_right(self.starts, start) - 1
        return self.starts[index] if index >= 0 and stop <= self.stops[index] else 0

    def overlaps(self, start: int, stop: int) -> bool:
        """Return whether an interval overlaps any of the intervals."""
        return bisect_right(self.stops, start) < bisect_left(self.starts, stop)

    def add(self, start: int, stop: int) -> None:
        """Add an interval, merging it with those that it overlaps."""
        where = slice(bisect_right(self.stops, start), bisect_left(self.starts, stop))
        start, stop = min([start, *self.starts[where]]), max([stop, *self.stops[where]])
        self.starts[where], self.stops[where] = [start], [stop]

    def remove(self, start: int) -> None:
        """Remove the interval starting at an address."""
        index = bisect_right(self.starts, start) - 1
        del self.starts[index], self.stops[index]


@dataclass(eq=False, slots=True)
class Regions:
    """The regions of consecutive steps."""

    all: list[Region] = field(default_factory=list)
    kept: dict[int, Array] = field(default_factory=dict)
    """Arrays with the same address in all runs, by identity."""
    _fixed: _Intervals = field(default_factory=_Intervals)
    _used: _Intervals = field(default_factory=_Intervals)
    _by_start: dict[int, Region] = field(default_factory=dict)
    _unused: list[Region] = field(default_factory=list)
    """The regions that may be forgotten at the end of the step."""
    _bounds_of: dict[int, tuple[int, int, int]] = field(default_factory=dict)
    """The bounds of the step's arrays, by identity; querying NumPy takes microseconds."""

    def fix(self, array: Array) -> None:
        """Add the memory of an array with the same address in all runs; such arrays may overlap.

        Raises:
            UnknownArrayError: if it overlaps a region.
        """
        if array.size and id(array) not in self.kept:
            _, start, stop = self._bounds(array)
            if self._used.overlaps(start, stop):
                raise UnknownArrayError
            self._fixed.add(start, stop)
            self.kept[id(array)] = array

    def add(self, array: Array, call: int, slot: int | None = None) -> Region:
        """Add an array's memory as a new region that a call uses.

        Raises:
            UnknownArrayError: if the array is empty, or overlaps another region, so that an address would be ambiguous.
        """
        address, start, stop = self._bounds(array)
        if start == stop or self._used.overlaps(start, stop) or self._fixed.overlaps(start, stop):
            raise UnknownArrayError
        layout = array.shape, array.strides, array.dtype
        region = Region(address, start, stop, layout, _memory_order(array), call, call, slot)
        self._used.add(start, stop)
        self._by_start[start] = region
        self.all.append(region)
        self._unused.append(region)
        return region

    def add_owner(self, array: Array, call: int) -> Region:
        """Add the memory of the array that owns an array's data as a new region.

        Raises:
            UnknownArrayError: as for `add`, and if no array owns the data.
        """
        while isinstance(array.base, np.ndarray):
            array = array.base
        if array.base is not None and not is_kept(array.base):
            raise UnknownArrayError
        return self.add(array, call)

    def located(self, array: Array) -> Located | None:
        """Return the location of an array; ``None`` if it is in unknown memory."""
        address, start, stop = self._bounds(array)
        if start == stop or self._fixed.holding(start, stop):
            return None, address
        region = self._by_start.get(self._used.holding(start, stop))
        return None if region is None else (region, address - region.address)

    def drop(self, region: Region) -> None:
        """Record that a slot no longer holds an array in this region."""
        region.users -= 1
        self._unused.append(region)

    def release(self) -> None:
        """Forget regions that no slot refers to, at the end of a step."""
        for region in self._unused:
            if not region.users and self._by_start.get(region.start) is region:
                del self._by_start[region.start]
                self._used.remove(region.start)
        self._unused.clear()
        self._bounds_of.clear()

    def undo(self, count: int) -> None:
        """Remove all regions except the first ``count``, those from before a step."""
        self.release()
        del self.all[count:]

    def _bounds(self, array: Array) -> tuple[int, int, int]:
        """Return the address of an array's first element, and the lowest and highest address of its memory."""
        if (found := self._bounds_of.get(id(array))) is None:
            address: int = array.__array_interface__["data"][0]
            if array.flags.c_contiguous:
                found = address, address, address + array.nbytes
            else:
                found = address, *np.lib.array_utils.byte_bounds(array)
            self._bounds_of[id(array)] = found
        return found


def _memory_order(array: Array) -> tuple[int, ...] | None:
    axes = tuple(range(array.ndim))
    if array.flags.c_contiguous:
        return axes
    order = tuple(sorted(axes, key=lambda axis: -array.strides[axis]))
    return order if array.transpose(order).flags.c_contiguous else None
