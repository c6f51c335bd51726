"""Commands that pages show, each with the output that they show for it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

from click.testing import CliRunner

from ir_runtime.cli import main

__all__ = ["assert_shown", "blocks", "commands"]


def blocks(page: str) -> Iterator[tuple[str, str]]:
    """The blocks of code of a page: language and text."""
    yield from re.findall(r"^```(\w+)\n(.*?)^```", page, flags=re.DOTALL | re.MULTILINE)


def commands(block: str) -> Iterator[tuple[str, str]]:
    """The commands of a console, each with what is shown below it."""
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, _, shown = part.partition("\n")
        yield command, shown


def assert_shown(command: str, shown: str, folder: Path) -> None:
    """Fail unless a command prints the lines that are shown, in this order; ``...`` stands for any.

    It runs in the working directory, which must be the folder.
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
        assert line in lines[place:], f"{line!r} is not printed by {command!r}, but {lines}"
        place = lines.index(line, place) + 1
