"""Run each side in a subprocess, which may crash or time out."""

from __future__ import annotations

import multiprocessing as mp
import os
import tempfile
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path

from ir_runtime import IRError

from .verdict import Outcome

__all__ = ["Action", "attempt", "prepare"]

Action = Callable[[Path, Path], str]
"""What a process does with a file and a folder for its results; what it raises is a refusal."""
# Forked from one process that has imported everything and started no thread: as fresh as a new one, and quicker.
_SERVER = mp.get_context("forkserver")


def prepare() -> None:
    """Import the packages once, in the process from which all others are forked."""
    _SERVER.set_forkserver_preload(["world.sides"])


def attempt(action: Action, path: Path, work: Path, seconds: float) -> Outcome:
    """Run a function on a file in a subprocess; return its outcome."""
    ours, theirs = _SERVER.Pipe(duplex=False)
    process = _SERVER.Process(target=_serve, args=(action, path, work, theirs), daemon=True)
    process.start()
    theirs.close()
    try:
        outcome = ours.recv() if ours.poll(seconds) else Outcome("late", f"not done after {seconds:g} s")
    except EOFError:
        process.join()
        outcome = Outcome("crashed", f"exit code {process.exitcode}")
    process.kill()
    process.join()
    ours.close()
    return outcome


def _serve(action: Action, path: Path, work: Path, results: Connection) -> None:
    with tempfile.TemporaryFile() as said:  # both packages print when they fail, some of it from C++
        os.dup2(said.fileno(), 1)
        os.dup2(said.fileno(), 2)
        results.send(_outcome(action, path, work))


def _outcome(action: Action, path: Path, work: Path) -> Outcome:
    try:
        return Outcome("ran", action(path, work))
    except (IRError, RuntimeError) as reason:
        return Outcome("refused", str(reason))
    except Exception:
        return Outcome("crashed", traceback.format_exc())
