"""Commands that take long: progress with an estimate, a cache to go on from, and partial reports after Ctrl-C."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from .progress import Bar, bar
from .render import result

__all__ = ["cache_folder", "cached", "working"]

cached = click.option(
    "--cache",
    metavar="FOLDER",
    help="Where to keep what is done, to go on from there after Ctrl-C; by default, the user's cache folder.",
)


@contextmanager
def working(label: str, as_json: bool, cache: Path | None) -> Iterator[None]:
    """Show how far the block is; after Ctrl-C, print what it has found by then.

    Args:
        label: what is done.
        as_json: whether to print what was found as JSON.
        cache: the folder from which to go on; ``None`` for none.
    """
    from ..debug.caching import caching
    from ..debug.progress import Interrupted, showing

    try:
        with bar(label, 1) as shown, showing(_estimating(shown)), caching(cache):
            yield
    except Interrupted as stopped:
        found = stopped.partial
        result(as_json, found.record, lambda: str(found))
        raise


def cache_folder(given: str | None) -> Path | None:
    """Return the folder that is given, or else that of the user, if it is known."""
    from ..user_cache import user_cache

    if given is not None:
        return Path(given)
    folder = user_cache()
    return None if folder is None else folder / "debug"


def _estimating(shown: Bar) -> Callable[[float, str], None]:
    start = time.monotonic()
    before = 0.0

    def show(part: float, item: str) -> None:
        nonlocal before
        step, before = max(part - before, 0.0), max(part, before)
        passed = time.monotonic() - start
        shown.advance(step, _left(passed * (1 - before) / before) if before else item)

    return show


def _left(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"about {minutes}:{rest:02d} min left"
