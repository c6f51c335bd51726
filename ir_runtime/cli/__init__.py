"""The command line. Results go to stdout, messages to stderr.

``--help`` imports no command modules: names and summaries come from the generated index. At module level a
command imports only click; it imports its dependencies when it runs.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import Any

import click

from .._util.interrupts import raise_interrupts
from .._version import __version__
from ._index import COMMANDS, GROUPS
from .exits import Exit, reported
from .helping import Context, add_second_dash, store_args

__all__ = ["Exit", "main"]

_EPILOG = """\b
Exit codes:
  0    success
  1    findings: validate found errors, shapes unsatisfiable constraints,
       diff changes, trace-nan a layer, or compare, bisect or reduce an error
       beyond rounding
  2    usage: an invalid option, name, input or output path
  3    the model cannot be read, or is invalid
  4    the model has an unsupported operation
  5    the run failed: a layer on its data, memory, time, the disk
  130  interrupted
  141  the pipe that receives the results was closed

Results go to stdout, everything else to stderr. Tables fit the width of a terminal, but are not truncated in pipes and
files. NO_COLOR=1 turns colors off, IR_RUNTIME_TRACEBACK=1 shows the traceback of errors, IR_RUNTIME_BACKEND is the
default of --backend.
"""


class _Program(click.Group):
    """Command group that imports commands on demand and reports every failure as one message and an exit code."""

    context_class = Context

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Import the command from the module of the same name."""
        if name not in COMMANDS:
            return None
        module = name.replace("-", "_")
        command: click.Command = getattr(import_module(f".{module}", __name__), module)
        command.context_class = Context
        if ctx.resilient_parsing:  # for a shell that completes a command line
            from .completion import attach

            attach(name, command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for group, names in GROUPS.items():
            with formatter.section(group):
                formatter.write_dl([(name, COMMANDS[name]) for name in names])

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        store_args(ctx, args)
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in COMMANDS and not name.startswith("-"):
            from .._util.nearest import did_you_mean

            ctx.fail(f"no such command {name!r}{did_you_mean(name, COMMANDS, before='; ')}")
        matched_name, command, rest = super().resolve_command(ctx, args)
        return matched_name, command, rest if command is None else add_second_dash(command, rest)

    def main(self, *args: Any, **extra: Any) -> Any:
        if hasattr(sys.stdout, "reconfigure"):  # names in a model may not fit the terminal's encoding
            sys.stdout.reconfigure(errors="backslashreplace")
        if any(name.endswith("_COMPLETE") for name in os.environ):
            from .completion import register

            register()
        return super().main(*args, **extra)

    def make_context(self, *args: Any, **extra: Any) -> click.Context:
        with reported():  # --help and --version print here
            return super().make_context(*args, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        if os.environ.get("NO_COLOR"):
            ctx.color = False
        from .._util.command_line import for_command_line
        from .address_space import check_before_numpy

        check_before_numpy()
        with for_command_line(ctx.obj), reported(), raise_interrupts():
            return super().invoke(ctx)


@click.group(
    cls=_Program,
    name="ir-runtime",
    epilog=_EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, "-V", "--version", message="%(prog)s %(version)s")
def main() -> None:
    """Read, validate and run OpenVINO IR models with NumPy."""
