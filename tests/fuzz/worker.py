"""Worker processes that probe inputs within bounds of time and memory, and are restarted when they die."""

from __future__ import annotations

import faulthandler
import gc
import multiprocessing as mp
import re
import resource
import signal
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from harness.hostile import BrokenOutError

from .corpus import Case
from .lengths import DisagreementError
from .mutations import Recipe, mutant
from .target import BACKENDS, BrokenError, probe

__all__ = ["MEMORY", "SECONDS", "Pool", "Result", "guarded"]

SECONDS = 2.0
"""CPU time that one input may take."""
MEMORY = 1 << 30
"""Bytes that one input may take."""
_PATIENCE = 60
"""Seconds of wall time after which a worker that does not even notice signals is given up."""
_STATUS = Path("/proc/self/status")


@dataclass(frozen=True, slots=True)
class Result:
    """The outcome of an input. ``finding`` identifies a failure; empty on success."""

    outcome: str
    seconds: float = 0.0
    memory: int = 0
    finding: str = ""
    detail: str = ""


class _TooSlow(BaseException):
    """Derived from `BaseException`, so that the package cannot catch it."""


def guarded(case: Case, seconds: float = SECONDS, backends: Sequence[str] = BACKENDS) -> Result:
    """Probe an input in this process; exceptions and timeouts become findings."""
    start, before, most = time.process_time(), _memory("VmRSS"), _memory("VmHWM")
    outcome, finding, detail = "finding", "", ""
    signal.signal(signal.SIGPROF, _interrupt)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            outcome = probe(case, backends)
    except BaseException as reason:
        signal.setitimer(signal.ITIMER_PROF, 0)
        finding, detail = _signature(reason), "".join(traceback.format_exception(reason, limit=-60))
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    taken = _memory("VmHWM") - before if _memory("VmHWM") > most else 0
    return Result(outcome, time.process_time() - start, taken, finding, detail)


def _interrupt(*_: object) -> None:
    raise _TooSlow


def _memory(field: str) -> int:
    """Return a field of this process's memory status in bytes; 0 if unknown."""
    if not _STATUS.exists():
        return 0
    found = re.search(rf"^{field}:\s+(\d+) kB", _STATUS.read_text(), re.MULTILINE)
    return int(found.group(1)) << 10 if found else 0


def _signature(reason: BaseException) -> str:
    """Return the kind of a finding, independent of numbers and names."""
    if isinstance(reason, BrokenError):
        where, message = reason.found.where, reason.found.message
        general = re.sub(r"'[^']*'|\"[^\"]*\"|\d+|\[[^]]*\]", "_", message[-300:])[:80]
        return f"{reason.how} in {where.operation if where else ''}: {reason.found.code} {general}"
    if isinstance(reason, BrokenOutError):
        line, _, what = str(reason).partition(": ")
        return f"a name breaks out of {line.split()[0]}: {re.sub(r'[^a-z ]+', '_', what)[:60]}"
    if isinstance(reason, DisagreementError):
        return reason.signature
    frames = [f for f in traceback.extract_tb(reason.__traceback__) if "ir_runtime/" in f.filename]
    at = frames[-1] if frames else None
    place = f"{at.filename.rpartition('ir_runtime/')[2]}:{at.name}" if at else "elsewhere"
    return f"{type(reason).__name__.lstrip('_')} in {place}"


def _serve(ends: Connection, corpus: Sequence[Case], log: str, backends: Sequence[str]) -> None:
    """The main loop of a worker: recipes in, results out."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with open(log, "w") as file:
        faulthandler.enable(file)
        guarded(corpus[0], backends=backends)  # imports, threads and buffers are not the fault of an input
        _bound()
        while (recipe := ends.recv()) is not None:
            faulthandler.dump_traceback_later(_PATIENCE, exit=True, file=file)
            result = guarded(mutant(corpus, recipe), backends=backends)
            faulthandler.cancel_dump_traceback_later()
            ends.send(result)
            if result.memory > 1 << 26:
                _forget()
            if result.finding.startswith("TooSlow"):
                return  # what was interrupted may be left half done


def _bound() -> None:
    if size := _memory("VmSize"):
        resource.setrlimit(resource.RLIMIT_AS, (size + MEMORY, size + MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _forget() -> None:
    """Reset the peak memory."""
    gc.collect()
    clear = Path("/proc/self/clear_refs")
    if clear.exists():
        clear.write_text("5")


@dataclass(slots=True)
class _Worker:
    corpus: Sequence[Case]
    log: Path
    backends: Sequence[str]
    process: Any = None
    ends: Any = None
    recipe: Recipe | None = None

    def ask(self, recipe: Recipe) -> None:
        """Send a task, starting the worker if necessary."""
        if self.process is None or not self.process.is_alive():
            context = mp.get_context("spawn")
            self.ends, other = context.Pipe()
            self.process = context.Process(
                target=_serve, args=(other, self.corpus, str(self.log), self.backends), daemon=True
            )
            self.process.start()
            other.close()
        self.recipe = recipe
        self.ends.send(recipe)

    def answer(self) -> Result:
        """Return the result; a crash is a finding, too."""
        try:
            found: Result = self.ends.recv()
        except (EOFError, ConnectionError):
            self.process.join()
            log = self.log.read_text(errors="replace")
            where = re.search(r'File ".*ir_runtime/(.*)", line \d+ in (\w+)', log)
            place = f"{where.group(1)}:{where.group(2)}" if where else "elsewhere"
            kind = "Hang" if "Timeout" in log else f"Crash ({self.process.exitcode})"
            found = Result("finding", _PATIENCE, 0, f"{kind} in {place}", log)
        if found.finding.startswith("TooSlow"):
            self.process.join()
        return found

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.join()


@dataclass(slots=True)
class Pool:
    """Workers that probe the models of recipes."""

    corpus: Sequence[Case]
    size: int = 2
    backends: Sequence[str] = BACKENDS
    _workers: list[_Worker] = field(default_factory=list)
    _folder: Any = None

    def __enter__(self) -> Pool:
        self._folder = tempfile.TemporaryDirectory(prefix="ir_runtime-fuzz-")
        logs = (Path(self._folder.name) / f"{i}.log" for i in range(self.size))
        self._workers = [_Worker(self.corpus, log, self.backends) for log in logs]
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers:
            worker.stop()
        self._folder.cleanup()

    def run(self, recipes: Iterable[Recipe]) -> Iterator[tuple[Recipe, Result]]:
        """Yield the results of recipes as they complete."""
        todo, idle = iter(recipes), list(self._workers)
        busy: dict[Any, _Worker] = {}
        while True:
            while idle and (recipe := next(todo, None)) is not None:
                worker = idle.pop()
                worker.ask(recipe)
                busy[worker.ends] = worker
            if not busy:
                return
            for ends in wait(list(busy)):
                worker = busy.pop(ends)
                assert worker.recipe is not None
                yield worker.recipe, worker.answer()
                idle.append(worker)

    def smallest(self, recipe: Recipe, finding: str) -> Recipe:
        """Return the recipe without the steps that its finding does not need."""
        return _smaller(recipe, lambda other: next(self.run([other]))[1].finding == finding)


def _smaller(recipe: Recipe, still: Callable[[Recipe], bool]) -> Recipe:
    place = 0
    while place < len(recipe.steps) and len(recipe.steps) > 1:
        if still(fewer := recipe.without(place)):
            recipe = fewer
        else:
            place += 1
    return recipe
