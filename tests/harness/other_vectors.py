"""Run a file of tests again with other vector registers than those of the processor."""

from __future__ import annotations

import os
import subprocess
import sys

from ir_runtime.backends.numba.codegen.target import TARGET, VECTORS

__all__ = ["AGAIN", "OTHERS", "run_again"]

AGAIN = "IR_RUNTIME_TEST_AGAIN"
"""Set in the environment of such a run."""
OTHERS = sorted(set(VECTORS) - {TARGET.name})


def run_again(file: str, kind: str) -> None:
    """Run a file with vectors of some kind; everything in it must pass."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", file]
    environment = os.environ | {"IR_RUNTIME_VECTORS": kind, AGAIN: "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:]
