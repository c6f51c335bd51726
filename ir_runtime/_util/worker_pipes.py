"""Pickled messages in the pipes of worker processes, which `child_process.start_worker` starts, and the end of these pipes."""

from __future__ import annotations

import pickle
from contextlib import suppress
from typing import TYPE_CHECKING, Any, BinaryIO

if TYPE_CHECKING:
    from .child_process import Process

__all__ = ["close_pipes", "disown", "next_job", "send"]


def send(stream: Any, message: object) -> None:
    """Write a message at once."""
    pickle.dump(message, stream, protocol=pickle.HIGHEST_PROTOCOL)
    stream.flush()


def next_job(stream: BinaryIO) -> Any:
    """Return the next message of the process that started this one; ``None`` at the end of the stream."""
    try:
        return pickle.load(stream)  # noqa: S301 - of the process that started this one
    except EOFError:
        return None


def disown(process: Process) -> None:
    """Leave a process to the one that started it: a forked process cannot wait for it."""
    process.returncode = 0


def close_pipes(process: Process) -> int:
    """Close the pipes of a process, wait for its end, and return its exit code."""
    for stream in (process.stdin, process.stdout):
        assert stream is not None
        with suppress(OSError):  # for messages that cannot be written
            stream.close()
    return process.wait()
