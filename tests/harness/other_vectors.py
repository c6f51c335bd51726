"""Run a file of tests again with other vector registers than those of the processor."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable

import pytest

from ir_runtime.backends.numba.codegen.target import TARGET, VECTORS

__all__ = ["AGAIN", "same_with_other_vectors"]

AGAIN = "IR_RUNTIME_TEST_AGAIN"
"""Set in the environment of such a run."""
OTHERS = sorted(set(VECTORS) - {TARGET.name})


def same_with_other_vectors(file: str) -> Callable[..., None]:
    """Return a test that runs a file with vectors of every other kind: once, however many threads its tests are for."""

    @pytest.mark.skipif(AGAIN in os.environ, reason="this is such a run")
    @pytest.mark.oracle
    @pytest.mark.long
    @pytest.mark.parametrize("kind", OTHERS)
    def test(kind: str, request: pytest.FixtureRequest) -> None:
        if not {"2 threads", "3 threads", "threads=2"} & set(request.node.callspec.id.split("-")):
            _run_again(file, kind)

    return test


def _run_again(file: str, kind: str) -> None:
    """Run a file with vectors of some kind; everything in it must pass."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", file]
    environment = os.environ | {"IR_RUNTIME_VECTORS": kind, AGAIN: "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:]
