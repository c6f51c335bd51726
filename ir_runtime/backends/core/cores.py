"""How many cores the system says there are, for as many threads.

Processors of one core (hyper-threads, SMT) share its arithmetic units, which one thread of a kernel keeps busy. Where cores
are of several kinds, only the fast ones count: threads would wait for what a slow one has taken.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

from ...forks import in_child

__all__ = ["cores", "processors"]

_SYSTEM = Path("/sys/devices")
# Cores of less than this share of the capacity of the fastest one are slow.
_SLOW = 0.5


def processors() -> frozenset[int]:
    """Return the numbers of the processors, hyper-threads among them, that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return frozenset(os.sched_getaffinity(0))
    return frozenset(range(os.cpu_count() or 1))


@cache
def cores(
    usable: frozenset[int] | None = None,
    *,
    hyper_threads: bool = False,
    slow: bool = False,
    system: Path = _SYSTEM,
) -> int:
    """Return how many cores there are, at least 1; without what the system does not say, every processor is one.

    Args:
        usable: the processors that count; by default those that this process may use.
        hyper_threads: whether all processors of a core count.
        slow: whether slow cores count, too.
        system: where Linux describes its devices.
    """
    usable = processors() if usable is None else usable
    if not slow:
        usable = _fast(usable, system)
    return max(len(usable if hyper_threads else {_core(each, system) for each in usable}), 1)


in_child(cores.cache_clear)


def _fast(usable: frozenset[int], system: Path) -> frozenset[int]:
    """Return the processors of fast cores; all if the system does not tell them apart."""
    named = _numbers(_read(system / "cpu_core" / "cpus")).intersection(usable)  # of Intel's hybrid processors
    if named:
        return frozenset(named)
    capacities = {each: _capacity(each, system) for each in usable}
    limit = _SLOW * max(capacities.values(), default=0)
    return frozenset(each for each, capacity in capacities.items() if capacity >= limit)


def _capacity(processor: int, system: Path) -> int:
    """Return the speed of a processor, relative to the others (Linux: cpu-capacity); 0 if unknown."""
    found = _read(system / "system" / "cpu" / f"cpu{processor}" / "cpu_capacity")
    return int(found) if found.isdecimal() else 0


def _core(processor: int, system: Path) -> str:
    """Return what the processors of one core have in common."""
    topology = system / "system" / "cpu" / f"cpu{processor}" / "topology"
    return _read(topology / "thread_siblings_list") or str(processor)


def _numbers(listed: str) -> set[int]:
    """Return the numbers in a list like ``0-3,8``."""
    found: set[int] = set()
    for part in filter(None, listed.split(",")):
        first, _, last = part.partition("-")
        if not first.isdecimal() or not (last or first).isdecimal():
            return set()
        found |= set(range(int(first), int(last or first) + 1))
    return found


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return ""
