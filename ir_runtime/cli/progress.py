"""Progress bars on stderr, if it is a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from .._util.escaping import visible
from .._util.text import shorten
from .terminal import columns

if TYPE_CHECKING:
    from rich.progress import Progress

    from ..executor.step import Observer, Step
    from ..ir.tensor import Array

__all__ = ["Bar", "bar", "progress", "status"]

# Seconds before a bar appears, and between two updates.
DELAY = 0.5
PAUSE = 0.1
# The width of the bar with its percentage, and the minimum width for showing an item.
_BAR = 26
_NAME = 12


class Bar:
    """A one-line progress bar that is erased at the end; it does nothing unless stderr is a terminal.

    Args:
        label: the name of the work.
        total: the number of steps; 0 if unknown.
    """

    def __init__(self, label: str, total: float = 0) -> None:
        self._label, self._total, self._done = label, total, 0.0
        self._next = time.monotonic() + DELAY
        self._hidden = columns(err=True) is None
        self._shown: Progress | None = None

    def advance(self, steps: float = 1, item: str = "") -> None:
        """Advance by a number of steps, and show the name of the current item."""
        self._done += steps
        if not self._hidden and time.monotonic() >= self._next:
            self._show(item)

    def reach(self, steps: float) -> None:
        """Set the number of finished steps."""
        self.advance(steps - self._done)

    def erase(self) -> None:
        """Erase the bar until it advances again."""
        if self._shown is not None:
            self._shown.stop()
            self._shown = None

    def _show(self, item: str) -> None:
        width = columns(err=True) or 0
        if self._shown is None:
            self._shown = _bar(width)
            self._task = self._shown.add_task(self._label, total=self._total or None, item="")
            self._shown.start()
        self._shown.update(
            self._task, completed=self._done, item=_fit_item(item, width - len(self._label) - _BAR)
        )
        self._shown.refresh()
        self._next = time.monotonic() + PAUSE


@contextmanager
def bar(label: str, total: float = 0) -> Iterator[Bar]:
    """Show a bar while the block runs, unless it ends quickly."""
    progress_bar = Bar(label, total)
    try:
        yield progress_bar
    finally:
        progress_bar.erase()


@contextmanager
def status(text: str) -> Iterator[None]:
    """Show a line while the block runs, and erase it afterwards."""
    width = columns(err=True) if text else None
    if width is not None:
        click.echo(shorten(f"{text} …", width - 1), err=True, nl=False)
    try:
        yield
    finally:
        if width is not None:
            click.echo("\r\x1b[K", err=True, nl=False)


def _bar(width: int) -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=max(4, min(18, width - 24))),
        TaskProgressColumn(),
        TextColumn("{task.fields[item]}", markup=False),
        console=Console(file=sys.stderr, width=width),
        transient=True,
        auto_refresh=False,
        redirect_stdout=False,
        redirect_stderr=False,
    )


def _fit_item(item: str, room: int) -> str:

    return shorten(visible(item), room) if item and room >= _NAME else ""


@contextmanager
def progress(steps: int) -> Iterator[list[Observer]]:
    """Yield the observers that show the progress of a run on a terminal; none elsewhere."""
    if columns(err=True) is None:
        yield []
        return
    with bar("running", steps) as shown:
        yield [_Observer(shown)]


class _Observer:
    """Advances a bar after each step of a run."""

    def __init__(self, shown: Bar) -> None:
        self._bar = shown

    def before(self, step: Step, inputs: Sequence[Array]) -> None:
        self._bar.advance(0, step.layer.name)

    def after(self, step: Step, outputs: Sequence[Array], seconds: float) -> None:
        self._bar.advance(1)
