"""Scratch memory of kernels is freed, and its exhaustion ends a run with an error instead of a crash."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from harness.snapshots import same_as_before

pytest.importorskip("llvmlite")

from ir_runtime.backends.native.build.source import CompileError
from ir_runtime.backends.native.build.translate import translate
from ir_runtime.backends.native.codegen.language import Routine, device, types
from ir_runtime.backends.native.codegen.memory import scratch_memory, store_i64
from ir_runtime.backends.native.machine_code import TABLE, WORDS
from ir_runtime.backends.native.threading.task import Task


def test_runs_without_scratch_memory_end_with_an_error() -> None:
    """No memory is leaked, no thread waits, and the next run has correct results."""
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])}
    command = [sys.executable, "-m", "harness.scratch"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, env=environment)
    assert done.returncode == 0, done.stderr
    (said,) = set(done.stdout.splitlines())
    same_as_before("messages/native_scratch", said)


@device
def _fill(size: int) -> int:
    place = scratch_memory(size)
    store_i64(place, 0, size)
    return size


def _alone(size: int) -> None:
    _fill(size)


def test_only_tasks_have_scratch_memory() -> None:
    """Routines cannot report exhaustion."""
    with pytest.raises(CompileError, match="in _alone: only tasks can have scratch memory"):
        translate(Routine(_alone, (types.int64,)))


def _several(_call: int, job: int) -> None:
    for index in range(job):
        store_i64(scratch_memory(8 * job), 0, index)
        store_i64(job, index, _fill(index))


def test_what_a_loop_asked_for_before_is_given_back() -> None:
    """Each allocation site owns one block: it is freed when the site allocates again and when the function returns."""
    functions = translate(Task(_several)).functions
    release = f'@"{TABLE}", i64 {WORDS.index("release")}\n'
    released = {name: each.definition().count(release) for name, each in functions.items()}
    assert {name: count for name, count in released.items() if count} == {
        "ir_runtime_test_native_scratch__several": 2,
        "_fill.0": 1,
    }
