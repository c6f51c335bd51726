"""Exit codes, and one message for each failure."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import IntEnum
from io import StringIO

import click

from .helping import misspelt_option
from .terminal import show

__all__ = ["Exit", "reported"]


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


# Limits on what a run takes; the others are on what a file holds.
_WHILE_RUNNING = ("memory", "trips", "seconds")


@contextmanager
def reported() -> Iterator[None]:
    """Turn an exception into one message on stderr and an exit code."""
    try:
        yield
        if sys.stdout is not None:
            sys.stdout.flush()
    except (click.exceptions.Exit, click.Abort):
        raise
    except click.ClickException as problem:
        _end(problem.exit_code, usage(problem))
    except BrokenPipeError:
        _abandon_stdout()
        raise click.exceptions.Exit(Exit.BROKEN_PIPE) from None
    except KeyboardInterrupt:
        _end(Exit.INTERRUPTED, "interrupted")
    except Exception as problem:
        if os.environ.get("IR_RUNTIME_TRACEBACK"):
            traceback.print_exc()
        _end(*_explain(problem))


def usage(problem: click.ClickException) -> str:
    """Return what click says about a command line that is wrong."""
    if isinstance(problem, click.NoSuchOption) and (message := misspelt_option(problem)):
        problem = click.NoSuchOption(problem.option_name, message, ctx=problem.ctx)
    said = StringIO()
    problem.show(said)
    return said.getvalue().rstrip("\n")


def _end(code: int, message: str) -> None:
    show(message, err=True)
    raise click.exceptions.Exit(code) from None


def _explain(problem: Exception) -> tuple[Exit, str]:
    from ..errors import IRError
    from .render import failure

    if isinstance(problem, IRError):
        return _code(problem), failure(str(problem))
    if isinstance(problem, MemoryError):
        return Exit.FAILED, failure(f"error: not enough memory: {str(problem) or 'for this model'}")
    if isinstance(problem, OSError):
        _abandon_stdout()
        name = "" if problem.filename is None else f"{problem.filename}: "
        return Exit.FAILED, failure(f"error: {name}{problem.strerror or problem}")
    what = f"{type(problem).__name__}: {problem}".strip().splitlines()[0]
    return Exit.FAILED, failure(
        f"error: this is a bug in ir_runtime, please report it: {what} (IR_RUNTIME_TRACEBACK=1 shows where)"
    )


def _code(problem: Exception) -> Exit:
    from ..errors import ExecutionError, InputError, LimitError, UnsupportedError

    if isinstance(problem, LimitError) and problem.limit in _WHILE_RUNNING:
        return Exit.FAILED
    kinds = ((InputError, Exit.USAGE), (UnsupportedError, Exit.UNSUPPORTED), (ExecutionError, Exit.FAILED))
    return next((code for kind, code in kinds if isinstance(problem, kind)), Exit.MODEL)


def _abandon_stdout() -> None:
    """Redirect stdout, so that the interpreter does not fail again when it flushes it at exit."""
    with suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
