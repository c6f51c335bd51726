"""Options of ``ir-runtime run`` for data sets that are larger than memory."""

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

__all__ = ["Streaming", "check_by_rows", "is_store", "streams"]


_STORES = (".zarr", ".h5", ".hdf5")
_SECTION = "Data sets, by rows"


@dataclass(frozen=True)
class Streaming:
    """The options of a run by rows.

    Args:
        batch: rows to run at once.
        chunk: rows of a chunk of the result, which is recorded when it is done.
        scheduler: ``local``, ``threads``, or an address.
        workers: how many.
        resume: whether to resume a former run.
        on_error: the treatment of chunks that fail.
        sequence_axis: the axis of the steps, for models with states.
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
        """Whether any of the options is given."""
        return any(value not in (None, False) for value in vars(self).values())


def streams(command: Command) -> Command:
    """Give a command the options of runs by rows, as ``streaming``."""
    option = partial(click.option, cls=SectionOption, section=_SECTION)
    count = partial(count_option, cls=SectionOption, section=_SECTION)

    @count("--batch", metavar="ROWS", help="Rows to run at once.")
    @count("--chunk", metavar="ROWS", help="Rows to read and write at once.")
    @option(
        "--scheduler",
        metavar="NAME",
        help="local, threads, or a Dask scheduler: tcp://…",
    )
    @count("--workers", help="How many processes or threads.")
    @option("--resume", is_flag=True, help="Go on with an interrupted run by rows.")
    @option(
        "--on-error",
        type=click.Choice(["stop", "skip", "nan"]),
        metavar="HOW",
        help="stop, skip or nan, for rows that fail.",
    )
    @count("--sequence-axis", metavar="AXIS", help="Axis of the steps of models with states.")
    @option("--send-model", is_flag=True, help="Send the model to workers without its file.")
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
    """Return whether the results, or an input, are a zarr store or an HDF5 file, which are read by rows."""
    return any(path.rstrip("/").lower().endswith(_STORES) for path in (output or "", *files))


def check_by_rows(others: Mapping[str, object]) -> None:
    """Check that no option is given that a run by rows does not have.

    Raises:
        UsageError: if one is.
    """
    if given := next((name for name, value in others.items() if value), None):
        raise click.UsageError(f"{given} cannot be given for a run by rows, which Dask computes")
