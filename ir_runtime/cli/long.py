"""Shared parts of long-running commands: progress with an estimate, a resumable cache, partial reports on Ctrl-C."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from .exits import Exit, explain
from .helping import Command
from .models import read, weights
from .options import Feeding, feeding_options, limit_options
from .progress import Bar, bar
from .render import failure, result
from .terminal import show

if TYPE_CHECKING:
    from ..debug.observation import SideLike
    from ..ir.tensor import Array
    from ..limits import Limits
    from ..openvino.model import Model

__all__ = [
    "Debugging",
    "cache_folder",
    "command_options",
    "debugging_options",
    "declared_types",
    "side_of",
    "side_options",
    "states_of",
]

# The least fraction of the work that must be done before the remaining time is estimated.
_LEAST = 1e-6
_Feeds = TypeVar("_Feeds")


_against = click.option(
    "--against",
    metavar="SIDE",
    help="The runtime to judge: openvino, openvino:bf16, a backend, or the path of another IR.",
)
command_options = (
    click.option(
        "--run",
        metavar="COMMAND",
        help="A command that runs a model on a device, called with a folder; 'ir-runtime guide debugging' describes it.",
    ),
    click.option(
        "--repeat",
        type=click.IntRange(min=1),
        default=1,
        metavar="N",
        help="Number of runs of a runtime whose results vary; a single wrong run counts.",
    ),
    click.option(
        "--state",
        metavar="FILE",
        help="An .npz with the values of the model's variables before this step, by variable id.",
    ),
)
"""The options of `side_of` and `states_of`."""


def side_options(command: Command) -> Command:
    """Add ``--against`` and the `command_options` to a command.

    It receives the judged execution as ``side``, and the values of variables as ``states``.
    """

    @functools.wraps(command)
    def with_side(
        *args: object,
        against: str | None,
        run: str | None,
        repeat: int,
        state: str | None,
        **options: object,
    ) -> object:
        if (against is None) == (run is None):
            from ..backends import available

            backends = ", ".join(available())
            raise click.UsageError(
                "give either --against or --run: --against openvino, openvino:bf16, openvino:f16, openvino:default, a backend "
                f"({backends}) or the path of another IR, or --run 'python device.py'"
            )
        return command(*args, side=side_of(against, run, repeat), states=states_of(state), **options)

    decorated: Command = with_side
    for option in reversed((_against, *command_options)):
        decorated = option(decorated)
    return decorated


def side_of(named: SideLike | None, run: str | None, repeat: int) -> SideLike:
    """Return the side that a command judges: wrapped in `Repeated` unless it runs once.

    Args:
        named: the side of ``--against``, or recorded arrays.
        run: the command line of ``--run``, which takes precedence.
        repeat: the number of runs.
    """
    from ..debug import Command as Ran
    from ..debug import Repeated

    side: SideLike = Ran(run) if run is not None else named if named is not None else ""
    return side if repeat == 1 else Repeated(side, repeat)


declared_types = click.option(
    "--types",
    type=click.Choice(["real", "declared"]),
    default="real",
    show_default=True,
    help="declared: round tensors declared as f16 or bf16 to their type, also in the f64 reference.",
)
_cache = click.option(
    "--cache",
    metavar="FOLDER",
    help="Folder for finished steps, to resume after Ctrl-C; by default, in the user's cache folder.",
)


_GOES_ON = "the same command goes on from here"


@dataclass(frozen=True)
class Debugging:
    """The arguments common to debugging commands: a model, its inputs, and a cache to resume from.

    Args:
        model: the path of the model.
        weights: the path of its weights, if given.
        feeding: the options that determine the inputs.
        limits: the limits of memory and time.
        cache: the folder of the cache, if given.
        as_json: whether to print results as JSON.
    """

    model: str
    weights: str | None
    feeding: Feeding
    limits: Limits
    cache: str | None
    as_json: bool = False

    @contextmanager
    def working(self, label: str) -> Iterator[tuple[Model, list[Array]]]:
        """Yield model and inputs; show the progress of the block, and its partial results after Ctrl-C or the timeout.

        Args:
            label: the name of the work, for the progress bar.
        """
        from .feeding import tracing_shapes

        with self._run_with_progress(label, self.feeding) as both, tracing_shapes(*both):
            yield both

    @contextmanager
    def working_on_sets(self, label: str) -> Iterator[tuple[Model, list[list[Array]]]]:
        """Like `working`, for several sets of inputs."""
        with self._run_with_progress(label, self.feeding.sets) as both:
            yield both

    @contextmanager
    def _run_with_progress(
        self, label: str, collect: Callable[[Model], _Feeds]
    ) -> Iterator[tuple[Model, _Feeds]]:
        from .._util.deadline import without_deadline
        from ..debug.caching import caching
        from ..debug.progress import Interrupted, TimedOut, showing

        model = read(self.model, self.weights, limits=self.limits)
        feeds = collect(model)
        try:
            with bar(label, 1) as shown, caching(cache_folder(self.cache)):
                estimate = _Estimate(shown)
                with showing(estimate.show, estimate.skip):
                    yield model, feeds
        except Interrupted as stopped:
            partial_result = stopped.partial
            result(self.as_json, partial_result.record, lambda: str(partial_result))
            goes_on = f"; {_GOES_ON}" if _is_kept(self.cache) else ""
            show(f"interrupted{goes_on}", err=True)  # not as an error, which would be a second JSON document
            raise click.exceptions.Exit(Exit.INTERRUPTED) from None
        except TimedOut as stopped:
            with without_deadline():
                partial_result = stopped.partial
                result(self.as_json, partial_result.record, lambda: str(partial_result))
            code, message = explain(stopped)
            show(failure(message), err=True)
            if _is_kept(self.cache):
                show(f"with more time, {_GOES_ON}", err=True)
            raise click.exceptions.Exit(code) from None


def debugging_options(*more: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Return a decorator that adds MODEL, the options of inputs, weights, limits and cache, and ``more`` options.

    The command receives them as a `Debugging`, and ``more`` as separate arguments.
    """

    def decorate(command: Command) -> Command:
        @weights
        @limit_options
        @_cache
        @functools.wraps(command)
        def with_model(
            *args: object,
            model: str,
            weights: str | None,
            feeding: Feeding,
            limits: Limits,
            cache: str | None,
            as_json: bool = False,
            **options: object,
        ) -> object:
            debugging = Debugging(model, weights, feeding, limits, cache, as_json)
            return command(*args, debugging=debugging, **options)

        decorated: Command = with_model
        for option in reversed(more):
            decorated = option(decorated)
        return click.argument("model", metavar="MODEL")(feeding_options(decorated))

    return decorate


def cache_folder(given: str | None) -> Path | None:
    """Return the given cache folder, or else the default one; ``None`` if there is no default."""
    from .._util.user_cache import user_cache

    if given is not None:
        return Path(given)
    folder = user_cache()
    return None if folder is None else folder / "debug"


def _is_kept(given: str | None) -> bool:
    """Return whether the cache folder has finished steps."""
    folder = cache_folder(given)
    return folder is not None and folder.is_dir() and any(folder.iterdir())


def states_of(path: str | None) -> dict[str, Array] | None:
    """Read the values of variables from a file, by variable id; ``None`` without a file."""
    from ..debug.recorded_side import read_arrays

    return None if path is None else {str(name): array for name, array in read_arrays(path).items()}


class _Estimate:
    """Estimates the remaining time from the speed since the start, ignoring earlier work."""

    def __init__(self, shown: Bar) -> None:
        self._bar, self._start = shown, time.monotonic()
        self._part = self._skipped = 0.0

    def show(self, part: float, item: str) -> None:
        """Show the progress and the estimated remaining time."""
        step, self._part = max(part - self._part, 0.0), max(part, self._part)
        computed = self._part - self._skipped
        passed = time.monotonic() - self._start
        left = _left(passed * (1 - self._part) / computed) if computed > _LEAST else item
        self._bar.advance(step, left)

    def skip(self, part: float) -> None:
        """Exclude a fraction that was done earlier from the estimate."""
        self._skipped += part


def _left(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"about {minutes}:{rest:02d} min left"
