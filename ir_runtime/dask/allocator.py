"""Let Dask workers keep freed memory, as other processes do."""

from __future__ import annotations

import ctypes
import os
import sys

from ..backends.common.kept_memory import MAX_KEPT

__all__ = ["keep_freed_memory"]

_DASK_DEFAULT = "65536"
"""The value that Dask's nanny gives the variable, unless a user configures ``distributed.nanny.pre-spawn-environ``."""

# Parameters of mallopt(3), in <malloc.h>.
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3


def keep_freed_memory() -> None:
    """Set glibc's allocation thresholds to the values that they reach outside of Dask.

    ``MALLOC_TRIM_THRESHOLD_`` turns off dynamic thresholds (see mallopt(3)): each array above 128 KiB is then mapped
    and zeroed again in every run, which takes models with large arrays up to three times as long. Memory beyond the
    thresholds is still returned to the system. A value that a user chose is not changed.
    """
    if os.environ.get("MALLOC_TRIM_THRESHOLD_") != _DASK_DEFAULT or sys.platform != "linux":
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # other C libraries lack it
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, MAX_KEPT)
        mallopt(_M_TRIM_THRESHOLD, 2 * MAX_KEPT)
