"""The library of kernels that tests run on: built if it is missing, or older than its sources."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec

__all__ = ["build_kernels"]


def build_kernels() -> None:
    """Build the library for this processor, unless it is there; without the tools for that, tests of the backend are skipped."""
    from ir_runtime.backends.core import default  # once settings are forgotten

    if default._lack() is None or not find_spec("llvmlite") or not find_spec("ziglang"):
        return
    subprocess.run([sys.executable, "-m", "ir_runtime.backends.native.build"], check=False)
    default._lack.cache_clear()
