"""From a cold start to the first answer on examples/digits: the command, a script, and a script with OpenVINO.

Wall time of whole processes, alternating; the best of each counts.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from shared import TESTS, Options, Part, Row, milliseconds, program, ratio

from ir_runtime.bench.start import environment

DIGITS = TESTS.parent / "examples" / "digits"
TIMES = 7
SCRIPT = """
import sys
import numpy as np
import {module} as ov

compiled = ov.compile_model(ov.Core().read_model(sys.argv[1]), "CPU"{config})
scores = compiled({{"image": np.load(sys.argv[2])}})["scores"]
print(scores.shape, scores.min(), scores.mean(), scores.max())
"""
F32 = ', {"INFERENCE_PRECISION_HINT": "f32", "PERFORMANCE_HINT": "LATENCY"}'


def measure(options: Options) -> Iterator[Row]:
    """Yield a row for each way to start; the last is OpenVINO's."""
    commands = _commands(options)
    taken: dict[tuple[str, str], list[float]] = {name: [] for name in commands}
    for number in range(TIMES + 1):
        for name, command in commands.items():
            start = time.perf_counter()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment())
            if number:  # the first one fills the caches of files
                taken[name].append(time.perf_counter() - start)
    theirs = min(taken["script, openvino", ""])
    for (name, backend), seconds in taken.items():
        row = {
            "start": name,
            "backend": backend or "-",
            "fastest": min(seconds) * 1e3,
            "median": median(seconds) * 1e3,
        }
        yield {**row, "ratio": min(seconds) / theirs}


def _commands(options: Options) -> dict[tuple[str, str], list[str]]:
    files = [str(DIGITS / "digits.xml"), str(DIGITS / "images.npy")]
    program = Path(sys.executable).with_name("ir-runtime")
    run = [str(program)] if program.exists() else [sys.executable, "-m", "ir_runtime"]
    found = {}
    for backend in options.backends:
        command = [*run, "run", files[0], "-i", f"image={files[1]}", "--backend", backend]
        script = SCRIPT.format(module="ir_runtime", config=f', {{"BACKEND": "{backend}"}}')
        found["ir-runtime run", backend] = command
        found["script, ir_runtime", backend] = [sys.executable, "-c", script, *files]
    script = SCRIPT.format(module="openvino", config=F32)
    return {**found, ("script, openvino", ""): [sys.executable, "-c", script, *files]}


PART = Part(
    "Cold start to the first answer on examples/digits, ms",
    {"start": str, "backend": str, "fastest": milliseconds, "median": milliseconds, "ratio": ratio},
    measure,
)

if __name__ == "__main__":
    program(PART)()
