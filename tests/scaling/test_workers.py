"""Settings of workers: memory allocation and limits."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import ir_runtime as ov
from ir_runtime.dask import Runner, cluster, model_source

from .models import X
from .test_by_rows import run

FAULTS = """
import resource
import numpy as np
import ir_runtime as ov
from ir_runtime import opset13 as op
from ir_runtime.dask import Runner

x = found = op.parameter([-1, 1024, 256], np.float32, name="x")
for _ in range(4):
    found = op.tanh(op.softmax(found, 2))
run, rows = Runner.of(ov.Model([op.result(found)], [x])), np.zeros((1, 1024, 256), np.float32)
for _ in range(3):
    run(rows)
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(10):
    run(rows)
print((resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) / 10)
"""
"""Prints the page faults of a run, whose arrays have 256 pages each."""


@pytest.mark.skipif(sys.platform != "linux", reason="glibc reads the variable, on Linux")
def test_runs_in_workers_keep_freed_memory() -> None:
    """Workers of a user's cluster have Dask's default, with which glibc keeps nothing."""
    environment = {**os.environ, "MALLOC_TRIM_THRESHOLD_": "65536"}
    done = subprocess.run(
        [sys.executable, "-c", FAULTS], env=environment, capture_output=True, text=True, check=True
    )
    assert float(done.stdout) < 100


def test_limits_reach_the_workers(folder: Path) -> None:
    np.save("x.npy", np.tile(X, (100, 1)))
    line = "dense.xml -i x.npy -o out.zarr --scheduler threads --batch 4400 --max-memory 128K"
    assert "the limit is 131072" in run(line, 5).stderr


def test_a_limit_on_memory_is_sent_only_if_it_was_given(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual, bound = (
        pickle.dumps(Runner.of(ov.read_model("dense.xml", limits=limits), send=True))
        for limits in (ov.Limits(trips=9), ov.Limits(memory=1 << 16))
    )
    monkeypatch.setattr(model_source, "DEFAULT", ov.Limits(memory=1 << 40))  # another machine
    there = pickle.loads(usual).source.read()
    assert (there.limits.memory, there.limits.trips) == (1 << 40, 9)
    with pytest.raises(ov.LimitError, match="the limit is 65536"):
        pickle.loads(bound)(np.tile(X, (100, 1)))


def test_own_workers_are_not_observed_without_a_dashboard(monkeypatch: pytest.MonkeyPatch) -> None:
    """Dask samples stacks a hundred times a second, which is useless without a dashboard."""
    monkeypatch.setattr(cluster, "_has_bokeh", lambda: False)
    with cluster.connect("threads", 1) as client:
        [worker] = client.cluster.workers.values()
        callbacks = worker.periodic_callbacks
        assert "profile" not in callbacks
        assert callbacks["tick"].callback_time >= 1000
    monkeypatch.setattr(cluster, "_has_bokeh", lambda: True)
    assert "distributed.worker.profile.enabled" not in cluster._settings()
