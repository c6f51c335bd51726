"""Run a model on data sets chunk by chunk on Dask workers, which write each result to disk."""

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
Outcomes = Mapping[int, str | None]
"""For each computed chunk, ``None``, or the reason why it failed."""

TASKS_PER_THREAD = 4
"""The maximum number of tasks per worker thread, of which one runs and the others wait. When half of them are done, new tasks
are submitted together, which costs less CPU than one by one."""

TASK_SECONDS = 0.5
"""The desired duration of a task; small chunks are grouped, as Dask needs ten milliseconds of CPU for each task."""

SMALLEST_PART = 8
"""The last tasks have at least 1/8 of the chunks of earlier ones: smaller tasks cost more than workers that finish early."""

WORKER_COUNT_SECONDS = 2.0
"""The interval after which workers are counted again, in seconds."""


@dataclass(frozen=True)
class Job:
    """A run of a model by rows: what workers read, compute and write. It is sent to each worker once.

    Args:
        runner: the model.
        inputs: the data set of each input.
        targets: the target of each output.
        rows: the number of rows of a chunk.
        total: the number of rows of all chunks.
        on_error: the reaction to a failing chunk: stop, skip it, or write NaN.
        is_remote: whether workers may be on other hosts, and must sync their chunks to disk themselves; otherwise, many
            chunks are synced together before they are recorded.
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
        """The number of chunks."""
        return -(-self.total // self.rows)

    def bounds(self, chunk: int) -> tuple[int, int]:
        """Return the range of rows of a chunk, as start and stop."""
        return chunk * self.rows, min((chunk + 1) * self.rows, self.total)

    def compute(self, chunk: int) -> str | None:
        """Read, run and write a chunk; return ``None``, or the reason of a failure that ``on_error`` allows.

        Raises:
            IRError: if the chunk fails, and ``on_error`` is ``stop``.
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
        """Sync chunks to disk, unless workers have done so."""
        if not self.is_remote:
            sync(file for chunk in chunks for file in self._files(self.bounds(chunk)[0]))

    def _files(self, start: int) -> list[str]:
        return [target.file(start) for target in self.targets]


@dataclass
class Summary:
    """The result of a run.

    Args:
        rows: the number of computed rows.
        seconds: the duration of the run.
        failed: the failed chunks, with the reason of each.
    """

    rows: int = 0
    seconds: float = 0.0
    failed: dict[int, str] = field(default_factory=dict)


def run_job(client: Any, job: Job, manifest: Manifest, progress: Progress = lambda rows: None) -> Summary:
    """Compute the missing chunks of a job on the workers of a client.

    Chunks of a lost worker are computed again. A chunk is recorded in the manifest after it is written.

    Args:
        client: a client of Dask's distributed scheduler.
        job: the job.
        manifest: the record of finished chunks.
        progress: called with the number of rows of each chunk that was computed or has failed.

    Raises:
        IRError: if a chunk fails, and ``job.on_error`` is ``stop``.
        ExecutionError: if workers or the scheduler are lost.
        OSError: if a file cannot be read or written.
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


def _results(client: Any, job: Job, chunks: Sequence[int]) -> Iterator[Outcomes]:
    """Yield the outcomes of chunks as they complete.

    The number of submitted tasks is limited, which bounds the memory of the scheduler.
    """
    distributed = needed("distributed", "a run by rows")
    with _translate_losses(distributed, client):
        # The job is a task instead of scattered data, so that Dask computes it again if the worker that holds it is lost.
        shared = client.submit(_identity, job, pure=False)
        limit = _TaskLimit(client)
        tasks = _TaskQueue(chunks, limit)

        def more(count: int) -> list[Any]:
            groups = list(islice(tasks, max(count, 0)))
            return client.map(_compute, groups, job=shared, pure=False) if groups else []

        running = distributed.as_completed(more(limit()), loop=client.loop)
        try:
            for batch in running.batches():
                ended = client.gather([future for future in batch if future.status == "finished"])
                for problems, seconds in ended:
                    tasks.adapt(seconds / len(problems))
                if running.count() <= limit() // 2:
                    running.update(more(limit() - running.count()))
                yield {chunk: problem for problems, _ in ended for chunk, problem in problems.items()}
                for future in batch:
                    if future.status != "finished":
                        future.result()  # raises
        finally:
            with suppress(Exception):  # tasks that are lost cannot be cancelled
                client.cancel(list(running.futures))


@contextmanager
def _translate_losses(distributed: Any, client: Any) -> Iterator[None]:
    """Turn Dask's errors about lost workers or schedulers in the block into `ExecutionError`."""
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
            raise  # an error of a task, such as a full disk
        raise ExecutionError(
            f"the scheduler at {address} is lost, or has cancelled the run",
            hint="run again with --resume, and with the --scheduler to use now",
        ) from reason


class _TaskLimit:
    """The maximum number of submitted tasks, proportional to the current number of the workers' threads."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._count, self._until = 0, 0.0

    def __call__(self) -> int:
        """Return the limit; threads are counted again every `WORKER_COUNT_SECONDS`."""
        if time.monotonic() >= self._until:
            self._count = TASKS_PER_THREAD * max(sum(self._client.nthreads().values()), 1)
            self._until = time.monotonic() + WORKER_COUNT_SECONDS
        return self._count


class _TaskQueue(Iterator[Sequence[int]]):
    """An iterator over the chunks of each task: several if they are small, fewer towards the end to keep all workers busy."""

    def __init__(self, chunks: Sequence[int], limit: Callable[[], int]) -> None:
        self._chunks, self._limit = chunks, limit
        self._next, self._size = 0, 1

    def adapt(self, seconds: float) -> None:
        """Set the number of chunks of the next tasks, given the seconds per chunk."""
        self._size = max(1, int(TASK_SECONDS / max(seconds, 1e-6)))

    def __next__(self) -> Sequence[int]:
        rest = len(self._chunks) - self._next
        if not rest:
            raise StopIteration
        begin = self._next
        self._next += min(self._size, rest, max(-(-rest // self._limit()), self._size // SMALLEST_PART))
        return self._chunks[begin : self._next]


def _identity(job: Job) -> Job:
    return job


def _compute(chunks: Sequence[int], job: Job) -> tuple[Outcomes, float]:
    begun = time.perf_counter()
    return {chunk: job.compute(chunk) for chunk in chunks}, time.perf_counter() - begun
