"""Measure the start of a runtime: time and memory from launch to the first result.

It is measured in a new process, since only the first run in a process is cold. This module, run as a program, is that
process: it reads a job as JSON from standard input, and prints the measurements.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from .._util.child_process import run_module
from .feeding import restore, store
from .sides import Runtime, Setting, Side, import_runtime

if TYPE_CHECKING:
    from ..ir.array import Array

__all__ = ["Start", "best", "environment", "measure", "peak_memory"]


@dataclass(frozen=True)
class Start:
    """The figures of a start: times in seconds, and memory in bytes.

    Args:
        imported: the time to import the package and create its first `Core`.
        read: the time to read the model.
        compile: the time to compile it.
        first: the time of the first run.
        base: the peak memory before the model is read, with the runtime and NumPy imported; ``None`` if unknown.
        peak: the peak memory after the first run; ``None`` if unknown.
    """

    imported: float
    read: float
    compile: float
    first: float
    base: int | None
    peak: int | None

    @property
    def load(self) -> float:
        """The time to read and compile the model."""
        return self.read + self.compile


def measure(runtime: Runtime, setting: Setting, inputs: Sequence[Array], times: int = 1) -> Start:
    """Measure the start of a runtime in a new process.

    Args:
        runtime: the runtime.
        setting: the model, and the settings of the runtime.
        inputs: an array for each input of the model.
        times: the number of processes; the best of each figure counts.

    Raises:
        ExecutionError: if the process fails.
    """
    with TemporaryDirectory(prefix="ir-runtime-bench-") as folder:
        job = {"runtime": runtime, "setting": setting.record(), "inputs": str(store(inputs, Path(folder)))}
        return best([_measure_once(json.dumps(job), setting.backend) for _ in range(times)])


def best(starts: Sequence[Start]) -> Start:
    """Return the minimum of each figure over several starts."""
    least = {
        name: min(getattr(start, name) for start in starts)
        for name in ("imported", "read", "compile", "first")
    }
    return Start(**least, base=_least([s.base for s in starts]), peak=_least([s.peak for s in starts]))


def _least(sizes: Sequence[int | None]) -> int | None:
    sizes_known = [size for size in sizes if size is not None]
    return min(sizes_known) if len(sizes_known) == len(sizes) else None


def _measure_once(job: str, backend: str | None) -> Start:
    done = run_module(__name__, stdin=job, environment=environment(backend))
    if done.returncode:
        from ..errors import ExecutionError

        message = (done.stderr.strip().splitlines() or ["no output"])[-1]
        raise ExecutionError(f"the process that measures the start ended with {done.returncode}: {message}")
    return Start(**json.loads(done.stdout.splitlines()[-1]))


def environment(backend: str | None = None) -> dict[str, str]:
    """Return the environment variables of a measured process, with the default backend set if given.

    Python may write bytecode, so that later processes start as with an installed package.
    """
    environment_variables = {
        name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"
    }
    return (
        environment_variables if backend is None else {**environment_variables, "IR_RUNTIME_BACKEND": backend}
    )


def peak_memory() -> int | None:
    """Return the peak memory of this process in bytes, or ``None`` if unknown.

    On Linux, ``getrusage`` may return the peak of the parent process.
    """
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines()
        return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM:"))
    except (OSError, StopIteration):
        pass
    try:
        import resource
    except ImportError:
        return None
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most << 10


def _answer(runtime: Runtime, setting: Setting, path: str) -> Start:
    start = time.perf_counter()
    api = import_runtime(runtime)
    _ = api.Core(), api.Tensor
    imported = time.perf_counter() - start
    inputs = restore(path)
    base = peak_memory()
    side = Side(runtime, setting)
    request = side.request(inputs)
    start = time.perf_counter()
    request.infer()
    first = time.perf_counter() - start
    return Start(imported, side.read, side.compile, first, base, peak_memory())


if __name__ == "__main__":
    job = json.load(sys.stdin)
    print(json.dumps(asdict(_answer(job["runtime"], Setting(**job["setting"]), job["inputs"]))))
