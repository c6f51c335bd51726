"""Settings that people make for themselves, and that change what Python, this package and terminals do."""

from __future__ import annotations

import os
import re

__all__ = ["TARGET", "forget_settings"]

TARGET = "IR_RUNTIME_TEST_TARGET"
"""The name of the target whose kernels tests run on, if that is not the best one of the processor."""

# What Python does; modules of the tests are found by pytest's own setting.
_PYTHON = "PYTHON(?!UNBUFFERED|HASHSEED|PYCACHEPREFIX|DONTWRITEBYTECODE).*"
# What this package does: kept are where things lie, and what tests tell tests that they start.
_PACKAGE = "_?IR_RUNTIME_(?!CACHE|ZOO|TEST_).*"
# How wide and colourful programs write.
_TERMINAL = "COLUMNS|LINES|PAGER|LESS|NO_COLOR|FORCE_COLOR|CLICOLOR.*|PY_COLORS|TTY_(COMPATIBLE|INTERACTIVE)"
# How libraries compute, and on how many threads.
_LIBRARIES = "(DASK|OMP|MKL|OPENBLAS|ZARR|HDF5|OV|OPENVINO)_.*"
_SETTINGS = re.compile(f"{_PYTHON}|{_PACKAGE}|{_TERMINAL}|{_LIBRARIES}")


def forget_settings() -> None:
    """Remove such variables from the environment of this process and of those that it starts; use the usual umask.

    What tests that start tests tell them is kept.
    """
    os.umask(0o022)
    for name in list(os.environ):
        if _SETTINGS.fullmatch(name):
            del os.environ[name]
    if target := os.environ.get(TARGET):
        os.environ["IR_RUNTIME_TARGET"] = target
