"""Who made the processor, where kernels for the same instructions differ in speed."""

from __future__ import annotations

import platform
from functools import cache
from pathlib import Path

__all__ = ["is_intel"]

_INTEL = "GenuineIntel"
_INFORMATION = Path("/proc/cpuinfo")


@cache
def is_intel(information: Path = _INFORMATION) -> bool:
    """Return whether this is a processor of Intel, as far as the system says.

    Args:
        information: where Linux describes the processors.
    """
    try:
        with information.open(encoding="utf-8", errors="replace") as lines:
            return any(line.startswith("vendor_id") and _INTEL in line for line in lines)
    except OSError:
        return _INTEL in platform.processor()  # Windows
