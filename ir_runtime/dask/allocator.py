"""Keep freed memory in workers of Dask, as other processes do."""

from __future__ import annotations

import ctypes
import os
import sys

from ..backends.common.layout import MAX_KEPT

__all__ = ["keep_freed_memory"]

_DASK_DEFAULT = "65536"
"""What Dask's nanny sets the variable to, unless a user configures ``distributed.nanny.pre-spawn-environ``."""

# Parameters of mallopt(3), in <malloc.h>.
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3


def keep_freed_memory() -> None:
    """Set glibc's thresholds to what they become by themselves in a process that Dask has not started.

    ``MALLOC_TRIM_THRESHOLD_`` turns off that they adapt (see mallopt(3)): each array above 128 KiB is then mapped and
    cleared again in every run, which takes models with large arrays up to three times as long. Memory beyond the
    thresholds still returns to the system. A value that a user chose is not changed.
    """
    if os.environ.get("MALLOC_TRIM_THRESHOLD_") != _DASK_DEFAULT or sys.platform != "linux":
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # other C libraries lack it
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, MAX_KEPT)
        mallopt(_M_TRIM_THRESHOLD, 2 * MAX_KEPT)
