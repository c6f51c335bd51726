"""Tapes: recorded calls of consecutive steps with relocatable addresses, and the memory plan of their arrays.

The arrays of a step are located in regions: the memory of its inputs and of its allocations. An array in unknown memory,
such as a copy made by NumPy, makes the step impossible to replay. Only regions still in use are searched, and recording
does not keep their arrays alive. So it takes no extra memory, a later array may reuse the memory of an earlier one, and
lookups do not slow down with the number of steps.

One call from Python makes all calls of a tape, in machine code (`replay_tape`).

Once the calls that use each region are known, a memory plan places the regions: those in use at the same time do not
overlap, and the largest are placed first (greedy by size, Pisarchyk and Lee 2020).
"""

from __future__ import annotations

import ctypes
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple, TypeAlias

import numpy as np

from ...._util.arrays import DType
from ....ir.tensor import Array
from ...common.kept_memory import is_kept
from ..codegen.descriptor import Descriptor, concatenate, i64
from ..codegen.language import device, routine, types
from ..codegen.memory import load_i64, store_i64
from ..machine_code import library
from .denormals import float_mode, mode_bits, set_float_mode
from .parallel import Call, Record, array_data, new_call, run_call
from .task import store_args

__all__ = [
    "allocate",
    "Allocation",
    "FIXED",
    "Region",
    "Regions",
    "replay",
    "SCRATCH",
    "SCRATCH_MARGIN",
    "Tape",
    "TapeCall",
    "TapeHeader",
    "TapeWriter",
    "tuple_word",
    "UnknownArrayError",
    "View",
]

FIXED, SCRATCH = 0, 1
"""The base of an address: 0, or the scratch memory. Any other value is a word of the tuple of arrays."""


class TapeHeader(Descriptor):
    """The header of a tape: the numbers of calls and of refusal counters.

    ``counters`` is the address of an array with the address of each counter, and ``mode`` the floating-point mode bits that
    are set during the calls.
    """

    calls: i64
    refusals: i64
    counters: i64
    mode: i64


class TapeCall(Descriptor):
    """A task call. Each array is given by a base and an offset in bytes.

    The base is `FIXED`, `SCRATCH`, or the position, in words of 8 bytes, of an array in the tuple passed to `replay_tape`.
    """

    task: i64
    threads: i64
    job: i64
    out: i64
    out_offset: i64
    a: i64
    a_offset: i64
    b: i64
    b_offset: i64
    c: i64
    c_offset: i64
    d: i64
    d_offset: i64


@device
def _located(arrays: int, scratch: int, record: int, index: int) -> int:
    place, offset = load_i64(record, index), load_i64(record, index + 1)
    found: int = offset
    if place == 1:
        found = offset + scratch
    elif place != 0:
        found = offset + array_data(load_i64(arrays, place))
    return found


@device
def _refusals(tape: TapeHeader) -> int:
    """Return how often tasks have refused their data: the sum of the counters that they increment then."""
    counters, sum = tape.counters, 0
    for index in range(tape.refusals):
        sum += load_i64(load_i64(counters, index), 0)
    return sum


@routine(*[types.int64] * 4, returns=types.int64)
def replay_tape(tape: TapeHeader, pool: int, arrays: int, first: int) -> int:
    """Make the calls of a tape until one fails; return 0 if none does.

    Args:
        tape: a `TapeHeader` followed by each `TapeCall`.
        pool: the pool whose threads share calls; unused if no call is shared.
        arrays: the tuple of arrays. The first is the scratch memory, whose first word is set to the number of refusals of
            this replay.
        first: the word of the tuple object that holds the first array.
    """
    begin = array_data(load_i64(arrays, first))
    scratch, before = (begin + 127) // 64 * 64, _refusals(tape)
    mode = float_mode()
    set_float_mode(mode | tape.mode)
    failed = 0
    for index in range(tape.calls):
        record = TapeCall.at(tape + 8 * (TapeHeader.words + TapeCall.words * index))
        call = new_call()
        store_args(
            call, record.job, _located(arrays, scratch, record, TapeCall.out),
            _located(arrays, scratch, record, TapeCall.a), _located(arrays, scratch, record, TapeCall.b),
            _located(arrays, scratch, record, TapeCall.c), _located(arrays, scratch, record, TapeCall.d),
        )  # fmt: skip
        failed = run_call(pool, record.task, call, record.threads)
        if failed != 0:
            break
    set_float_mode(mode)
    store_i64(begin, 0, _refusals(tape) - before)
    return failed


SCRATCH_MARGIN = 128
"""The number of bytes at the start of scratch memory that tasks do not use."""


@cache
def tuple_word() -> int:
    """Return the word of a tuple object that holds its first item."""
    probe = (object(),)
    words = np.frombuffer(ctypes.string_at(id(probe), 64), np.int64).tolist()
    return int(words.index(id(probe[0])))


@cache
def replay() -> Callable[..., int]:
    """Return `replay_tape` as a Python function, which takes the tuple itself and releases the GIL."""
    kinds: list[type] = [ctypes.c_int64, ctypes.c_int64, ctypes.py_object, ctypes.c_int64]
    return ctypes.CFUNCTYPE(ctypes.c_int64, *kinds)(library().address(replay_tape.name))


_Layout: TypeAlias = tuple[tuple[int, ...], tuple[int, ...], DType]
Located: TypeAlias = "tuple[Region | None, int]"
"""The location of an array: a region and a byte offset in it, or ``None`` and an address that is the same in all runs."""


class UnknownArrayError(Exception):
    """A step cannot be replayed, as when an array is in unknown memory."""


@dataclass(eq=False, slots=True)
class Region:
    """The memory and lifetime of an array: an input or an allocation.

    Args:
        address: the address of the array's first element.
        start: the lowest address of its memory, which differs if strides are negative.
        stop: the address after its memory.
        layout: its shape, strides and dtype.
        order: its axes in memory order, or ``None`` if its memory has gaps or overlaps.
        first: the index of the first call that uses it.
        last: the index of the last call that uses it.
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
    """An array within a region, at a byte offset from the region's own array."""

    region: Region
    offset: int
    layout: _Layout

    @property
    def is_whole(self) -> bool:
        """Whether the array is the region's own array."""
        return not self.offset and self.layout == self.region.layout


@dataclass(eq=False, slots=True)
class _Intervals:
    """Disjoint address intervals, sorted."""

    starts: list[int] = field(default_factory=list)
    stops: list[int] = field(default_factory=list)

    def find_containing(self, start: int, stop: int) -> int:
        """Return the start of the interval that contains ``[start, stop)``, or 0 if there is none."""
        index = bisect_right(self.starts, start) - 1
        return self.starts[index] if index >= 0 and stop <= self.stops[index] else 0

    def overlaps(self, start: int, stop: int) -> bool:
        """Return whether ``[start, stop)`` overlaps any interval."""
        return bisect_right(self.stops, start) < bisect_left(self.starts, stop)

    def add(self, start: int, stop: int) -> None:
        """Add an interval, and merge it with the intervals that it overlaps."""
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
    """Arrays that have the same address in all runs, by identity."""
    _fixed: _Intervals = field(default_factory=_Intervals)
    _used: _Intervals = field(default_factory=_Intervals)
    _by_start: dict[int, Region] = field(default_factory=dict)
    _unused: list[Region] = field(default_factory=list)
    """The regions that may have become unused in the current step."""
    _bounds_of: dict[int, tuple[int, int, int]] = field(default_factory=dict)
    """The bounds of the step's arrays, by identity; a cache, since NumPy takes microseconds to compute them."""

    def fix(self, array: Array) -> None:
        """Register an array that has the same address in all runs; such arrays may overlap.

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
        """Add the memory of an array as a new region, used from ``call`` on.

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
        """Add the memory of the array that owns the data of ``array`` as a new region.

        Raises:
            UnknownArrayError: as for `add`, and if no array owns the data.
        """
        while isinstance(array.base, np.ndarray):
            array = array.base
        if array.base is not None and not is_kept(array.base):
            raise UnknownArrayError
        return self.add(array, call)

    def locate(self, array: Array) -> Located | None:
        """Return the location of an array, or ``None`` if it is in unknown memory."""
        address, start, stop = self._bounds(array)
        if start == stop or self._fixed.find_containing(start, stop):
            return None, address
        region = self._by_start.get(self._used.find_containing(start, stop))
        return None if region is None else (region, address - region.address)

    def drop(self, region: Region) -> None:
        """Register that a slot no longer holds an array of a region."""
        region.users -= 1
        self._unused.append(region)

    def release(self) -> None:
        """Stop tracking regions that no slot refers to, at the end of a step."""
        for region in self._unused:
            if not region.users and self._by_start.get(region.start) is region:
                del self._by_start[region.start]
                self._used.remove(region.start)
        self._unused.clear()
        self._bounds_of.clear()

    def undo(self, count: int) -> None:
        """Remove all but the first ``count`` regions, when a step fails."""
        self.release()
        del self.all[count:]

    def _bounds(self, array: Array) -> tuple[int, int, int]:
        """Return the address of an array's first element, the lowest address of its memory, and the address after its memory."""
        if (bounds := self._bounds_of.get(id(array))) is None:
            address: int = array.__array_interface__["data"][0]
            if array.flags.c_contiguous:
                bounds = address, address, address + array.nbytes
            else:
                bounds = address, *np.lib.array_utils.byte_bounds(array)
            self._bounds_of[id(array)] = bounds
        return bounds


def _memory_order(array: Array) -> tuple[int, ...] | None:
    axes = tuple(range(array.ndim))
    if array.flags.c_contiguous:
        return axes
    order = tuple(sorted(axes, key=lambda axis: -array.strides[axis]))
    return order if array.transpose(order).flags.c_contiguous else None


_ALIGNMENT = 64


class Allocation(NamedTuple):
    """The memory plan of a run.

    Args:
        size: the size of the scratch memory in bytes.
        places: for each region, the result whose memory it uses before that is written, or ``None`` for scratch memory, and
            the byte offset there.
    """

    size: int
    places: dict[Region, tuple[Region | None, int]]


def allocate(regions: Collection[Region], results: Collection[Region], calls: int) -> Allocation:
    """Plan the memory of regions: place each in scratch memory, or in a result that no call has written yet.

    Args:
        regions: the regions, neither inputs nor results.
        results: the results, which are allocated separately.
        calls: the number of calls.
    """
    plan = _Plan(results, [[] for _ in range(calls + 1)])
    for region in sorted(regions, key=_aligned_size, reverse=True):
        plan.add(region)
    return Allocation(plan.size, plan.places)


@dataclass(eq=False, slots=True)
class _Plan:
    results: Collection[Region]
    used: list[list[Region]]
    """The regions in use during each call."""
    size: int = 0
    places: dict[Region, tuple[Region | None, int]] = field(default_factory=dict)

    def add(self, region: Region) -> None:
        """Place a region in scratch memory, or in a result if scratch memory would grow and a result has room."""
        calls = self.used[region.first : region.last + 1]
        others = {other for used in calls for other in used}
        place, offset = None, self._gap(region, None, others)
        if offset + _aligned_size(region) > self.size:
            place, offset = self._place_in_result(region, others) or (None, offset)
        if place is None:
            self.size = max(self.size, offset + _aligned_size(region))
        self.places[region] = place, offset
        for used in calls:
            used.append(region)

    def _place_in_result(self, region: Region, others: Collection[Region]) -> tuple[Region, int] | None:
        size = region.stop - region.start
        for result in self.results:
            if region.last < result.first and size <= result.stop - result.start:
                offset = self._gap(region, result, others)
                if offset + size <= result.stop - result.start:
                    return result, offset
        return None

    def _gap(self, region: Region, place: Region | None, others: Iterable[Region]) -> int:
        """Return the lowest offset in ``place`` (``None`` is scratch memory) at which a region does not overlap ``others``."""
        placed = [(self.places[other], _aligned_size(other)) for other in others]
        end = 0
        for offset, size in sorted((offset, size) for (where, offset), size in placed if where is place):
            if offset - end >= _aligned_size(region):
                break
            end = max(end, offset + size)
        return end


def _aligned_size(region: Region) -> int:
    return -(-(region.stop - region.start) // _ALIGNMENT) * _ALIGNMENT


_NAMES = [(name, f"{name}_offset") for name in ("out", "a", "b", "c", "d")]


class Tape(NamedTuple):
    """Recorded calls in the layout that `replay_tape` reads.

    Args:
        words: a `TapeHeader` followed by each `TapeCall`.
        kept: the arrays that the words point to.
        can_refuse: whether a task may refuse its data.
    """

    words: Array
    kept: tuple[Array, ...]
    can_refuse: bool

    @property
    def address(self) -> int:
        """The address of the words."""
        return int(self.words.ctypes.data)


class _LocatedCall(NamedTuple):
    """A task call with the locations of its arrays instead of the arrays."""

    task: int
    threads: int
    job: Array
    arrays: Sequence[Located]


@dataclass(eq=False, slots=True)
class TapeWriter:
    """Builds a `Tape` from the recorded task calls of consecutive steps.

    Args:
        regions: the memory that the calls read and write.
        calls: the task calls added so far, in order.
        refusals: the addresses of the counters that tasks increment when they refuse their data.
    """

    regions: Regions = field(default_factory=Regions)
    calls: list[_LocatedCall] = field(default_factory=list)
    refusals: list[int] = field(default_factory=list)

    def add(
        self, inputs: Iterable[tuple[int, Array]], fixed: Iterable[Array], record: Record, outputs:
        Iterable[Array],
    ) -> tuple[list[View], list[View | None]]:  # fmt: skip
        """Add a step; return views of ``inputs`` and of ``outputs``, ``None`` for outputs within constants.

        Args:
            inputs: the inputs that no earlier step has read or written, with their slots, and arrays computed in Python, with
                ``~place``.
            fixed: the inputs that are the same in every replay.
            record: the record of the step.
            outputs: its outputs, and the arguments of functions to call after the recorded calls.

        Raises:
            UnknownArrayError: if an array is in unknown memory; the tape and the regions are unchanged.
        """
        count, number = len(self.regions.all), len(self.calls)
        try:
            given = [self.regions.add(array, number, slot) for slot, array in inputs]
            for array in (*fixed, *record.constants):
                self.regions.fix(array)
            for array in record.workspaces:
                self.regions.add_owner(array, number)
            calls = self._locate_calls(record.calls, number)
            views = [self._view(array) for array in outputs]
        except UnknownArrayError:
            self.regions.undo(count)
            raise
        self.calls += calls
        self.refusals += record.refusals
        return [View(region, 0, region.layout) for region in given], views

    def _locate_calls(self, calls: Sequence[Call], number: int) -> list[_LocatedCall]:
        """Locate the arrays of a step's calls, the first of which has index ``number``, and extend the lifetimes of their regions."""
        located, last = [], number + len(calls) - 1
        for index, call in enumerate(calls):
            out = call.arrays[0]
            if self.regions.locate(out) is None:
                self.regions.add_owner(out, number + index)
            places = [self._locate_known(array) for array in call.arrays]
            for region, _ in places:
                if region is not None:  # a call may read addresses that an earlier call of the step wrote
                    region.last = last
            located.append(_LocatedCall(call.task, call.threads, call.job, places))
        return located

    def _locate_known(self, array: Array) -> Located:
        if (location := self.regions.locate(array)) is None:
            raise UnknownArrayError
        return location

    def _view(self, array: Array) -> View | None:
        """Return an output as a view of its region, or ``None`` if it is in a constant."""
        region, offset = self._locate_known(array)
        if not array.size:
            raise UnknownArrayError
        if region is None:
            return None
        view = View(region, offset, (array.shape, array.strides, array.dtype))
        if region.order is None and not view.is_whole:
            raise UnknownArrayError
        return view

    def allocation(self, results: Collection[Region]) -> Allocation:
        """Plan the memory of all regions but inputs and results, which are allocated separately."""
        regions = [region for region in self.regions.all if region.slot is None and region not in results]
        return allocate(regions, results, len(self.calls))

    def tape(self, places: Mapping[Region, int], allocation: Allocation) -> Tape:
        """Return the tape of the collected calls.

        Args:
            places: for each input and each result, the word of the tuple that holds it.
            allocation: the memory plan of the other regions.
        """
        counters = np.array(self.refusals, np.int64)
        head = TapeHeader.fill(
            calls=len(self.calls),
            refusals=len(counters),
            counters=int(counters.ctypes.data),
            mode=mode_bits(),
        )
        words = concatenate(head, *self._records(places, allocation))
        kept = counters, *self.regions.kept.values(), *(call.job for call in self.calls)
        return Tape(words, kept, bool(self.refusals))

    def _records(self, places: Mapping[Region, int], allocation: Allocation) -> Iterator[Array]:
        for call in self.calls:
            fields: dict[str, int] = {}
            for (name, name_of_offset), (region, offset) in zip(_NAMES, call.arrays, strict=True):
                at = 0
                if region in allocation.places:
                    region, at = allocation.places[region]
                    fields[name] = SCRATCH if region is None else places[region]
                else:
                    fields[name] = FIXED if region is None else places[region]
                fields[name_of_offset] = at + offset
            yield TapeCall.fill(task=call.task, threads=call.threads, job=call.job.ctypes.data, **fields)
