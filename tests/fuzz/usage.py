"""Measure the CPU time and memory of every command on growth series: ``python -m fuzz.usage --help``.

Each command runs on each file in a subprocess forked from one that has imported the package. It must end within bounds: with
a result or an error of the package, which may be an exceeded limit.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from random import Random

import click

from ir_runtime.cli import main as program
from ir_runtime.cli._index import COMMANDS
from ir_runtime.cli.exits import Exit
from ir_runtime.cli.render import table

from .series import SERIES, SHAPES, model_of

__all__ = ["Command", "Usage", "commands", "measure"]

SECONDS = 5.0
"""CPU time that a command may take, start-up included."""
MEMORY = 1 << 30
"""Bytes that it may take."""
LARGEST = 1 << 20
"""Bytes of the files that this is promised for."""
OTHER = "other.xml"
"""The file that a model is compared with: of the same shape, but smaller."""
_STOPPED = 1.4 * SECONDS
"""CPU time after which it is killed."""
_ADDRESSES = 24 << 30
_EXPECTED = {int(code) for code in Exit}


@dataclass(frozen=True, slots=True)
class Command:
    """A command that takes a model."""

    name: str
    runs: bool
    """Whether it runs the model, which may take any time: it is bounded by ``--timeout`` and ``--max-memory``."""
    arguments: tuple[str, ...]

    def line(self, model: Path) -> list[str]:
        """Return the command line for a model; another model is next to it."""
        files = {"MODEL": str(model), "OTHER": str(model.with_name(OTHER))}
        return [self.name, *(files.get(text, text) for text in self.arguments)]


def commands() -> tuple[Command, ...]:
    """Return the commands that take a model, from their click declarations, except ``open``, which is a report and a browser."""
    context = click.Context(program)
    found = (program.get_command(context, name) for name in COMMANDS if name != "open")
    return tuple(one for command in found if command is not None and (one := _command(command)) is not None)


def _command(command: click.Command) -> Command | None:
    models = [p for p in command.params if isinstance(p, click.Argument) and p.name in _MODELS]
    if not models:
        return None
    options = {option for p in command.params for option in p.opts}
    output = next((p for p in command.params if p.name == "output"), None)
    runs = (
        bool(options & {"--random", "--seed"}) and "--constraints" not in options
    )  # a report need not run it
    limits = ("--timeout", f"{SECONDS:g}", "--max-memory", "1G") if runs and "--timeout" in options else ()
    random = ("--random",) if runs and "--random" in options else ()
    others = [
        p for p in command.params if isinstance(p, click.Argument) and p.required and p.name not in _MODELS
    ]
    target = ("-o", "made") if output is not None and output.required else ()
    against = next((p for p in command.params if "--against" in p.opts), None)
    other = ("--against", "reference") if against and not isinstance(against.type, click.Choice) else ()
    files = ("MODEL", *["OTHER"] * (len(models) - 1), *["made.xml"] * len(others))
    return Command(command.name or "", runs, (*files, *limits, *random, *target, *other))


_MODELS = ("model", "models", "old", "new")


@dataclass(frozen=True, slots=True)
class Usage:
    """The resources that a command used."""

    command: str
    shape: str
    size: int
    seconds: float
    memory: int
    code: int | None
    """Its exit code; ``None`` if it was killed."""
    said: str
    """The end of its messages."""

    @property
    def problem(self) -> str:
        """The exceeded bound; empty if none."""
        if self.code is None:
            return "killed"
        if self.code not in _EXPECTED or "Traceback" in self.said or "this is a bug" in self.said:
            return "broken"
        over = ["time"] if self.seconds > SECONDS else []
        return " ".join(over + (["memory"] if self.memory > MEMORY else []))


def measure(command: Command, shape: str, xml: Path, folder: Path) -> Usage:
    """Run a command on a file in a subprocess."""
    said = folder / "said.txt"
    child = os.fork()
    if not child:
        _run(command.line(xml), folder, said)
    _, status, used = os.wait4(child, 0)
    text = said.read_text("utf-8", errors="replace")[-3000:]
    return Usage(
        command.name,
        shape,
        xml.stat().st_size,
        used.ru_utime + used.ru_stime + _STARTED,
        used.ru_maxrss << 10,
        None if os.WIFSIGNALED(status) else os.WEXITSTATUS(status),
        text,
    )


def _run(arguments: Sequence[str], folder: Path, said: Path) -> None:
    code = 70
    try:
        os.chdir(folder)
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_CPU, (int(_STOPPED), int(_STOPPED)))
        resource.setrlimit(resource.RLIMIT_AS, (_ADDRESSES, _ADDRESSES))
        errors = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(os.open("/dev/null", os.O_WRONLY), 1)
        os.dup2(errors, 2)
        sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", closefd=False)  # noqa: SIM115
        start = time.monotonic() - _STARTED  # imports are a part of the time that a command has
        code = program.main([*arguments], prog_name="ir-runtime", standalone_mode=True, obj=start) or 0
    except SystemExit as reason:
        code = reason.code if isinstance(reason.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        with suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def series(names: Sequence[str], sizes: Sequence[int], chosen: Sequence[Command]) -> Iterator[Usage]:
    """Measure commands on models of increasing size; kinds that exceed the bounds are not enlarged further."""
    for name in names:
        broken: set[str] = set()
        for size in sizes:
            with tempfile.TemporaryDirectory() as folder:
                xml = Path(folder, "model.xml")
                for path, bytes in (xml, size), (xml.with_name(OTHER), size * 3 // 4):
                    made = model_of(name, bytes)
                    path.write_bytes(made.xml)
                    path.with_suffix(".bin").write_bytes(made.weights)
                    del made
                for command in chosen:
                    if command.name not in broken:
                        used = measure(command, name, xml, Path(folder))
                        broken |= {command.name} if used.problem else set()
                        yield used


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--shape", "shapes", multiple=True, type=click.Choice(list(SERIES)), help="By default, all.")
@click.option("--command", "names", multiple=True, help="By default, all that take a model.")
@click.option("--static/--all", default=False, help="Only commands that do not run the model.")
@click.option("--own/--floods", default=False, help="Only shapes that are no floods.")
@click.option(
    "--size", "sizes", multiple=True, type=int, default=(LARGEST >> 5, LARGEST), help="Of the files."
)
@click.option("--minutes", type=float, help="Begin no further measurement after that long.")
@click.option("--seed", default=0, show_default=True, help="Other seeds give the shapes another order.")
@click.option("-v", "--verbose", is_flag=True)
def main(
    shapes: tuple[str, ...],
    names: tuple[str, ...],
    static: bool,
    own: bool,
    sizes: tuple[int, ...],
    minutes: float | None,
    seed: int,
    verbose: bool,
) -> None:
    """Find commands that exceed the bounds of time or memory.

    The exit code is then 1.
    """
    chosen = [c for c in commands() if (not names or c.name in names) and not (static and c.runs)]
    order = list(shapes or (SHAPES if own else SERIES))
    Random(seed).shuffle(order)
    end = time.monotonic() + 60 * minutes if minutes else float("inf")
    used = []
    for each in series(order, sorted(sizes), chosen):
        used.append(each)
        if each.problem or verbose:
            last = each.said.strip().splitlines()[-1:] or [""]
            click.echo(
                f"{each.problem:12} {each.command:10} {each.shape:32} {each.size:8} {each.seconds:6.2f} s"
                f" {each.memory >> 20:6} MiB  exit {each.code}  {last[0][:300]}"
            )
        if time.monotonic() > end:
            break
    most = sorted(used, key=lambda each: -each.seconds)[:15]
    rows = [[e.command, e.shape, str(e.size), f"{e.seconds:.2f}", str(e.memory >> 20)] for e in most]
    click.echo(
        table("Slowest", ("command", "shape", "bytes", "CPU s", "MiB"), rows, right=("bytes", "CPU s", "MiB"))
    )
    if any(each.problem for each in used):
        sys.exit(1)


for _module in ("openvino.core", "report.page", "analysis.cost", "analysis.constraints.solver"):
    import_module(f"ir_runtime.{_module}")
for _name in COMMANDS:
    program.get_command(click.Context(program), _name)
import_module("networkx")
_STARTED = time.process_time()  # which a command alone would take to import the same

if __name__ == "__main__":
    main()
