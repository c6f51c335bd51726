"""Commands that pages show, each with the output that they show for it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

from click.testing import CliRunner

from ir_runtime.cli import main

__all__ = ["assert_shown", "blocks", "commands"]

# Errors that come of rounding, as compare prints them.
_ROUNDING = re.compile(r"\b((?:rel|explains|inherited) \d\.\de-0[5-9]|R \d\.\d+(?:e\+\d\d)?)(?!\w)")


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

    Rounding errors may be up to twice as large or small: processors add in different orders. It runs in the working
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
    """Tell whether two lines are equal but for how much rounding errors are."""
    if _ROUNDING.sub("", line) != _ROUNDING.sub("", other):
        return False
    errors = zip(_ROUNDING.findall(line), _ROUNDING.findall(other), strict=True)
    return all(0.5 <= float(a.split()[1]) / float(b.split()[1]) <= 2 for a, b in errors)
