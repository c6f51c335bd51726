"""Tapes: the recorded calls of consecutive steps, with array addresses that remain valid in other runs.

The memory of a step is that of its inputs, of constants, and of its allocations. An array is identified by
its location in one of them; a step with an array elsewhere, such as a copy made by NumPy, is not replayed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from ....ir.tensor import Array
from ..codegen.descriptor import concatenate
from .allocation import Allocation, allocate
from .denormals import mode_bits
from .recording import Call, Record
from .regions import Located, Region, Regions, UnknownArrayError, View
from .replay import FIXED, SCRATCH, TapeCall, TapeHeader

__all__ = ["Tape", "TapeWriter"]

_NAMES = [(name, f"{name}_offset") for name in ("out", "a", "b", "c", "d")]


class Tape(NamedTuple):
    """Calls in the machine-code layout.

    Args:
        words: a `TapeHeader` followed by each `TapeCall`.
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


class _LocatedCall(NamedTuple):
    """A call with array locations instead of arrays."""

    task: int
    threads: int
    job: Array
    arrays: Sequence[Located]


@dataclass(eq=False, slots=True)
class TapeWriter:
    """Collects the calls of steps.

    Args:
        regions: the memory of the steps.
        calls: the calls, in order.
        refusals: the addresses of refusal counters.
    """

    regions: Regions = field(default_factory=Regions)
    calls: list[_LocatedCall] = field(default_factory=list)
    refusals: list[int] = field(default_factory=list)

    def add(
        self, inputs: Iterable[tuple[int, Array]], fixed: Iterable[Array], record: Record, outputs:
        Iterable[Array],
    ) -> tuple[list[View], list[View | None]]:  # fmt: skip
        """Add a step; return views of the given inputs and of its outputs, ``None`` for outputs in constants.

        Args:
            inputs: the slots and arrays of inputs that earlier steps neither read nor wrote, and of arrays
                computed in Python.
            fixed: the constant arrays.
            record: the record of the step.
            outputs: its outputs, and the arguments of functions after the calls.

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
            calls = self._located(record.calls, number)
            views = [self._view(array) for array in outputs]
        except UnknownArrayError:
            self.regions.undo(count)
            raise
        self.calls += calls
        self.refusals += record.refusals
        return [View(region, 0, region.layout) for region in given], views

    def _located(self, calls: Sequence[Call], number: int) -> list[_LocatedCall]:
        """Return the calls of a step, numbered from ``number``, and record the regions that they use."""
        found, last = [], number + len(calls) - 1
        for index, call in enumerate(calls):
            out = call.arrays[0]
            if self.regions.located(out) is None:
                self.regions.add_owner(out, number + index)
            places = [self._known(array) for array in call.arrays]
            for region, _ in places:
                if region is not None:  # a call may read what an earlier one of the step wrote the address of
                    region.last = last
            found.append(_LocatedCall(call.task, call.threads, call.job, places))
        return found

    def _known(self, array: Array) -> Located:
        if (found := self.regions.located(array)) is None:
            raise UnknownArrayError
        return found

    def _view(self, array: Array) -> View | None:
        """Return the location of a result in viewable memory; ``None`` if in constants."""
        region, offset = self._known(array)
        if not array.size:
            raise UnknownArrayError
        if region is None:
            return None
        view = View(region, offset, (array.shape, array.strides, array.dtype))
        if region.order is None and not view.is_whole:
            raise UnknownArrayError
        return view

    def allocation(self, results: Collection[Region]) -> Allocation:
        """Place regions in scratch memory, except results, which are allocated separately."""
        regions = [region for region in self.regions.all if region.slot is None and region not in results]
        return allocate(regions, results, len(self.calls))

    def tape(self, places: Mapping[Region, int], allocation: Allocation) -> Tape:
        """Return the tape.

        Args:
            places: the words of the tuple of arrays that hold inputs and separate allocations.
            allocation: the placement of the other regions.
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
