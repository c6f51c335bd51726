"""A bar on stderr for runs that take long, on terminals only."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import click

from ..executor.step import Observer, Step
from ..ir.tensor import Array

__all__ = ["progress"]

# Seconds before a bar appears at all, and between two looks.
DELAY = 0.5
PAUSE = 0.1


@contextmanager
def progress(steps: int) -> Iterator[list[Observer]]:
    """Return the observers of a run of so many steps: a progress bar on a terminal, else none."""
    if not sys.stderr.isatty():
        yield []
        return
    bar = _Bar(steps)
    try:
        yield [bar]
    finally:
        bar.close()


class _Bar:
    """Counts steps; shows a bar once the run has taken a while."""

    def __init__(self, steps: int) -> None:
        self._steps, self._done, self._shown = steps, 0, 0
        self._next = time.monotonic() + DELAY
        self._bar: Any = None

    def before(self, step: Step, inputs: Sequence[Array]) -> None:
        if time.monotonic() >= self._next:
            self._show(step)

    def after(self, step: Step, outputs: Sequence[Array], seconds: float) -> None:
        self._done += 1

    def close(self) -> None:
        if self._bar is not None:
            self._bar.update(self._done - self._shown)
            self._bar.__exit__(None, None, None)

    def _show(self, step: Step) -> None:
        if self._bar is None:
            self._bar = click.progressbar(
                length=self._steps, label="running", file=sys.stderr, item_show_func=_name
            )
            self._bar.__enter__()
        self._bar.update(self._done - self._shown, step)
        self._shown, self._next = self._done, time.monotonic() + PAUSE


def _name(step: Step | None) -> str:
    from .render import clean

    return "" if step is None else clean(step.layer.name)[:40]
