"""Whole networks against OpenVINO, by `ir-runtime bench`: a process for each line of the table.

Networks of the zoo, and small ones of other kinds (tests/models/kinds); ``tuned`` says by which of them kernels were tuned.
Both at f32, or what is fastest here against OpenVINO as it comes, by mode; the table says what each multiplies in. Ratios are
ours divided by OpenVINO's: of the fastest runs, of the medians, of the time from the file to a model that is ready, and of the
peak memory. ``spread`` is our median divided by our fastest run; ``roofline`` the part of what the peaks of this machine allow
for the narrowest type that a run may multiply in. Convolutions count as direct ones: by Winograd's method they may exceed 100 %.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

from roofline import Roofline, work
from shared import (
    Options,
    Part,
    Row,
    attempted,
    geometric_mean,
    milliseconds,
    program,
    ratio,
    selected,
    small,
)
from sources import KINDS, NETWORKS, ONE_AT_A_TIME, is_tuned, source

PATIENCE = 120
"""Seconds after which onnx.reference is stopped."""


def measure(options: Options) -> Iterator[Row]:
    """Yield a row for each network, batch, backend and mode."""
    roofline = Roofline(options.threads)
    for batch, name in product(options.batches, selected(NETWORKS, options)):
        if batch > 1 and name in ONE_AT_A_TIME:
            continue
        rows = [
            {"model": name, "tuned": is_tuned(name), "backend": backend, "mode": mode, "batch": batch}
            for backend, mode in product(options.backends, options.modes)
        ]
        with TemporaryDirectory() as folder:
            try:
                path, inputs = source(name, batch, Path(folder), options)
            except RuntimeError as problem:
                yield from (row | {"error": str(problem)} for row in rows)
                continue
            onnx = _onnx(path, inputs) if options.onnx and batch == 1 and name not in KINDS else None
            for row in rows:
                figures = partial(_figures, path, inputs, row, options, roofline)
                yield attempted(row | {"onnx": onnx}, figures)


def _figures(path: Path, inputs: Path, row: Row, options: Options, roofline: Roofline) -> Row:
    command = [sys.executable, "-m", "ir_runtime", "bench", path, "-i", inputs, "--backend", row["backend"]]
    command += ["--mode", row["mode"], "--json"]
    how = ["-t", options.seconds, "-nthreads", options.threads, "--starts", options.starts]
    clock = ["--cpu-time"] if options.cpu_time else []
    line = list(map(str, [*command, *how, *clock, "--against", "openvino"]))
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError((done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[0])
    found = json.loads(done.stdout)
    ours, theirs = found["sides"]
    counted = work(path, inputs)
    least = counted and roofline.least_ms(counted, row["mode"])
    return {
        "products": f"{ours['precision']}, {theirs['precision']}",
        "ours": ours["latency_ms"]["min"],
        "openvino": theirs["latency_ms"]["min"],
        "ratio": found["ratio"]["min"],
        "medians": found["ratio"]["median"],
        "spread": ours["latency_ms"]["median"] / ours["latency_ms"]["min"],
        "roofline": least and least / ours["latency_ms"]["min"],
        "load": found["ratio"]["load"],
        "first": found["ratio"]["first"],
        "memory": found["ratio"]["peak"],
        "difference": float(found["agreement"]["difference"]),
        "all": found,
    }


def _onnx(path: Path, inputs: Path) -> float | None:
    """Return the milliseconds of a run of onnx.reference; ``None`` if it cannot run the model, or times out."""
    script = Path(__file__).with_name("onnx_reference.py")
    command = [sys.executable, script, path.with_suffix(".onnx"), inputs]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        return None
    return None if done.returncode else float(done.stdout)


def summary(rows: list[Row]) -> Iterable[str]:
    """Return geometric means for each mode, batch and backend, and the worst ratio of each."""
    for kind in dict.fromkeys((row["mode"], row["batch"], row["backend"]) for row in rows):
        mode, batch, backend = kind
        mine = [row for row in rows if (row["mode"], row["batch"], row["backend"]) == kind]
        slowest, furthest = (max(mine, key=lambda row: row[key]) for key in ("ratio", "difference"))
        means = {
            key: geometric_mean(row[key] for row in mine) for key in ("ratio", "medians", "load", "memory")
        }
        yield f"\n{backend}, {mode}, batch {batch}, {len(mine)} networks, geometric means of ours / OpenVINO:"
        yield (
            f"  latency {means['ratio']:.2f} (medians {means['medians']:.2f}), read and compile {means['load']:.2f}, "
            f"peak memory {means['memory']:.2f}"
        )
        for said, tuned in (("tuned by", True), ("only measured", False)):
            ratios = [row["ratio"] for row in mine if row["tuned"] is tuned]
            yield f"  latency of the {len(ratios)} {said} {geometric_mean(ratios):.2f}"
        yield (
            f"  slowest {slowest['ratio']:.2f} ({slowest['model']}), "
            f"largest relative difference {furthest['difference']:.0e} ({furthest['model']})"
        )


PART = Part(
    "Networks: ms of the fastest run, and ratios to OpenVINO",
    {
        "model": str,
        "tuned": lambda tuned: "tuned" if tuned else "measured",
        "backend": str,
        "mode": str,
        "products": str,
        "batch": str,
        "ours": milliseconds,
        "openvino": milliseconds,
        "ratio": ratio,
        "medians": ratio,
        "spread": ratio,
        "roofline": "{:.0%}".format,
        "load": ratio,
        "memory": ratio,
        "difference": small,
        "onnx": milliseconds,
    },
    measure,
    summary,
)

if __name__ == "__main__":
    program(PART)()
