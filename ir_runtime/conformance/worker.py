"""Run cases in a separate process, which may crash or hang: ``python -m ir_runtime.conformance.worker``.

The process answers one job after another, and ends with its parent. Jobs and answers are pickled, and pass through its standard
input and output.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from .._util.child_process import close_pipes, disown, next_job, open_pipes, send
from .._util.forks import register
from ..errors import InputError, IRError, LimitError, UnsupportedError
from .results import Status

if TYPE_CHECKING:
    from .._util.child_process import Process

__all__ = ["Answer", "Job", "Worker"]

_GRACE = 5.0
"""The seconds after the time limit of a case until its process is ended."""
_LEAVE = 5.0
"""The seconds that a process has to end its command before it is killed."""


@dataclass(frozen=True)
class Job:
    """A case to run.

    Args:
        against: the runtime.
        files: the files of the case; if empty, the answer is the version of the runtime.
        seconds: the time limit.
    """

    against: str
    files: Mapping[str, bytes]
    seconds: float


@dataclass(frozen=True)
class Answer:
    """The outcome of a job.

    Args:
        status: the status of the case.
        message: the difference or error, or the version of the runtime.
    """

    status: Status
    message: str = ""


class Worker:
    """A process that runs jobs, started on first use, and again after its end. Only one thread runs jobs; others may kill it."""

    def __init__(self) -> None:
        self._process: Process | None = None
        self._lock = threading.Lock()
        self._is_killed = False
        register(self)

    def after_fork(self) -> None:
        """Leave the process to the parent; a forked process starts its own."""
        if self._process is not None:
            disown(self._process)
        self._process, self._lock = None, threading.Lock()

    def run(self, job: Job) -> Answer:
        """Run a job.

        If a job crashes, hangs or runs out of memory in a process that ran others before, it is run once more in a new process,
        since an earlier job may have corrupted the old one.
        """
        is_new = self._process is None
        answer = self._try(job)
        if is_new or not (answer.status in ("crashed", "hung") or _lacks_memory(answer)):
            return answer
        self.stop()
        return self._try(job)

    def _try(self, job: Job) -> Answer:
        from .._util.child_process import describe_exit

        process = self._start()
        if process is None:
            return Answer("crashed", "the run has ended")
        late = threading.Event()
        timer = threading.Timer(min(job.seconds + _GRACE, threading.TIMEOUT_MAX), _kill_late, (process, late))
        timer.daemon = True
        timer.start()
        try:
            send(process.stdin, job)
            answer = pickle.load(process.stdout)  # type: ignore[arg-type]  # noqa: S301 - from our own process
        except (OSError, EOFError, pickle.UnpicklingError):
            code = self._end()
            if late.is_set():
                return Answer("hung", f"no answer within {job.seconds:g} s")
            return Answer("crashed", describe_exit(code))
        except BaseException:
            self.stop()
            raise
        finally:
            timer.cancel()
        assert isinstance(answer, Answer)
        return answer

    def _start(self) -> Process | None:
        """Return the process, started if needed, or ``None`` if it was killed."""
        from .._util.child_process import start_worker

        with self._lock:
            if self._is_killed:
                return None
            if self._process is None:
                self._process = start_worker(__name__)
            return self._process

    def kill(self) -> None:
        """End the process and its current job, from any thread; it is not started again."""
        with self._lock:
            self._is_killed = True
            if self._process is not None:
                _end_process(self._process)

    def stop(self) -> None:
        """End the process if it runs; the next job starts it again."""
        if self._process is not None:
            _end_process(self._process)
            self._end()

    def _end(self) -> int:
        """Wait for the end of the process; return its exit code."""
        with self._lock:
            process, self._process = self._process, None
        assert process is not None
        return close_pipes(process)


def _lacks_memory(answer: Answer) -> bool:
    """Return whether a runtime ran out of memory; since cases need little, its heap may be corrupted."""
    return answer.status == "refused" and ("bad_alloc" in answer.message or answer.message == "MemoryError")


def _kill_late(process: Process, late: threading.Event) -> None:
    late.set()
    _end_process(process)


def _end_process(process: Process) -> None:
    """End a process and the command that it waits for."""
    from .._util.child_process import terminate

    terminate(process, _LEAVE)


def main() -> None:
    """Answer jobs from standard input until it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # handled by the waiting process
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))  # ends the command, too
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 2)  # output of libraries would be mistaken for a message
    os.close(nothing)
    jobs, answers = open_pipes()
    while (job := next_job(jobs)) is not None:
        send(answers, answer(job))


def answer(job: Job) -> Answer:
    """Run a job in this process; return its outcome."""
    from .._util.deadline import deadline
    from .adapters import version_of

    try:
        with deadline(job.seconds):
            return _run_case(job) if job.files else Answer("passed", version_of(job.against))
    except LimitError as reason:
        return Answer("hung" if reason.limit == "seconds" else "refused", reason.message)
    except InputError as reason:
        return Answer("damaged", f"{reason.message}{f' ({reason.hint})' if reason.hint else ''}")


def _run_case(job: Job) -> Answer:
    from .adapters import Crashed, Unsupported, adapter
    from .case import Case
    from .judge import judge

    case, run = Case.parse(job.files), adapter(job.against)
    try:
        outputs = run(case)
    except (Unsupported, UnsupportedError) as reason:
        return Answer("unsupported", _message(reason))
    except Crashed as reason:
        return Answer("crashed", _message(reason))
    except Exception as reason:
        if isinstance(reason, LimitError) and reason.limit == "seconds":
            raise
        return Answer("passed" if case.kind == "refusal" else "refused", _message(reason))
    judgement = judge(case, outputs)
    return Answer("passed" if judgement.passed else "failed", judgement.message)


def _message(reason: Exception) -> str:
    if isinstance(reason, IRError):
        return reason.message
    lines = str(reason).strip().splitlines()
    return lines[-1] if lines else type(reason).__name__


if __name__ == "__main__":
    # Not as __main__: pickle finds the classes of this module by its name.
    import_module("ir_runtime.conformance.worker").main()
