"""Map exceptions to exit codes and error messages."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from enum import IntEnum
from typing import TYPE_CHECKING

import click

from .helping import program_args, unknown_option

if TYPE_CHECKING:
    from .._util.records import Json
    from ..diagnostics import Diagnostic

__all__ = ["Exit", "explain", "reported"]


class Exit(IntEnum):
    """Exit codes."""

    OK = 0
    FINDINGS = 1
    USAGE = 2
    MODEL = 3
    UNSUPPORTED = 4
    FAILED = 5
    INTERRUPTED = 130
    BROKEN_PIPE = 141


# Limits on resources of a run; other limits are on the contents of a file.
_WHILE_RUNNING = ("memory", "trips", "seconds")


@contextmanager
def reported() -> Iterator[None]:
    """Report an exception of the block as one message on stderr and an exit code."""
    try:
        yield
        if sys.stdout is not None:
            sys.stdout.flush()
    except (click.exceptions.Exit, click.Abort):
        raise
    except click.ClickException as problem:
        _end(problem.exit_code, _usage(problem), _usage_message(problem))
    except BrokenPipeError:
        _abandon_stdout()
        raise click.exceptions.Exit(Exit.BROKEN_PIPE) from None
    except KeyboardInterrupt:
        _end(Exit.INTERRUPTED, "interrupted")
    except Exception as problem:
        if os.environ.get("IR_RUNTIME_TRACEBACK"):
            import traceback

            traceback.print_exc()
        from .render import failure

        code, message = explain(problem)
        _end(code, failure(message), getattr(problem, "message", message), _findings(problem))


def _usage(problem: click.ClickException) -> str:
    """Format a usage error in the style of all errors, escaping file names."""
    from .._util.escaping import shown, visible
    from .render import failure

    text = f"error: {_usage_message(problem)}"
    context = problem.ctx if isinstance(problem, click.UsageError) else None
    if context is None:
        return failure(text)
    for arg in program_args(context):
        if arg != shown(arg):
            text = text.replace(arg, shown(arg))
    pieces = " ".join([context.command_path, *context.command.collect_usage_pieces(context)])
    return failure(f"{text}\n  hint: {visible(pieces)}; --help says more")


def _usage_message(problem: click.ClickException) -> str:
    """Return click's message in lower case and without a full stop; suggest the nearest option for an unknown one."""
    if isinstance(problem, click.NoSuchOption):
        return unknown_option(problem)
    message = problem.format_message().rstrip(".")
    return message[:1].lower() + message[1:] if message[1:2].islower() else message


def _end(code: int, message_text: str, message: str = "", findings: Sequence[Diagnostic] = ()) -> None:
    """Print an error on stderr, with ``--json`` also as JSON on stdout, and exit.

    Args:
        code: the exit code.
        message_text: the text for stderr, with any findings and hints.
        message: the message for JSON; by default, ``message_text``.
        findings: the findings for JSON.
    """
    from .terminal import show

    if _wants_json():
        from .render import SCHEMA, dump

        records: list[Json] = [finding.record() for finding in findings]
        error: Json = {"exit": int(code), "message": message or message_text, "findings": records}
        with suppress(OSError):
            click.echo(dump({"schema": SCHEMA, "error": error}))
    show(message_text, err=True)
    raise click.exceptions.Exit(code) from None


def _findings(problem: Exception) -> Sequence[Diagnostic]:
    from ..errors import IRError

    if not isinstance(problem, IRError):
        return ()
    diagnostics: Sequence[Diagnostic] = getattr(problem, "diagnostics", ())
    return diagnostics or (problem.diagnostic,)


def _wants_json() -> bool:
    context = click.get_current_context(silent=True)
    args = () if context is None else program_args(context)
    return "--json" in args or "-json" in args


def explain(problem: Exception) -> tuple[Exit, str]:
    """Return the exit code and the message for an exception."""
    from .._util.escaping import visible
    from ..errors import IRError
    from .address_space import shortage

    if isinstance(problem, IRError):
        return _code(problem), str(problem)
    if (lack := shortage(problem)) is not None:
        return Exit.FAILED, f"error: not enough memory: {lack}"
    if isinstance(problem, OSError):
        _abandon_stdout()
        name = "" if problem.filename is None else f"{visible(str(problem.filename))}: "
        return Exit.FAILED, f"error: {name}{problem.strerror or problem}"
    what = f"{type(problem).__name__}: {problem}".strip().splitlines()[0]
    return (
        Exit.FAILED,
        f"error: this is a bug in ir_runtime, please report it: {what} (IR_RUNTIME_TRACEBACK=1 shows where)",
    )


def _code(problem: Exception) -> Exit:
    from ..errors import ExecutionError, InputError, LimitError, UnsupportedError

    if isinstance(problem, LimitError) and problem.limit in _WHILE_RUNNING:
        return Exit.FAILED
    kinds = ((InputError, Exit.USAGE), (UnsupportedError, Exit.UNSUPPORTED), (ExecutionError, Exit.FAILED))
    return next((code for kind, code in kinds if isinstance(problem, kind)), Exit.MODEL)


def _abandon_stdout() -> None:
    """Redirect stdout to the null device, so that flushing it at exit does not fail again."""
    with suppress(OSError, ValueError, AttributeError):
        nothing = os.open(os.devnull, os.O_WRONLY)
        try:
            os.dup2(nothing, sys.stdout.fileno())
        finally:
            os.close(nothing)
