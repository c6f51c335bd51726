"""The options of ``ir-runtime run`` for data sets larger than memory."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import click

from .helping import Command, SectionOption
from .models import count_option

if TYPE_CHECKING:
    from ..dask.job import OnError

__all__ = ["Streaming", "check_by_rows", "is_store", "streaming_options"]


_STORES = (".zarr", ".h5", ".hdf5")
_SECTION = "Data sets, by rows"


@dataclass(frozen=True)
class Streaming:
    """The options of a run over data sets, which are read row by row.

    Args:
        batch: the number of rows per inference.
        chunk: the number of rows per chunk of the result; finished chunks survive an interrupt.
        scheduler: ``local``, ``threads``, or the address of a Dask scheduler.
        workers: the number of workers.
        resume: whether to resume an interrupted run.
        on_error: the treatment of failing chunks.
        sequence_axis: the time axis, for models with variables.
        send_model: whether to send the contents of the model to the workers.
    """

    batch: int | None
    chunk: int | None
    scheduler: str | None
    workers: int | None
    resume: bool
    on_error: OnError | None
    sequence_axis: int | None
    send_model: bool

    @property
    def is_asked(self) -> bool:
        """Whether any of these options was given."""
        return any(value not in (None, False) for value in vars(self).values())


def streaming_options(command: Command) -> Command:
    """Add the options of runs by rows to a command, which receives them as ``streaming``."""
    option = partial(click.option, cls=SectionOption, section=_SECTION)
    count = partial(count_option, cls=SectionOption, section=_SECTION)

    @count("--batch", metavar="ROWS", help="Rows per inference.")
    @count("--chunk", metavar="ROWS", help="Rows to read and write at a time.")
    @option(
        "--scheduler",
        metavar="NAME",
        help="local, threads, or a Dask scheduler: tcp://…",
    )
    @count("--workers", help="Number of worker processes or threads.")
    @option("--resume", is_flag=True, help="Resume an interrupted run by rows.")
    @option(
        "--on-error",
        type=click.Choice(["stop", "skip", "nan"]),
        metavar="HOW",
        help="Treatment of failing rows: stop, skip or nan.",
    )
    @count("--sequence-axis", metavar="AXIS", help="Time axis of models with states.")
    @option("--send-model", is_flag=True, help="Send the model to workers that cannot read its file.")
    @functools.wraps(command)
    def with_streaming(
        *args: object,
        batch: int | None,
        chunk: int | None,
        scheduler: str | None,
        workers: int | None,
        resume: bool,
        on_error: OnError | None,
        sequence_axis: int | None,
        send_model: bool,
        **options: object,
    ) -> object:
        streaming = Streaming(batch, chunk, scheduler, workers, resume, on_error, sequence_axis, send_model)
        return command(*args, streaming=streaming, **options)

    return with_streaming


def is_store(output: str | None, files: Sequence[str]) -> bool:
    """Return whether the output or an input is a zarr store or an HDF5 file, which require a run by rows."""
    return any(path.rstrip("/").lower().endswith(_STORES) for path in (output or "", *files))


def check_by_rows(others: Mapping[str, object]) -> None:
    """Check that no option is given that a run by rows does not support.

    Raises:
        UsageError: if there is such an option.
    """
    if given := next((name for name, value in others.items() if value), None):
        raise click.UsageError(f"{given} cannot be given for a run by rows, which Dask computes")
