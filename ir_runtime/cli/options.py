"""Options that several commands share: inputs of a run, limits, threads, precision."""

from __future__ import annotations

import functools
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import click

from .helping import Command
from .image_options import image_layout, image_options
from .shaping import reshape, shape_options

if TYPE_CHECKING:
    from ..ir.tensor import Array
    from ..openvino.model import Model

__all__ = [
    "PRECISION",
    "Feeding",
    "data_options",
    "feeding_options",
    "feeds_of",
    "input_files",
    "limit_threads",
    "limit_options",
    "parse_size",
]


@dataclass(frozen=True)
class Feeding:
    """The options that determine the inputs; called with a model, it reshapes it and returns an array for each input.

    Args:
        files: the arguments of ``--input``.
        shapes: the arguments of ``--shape``.
        seed: the seed of random data for inputs without a file; ``None`` makes them an error.
    """

    files: Sequence[str]
    shapes: Sequence[str]
    seed: int | None

    def __call__(self, model: Model) -> list[Array]:
        return feeds_of(model, self.files, self.shapes, self.seed)

    def sets(self, model: Model) -> list[list[Array]]:
        """Reshape the model, and return one or more sets of inputs."""
        from .feeding import collect_sets

        reshape(model, self.shapes)
        return [
            [feeds[port].array for port in model.inputs]
            for feeds in collect_sets(model, self.files, self.seed)
        ]


_files = click.option(
    "-i",
    "--input",
    "files",
    multiple=True,
    metavar="[NAME=]FILE",
    help=".npy, .npz, image, folder of images; - for stdin.",
)


def input_files(command: Command) -> Command:
    """Add ``--input`` to a command, and image options except ``--layout``."""
    return _files(image_options(command))


def data_options(command: Command) -> Command:
    """Add ``--input``, ``--random``, ``--seed``, ``--shape`` and image options to a command."""
    random = click.option("--random", is_flag=True, help="Use random data for inputs without a file.")
    seed = click.option(
        "--seed",
        type=click.IntRange(min=0),
        metavar="N",
        default=0,
        show_default=True,
        help="Seed of --random.",
    )
    return input_files(image_layout(random(seed(shape_options(command)))))


def feeding_options(command: Command) -> Command:
    """Add the `data_options` to a command, which receives a `Feeding`."""

    @functools.wraps(command)
    def with_feeding(
        *args: object,
        files: Sequence[str],
        random: bool,
        seed: int,
        shapes: Sequence[str],
        **options: object,
    ) -> object:
        return command(*args, feeding=Feeding(files, shapes, seed if random else None), **options)

    return data_options(with_feeding)


def feeds_of(model: Model, files: Sequence[str], shapes: Sequence[str], seed: int | None) -> list[Array]:
    """Reshape a model and return an array for each input; inputs without a file are random if there is a seed."""
    from .feeding import collect

    reshape(model, shapes)
    feeds = collect(model, files, seed)
    return [feeds[port].array for port in model.inputs]


_UNITS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}


def _size(_: click.Context, __: click.Parameter, text: str | None) -> int | None:
    return None if text is None else parse_size(text)


def parse_size(text: str) -> int:
    """Parse a size in bytes: ``512M``, ``4G``, ``1.5GiB``, ``65536``.

    Raises:
        click.BadParameter: if the text is not a size.
    """
    match = re.fullmatch(r"(\d{1,15}(?:\.\d{1,6})?)\s*([KMGT]?)(?:I?B)?", text.strip().upper())
    size = int(float(match[1]) * (1 << 10 * _UNITS[match[2]])) if match else 0
    if size < 1:
        raise click.BadParameter(f"{text!r} is not a size such as 512M, 4G or 65536")
    return size


def limit_options(command: Command) -> Command:
    """Add ``--max-memory`` and ``--timeout`` to a command, which receives ``limits`` and is interrupted at the deadline."""

    @click.option(
        "--max-memory",
        callback=_size,
        metavar="SIZE",
        help="Memory limit for tensors: 512M, 4G.",
    )
    @click.option(
        "--timeout",
        type=click.FloatRange(min=0, min_open=True),
        metavar="SECONDS",
        help="Time limit; an hour by default.",
    )
    @functools.wraps(command)
    def with_limits(
        *args: object, max_memory: int | None, timeout: float | None, **options: object
    ) -> object:
        from .._util.command_line import start_of_program
        from .._util.deadline import deadline
        from ..limits import Limits, within
        from ..openvino import core  # noqa: F401  what is interrupted while it is imported cannot be used again

        limits = Limits()
        limits = limits if max_memory is None else replace(limits, memory=max_memory)
        limits = limits if timeout is None else replace(limits, seconds=timeout)
        with within(limits), deadline(limits.seconds, start_of_program()), _timer(timeout is not None):
            return command(*args, limits=limits, **options)

    return with_limits


# The delay of the timer in seconds, so that checks between layers, which name the layer, come first.
_GRACE = 0.1
# Seconds until the timer fires again, in case other code caught its error and continued.
_AGAIN = 1.0


@contextmanager
def _timer(is_asked_for: bool) -> Iterator[None]:
    """Interrupt the block at the deadline, even within a layer on systems with ``setitimer``."""
    from .._util.deadline import current_deadline, deadline_error
    from ..errors import IRError

    is_main = threading.current_thread() is threading.main_thread()
    if not is_asked_for or not hasattr(signal, "setitimer") or not is_main:
        yield
        return

    rung = False

    def ring(*_: object) -> None:
        nonlocal rung
        if time.monotonic() < current_deadline():  # the deadline was lifted to report partial results
            return
        rung = True
        raise deadline_error()

    left = current_deadline() - time.monotonic()
    before = signal.signal(signal.SIGALRM, ring)
    try:
        signal.setitimer(signal.ITIMER_REAL, max(left, 0) + _GRACE, _AGAIN)
        yield
    except (IRError, click.ClickException, click.exceptions.Exit):
        raise
    except Exception as reason:
        if rung:
            raise deadline_error() from reason  # other code converted the timer's error to this one
        raise
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def limit_threads(_: click.Context, __: click.Parameter, count: int | None) -> int | None:
    """Option callback that sets the number of BLAS threads, before the command imports NumPy.

    BLAS reads the environment variables once, when NumPy is imported; child processes inherit them. If NumPy is already
    imported, as when a program calls the command line, they are left alone: runs of the backends limit BLAS themselves
    (`ir_runtime.backends.common.blas`).
    """
    if count is not None and "numpy" not in sys.modules:
        for name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
            os.environ[name] = str(count)
    return count


class _Precision(click.Choice[str]):
    """Option type for a compute precision, ``f16`` or ``FP16``."""

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the precision in lower case, without the ``p`` of ``FP``."""
        return super().convert(value.lower().replace("fp", "f"), param, ctx)


PRECISION = _Precision(["f32", "f16", "bf16"], case_sensitive=False)
