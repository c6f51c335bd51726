"""Whole networks, timed against OpenVINO in one process.

    python tests/bench/models.py [NAME...] [--dir DIR] [--backend NAME...] [--threads N] [--seconds S]

Both sides take turns, in blocks with a pause between them: the workers of a BLAS spin for a while
after a product, and would slow OpenVINO down. With one thread CPU time is measured, which other
programs hardly disturb, else wall time. Each cell has the fastest run, and the median in brackets.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

DIR = Path(os.environ.get("IR_RUNTIME_ZOO") or Path.home() / ".cache" / "ir_runtime" / "zoo")
PAUSE = 0.1
BLOCK = 5
HEAD = f"{'model':<20}{'backend':<11}{'ms':>18}{'OpenVINO ms':>18}{'ratio':>7}{'error':>10}{'load':>7}{'compile':>9}"


@dataclass
class Timed:
    """One side of the comparison: how to run it, and how long each run took, in ms."""

    run: Callable[[], list[Any]]
    load: float
    compile: float
    times: list[float]

    def block(self, clock: Callable[[], float]) -> None:
        for _ in range(BLOCK):
            start = clock()
            self.run()
            self.times.append((clock() - start) * 1e3)

    def __str__(self) -> str:
        return f"{min(self.times):.1f} ({median(self.times):.1f})"


def theirs(xml: Path, arrays: dict[str, Any], threads: int) -> Timed:
    """OpenVINO's CPU plugin at f32."""
    import openvino as ov

    config = {
        "INFERENCE_PRECISION_HINT": "f32",
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_NUM_THREADS": str(threads),
    }
    core = ov.Core()
    start = time.perf_counter()
    model = core.read_model(xml)
    read = time.perf_counter()
    compiled = core.compile_model(model, "CPU", config)
    done = time.perf_counter()
    request = compiled.create_infer_request()
    for port in compiled.inputs:
        name = next(n for n in arrays if n in port.get_names())
        request.set_tensor(port, ov.Tensor(arrays[name]))

    def run() -> list[Any]:
        request.infer()
        return [request.get_output_tensor(i).data for i in range(len(compiled.outputs))]

    return Timed(run, read - start, done - read, [])


def ours(xml: Path, arrays: dict[str, Any], backend: str) -> Timed:
    """This package, with one of its backends."""
    import ir_runtime

    start = time.perf_counter()
    model = ir_runtime.read_model(xml)
    read = time.perf_counter()
    compiled = ir_runtime.compile_model(model, backend=backend)
    done = time.perf_counter()
    return Timed(lambda: list(compiled(arrays).values()), read - start, done - read, [])


def error(found: list[Any], wanted: list[Any]) -> float:
    """The largest difference, relative to the largest number of an output."""
    import numpy as np

    return max(
        float(np.abs(f - w).max() / max(np.abs(w).max(), 1e-30)) for f, w in zip(found, wanted, strict=True)
    )


def compare(xml: Path, backend: str, threads: int, seconds: float) -> str:
    """One line of the table."""
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from models.zoo import example_inputs

    arrays = example_inputs(xml.stem)
    sides = ours(xml, arrays, backend), theirs(xml, arrays, threads)
    results = [[array.copy() for array in side.run()] for side in sides]
    clock = time.process_time if threads == 1 else time.perf_counter
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for side in sides:
            time.sleep(PAUSE)
            side.run()
            side.block(clock)
    us, them = sides
    ratio = min(us.times) / min(them.times)
    return (
        f"{xml.stem:<20}{backend:<11}{us!s:>18}{them!s:>18}{ratio:>7.2f}{error(*results):>10.1e}"
        f"{us.load:>6.2f}s{us.compile:>8.2f}s"
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Time whole networks against OpenVINO.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="models (default: all in DIR)")
    parser.add_argument("--dir", type=Path, default=DIR, help="folder of the models (default: %(default)s)")
    parser.add_argument("--backend", nargs="+", help="backends (default: all but reference)")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1, help="threads of each side")
    parser.add_argument("--seconds", type=float, default=5, help="time for each line (default: %(default)s)")
    options = parser.parse_args()
    for name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
        os.environ[name] = str(options.threads)  # read when NumPy is imported, so not before this line

    from ir_runtime.backends import available

    names = options.names or sorted(p.stem for p in options.dir.glob("*.xml"))
    backends = options.backend or [b for b in available() if b != "reference"]
    print(f"{options.threads} threads, {'CPU' if options.threads == 1 else 'wall'} time\n{HEAD}", flush=True)
    for name in names:
        for backend in backends:
            try:
                line = compare(options.dir / f"{name}.xml", backend, options.threads, options.seconds)
            except Exception as problem:
                line = f"{name:<20}{backend:<11}{type(problem).__name__}: {str(problem).splitlines()[0]}"
            print(line, flush=True)


if __name__ == "__main__":
    main()
