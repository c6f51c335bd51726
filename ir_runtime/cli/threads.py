"""The number of threads of NumPy's BLAS, also in the processes that are started to measure a start."""

from __future__ import annotations

import os
import sys

import click

__all__ = ["limit_threads"]


def limit_threads(_: click.Context, __: click.Parameter, count: int | None) -> int | None:
    """Set the number of threads of BLAS, as the callback of an option: before a command imports NumPy.

    BLAS reads the variables once, while NumPy is imported, and processes that are started inherit them. Runs of the
    backends limit BLAS themselves (`ir_runtime.backends.common.blas`), so where NumPy is imported already, as when a
    program calls the command line, the property INFERENCE_NUM_THREADS is enough.
    """
    if count is not None and "numpy" not in sys.modules:
        for name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
            os.environ[name] = str(count)
    return count
