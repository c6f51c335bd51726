"""Memory plans: the placement of regions of recorded calls, once the calls that use each are known.

Regions in use at the same time do not overlap; the largest are placed first (greedy by size, Pisarchyk and
Lee 2020).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from .regions import Region

__all__ = ["Allocation", "allocate"]

_ALIGNMENT = 64


class Allocation(NamedTuple):
    """The placement of a run's regions.

    Args:
        size: the bytes of scratch memory.
        places: for each region, the result whose memory it occupies before that is written, or ``None`` for
            scratch memory; and the byte offset there.
    """

    size: int
    places: dict[Region, tuple[Region | None, int]]


def allocate(regions: Collection[Region], results: Collection[Region], calls: int) -> Allocation:
    """Place regions in scratch memory, or in results that no call has written yet.

    Args:
        regions: the regions, neither inputs nor results.
        results: the results, which are allocated separately.
        calls: the number of calls.
    """
    plan = _Plan(results, [[] for _ in range(calls + 1)])
    for region in sorted(regions, key=_rounded, reverse=True):
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
        """Place a region: in scratch memory, unless that would grow and a result has room."""
        calls = self.used[region.first : region.last + 1]
        others = {other for used in calls for other in used}
        place, offset = None, self._gap(region, None, others)
        if offset + _rounded(region) > self.size:
            place, offset = self._in_result(region, others) or (None, offset)
        if place is None:
            self.size = max(self.size, offset + _rounded(region))
        self.places[region] = place, offset
        for used in calls:
            used.append(region)

    def _in_result(self, region: Region, others: Collection[Region]) -> tuple[Region, int] | None:
        size = region.stop - region.start
        for result in self.results:
            if region.last < result.first and size <= result.stop - result.start:
                offset = self._gap(region, result, others)
                if offset + size <= result.stop - result.start:
                    return result, offset
        return None

    def _gap(self, region: Region, place: Region | None, others: Iterable[Region]) -> int:
        """Return the lowest offset with enough room between other allocations."""
        found = [(self.places[other], _rounded(other)) for other in others]
        end = 0
        for offset, size in sorted((offset, size) for (where, offset), size in found if where is place):
            if offset - end >= _rounded(region):
                break
            end = max(end, offset + size)
        return end


def _rounded(region: Region) -> int:
    return -(-(region.stop - region.start) // _ALIGNMENT) * _ALIGNMENT
