"""Counts of processors and cores: the number of threads that can compute at once.

Processors of one core (hyper-threads, SMT) share its arithmetic units, which one thread of a kernel keeps busy. If there are
several kinds of cores, only the fast ones count, as threads would wait for the slow ones.

A container may have all processors of a machine, but a quota of CPU time for fewer, set by its control group (cgroup). More
threads than the quota allows would wait for each other while none of them may run.
"""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from math import ceil
from pathlib import Path

from .forks import in_child

__all__ = ["cores", "parallelism", "processor_name", "processors", "quota"]

_SYSTEM = Path("/sys/devices")
_PROCESS = Path("/proc/self")
# Cores with less than this fraction of the fastest core's capacity are slow.
_SLOW = 0.5


def processors() -> frozenset[int]:
    """Return the numbers of the processors (hyper-threads) that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return frozenset(os.sched_getaffinity(0))
    return frozenset(range(os.cpu_count() or 1))


def quota(process: Path = _PROCESS) -> float | None:
    """Return the CPU quota of this process, the lowest of its control groups and their parents; ``None`` for no limit.

    Args:
        process: the folder in which Linux describes the process.
    """
    limits = [limit for folder in _groups(process) if (limit := _limit(folder)) is not None]
    return min(limits, default=None)


@cache
def parallelism() -> int:
    """Return the number of threads that can compute at once, at least 1.

    A fractional quota is rounded up, as in Java's and Go's runtimes: one thread could not use up a quota of 1.5.
    """
    count, limit = len(processors()), quota()
    return max(count if limit is None else min(count, ceil(limit)), 1)


in_child(parallelism.cache_clear)


@cache
def cores(
    usable: frozenset[int] | None = None,
    *,
    hyper_threads: bool = False,
    slow: bool = False,
    system: Path = _SYSTEM,
) -> int:
    """Return the number of cores, at least 1; if cores are unknown, the number of processors.

    Args:
        usable: the processors to count; by default, those that this process may use, up to its quota.
        hyper_threads: whether to count all processors of a core.
        slow: whether to count slow cores, too.
        system: the folder in which Linux describes its devices.
    """
    counted = processors() if usable is None else usable
    if not slow:
        counted = _fast(counted, system)
    count = max(len(counted if hyper_threads else {_core(processor, system) for processor in counted}), 1)
    return min(count, parallelism()) if usable is None else count


in_child(cores.cache_clear)


def _fast(usable: frozenset[int], system: Path) -> frozenset[int]:
    """Return the processors of fast cores; all if the system does not distinguish cores."""
    fast = _numbers(_read_text(system / "cpu_core" / "cpus")).intersection(
        usable
    )  # of Intel's hybrid processors
    if fast:
        return frozenset(fast)
    capacities = {processor: _capacity(processor, system) for processor in usable}
    limit = _SLOW * max(capacities.values(), default=0)
    return frozenset(processor for processor, capacity in capacities.items() if capacity >= limit)


def _capacity(processor: int, system: Path) -> int:
    """Return the relative speed of a processor (``cpu_capacity`` of Linux); 0 if unknown."""
    text = _read_text(system / "system" / "cpu" / f"cpu{processor}" / "cpu_capacity")
    return int(text) if text.isdecimal() else 0


def _core(processor: int, system: Path) -> str:
    """Return an identifier shared by the processors of a core."""
    topology = system / "system" / "cpu" / f"cpu{processor}" / "topology"
    return _read_text(topology / "thread_siblings_list") or str(processor)


def _numbers(listed: str) -> set[int]:
    """Return the integers in a list like ``0-3,8``; empty if it is malformed."""
    numbers: set[int] = set()
    for part in filter(None, listed.split(",")):
        first, _, last = part.partition("-")
        if not first.isdecimal() or not (last or first).isdecimal():
            return set()
        numbers |= set(range(int(first), int(last or first) + 1))
    return numbers


def _groups(process: Path) -> Iterator[Path]:
    """Yield the folders of the control groups of a process that may limit its CPU time, and of their parents.

    ``process`` is the folder in which Linux describes the process.
    """
    lines = [line.split(":", 2) for line in _read_text(process / "cgroup").splitlines()]
    member = {
        name: path for _, controllers, path in (parts for parts in lines if len(parts) == 3) for name in controllers.split(",")
    }  # fmt: skip
    for line in _read_text(process / "mountinfo").splitlines():
        mounted, _, described = line.partition(" - ")
        fields, (kind, _, options) = mounted.split(" "), (*described.split(" ", 2), "", "", "")[:3]
        is_second, is_first = kind == "cgroup2", kind == "cgroup" and "cpu" in options.split(",")
        if len(fields) > 4 and (is_second or is_first):
            root, mount = map(_unescape, fields[3:5])
            yield from _up_to(Path(mount), root, member.get("" if is_second else "cpu", "/"))


def _up_to(mount: Path, root: str, path: str) -> Iterator[Path]:
    """Yield the folder of a control group, and those of its parents up to the mount point.

    Args:
        mount: the mount point.
        root: the group whose folder is mounted there.
        path: the group. Outside of ``root``, the mount point alone is yielded, as ``root`` limits the group, too.
    """
    inside = os.path.relpath(path, root)
    if inside.startswith(".."):  # the group is outside of the mounted part, which still limits it
        inside = "."
    folder = mount / inside
    yield folder
    while folder != mount:
        folder = folder.parent
        yield folder


def _limit(folder: Path) -> float | None:
    """Return the CPU quota of a control group, without its parents; ``None`` if it has none."""
    limit = _read_text(folder / "cpu.max").split() or [
        _read_text(folder / "cpu.cfs_quota_us"), _read_text(folder / "cpu.cfs_period_us")
    ]  # fmt: skip
    if len(limit) != 2 or not all(text.isdecimal() and int(text) for text in limit):
        return None  # such as max, or -1
    return int(limit[0]) / int(limit[1])


def _unescape(path: str) -> str:
    r"""Return a path from ``mountinfo`` with octal escapes, such as ``\040``, replaced by their characters."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), path)


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="surrogateescape").strip()
    except OSError:
        return ""


def processor_name() -> str:
    """Return the model name of the processor, such as ``AMD EPYC 7763``, or its architecture if that is unknown."""
    with suppress(OSError), open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
        for line in file:
            key, _, value = line.partition(":")
            if key.strip() == "model name":
                return value.strip()
    return platform.processor() or platform.machine()
