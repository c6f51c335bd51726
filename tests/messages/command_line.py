"""What the command line says about files and options, beyond those of tests/cli."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping
from contextlib import chdir
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

from click.testing import CliRunner
from harness.refusals import Call
from harness.tiny import chain, chain_weights

from ir_runtime.cli import main

FOLDER = "messages"

FILES = {"net.xml": chain().encode(), "net.bin": chain_weights()}


class SaidError(Exception):
    """What a command says, which ends with another exit code than 0."""


def line(text: str, files: Mapping[str, bytes] = FILES) -> Callable[[], None]:
    """A command line, run in a folder with these files."""

    def call() -> None:
        with TemporaryDirectory() as folder, chdir(folder):
            for name, contents in files.items():
                Path(name).write_bytes(contents)
            found = CliRunner().invoke(main, shlex.split(text))
        if found.exit_code:
            raise SaidError(
                (found.stdout + found.stderr).rstrip().replace(os.path.realpath(folder), "FOLDER")
            )

    return call


def written(text: str, files: Mapping[str, bytes] = FILES) -> Call:
    """A case that has the command line as its name."""
    return Call(text, line(text, files), (SaidError,))


def folder_of_others() -> None:
    with patch.object(os, "access", return_value=False):
        line("run net.xml --random -o out.npz")()


def terminal() -> None:
    """Arrays for a terminal."""
    from click import testing

    with patch.object(testing._NamedTextIOWrapper, "isatty", return_value=True, create=True):
        line("run net.xml --random -o -")()


REFUSALS = [
    Call("folder that is not writable", folder_of_others, (SaidError,)),
    Call("arrays for a terminal", terminal, (SaidError,)),
    written("run net.xml --random -o - --json"),
    written("bench net.xml -b 2 -layout [N"),
    written("bench"),
    written("bench net.xml -m net.xml"),
]
