"""Rerun a test file with vector registers other than those of the processor."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable

import pytest

from harness.session import TARGET as AGAIN
from ir_runtime.backends.native.codegen.target import TARGET
from ir_runtime.backends.native.codegen.targets import TARGETS, VECTORS
from ir_runtime.backends.native.machine_code import library

__all__ = ["AGAIN", "OTHERS", "run_again", "same_with_other_vectors"]

# A setting that is lost on the way would let such runs pass, on the usual kernels.
assert os.environ.get(AGAIN, TARGET.name) == TARGET.name


def _others() -> list[str]:
    """Return one target for each other kind of vectors that this processor can run; some are emulated."""
    features = library().processor.features
    own = [
        target
        for target in TARGETS.values()
        if target.family == TARGET.family and target.features <= features
    ]
    first = {target.vectors.name: target.name for target in reversed(own)}
    kinds = sorted(set(VECTORS) - {TARGET.vectors.name})
    return [first.get(kind, f"{TARGET.name}+{kind}") for kind in kinds]


OTHERS = _others()


def same_with_other_vectors(file: str) -> Callable[..., None]:
    """Return a test that reruns a file with vectors of every other kind; once, whatever thread counts its tests have."""

    @pytest.mark.skipif(AGAIN in os.environ, reason="this is such a run")
    @pytest.mark.oracle
    @pytest.mark.long
    @pytest.mark.parametrize("kind", OTHERS)
    def test(kind: str, request: pytest.FixtureRequest) -> None:
        if not {"2 threads", "3 threads", "threads=2"} & set(request.node.callspec.id.split("-")):
            run_again(file, kind)

    return test


def run_again(file: str, target: str, *arguments: str) -> None:
    """Rerun a test file with the kernels of another target; all tests must pass."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-x",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        file,
        *arguments,
    ]
    environment = os.environ | {AGAIN: target}
    build = [sys.executable, "-m", "ir_runtime.backends.native.build", target]
    subprocess.run(build, check=True, capture_output=True)
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:]
