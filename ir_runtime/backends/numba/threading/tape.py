"""Tapes: the recorded calls of consecutive steps, with an address for each array that stays right in other runs.

The memory of a step is that of its inputs, of constants, and what it allocates. An array is known by where it is in one of
them; a step with an array of which that cannot be said, such as a copy that NumPy made, is not replayed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from ....arrays import DType
from ....ir.tensor import Array
from ..codegen.descriptor import concatenate
from .recording import Call, Record
from .replay import FIXED, SCRATCH, SCRATCH_MARGIN, TapeCall, TapeHeader

__all__ = ["Allocation", "Region", "Tape", "TapeWriter", "UnknownArrayError", "View"]

_ALIGNMENT = 64


class UnknownArrayError(Exception):
    """An array is in no memory that is known."""


@dataclass(eq=False, slots=True)
class Region:
    """Memory: an input, constants, or an allocation.

    Args:
        owner: the array that it is the memory of.
        slot: of the input; ``None`` for other memory.
        is_fixed: whether its address is the same in all runs.
        first: the first call that uses it.
        last: the last one.
    """

    owner: Array
    slot: int | None = None
    is_fixed: bool = False
    first: int = 0
    last: int = 0
    start: int = field(init=False)
    stop: int = field(init=False)

    def __post_init__(self) -> None:
        self.start, self.stop = np.lib.array_utils.byte_bounds(self.owner)

    @property
    def is_allocated(self) -> bool:
        """Whether it is an allocation."""
        return self.slot is None and not self.is_fixed

    def is_mixed_with(self, other: Region) -> bool:
        """Return whether they share memory, so that an address may mean either; fixed ones always mean the same."""
        return self.start < other.stop and other.start < self.stop and not (self.is_fixed and other.is_fixed)

    @property
    def address(self) -> int:
        """Where the owner begins; with negative strides, that is not where its memory does."""
        return int(self.owner.ctypes.data)


class View(NamedTuple):
    """An array in a region, by its offset from the owner in bytes."""

    region: Region
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: DType

    @property
    def is_whole(self) -> bool:
        """Whether it is the owner itself."""
        owner = self.region.owner
        whole = (owner.shape, owner.strides, owner.dtype) == (self.shape, self.strides, self.dtype)
        return whole and not self.offset


class Allocation(NamedTuple):
    """Where the memory of a run is: scratch memory of this many bytes, and the offset of each region in it."""

    size: int
    offsets: dict[Region, int]


class Tape(NamedTuple):
    """Calls as machine code reads them.

    Args:
        words: a `TapeHeader` and each `TapeCall`.
        kept: the arrays that they point to.
        can_refuse: whether a task may refuse its data.
    """

    words: Array
    kept: tuple[Array, ...]
    can_refuse: bool

    @property
    def address(self) -> int:
        """The address of the words."""
        return int(self.words.ctypes.data)


@dataclass(eq=False, slots=True)
class TapeWriter:
    """Collects the calls of steps.

    Args:
        regions: all that is known.
        calls: the calls, in order.
        refusals: addresses of counters.
    """

    regions: list[Region] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    refusals: list[int] = field(default_factory=list)

    def add(
        self,
        inputs: Iterable[tuple[int, Array]],
        fixed: Sequence[Array],
        record: Record,
        outputs: Iterable[Array],
    ) -> list[View | None]:
        """Add a step, and return where its outputs are; ``None`` for those in constants.

        Args:
            inputs: the slots and arrays of inputs that earlier steps did not make.
            fixed: constants.
            record: what it did.
            outputs: what it made.

        Raises:
            UnknownArrayError: if an array is in no known memory; then nothing was added.
        """
        regions, number = list(self.regions), len(self.calls)
        for slot, array in inputs:
            if all(region.slot != slot for region in regions):
                _extend(regions, Region(array, slot, first=number, last=number))
        for array in (*fixed, *record.constants):
            if array.size and all(region.owner is not array for region in regions):
                _extend(regions, Region(array, is_fixed=True))
        regions += [Region(_owner(array), first=number, last=number) for array in record.workspaces]
        end = (
            number + len(record.calls) - 1
        )  # a call may read what an earlier one of the step wrote the address of
        for index, call in enumerate(record.calls):
            out = call.arrays[0]
            if out.size and _found(regions, out) is None:
                _extend(regions, Region(_owner(out), first=number + index, last=end))
            for array in call.arrays:
                if array.size:
                    _known(regions, array).last = end
        views = [_view(regions, array) for array in outputs]
        self.regions = regions
        self.calls += record.calls
        self.refusals += record.refusals
        return views

    def allocation(self, kept: Collection[Region]) -> Allocation:
        """Place regions in scratch memory, where those that are in use at once do not overlap.

        Args:
            kept: regions that are allocated by themselves.
        """
        offsets: dict[Region, int] = {}
        size = 0
        for region in self.regions:
            if not region.is_allocated or region in kept:
                continue
            busy = sorted(
                (offset, offset + _rounded(other))
                for other, offset in offsets.items()
                if other.first <= region.last and region.first <= other.last
            )
            place = 0
            for begin, end in busy:
                if begin - place >= _rounded(region):
                    break
                place = max(place, end)
            offsets[region] = place
            size = max(size, place + _rounded(region))
        return Allocation(SCRATCH_MARGIN + size, offsets)

    def tape(self, places: dict[Region, int], allocation: Allocation) -> Tape:
        """Return the tape.

        Args:
            places: the words of the tuple of arrays that hold inputs, and what is allocated by itself.
            allocation: where the rest is.
        """
        counters = np.array(self.refusals, np.int64)
        head = TapeHeader.fill(
            calls=len(self.calls), refusals=len(counters), counters=int(counters.ctypes.data)
        )
        kept = [region.owner for region in self.regions if region.is_fixed]
        words = concatenate(head, *self._records(places, allocation))
        return Tape(words, (counters, *kept, *(call.job for call in self.calls)), bool(self.refusals))

    def _records(self, places: dict[Region, int], allocation: Allocation) -> Iterator[Array]:
        for call in self.calls:
            located = [self._located(array, places, allocation) for array in call.arrays]
            fields = dict(zip(("out", "a", "b", "c", "d"), located, strict=True))
            yield TapeCall.fill(
                task=call.task, threads=call.threads, job=call.job.ctypes.data,
                **{name: place for name, (place, _) in fields.items()},
                **{f"{name}_offset": offset for name, (_, offset) in fields.items()},
            )  # fmt: skip

    def _located(self, array: Array, places: dict[Region, int], allocation: Allocation) -> tuple[int, int]:
        """Return the place of an array, and the offset from it."""
        address = int(array.ctypes.data)
        region = _found(self.regions, array) if array.size else None
        if region is None or region.is_fixed:
            return FIXED, address
        if region in places:
            return places[region], address - region.address
        return SCRATCH, allocation.offsets[region] + address - region.address


def _view(regions: Sequence[Region], array: Array) -> View | None:
    """Return where a result is, in memory of which views can be made; ``None`` if in constants."""
    region = _known(regions, array)
    if region.is_fixed:
        return None
    if not region.owner.flags.c_contiguous:
        raise UnknownArrayError
    return View(region, int(array.ctypes.data) - region.address, array.shape, array.strides, array.dtype)


def _rounded(region: Region) -> int:
    return -(-(region.stop - region.start) // _ALIGNMENT) * _ALIGNMENT


def _owner(array: Array) -> Array:
    """Return the array that has the memory of another one."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    if array.base is not None:
        raise UnknownArrayError
    return array


def _extend(regions: list[Region], region: Region) -> None:
    """Add a region, which must not share memory with others: by its address, an array could be in either."""
    if any(map(region.is_mixed_with, regions)) or region.start == region.stop:
        raise UnknownArrayError
    regions.append(region)


def _found(regions: Sequence[Region], array: Array) -> Region | None:
    low, high = np.lib.array_utils.byte_bounds(array)
    return next((region for region in regions if region.start <= low and high <= region.stop), None)


def _known(regions: Sequence[Region], array: Array) -> Region:
    if (found := _found(regions, array)) is None:
        raise UnknownArrayError
    return found
