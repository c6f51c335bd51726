"""Time and memory of validation as models grow: ``python tests/bench/validate.py``.

Models of 1, 10 and 100 thousand layers in OpenVINO's format: blocks of a scale, a bias, an activation and a reshape, with
their constants. Each is validated in a subprocess.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import click
import numpy as np
import openvino as ov
from openvino import opset13 as op

WIDTH = 16
BLOCK = 7
"""Layers of a block, with their constants."""

MEASURE = """
import json, resource, sys, time
import ir_runtime
from ir_runtime.openvino import core
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
start = time.perf_counter()
report = ir_runtime.validate(sys.argv[1])
seconds = time.perf_counter() - start
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps({"seconds": seconds, "mebibytes": (peak - before) / 1024, "findings": len(report)}))
"""


def write(layers: int, folder: Path) -> Path:
    """Write a model of about this many layers."""
    y = x = op.parameter([1, WIDTH], np.float32)
    for number in range(layers // BLOCK):
        y = op.multiply(y, op.constant(np.full((1, WIDTH), 1 + number / layers, np.float32)))
        y = op.relu(op.add(y, op.constant(np.full((1, WIDTH), number, np.float32))))
        y = op.reshape(y, op.constant(np.array([-1, WIDTH], np.int64)), False)
    path = folder / f"{layers}.xml"
    ov.save_model(ov.Model([y], [x]), path, compress_to_fp16=False)
    return path


def measure(path: Path) -> dict[str, float]:
    """Return the seconds, memory and findings of a model."""
    command = [sys.executable, "-c", MEASURE, str(path)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


@click.command()
@click.option("--layers", type=int, multiple=True, default=(1_000, 10_000, 100_000), show_default=True)
def main(layers: tuple[int, ...]) -> None:
    """Print a row for each size; the last columns are per layer."""
    click.echo(
        f"{'layers':>8}  {'seconds':>8}  {'MiB':>8}  {'µs a layer':>10}  {'KiB a layer':>11}  findings"
    )
    with tempfile.TemporaryDirectory() as folder:
        for count in layers:
            path = write(count, Path(folder))
            found = measure(path)
            each = found["seconds"] / count * 1e6, found["mebibytes"] / count * 1024
            click.echo(
                f"{count:8}  {found['seconds']:8.2f}  {found['mebibytes']:8.1f}  {each[0]:10.0f}  {each[1]:11.1f}"
                f"  {found['findings']:.0f}"
            )


if __name__ == "__main__":
    main()
