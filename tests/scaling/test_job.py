"""The course of runs by rows: files read once, the contents of a task, and when a chunk is recorded."""

from __future__ import annotations

import json
import os
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from types import SimpleNamespace

import dask.array as da
import numpy as np
import pytest
import zarr

import ir_runtime as ov
from ir_runtime.dask import cluster, map_blocks, model_source
from ir_runtime.dask.job import TASK_SECONDS, TASKS_PER_THREAD, WORKER_COUNT_SECONDS, _TaskLimit, _TaskQueue
from ir_runtime.dask.manifest import Manifest
from ir_runtime.dask.planning import ArrayType
from ir_runtime.dask.targets import create_targets, open_targets

from .models import X, dense, two_inputs
from .test_by_rows import by_threads, check_zarr, partial, unfinished


def test_a_model_is_read_once_to_plan(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read, times = model_source.read_model, []
    monkeypatch.setattr(model_source, "read_model", lambda path: times.append(path) or read(path))
    monkeypatch.setattr(model_source, "read_blob", None)
    map_blocks("dense.xml", da.zeros((4, 6), chunks=(2, 6)))
    assert times == ["dense.xml"]
    map_blocks(dense(), da.zeros((4, 6), chunks=(2, 6)))
    assert times == ["dense.xml"]


def test_tasks_have_several_chunks_where_these_are_small() -> None:
    tasks = _TaskQueue(range(100), lambda: 4)
    assert next(tasks) == range(1)
    tasks.adapt(TASK_SECONDS / 10)
    assert len(next(tasks)) == 10
    tasks.adapt(TASK_SECONDS / 32)
    sizes = [len(task) for task in tasks]
    assert sizes[:2] == [23, 17]  # a quarter of the rest
    assert sizes[-3:-1] == [4, 4]  # no less than an eighth of a task
    assert sum(sizes) == 89
    slow = _TaskQueue(range(3), lambda: 4)
    slow.adapt(7.0)
    assert [list(task) for task in slow] == [[0], [1], [2]]


def test_workers_that_join_get_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: dict[str, int] = {}
    limit = _TaskLimit(SimpleNamespace(nthreads=lambda: threads))
    assert limit() == TASKS_PER_THREAD
    threads["tcp://a"] = 4
    assert limit() == TASKS_PER_THREAD  # as it was a moment ago
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + WORKER_COUNT_SECONDS + 60)
    assert limit() == 4 * TASKS_PER_THREAD


@pytest.mark.parametrize("output", ["out.zarr", "out.npy"])
def test_chunks_are_on_the_disk_before_they_are_recorded(
    folder: Path, monkeypatch: pytest.MonkeyPatch, output: str
) -> None:
    """A file not flushed after its last change may be lost in a power failure."""
    flushed: dict[str, int] = {}
    fsync, add_done = os.fsync, Manifest.add_done

    def flush(descriptor: int) -> None:
        flushed[os.readlink(f"/proc/self/fd/{descriptor}")] = os.fstat(descriptor).st_ino
        fsync(descriptor)

    def record(self: Manifest, chunk: int) -> None:
        place = str(self.partial)
        file = f"{place}/c.{chunk}.0" if output == "out.zarr" else place
        assert flushed.pop(file) == os.stat(file).st_ino
        assert output == "out.npy" or place in flushed
        flushed[file] = os.stat(file).st_ino if output == "out.npy" else 0
        add_done(self, chunk)

    monkeypatch.setattr(os, "fsync", flush)
    monkeypatch.setattr(Manifest, "add_done", record)
    ov.save_model(two_inputs(), "two.xml", compress_to_fp16=False)
    found = by_threads(f"two.xml -i x.npy -i y=x.npy -o {output} --json")
    assert json.loads(found.stdout)["done"] == 11


def test_partial_files_are_removed(folder: Path) -> None:
    by_threads("dense.xml -i x.npy -o out.zarr")
    unfinished("out.zarr", 0)
    scores = partial("out.zarr") / "scores"
    (scores / ".c.0.0.0123abcd.part").write_bytes(b"half")
    (scores / "mine.part").touch()
    Path("mine.part").touch()
    by_threads("dense.xml -i x.npy -o out.zarr --resume")
    assert sorted(os.listdir("out.zarr/scores"))[:2] == ["c.0.0", "c.1.0"]
    assert sorted(Path().rglob("*.part")) == [Path("mine.part"), Path("out.zarr/scores/mine.part")]
    check_zarr()


@pytest.mark.parametrize("shape", [(7,), (7, 3), (7, 2, 0), (7, 2, 3)])
@pytest.mark.parametrize("name", ["a.npy", "a.zarr"])
def test_targets_of_each_type(tmp_path: Path, shape: tuple[int, ...], name: str) -> None:
    for dtype in ("f2", "f8", "i1", "u2", "i8", "?"):
        array = np.random.default_rng(0).integers(0, 2, shape).astype(dtype)
        place = tmp_path / f"{dtype}{name}"
        [target] = open_targets(place, {"y": ArrayType(shape, np.dtype(dtype))}, 3)
        create_targets((target,))
        for start in (6, 0, 3):
            target.write(start, array[start : start + 3])
        found = zarr.open(place, mode="r")[:] if name == "a.zarr" else np.load(place)
        assert found.dtype == array.dtype
        assert np.array_equal(found, array)


def test_inputs_without_names_go_where_no_name_goes(folder: Path) -> None:
    ov.save_model(two_inputs(), "two.xml", compress_to_fp16=False)
    np.save("y.npy", 2 * X)
    by_threads("two.xml -i y.npy -i x=x.npy -o out.npy")
    assert np.array_equal(np.load("out.npy"), X + 2 * X)


def test_the_dashboard_is_that_of_the_scheduler(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = SimpleNamespace(cluster=1, dashboard_link="http://x")
    for bokeh, shown in ((None, ""), (object(), "http://x")):
        monkeypatch.setattr(cluster, "find_spec", lambda name, found=bokeh: found)
        assert cluster.dashboard_of(ours) == shown


@pytest.mark.parametrize(("answer", "is_shown"), [(200, True), (405, True), (404, False), (None, True)])
def test_another_scheduler_is_asked_whether_it_has_a_dashboard(answer: int | None, is_shown: bool) -> None:
    """`dask scheduler --no-dashboard` announces an address without a page."""

    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self.send_response(answer or 0)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        link = f"http://127.0.0.1:{server.server_port}/status"
        if answer is None:
            server.server_close()
        else:
            threading.Thread(target=server.handle_request).start()
        client = SimpleNamespace(cluster=None, dashboard_link=link)
        assert cluster.dashboard_of(client) == (link if is_shown else "")
