"""Terminals: the output of commands on one, a shell into which a person types, and console sessions in documents."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import shlex
import shutil
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType

import pytest
from click.testing import CliRunner

import ir_runtime
from ir_runtime.cli import main

_ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def on_terminal(monkeypatch: pytest.MonkeyPatch, line: str, columns: int = 80, rows: int = 24) -> str:
    """Return the output of a command on a terminal of that size, results and messages, with escape sequences."""
    for name in ("COLUMNS", "LINES"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    with terminal(monkeypatch, columns, rows) as said, suppress(SystemExit):
        main(shlex.split(line), prog_name="ir-runtime", standalone_mode=False)
    return b"".join(said).decode().replace("\r\n", "\n")


@contextmanager
def terminal(monkeypatch: pytest.MonkeyPatch, columns: int, rows: int) -> Iterator[list[bytes]]:
    """Redirect this process to a terminal; the list holds the output afterwards."""
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
    """Return the text without escape sequences."""
    return _ESCAPE.sub("", text)


SHELLS = ("bash", "zsh", "fish")
PATIENCE = 600
"""Seconds of wall time after which a shell is taken to hang: far more than a busy machine needs."""
# What each shell is to read before the first line is typed.
_START = {
    "bash": "PS1='$ '; source ./script\n",
    "zsh": "PS1='$ '; autoload -Uz compinit; compinit -u -D; source ./script\n",
    "fish": "function fish_prompt; end; source ./script\n",
}
_COMMAND = {
    "bash": "bash --norc --noprofile -i",
    "zsh": "zsh -f -i",
    "fish": "fish --no-config -i",
}
# Completes as ir-runtime does, but writes down its arguments instead of running.
_PROGRAM = """#!{python}
import json, os, sys
if any(name.endswith("_COMPLETE") for name in os.environ):
    sys.argv[0] = "ir-runtime"
    from ir_runtime.cli import main
    main()
with open({asked!r} + ".new", "w") as file:
    json.dump(sys.argv[1:], file)
os.rename({asked!r} + ".new", {asked!r})
"""


def installed() -> list[str]:
    """Return the installed shells."""
    return [shell for shell in SHELLS if shutil.which(shell)]


class Shell:
    """A shell on a terminal, in which ``ir-runtime`` prints its arguments.

    Args:
        name: ``bash``, ``zsh`` or ``fish``.
        folder: the working directory.
        script: the output of ``ir-runtime completion`` for the shell.
    """

    def __init__(self, name: str, folder: Path, script: str) -> None:
        self._name, self._folder, self._asked = name, folder, folder / "asked.json"
        (folder / "script").write_text(script)
        program = folder / "bin" / "ir-runtime"
        program.parent.mkdir(exist_ok=True)
        program.write_text(_PROGRAM.format(python=sys.executable, asked=str(self._asked)))
        program.chmod(0o755)
        self.said = b""

    def __enter__(self) -> Shell:
        self._master, slave = pty.openpty()
        package = str(Path(ir_runtime.__file__).parents[1])
        env = {
            "PATH": f"{self._folder / 'bin'}:{os.environ['PATH']}", "PYTHONPATH": package, "TERM": "dumb", "HOME": str(self._folder),
            "LC_ALL": "C.UTF-8", "PYTHONUTF8": "1",
        }  # fmt: skip
        # The first process of a session that opens a terminal gets it as its own.
        command = f'exec {_COMMAND[self._name]} <"$0" >"$0" 2>&1'
        self._process = subprocess.Popen(
            ["/bin/sh", "-c", command, os.ttyname(slave)], stdin=subprocess.DEVNULL, cwd=self._folder, env=env, start_new_session=True
        )  # fmt: skip
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self._slave = slave  # until the shell has opened it, too
        self._type(_START[self._name] + "ir-runtime ready\n")
        self._answer()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._slave)
        self._reader.join()
        os.close(self._master)

    def complete(self, line: str) -> list[str]:
        """Type a line, Tab and Enter; return the arguments that the program receives."""
        self._type(f"{line}\t\n")
        return self._answer()

    def _type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def _answer(self) -> list[str]:
        end = time.monotonic() + PATIENCE
        while not self._asked.exists():
            if time.monotonic() > end or self._process.poll() is not None:
                raise AssertionError(f"{self._name} does not run the command; it says {self.said!r}")
            time.sleep(0.02)
        found: list[str] = json.loads(self._asked.read_text())
        self._asked.unlink()
        return found

    def _read(self) -> None:
        with suppress(OSError):
            while text := os.read(self._master, 1 << 16):
                self.said += text


# Errors that come of rounding, as compare prints them.
_ROUNDING = re.compile(r"\b((?:rel|explains|inherited) \d\.\de-0[5-9]|R \d\.\d+(?:e\+\d\d)?)(?!\w)")


def blocks(page: str) -> Iterator[tuple[str, str]]:
    """Yield the code blocks of a page: language and text."""
    yield from re.findall(r"^```(\w+)\n(.*?)^```", page, flags=re.DOTALL | re.MULTILINE)


def commands(block: str) -> Iterator[tuple[str, str]]:
    """Yield the commands of a console block, each with the output shown below it."""
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, _, shown = part.partition("\n")
        yield command, shown


def assert_shown(command: str, shown: str, folder: Path) -> None:
    """Require a command to print the shown lines in order; ``...`` stands for any lines.

    Rounding errors may differ by a factor of 2, as processors add in different orders. The command runs in the working
    directory, which must be the folder.
    """
    assert Path.cwd() == folder
    program, *arguments = shlex.split(command)
    assert program == "ir-runtime"
    found = CliRunner().invoke(main, arguments, prog_name=program)
    lines = (found.stdout + found.stderr).splitlines()
    place = 0
    for line in shown.rstrip().splitlines():
        if line.strip() == "...":
            continue
        found_at = next((n for n in range(place, len(lines)) if _is_alike(lines[n], line)), None)
        assert found_at is not None, f"{line!r} is not printed by {command!r}, but {lines}"
        place = found_at + 1


def _is_alike(line: str, other: str) -> bool:
    """Return whether two lines are equal up to the size of rounding errors."""
    if _ROUNDING.sub("", line) != _ROUNDING.sub("", other):
        return False
    errors = zip(_ROUNDING.findall(line), _ROUNDING.findall(other), strict=True)
    return all(0.5 <= float(a.split()[1]) / float(b.split()[1]) <= 2 for a, b in errors)
