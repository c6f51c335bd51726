"""Run a model on data sets, chunk by chunk, and write the results as they come."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Literal

import numpy as np

from ..errors import ExecutionError, InputError, IRError
from .datasets import Dataset
from .manifest import Manifest
from .needed import needed
from .runner import Runner
from .targets import Target

__all__ = ["Job", "OnError", "Progress", "Summary", "run_job"]

OnError = Literal["stop", "skip", "nan"]
Progress = Callable[[int], None]

PER_THREAD = 3
"""Tasks that a thread of a worker has at once: one runs, the others are ready."""


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
    """

    runner: Runner
    inputs: Mapping[str, Dataset]
    targets: tuple[Target, ...]
    rows: int
    total: int
    on_error: OnError = "stop"

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
        manifest: what is done.
        progress: called with the rows of each chunk that ends.

    Raises:
        IRError: if a chunk fails and the job says to stop.
        ExecutionError: if workers or the scheduler are lost for good.
    """
    begun, summary = time.monotonic(), Summary()
    try:
        for chunk, problem in _results(client, job, [n for n in range(job.chunks) if n not in manifest.done]):
            start, stop = job.bounds(chunk)
            if problem is None:
                manifest.add_done(chunk)
                summary.rows += stop - start
            else:
                manifest.add_failed(chunk, problem)
                summary.failed[chunk] = problem
            progress(stop - start)
    finally:
        summary.seconds = time.monotonic() - begun
        manifest.flush()
    return summary


def _results(client: Any, job: Job, chunks: Sequence[int]) -> Iterator[tuple[int, str | None]]:
    """Yield chunks as they end. Few are at the scheduler at once, so that its memory is bounded."""
    distributed = needed("distributed", "a run by rows")
    lost = (distributed.comm.core.CommClosedError, distributed.client.FutureCancelledError, TimeoutError)
    left = iter(chunks)
    # A task, not scattered data: it is made again where the worker that has it is lost.
    shared = client.submit(_same, job, pure=False)
    threads = max(sum(client.nthreads().values()), 1)

    def more(count: int) -> list[Any]:
        return [client.submit(_compute, shared, chunk, pure=False) for chunk in islice(left, count)]

    running = distributed.as_completed(more(PER_THREAD * threads), loop=client.loop)
    try:
        for future in running:
            try:
                yield future.result()
            except distributed.scheduler.KilledWorker:
                raise ExecutionError(
                    "each worker that computed a chunk died",
                    hint="they may need more memory: --chunk makes tasks smaller, --workers starts fewer",
                ) from None
            for extra in more(1):
                running.add(extra)
    except lost as reason:
        raise ExecutionError(f"the scheduler is lost: {reason}") from None
    finally:
        with suppress(Exception):  # what is lost cannot be cancelled either
            client.cancel(list(running.futures))


def _same(job: Job) -> Job:
    return job


def _compute(job: Job, chunk: int) -> tuple[int, str | None]:
    return chunk, job.compute(chunk)


def total_rows(inputs: Mapping[str, Dataset]) -> int:
    """Return the number of rows of data sets.

    Raises:
        InputError: if they have different numbers of rows, or none.
    """
    counts = {name: source.shape[0] for name, source in inputs.items()}
    rows = next(iter(counts.values()))
    if len(set(counts.values())) > 1 or not rows:
        raise InputError(
            "inputs must have the same number of rows, at least 1, got "
            + ", ".join(f"{count} of {name!r}" for name, count in counts.items())
        )
    return rows
