"""Networks of the kinds in tests/models/kinds.py against OpenVINO, alternated within one process for each backend and mode.

The fastest run of each side counts: what else the machine does lengthens the others.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

from shared import (
    TESTS,
    Options,
    Part,
    Row,
    attempted,
    fresh,
    geometric_mean,
    program,
    ratio,
    selected,
    small,
)

# Turns that each side takes.
ROUNDS = 20


def measure(options: Options) -> Iterator[Row]:
    """A row for each kind and backend."""
    sys.path.insert(0, str(TESTS))
    from models.kinds import KINDS

    how = options.threads, options.seconds, options.cpu_time
    for name in selected(list(KINDS), options):
        for backend, mode in product(options.backends, options.modes):
            row = {"kind": name, "backend": backend, "mode": mode}
            yield attempted(row, partial(fresh, _figures, name, backend, mode, *how))


def _figures(name: str, backend: str, mode: str, threads: int, seconds: float, cpu_time: bool) -> Row:
    sys.path.insert(0, str(TESTS))
    import numpy as np
    import openvino as ov
    from models.kinds import KINDS, inputs_of

    import ir_runtime as ir

    model = KINDS[name]()
    inputs = inputs_of(model)
    config = {"INFERENCE_NUM_THREADS": threads}
    exact = {"INFERENCE_PRECISION_HINT": "f32"} if mode == "accuracy" else {}
    theirs = ov.Core().compile_model(model, "CPU", {**config, **exact, "PERFORMANCE_HINT": "LATENCY"})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.xml"
        ov.save_model(model, path, compress_to_fp16=False)
        how = {**config, "EXECUTION_MODE_HINT": mode.upper()}
        ours = ir.compile_model(ir.read_model(path), "CPU", how, backend=backend)
        requests = [ours.create_infer_request(), theirs.create_infer_request()]
        found, expected = (np.asarray(request.infer(inputs)[0]) for request in requests)
        calls: list[Callable[[], Any]] = [request.infer for request in requests]
        fastest = _alternated(calls, seconds, time.process_time if cpu_time else time.perf_counter)
    scale = float(np.abs(expected).max()) or 1.0
    return {
        "ours": 1e3 * fastest[0], "openvino": 1e3 * fastest[1], "ratio": fastest[0] / fastest[1],
        "difference": float(np.abs(found - expected).max()) / scale,
    }  # fmt: skip


def _alternated(calls: list[Callable[[], Any]], seconds: float, clock: Callable[[], float]) -> list[float]:
    """Return the seconds of the fastest run of each, when they take turns."""
    fastest = [float("inf")] * len(calls)
    for _ in range(ROUNDS):
        for index, call in enumerate(calls):
            ends = time.perf_counter() + seconds / ROUNDS
            while time.perf_counter() < ends:
                start = clock()
                call()
                fastest[index] = min(fastest[index], clock() - start)
    return fastest


def _thousandths(value: float) -> str:
    return f"{value:.3f}" if value < 10 else f"{value:.1f}"


def summary(rows: list[Row]) -> Iterable[str]:
    """The geometric mean for each backend and mode, and its slowest kind."""
    for pair in dict.fromkeys((row["backend"], row["mode"]) for row in rows):
        mine = [row for row in rows if (row["backend"], row["mode"]) == pair]
        slowest = max(mine, key=lambda row: row["ratio"])
        mean = geometric_mean(row["ratio"] for row in mine)
        yield f"\n{', '.join(pair)}, {len(mine)} kinds: {mean:.2f} of OpenVINO's time, slowest {slowest['ratio']:.2f} ({slowest['kind']})"


PART = Part(
    "Kinds of networks: ms of the fastest run, and the ratio to OpenVINO",
    {
        "kind": str,
        "backend": str,
        "mode": str,
        "ours": _thousandths,
        "openvino": _thousandths,
        "ratio": ratio,
        "difference": small,
    },
    measure,
    summary,
)

if __name__ == "__main__":
    program(PART)()
