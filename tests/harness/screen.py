"""Run a command line on a terminal: what it prints is read from the other end of a pseudo-terminal."""

from __future__ import annotations

import fcntl
import os
import re
import shlex
import struct
import sys
import termios
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from ir_runtime.cli import main

_ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def on_terminal(monkeypatch: pytest.MonkeyPatch, line: str, columns: int = 80, rows: int = 24) -> str:
    """Return what a terminal of that size gets, with escapes; results and messages alike."""
    for name in ("COLUMNS", "LINES"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    with terminal(monkeypatch, columns, rows) as said, suppress(SystemExit):
        main(shlex.split(line), prog_name="ir-runtime", standalone_mode=False)
    return b"".join(said).decode().replace("\r\n", "\n")


@contextmanager
def terminal(monkeypatch: pytest.MonkeyPatch, columns: int, rows: int) -> Iterator[list[bytes]]:
    """Let this process write to a terminal; what it has written is in the list afterwards."""
    master, slave = os.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    said: list[bytes] = []
    reader = threading.Thread(target=_read, args=(master, said))
    reader.start()
    try:
        with monkeypatch.context() as patch, os.fdopen(slave, "w", encoding="utf-8") as stream:
            for name in ("stdout", "stderr", "__stdout__", "__stderr__"):
                patch.setattr(sys, name, stream)
            yield said
            stream.flush()
    finally:
        reader.join()
        os.close(master)


def _read(master: int, said: list[bytes]) -> None:
    while True:
        try:
            found = os.read(master, 1 << 16)
        except OSError:  # the other end is closed
            return
        if not found:
            return
        said.append(found)


def plain(text: str) -> str:
    """The text without escapes."""
    return _ESCAPE.sub("", text)
