"""Run a model with Dask on data sets larger than memory: ``ir-runtime run --batch``."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._util.escaping import visible
from ..dask.datasets import Dataset
from ..dask.model_source import ModelSource
from ..ir.tensor import Array
from ..openvino.model import Model
from .exits import Exit
from .pictures import SUFFIXES, ImageOptions, Pictures, picture_files
from .render import Record, plural, result
from .terminal import show

if TYPE_CHECKING:
    from ..dask.job import Job, Summary
    from ..dask.manifest import Manifest
    from .streaming import Streaming

__all__ = ["run_streaming"]


def run_streaming(
    model: str,
    net: Model,
    changed: bool,
    files: Sequence[str],
    output: str | None,
    streaming: Streaming,
    config: Mapping[str, Any],
    as_json: bool,
) -> None:
    """Run a model on data sets chunk by chunk, writing each chunk of results as it completes.

    Args:
        model: the path of the model.
        net: the model.
        changed: whether the model was modified after reading, so that workers cannot read it from its file.
        files: the data sets of the inputs.
        output: the path of the results.
        streaming: the settings of the run.
        config: properties for compiling the model, by OpenVINO's names.
        as_json: whether to print JSON.

    Raises:
        InputError: if the data sets do not match the inputs, or results cannot be written to the path.
    """
    from ..dask.needed import needed
    from ..dask.targets import target_path
    from ..errors import InputError

    needed("distributed", "a run by rows")  # before any output
    if output is None:
        raise InputError("results of a run by rows need a place: -o scores.zarr, or -o scores.npy")
    job, head = _plan(net if changed else model, net, files, output, streaming, config)
    with _record_run(target_path(output), job, head, streaming.resume) as (manifest, job):
        summary = _run(job, manifest, streaming)
        _tell(model, job, manifest, summary, output, as_json)


def _plan(
    model: Model | str,
    net: Model,
    files: Sequence[str],
    output: str,
    streaming: Streaming,
    config: Mapping[str, Any],
) -> tuple[Job, Record]:
    from .._version import __version__
    from ..dask.cluster import LOCAL_SCHEDULERS
    from ..dask.job import Job
    from ..dask.lengths import common_length, row_range
    from ..dask.model_source import ModelSource
    from ..dask.planning import ArrayType, Planner
    from ..dask.runner import Runner
    from ..dask.targets import open_targets, target_path

    path = target_path(output)
    source = ModelSource.of(model)
    runner = Runner.of_source(
        source.embed(net) if streaming.send_model else source,
        net,
        batch=streaming.batch,
        config=config,
        sequence_axis=streaming.sequence_axis,
    )
    inputs = _datasets(net, runner.source, files)
    total = common_length({name: data.shape[0] for name, data in inputs.items()}, "rows", 1)
    shapes = {name: data.shape for name, data in inputs.items()}
    planner = Planner.of(runner, net, shapes, lambda batch, chunk: f"--batch {batch} --chunk {chunk}", total)
    rows = min(streaming.chunk or planner.runner.batch or 32, total)
    types = planner.outputs(
        {name: (rows, *data.shape[1:]) for name, data in inputs.items()}, row_range(0, rows)
    )
    last = {name: (total % rows or rows, *data.shape[1:]) for name, data in inputs.items()}
    planner.outputs(last, row_range(total - (total % rows or rows), total))
    whole = {
        name: ArrayType((total, *data.shape[1:]), data.dtype)
        for name, data in zip(planner.runner.outputs, types, strict=True)
    }
    targets = open_targets(path, whole, rows)
    on_error = streaming.on_error or "stop"
    if on_error == "nan":
        _check_nan(whole)
    is_remote = (streaming.scheduler or "local") not in LOCAL_SCHEDULERS
    job = Job(planner.runner, inputs, targets, rows, total, on_error, is_remote)
    head = {
        "model": runner.source.digest,
        "version": __version__,
        "backend": runner.backend,
        "config": {key: str(value) for key, value in runner.config.items()},
        "inputs": {name: {"shape": list(x.shape), "dtype": str(x.dtype)} for name, x in inputs.items()},
        "batch": planner.runner.batch,
        "chunk": rows,
        "sequence_axis": streaming.sequence_axis,
        "outputs": {name: {"shape": list(t.shape), "dtype": str(t.dtype)} for name, t in whole.items()},
    }
    return job, head


def _check_nan(types: Any) -> None:
    from ..errors import InputError

    for name, type in types.items():
        if type.dtype.kind != "f":
            raise InputError(
                f"--on-error nan: output {name!r} has the type {type.dtype}, which has no NaN",
                hint="use --on-error skip",
            )


def _datasets(net: Model, source: ModelSource, files: Sequence[str]) -> dict[str, Dataset]:
    """Open the data set of each input, by input name."""
    from ..dask.datasets import open_dataset
    from ..errors import InputError
    from .feeding import assign_feeds, split_input
    from .image_options import image_options_given

    options = image_options_given()
    paths = assign_feeds(net.inputs, ((*split_input(text), False) for text in files), str)
    datasets = {
        port.label: _open_images(paths[port], port.label, source, options)
        or open_dataset(paths[port], port.label)
        for port in net.inputs
        if port in paths
    }
    if missing := [port.label for port in net.inputs if port.label not in datasets]:
        raise InputError(
            f"inputs are missing: {', '.join(map(repr, missing))}",
            hint="-i NAME=FILE gives an input its data set",
        )
    return datasets


@contextmanager
def _record_run(target: Path, job: Job, head: Record, resume: bool) -> Iterator[tuple[Manifest, Job]]:
    """Open the manifest of a run, which records its finished chunks; close it after the block.

    Yields the manifest, and the job that writes to the partial result in place of ``target``.

    Args:
        target: the path of the results.
        job: the run over all rows.
        head: what an interrupted run must have in common with this one to be resumed.
        resume: whether to resume an interrupted run.
    """
    from ..dask.manifest import Manifest
    from ..dask.targets import place_targets

    if resume:
        manifest = Manifest.resume(target, head, job.targets, job.chunks)
    else:
        manifest = Manifest.create(target, head, job.targets)
    try:
        yield manifest, replace(job, targets=place_targets(job.targets, manifest.partial))
    finally:
        manifest.close()


def _run(job: Job, manifest: Manifest, streaming: Streaming) -> Summary:
    from ..dask.cluster import connect, dashboard_of
    from ..dask.job import Summary, run_job

    left = job.chunks - len(manifest.done)
    if not left:
        manifest.finish()
        return Summary()
    try:
        with connect(streaming.scheduler or "local", streaming.workers) as client:
            if dashboard := dashboard_of(client):
                show(f"dashboard: {dashboard}", err=True)
            if not client.nthreads():
                show("the scheduler has no workers yet: the run waits for them", err=True)
            with _progress(min(left * job.rows, job.total)) as progress:
                summary = run_job(client, job, manifest, progress)
        manifest.finish()
        return summary
    except BaseException:
        show(f"{len(manifest.done)} of {plural(job.chunks, 'chunk')} are done; --resume continues", err=True)
        raise


@contextmanager
def _progress(rows: int) -> Iterator[Callable[[int], None]]:
    """Show a progress bar with rate and remaining time; yield a function that advances it by a number of rows."""
    from .progress import bar

    with bar("rows", rows) as shown:
        begun, done = time.monotonic(), 0

        def progress(count: int) -> None:
            nonlocal done
            done += count
            seconds = max(time.monotonic() - begun, 1e-9)
            shown.advance(count, pace(done, rows, seconds))

        yield progress


def pace(done: int, rows: int, seconds: float) -> str:
    """Format the rate of a run and its estimated remaining time.

    >>> pace(50, 850, 5)
    '10 rows/s, 1:20 min left'
    """
    rate = done / seconds
    minutes, rest = divmod(round((rows - done) / rate), 60)
    hours, minutes = divmod(minutes, 60)
    left = f"{hours}:{minutes:02} h" if hours else f"{minutes}:{rest:02} min"
    return f"{rate:.{0 if rate >= 10 else 2}f} rows/s, {left} left"


def _tell(model: str, job: Job, manifest: Manifest, summary: Summary, output: str, as_json: bool) -> None:
    from ..dask.lengths import row_range

    failed = [(chunk, job.bounds(chunk), message) for chunk, message in sorted(summary.failed.items())]
    rate = summary.rows / max(summary.seconds, 1e-9)
    record = {
        "model": model, "backend": job.runner.backend, "output": output, "rows": summary.rows, "total": job.total,
        "chunks": job.chunks, "done": len(manifest.done), "seconds": summary.seconds,
        "failed": [{"chunk": chunk, "rows": rows, "message": message} for chunk, rows, message in failed],
    }  # fmt: skip
    text = (
        f"{plural(summary.rows, 'row')} in {summary.seconds:.1f} s, {rate:.0f} a second, to {visible(output)}"
    )
    result(as_json, lambda: record, lambda: text)
    for _, (start, stop), message in failed:
        show(f"{row_range(start, stop)} failed: {visible(message)}", err=True)
    if failed:
        raise SystemExit(Exit.FAILED)


@dataclass(frozen=True)
class _Images(Dataset):
    files: tuple[Path, ...]
    model: ModelSource
    label: str
    options: ImageOptions

    def read(self, start: int, stop: int) -> Array:
        return _rows(self.path, self.files[start:stop], self.model, self.label, self.options)


def _open_images(path: str, label: str, model: ModelSource, options: ImageOptions) -> Dataset | None:
    """Open the images of a folder or glob pattern as a data set; ``None`` if the path names no images.

    Args:
        path: the folder or glob pattern.
        label: the name of the input.
        model: the model that has the input.
        options: the image preprocessing.

    Raises:
        InputError: if the first image cannot be read or converted to the input.
    """
    place = Path(path)
    if place.is_dir() and not any(file.suffix.lower() in SUFFIXES for file in place.iterdir()):
        return None
    files = tuple(file.absolute() for file in picture_files(path) or ())
    if not files:
        return None
    first = _rows(path, files[:1], model, label, options)
    return _Images(path, (len(files), *first.shape[1:]), first.dtype, files, model, label, options)


def _rows(path: str, files: tuple[Path, ...], model: ModelSource, label: str, options: ImageOptions) -> Array:
    net = _model(model)
    return Pictures(path, files).laid_out(net, net.input(label), options)[0]


@lru_cache(maxsize=4)
def _model(source: ModelSource) -> Model:
    return source.read()
