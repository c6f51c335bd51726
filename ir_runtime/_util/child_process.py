"""Child processes that run modules of this package, but no code from the working directory.

``python -m`` and ``python -c``, with which `multiprocessing` starts processes, search the working directory first, as they do
for an empty entry of ``PYTHONPATH``: a ``numpy.py`` beside a downloaded model would be executed. So all child processes
are started here, with a search path of the folders in which this process has found its modules.
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
    "describe_exit",
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
    """Run a module as a program, wait for its end, and return its exit code and output.

    Args:
        module: the name of the module.
        stdin: the text on its standard input.
        environment: its environment variables, to which those that set the module search path are added.
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
    """Run a program of another package, and wait for its end; ``variables`` extend its environment."""
    command, environment = [str(path), *arguments], {**os.environ, **variables}
    return subprocess.run(  # noqa: S603 - no shell
        command, capture_output=True, text=True, check=False, env=environment
    )


def run_command(command: Sequence[str]) -> tuple[int, str]:
    """Run a user's command, wait for its end, and return its exit code and the end of its output.

    Its standard input is empty. The command and its children are killed when the deadline passes, or this process is
    interrupted.

    Raises:
        OSError: if it cannot be started.
        LimitError: if the deadline passes.
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
    """Kill a process and its children, including children that outlived it."""
    with suppress(OSError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    process.wait()


def terminate(process: Process, seconds: float) -> None:
    """Ask a process to end, and kill it after ``seconds``, as a process that computes does not handle signals."""
    process.terminate()
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()


def describe_exit(code: int) -> str:
    """Describe a return code of `subprocess`: ``exit code 3``, or the signal that ended the process, such as ``SIGFPE``."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"


_LAST = 1 << 16
"""Maximum number of bytes read from the output of a command."""

Process: TypeAlias = "subprocess.Popen[bytes]"
"""A running process with binary pipes."""


def start_worker(module: str) -> Process:
    """Start a module as a program with pipes for its input and output; it ends at the end of its input.

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
    """Return whether importing a module succeeds, or fails only because it is missing; tested in a forked process.

    It is false if the import crashes or raises another exception, as it may within memory limits.
    """
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
    """Yield a pool of ``count`` new processes."""
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    with safe_environment(), ProcessPoolExecutor(count, get_context("spawn")) as pool:
        yield pool


@contextmanager
def safe_environment() -> Iterator[None]:
    """Keep processes that libraries start within the block from importing modules in the working directory.

    The environment only needs to lead them to the standard library: `multiprocessing` sends its processes the search path
    of this one.
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
    """Return the folders of modules of this process for a child, without the working directory.

    The folders of packages that this process imported from the working directory, or by a relative path, come last.
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


# Pickled messages in the pipes of worker processes, which `start_worker` starts.


def open_pipes() -> tuple[BinaryIO, IO[bytes]]:
    """Return the streams of messages from and to the parent process: standard input and output, which are replaced.

    Output of libraries then goes to standard error, and their input is empty. A library that forks, as OpenVINO's telemetry does
    in a thread, closes ``sys.stdin`` in the child, which would wait forever for a thread that is reading it.
    """
    from .files import stream_to

    jobs, answers = os.fdopen(os.dup(0), "rb"), stream_to(os.dup(1))
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return jobs, answers


def send(stream: Any, message: object) -> None:
    """Pickle a message, write it to a stream, and flush that."""
    pickle.dump(message, stream, protocol=pickle.HIGHEST_PROTOCOL)
    stream.flush()


def next_job(stream: BinaryIO) -> Any:
    """Return the next message from the parent process; ``None`` at the end of the stream."""
    try:
        return pickle.load(stream)  # noqa: S301 - from the parent process
    except EOFError:
        return None


def disown(process: Process) -> None:
    """Mark a process as ended, in a forked child, which cannot wait for processes of its parent."""
    process.returncode = 0


def close_pipes(process: Process) -> int:
    """Close the pipes of a process, wait for its end, and return its exit code."""
    for stream in (process.stdin, process.stdout):
        assert stream is not None
        with suppress(OSError):  # buffered messages that cannot be written
            stream.close()
    return process.wait()
