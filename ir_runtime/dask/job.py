"""Run a model on data sets, chunk by chunk, and write the results as they come."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Literal

import numpy as np

from ..errors import ExecutionError, IRError
from .datasets import Dataset
from .manifest import Manifest
from .needed import needed
from .runner import Runner
from .targets import Target, sync

__all__ = ["Job", "OnError", "Progress", "Summary", "run_job"]

OnError = Literal["stop", "skip", "nan"]
Progress = Callable[[int], None]
Problems = Mapping[int, str | None]
"""Chunks that ended, and why each failed, if it did."""

PER_THREAD = 3
"""Tasks that a thread of a worker has at once: one runs, the others are ready."""

TASK_SECONDS = 0.5
"""How long a task takes where chunks are small, which it has several of then: Dask takes ten milliseconds of CPU for a task."""

LAST_PART = 8
"""The last tasks take no less than this part of the others: shorter ones wait longer for Dask than workers that end early do."""

LOOK_SECONDS = 2.0
"""After how long the number of workers is read again."""


@dataclass(frozen=True)
class Job:
    """What a worker needs to compute a chunk: it is sent to each worker once.

    Args:
        runner: the model.
        inputs: the data set of each input.
        targets: where each output goes.
        rows: the rows of a chunk.
        total: the rows of all chunks.
        on_error: what to do with a chunk that the model fails on: stop, skip it, or write NaN.
        is_remote: whether workers may be on other hosts. Then each waits until a chunk is on its disk; else this is
            done for many chunks at once, where they are recorded.
    """

    runner: Runner
    inputs: Mapping[str, Dataset]
    targets: tuple[Target, ...]
    rows: int
    total: int
    on_error: OnError = "stop"
    is_remote: bool = False

    @property
    def chunks(self) -> int:
        """How many chunks there are."""
        return -(-self.total // self.rows)

    def bounds(self, chunk: int) -> tuple[int, int]:
        """Return the first row of a chunk, and the row after its last."""
        return chunk * self.rows, min((chunk + 1) * self.rows, self.total)

    def compute(self, chunk: int) -> str | None:
        """Read, run and write a chunk; return why it failed, if it did and that is allowed.

        Raises:
            IRError: if the model fails, unless ``on_error`` allows it.
            OSError: if a file cannot be read or written.
        """
        start, stop = self.bounds(chunk)
        try:
            feeds = {name: source.read(start, stop) for name, source in self.inputs.items()}
            arrays = self.runner.check_rows(self.runner(**feeds), stop - start)
        except IRError as reason:
            if self.on_error == "stop":
                raise
            if self.on_error == "nan":
                self._write(
                    start, [np.full((stop - start, *t.shape[1:]), np.nan, t.dtype) for t in self.targets]
                )
            return str(reason)
        self._write(start, arrays)
        return None

    def _write(self, start: int, arrays: Sequence[Any]) -> None:
        for target, array in zip(self.targets, arrays, strict=True):
            target.write(start, array)
        if self.is_remote:
            sync(self._files(start))

    def sync(self, chunks: Iterable[int]) -> None:
        """Wait until the results of chunks are on the disk."""
        if not self.is_remote:
            sync(file for chunk in chunks for file in self._files(self.bounds(chunk)[0]))

    def _files(self, start: int) -> list[str]:
        return [target.file(start) for target in self.targets]


@dataclass
class Summary:
    """What a run did.

    Args:
        rows: how many were computed now.
        seconds: how long it took.
        failed: the chunks that failed, and why.
    """

    rows: int = 0
    seconds: float = 0.0
    failed: dict[int, str] = field(default_factory=dict)


def run_job(client: Any, job: Job, manifest: Manifest, progress: Progress = lambda rows: None) -> Summary:
    """Compute all chunks that are not done on the workers of a client.

    A chunk whose worker is lost is computed on another one. Chunks are recorded in the manifest when they are written.

    Args:
        client: of Dask's distributed scheduler.
        job: what to compute.
        manifest: the chunks that are done.
        progress: called with the rows of each chunk that ends.

    Raises:
        IRError: if a chunk fails and the job says to stop.
        ExecutionError: if workers or the scheduler are lost for good.
    """
    begun, summary = time.monotonic(), Summary()
    try:
        for ended in _results(client, job, [n for n in range(job.chunks) if n not in manifest.done]):
            job.sync(chunk for chunk, problem in ended.items() if problem is None)
            for chunk, problem in ended.items():
                _record(job, manifest, summary, chunk, problem)
                start, stop = job.bounds(chunk)
                progress(stop - start)
    finally:
        summary.seconds = time.monotonic() - begun
        manifest.flush()
    return summary


def _record(job: Job, manifest: Manifest, summary: Summary, chunk: int, problem: str | None) -> None:
    if problem is None:
        start, stop = job.bounds(chunk)
        manifest.add_done(chunk)
        summary.rows += stop - start
    else:
        manifest.add_failed(chunk, problem)
        summary.failed[chunk] = problem


def _results(client: Any, job: Job, chunks: Sequence[int]) -> Iterator[Problems]:
    """Yield the chunks that end, and why those failed that did.

    Few are at the scheduler at a time, so that its memory is bounded.
    """
    distributed = needed("distributed", "a run by rows")
    with _losses(distributed, client):
        # A task, not scattered data: it is made again where the worker that has it is lost.
        shared = client.submit(_same, job, pure=False)
        places = _Places(client)
        tasks = _Tasks(chunks, places)

        def more(count: int) -> list[Any]:
            groups = list(islice(tasks, max(count, 0)))
            return client.map(_compute, groups, job=shared, pure=False) if groups else []

        running = distributed.as_completed(more(places()), loop=client.loop)
        try:
            for batch in running.batches():
                ended = client.gather([future for future in batch if future.status == "finished"])
                for problems, seconds in ended:
                    tasks.adapt(seconds / len(problems))
                running.update(more(places() - running.count()))
                yield {chunk: problem for problems, _ in ended for chunk, problem in problems.items()}
                for future in batch:
                    if future.status != "finished":
                        future.result()  # raises
        finally:
            with suppress(Exception):  # what is lost cannot be cancelled either
                client.cancel(list(running.futures))


@contextmanager
def _losses(distributed: Any, client: Any) -> Iterator[None]:
    """Say that workers or the scheduler are lost where Dask raises that in one of several ways."""
    address = client.scheduler.address
    lost = (distributed.comm.core.CommClosedError, distributed.client.FutureCancelledError, TimeoutError)
    try:
        yield
    except distributed.scheduler.KilledWorker:
        raise ExecutionError(
            "each worker that computed a chunk died",
            hint="they may need more memory: --chunk makes tasks smaller, --workers starts fewer",
        ) from None
    except (OSError, *lost) as reason:
        if client.status == "running" and not isinstance(reason, lost):
            raise  # of a task, such as a full disk
        raise ExecutionError(
            f"the scheduler at {address} is lost, or has cancelled the run",
            hint="run again with --resume, and with the --scheduler to use now",
        ) from reason


class _Places:
    """How many tasks are at the scheduler at a time, by its workers, which may come and go."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._count, self._until = 0, 0.0

    def __call__(self) -> int:
        """Return the number; the scheduler is asked for its workers every few seconds."""
        if time.monotonic() >= self._until:
            self._count = PER_THREAD * max(sum(self._client.nthreads().values()), 1)
            self._until = time.monotonic() + LOOK_SECONDS
        return self._count


class _Tasks(Iterator[Sequence[int]]):
    """The chunks of each task: several if they are small, fewer towards the end, so that workers end together."""

    def __init__(self, chunks: Sequence[int], places: Callable[[], int]) -> None:
        self._chunks, self._places = chunks, places
        self._next, self._size = 0, 1

    def adapt(self, seconds: float) -> None:
        """Choose how many chunks the next tasks have, by the seconds that one took."""
        self._size = max(1, int(TASK_SECONDS / max(seconds, 1e-6)))

    def __next__(self) -> Sequence[int]:
        rest = len(self._chunks) - self._next
        if not rest:
            raise StopIteration
        begin = self._next
        self._next += min(self._size, rest, max(-(-rest // self._places()), self._size // LAST_PART))
        return self._chunks[begin : self._next]


def _same(job: Job) -> Job:
    return job


def _compute(chunks: Sequence[int], job: Job) -> tuple[Problems, float]:
    begun = time.perf_counter()
    return {chunk: job.compute(chunk) for chunk in chunks}, time.perf_counter() - begun
