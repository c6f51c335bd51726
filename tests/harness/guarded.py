"""Models run in processes of their own, where guard pages end the process that reads beside an array."""

from __future__ import annotations

import faulthandler
import multiprocessing as mp
import resource
import signal
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from harness.guard_pages import Edge, install
from harness.kernels import FAST, loaded
from ir_runtime import backends

__all__ = ["Process", "Work"]

_PATIENCE = 600
"""Seconds after which a process that says nothing is given up."""

# Files in which it leaves what it was at.
_TRACE, _STANDING = "trace", "standing"

Work = Callable[[Any, Callable[[str], None]], Any]
"""Takes a task, and what is told where it stands; what it gives is sent back."""


def _serve(ends: Connection, folder: Path, edge: Edge, threads: int, work: Work) -> None:
    """The life of a process: tasks in, results out."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    install(edge)
    if threads > 1:
        _share_everything()
    with (folder / _TRACE).open("w") as trace, (folder / _STANDING).open("w") as standing:

        def tell(where: str) -> None:
            standing.seek(0)
            standing.truncate()
            standing.write(where)
            standing.flush()

        faulthandler.enable(trace)
        while (task := ends.recv()) is not None:
            faulthandler.dump_traceback_later(_PATIENCE, exit=True, file=trace)
            ends.send(_done(work, task, tell))
            faulthandler.cancel_dump_traceback_later()


def _done(work: Work, task: Any, tell: Callable[[str], None]) -> tuple[Any, str]:
    """What the work gives, and what went wrong with it."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            return work(task, tell), ""
        except Exception as reason:
            return None, "".join(traceback.format_exception(reason))


def _share_everything() -> None:
    """Let threads share layers however small they are."""
    for name in FAST:
        loaded(name)
    sharing = [
        module
        for name, module in list(sys.modules.items())
        if name.startswith(backends.__name__) and hasattr(module, "MIN_PARALLEL_WORK")
    ]
    shared_by = {module.__name__.split(".")[2] for module in sharing}
    assert shared_by >= set(FAST), f"no kernel of {set(FAST) - shared_by} has MIN_PARALLEL_WORK"
    for module in sharing:
        module.MIN_PARALLEL_WORK = 0


@dataclass(slots=True)
class Process:
    """A process with guard pages, which is started anew where it died.

    Args:
        work: what it does with a task; a function of a module.
        edge: where data touch pages without access.
        threads: how many share a layer.
    """

    work: Work
    edge: Edge = Edge.END
    threads: int = 1
    _folder: Any = None
    _process: Any = None
    _ends: Any = None

    def __enter__(self) -> Process:
        self._folder = tempfile.TemporaryDirectory(prefix="ir_runtime-guarded-")
        for name in (_TRACE, _STANDING):
            Path(self._folder.name, name).touch()
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.join()
        self._folder.cleanup()

    def run(self, task: Any) -> tuple[Any, str]:
        """What the work gives, and what ended it or its process, if something did."""
        if self._process is None or not self._process.is_alive():
            self._start()
        try:
            self._ends.send(task)
            result: tuple[Any, str] = self._ends.recv()
        except (EOFError, ConnectionError):
            self._process.join()
            return None, self._obituary()
        return result

    def _start(self) -> None:
        context = mp.get_context("spawn")
        self._ends, other = context.Pipe()
        arguments = (other, Path(self._folder.name), self.edge, self.threads, self.work)
        self._process = context.Process(target=_serve, args=arguments, daemon=True)
        self._process.start()
        other.close()

    def _obituary(self) -> str:
        code, folder = self._process.exitcode, Path(self._folder.name)
        how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        standing, trace = ((folder / name).read_text(errors="replace") for name in (_STANDING, _TRACE))
        of_ours = (
            line for line in trace.partition("Current thread")[2].splitlines() if "ir_runtime/" in line
        )
        return "\n".join([f"died of {how}: {standing}", *of_ours])
