"""Child processes: Python running modules of this package, never code of the working directory.

``python -m`` and ``python -c``, by which `multiprocessing` starts processes, search the working directory first, as an
empty entry of ``PYTHONPATH`` does: a ``numpy.py`` beside a downloaded model would be executed. So every child of this package
is started here, in an environment that says where modules are: where this process has found them.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING, Any, BinaryIO, TypeAlias

from .deadline import current_deadline, deadline_error
from .forks import PACKAGES

if TYPE_CHECKING:
    from concurrent.futures import ProcessPoolExecutor

__all__ = [
    "Process",
    "can_import",
    "close_pipes",
    "disown",
    "ending",
    "next_job",
    "open_pipes",
    "process_pool",
    "run_command",
    "run_module",
    "run_program",
    "safe_environment",
    "search_path",
    "send",
    "start_worker",
    "terminate",
]


def run_module(
    module: str, *, stdin: str, environment: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """Run a module as a program until it ends, and return its output.

    Args:
        module: its name.
        stdin: the text that it reads.
        environment: its environment variables; those of its search path are added.
    """
    return subprocess.run(  # noqa: S603 - this interpreter, and code of this package
        _command(module),
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
        env={**environment, **_variables(search_path())},
    )


def run_program(path: Path, arguments: Sequence[str], **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a program of another package to the end; ``variables`` extend its environment."""
    command, environment = [str(path), *arguments], {**os.environ, **variables}
    return subprocess.run(  # noqa: S603 - no shell
        command, capture_output=True, text=True, check=False, env=environment
    )


def run_command(command: Sequence[str]) -> tuple[int, str]:
    """Run a user's command to its end; return its exit code, and the end of its output.

    It reads nothing, and ends with its children when the deadline has passed, or this process is interrupted.

    Raises:
        OSError: if it cannot be started.
        LimitError: when the time is up.
    """
    left = current_deadline() - time.monotonic()
    with TemporaryFile() as printed:
        process = subprocess.Popen(  # noqa: S603 - no shell
            command, stdin=subprocess.DEVNULL, stdout=printed, stderr=printed, start_new_session=True
        )
        try:
            code = process.wait(None if left > threading.TIMEOUT_MAX else max(left, 0))
        except subprocess.TimeoutExpired:
            raise deadline_error() from None
        finally:
            _end_group(process)
        printed.seek(max(printed.seek(0, os.SEEK_END) - _LAST, 0))
        return code, printed.read().decode(errors="replace")


def _end_group(process: Process) -> None:
    """End a process and its orphaned children."""
    with suppress(OSError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    process.wait()


def terminate(process: Process, seconds: float) -> None:
    """Ask a process to end; kill it if it has not ended after some seconds, as one that computes takes no signal."""
    process.terminate()
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()


def ending(code: int) -> str:
    """Return how a process ended, by the code that it left: ``exit code 3``, ``SIGFPE``."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"


_LAST = 1 << 16
"""The most bytes read from the output of a command."""

Process: TypeAlias = "subprocess.Popen[bytes]"
"""A process that is running, with pipes of bytes."""


def start_worker(module: str) -> Process:
    """Start a module as a program that reads from and writes to pipes; it ends when its input does.

    Raises:
        OSError: if no process can be started.
    """
    return subprocess.Popen(  # noqa: S603 - this interpreter, and code of this package
        _command(module),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, **_variables(search_path())},
    )


def can_import(name: str) -> bool:
    """Return whether a module can be imported within memory limits, tested in a forked process."""
    child = os.fork()
    if child:
        return os.waitpid(child, 0)[1] == 0
    code = 1
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        import_module(name)
        code = 0
    except ModuleNotFoundError:
        code = 0
    finally:
        os._exit(code)


@contextmanager
def process_pool(count: int) -> Iterator[ProcessPoolExecutor]:
    """Yield a pool of this many new processes."""
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    with safe_environment(), ProcessPoolExecutor(count, get_context("spawn")) as pool:
        yield pool


@contextmanager
def safe_environment() -> Iterator[None]:
    """Keep processes started by libraries away from the working directory, by their environment.

    `multiprocessing` tells its processes the search path of this one, once they have found the standard library.
    """
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    variables = _variables(_without_working_directory(paths))
    former = {name: text for name, text in os.environ.items() if name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name in os.environ.keys() & variables.keys() - former.keys():
            del os.environ[name]
        os.environ.update(former)


def search_path() -> list[str]:
    """Return the module folders of this process for a child, without the working directory.

    Packages that were imported from the working directory, or by a relative path, are found last, after all else.
    """
    imported = [sys.modules[name] for name in sorted(PACKAGES) if name in sys.modules]
    files = [module.__file__ for module in imported if module.__file__]
    roots = [os.path.dirname(os.path.dirname(os.path.abspath(file))) for file in files]
    return list(dict.fromkeys([*_without_working_directory(sys.path), *roots]))


def _command(module: str) -> list[str]:
    return [sys.executable, "-P", "-m", module]


def _variables(paths: Iterable[str]) -> dict[str, str]:
    return {"PYTHONSAFEPATH": "1", "PYTHONPATH": os.pathsep.join(paths)}


def _without_working_directory(paths: Iterable[str]) -> list[str]:
    return [path for path in paths if os.path.isabs(path) and not _is_working_directory(path)]


def _is_working_directory(path: str) -> bool:
    try:
        return os.path.samefile(path, os.curdir)
    except OSError:  # one of them does not exist
        return False


# Pickled messages in the pipes of worker processes, which `child_process.start_worker` starts, and the end of these pipes.


def open_pipes() -> tuple[BinaryIO, IO[bytes]]:
    """Return the streams of jobs and of answers: standard input and output, which are taken from the libraries of this process.

    Their output goes to standard error, and they read nothing. One that forks, as OpenVINO's telemetry does in a thread, closes
    ``sys.stdin`` in the child, which would wait forever for a thread that was reading from it.
    """
    from .files import stream_to

    jobs, answers = os.fdopen(os.dup(0), "rb"), stream_to(os.dup(1))
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return jobs, answers


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
    """Forget the process in a forked child, which cannot wait for a process of its parent."""
    process.returncode = 0


def close_pipes(process: Process) -> int:
    """Close the pipes of a process, wait for its end, and return its exit code."""
    for stream in (process.stdin, process.stdout):
        assert stream is not None
        with suppress(OSError):  # for messages that cannot be written
            stream.close()
    return process.wait()
