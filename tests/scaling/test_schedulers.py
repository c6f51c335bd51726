"""``ir-runtime run --scheduler tcp://…``: external schedulers, also when they are killed."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest

from ir_runtime.dask import cluster as clusters
from ir_runtime.dask import job

from .kills import PATIENCE
from .models import BATCH, COUNT
from .test_by_rows import check_zarr, run, start


@contextmanager
def dask_program(*args: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a command of Dask inside the block."""
    command = [sys.executable, "-m", "dask", *args, "--host", "127.0.0.1", "--no-dashboard"]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@contextmanager
def cluster(name: str) -> Iterator[tuple[int, str]]:
    """The process and the address of a scheduler with a worker."""
    file, deadline = Path(f"{name}.json"), time.monotonic() + PATIENCE
    with dask_program("scheduler", "--port", "0", "--scheduler-file", str(file)) as scheduler:
        while not file.exists() or not file.read_text().endswith("}"):
            assert time.monotonic() < deadline, "no scheduler starts"
            time.sleep(0.05)
        address = json.loads(file.read_text())["address"]
        with dask_program("worker", address, "--nthreads", "1", "--no-nanny"):
            yield scheduler.pid, address


@pytest.mark.oracle
def test_a_scheduler_that_is_killed_loses_nothing(folder: Path) -> None:
    line = "dense.xml -i x.npy -o out.zarr --json"
    with cluster("one") as (process, address):
        # Four tasks of one chunk are submitted at a time: when the first chunk is recorded, three are not submitted yet.
        code, said, problems = start(
            f"{line} --scheduler {address}",
            f"os.kill({process}, signal.SIGKILL)",
            after=1,
            setting="job.TASK_SECONDS = 0",
        )
    assert code == 5, problems
    assert "is lost" in json.loads(said)["error"]["message"]
    *_, progress, found, hint = problems.splitlines()
    done = int(progress.partition(" ")[0])
    assert progress == f"{done} of 11 chunks are done; --resume continues"
    assert found == f"error[IR402]: the scheduler at {address} is lost, or has cancelled the run"
    assert hint == "  hint: run again with --resume, and with the --scheduler to use now"
    assert "Traceback" not in problems
    assert "distributed.client" not in problems  # what Dask logs
    with cluster("two") as (_, address):
        code, said, problems = start(f"{line} --resume --scheduler {address}")
    assert code == 0, problems
    assert json.loads(said)["rows"] == COUNT - done * BATCH
    check_zarr()


def test_a_scheduler_without_workers_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    client = SimpleNamespace(nthreads=dict, cluster=None, dashboard_link="http://127.0.0.1:1")
    monkeypatch.setattr(clusters, "connect", lambda *_: nullcontext(client))
    monkeypatch.setattr(job, "run_job", lambda *_: job.Summary())
    found = run("dense.xml -i x.npy -o out.zarr --scheduler tcp://x:8786")
    assert (
        found.stderr
        == "dashboard: http://127.0.0.1:1\nthe scheduler has no workers yet: the run waits for them\n"
    )
