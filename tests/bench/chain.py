"""The overhead of a layer: chains of 10,000 trivial layers, in µs per layer and per step."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from shared import Options, Part, Row, attempted, fresh, milliseconds, program, ratio, selected, setting

LAYERS = 10_000
SHORT = 1_000
"""Layers for OpenVINO, which takes minutes to compile the long ones; and for whether results agree."""
SHAPE = (1, 16)
PLAIN = {"SNIPPETS_MODE": "DISABLE"}
"""OpenVINO would try for hours to make one kernel of all that is element-wise."""


def _elementwise(op: Any, x: Any, number: int, constant: Any) -> Any:
    return op.add(x, constant) if number % 2 else op.relu(x)


def _mixed(op: Any, x: Any, number: int, constant: Any) -> Any:
    """A chain in which no two neighbours can be fused."""
    import numpy as np

    kinds: list[Callable[[], Any]] = [
        lambda: op.relu(x),
        lambda: op.reshape(x, np.array([4, 4]), False),
        lambda: op.transpose(x, np.array([1, 0])),
        lambda: op.concat([op.split(x, 0, 2).output(1), op.split(x, 0, 2).output(0)], 0),
        lambda: op.reshape(x, np.array(SHAPE), False),
    ]
    return kinds[number % len(kinds)]()


def _dependent(op: Any, x: Any, number: int, constant: Any) -> Any:
    """A chain of reductions, each of which depends on all previous layers."""
    import numpy as np

    return op.subtract(x, constant) if number % 2 else op.cum_sum(x, np.array(1))


KINDS = {"element-wise": _elementwise, "views and copies": _mixed, "with reductions": _dependent}


def measure(options: Options) -> Iterator[Row]:
    """Yield a row for each kind of chain and backend."""
    for kind in selected(list(KINDS), options):
        for backend in options.backends:
            row = {"chain": kind, "backend": backend}
            yield attempted(row, lambda: fresh(_figures, kind, backend, options))  # noqa: B023


def _figures(kind: str, backend: str, options: Options) -> Row:
    import numpy as np

    from ir_runtime.bench.agreement import compare
    from ir_runtime.bench.sides import Side
    from ir_runtime.bench.timing import StopCondition, alternate, runner

    with TemporaryDirectory() as folder:
        path, layers = _write(kind, Path(folder), LAYERS)
        short, their_layers = _write(kind, Path(folder), SHORT)
        ours = Side("ir_runtime", setting(options, path, backend))
        again = Side("ir_runtime", setting(options, short, backend))
        theirs = Side("openvino", setting(options, short, config=PLAIN))
        inputs = [np.random.default_rng(0).standard_normal(SHAPE).astype(np.float32)]
        results = [side.results(side.request(inputs)) for side in (again, theirs)]
        clock = time.process_time if options.cpu_time else time.perf_counter
        runs = [runner(side, inputs, clock=clock) for side in (ours, theirs)]
        timing, their_timing = alternate(runs, StopCondition(5, options.seconds))
    steps = len(ours.compiled._plan.steps)
    each, their_each = timing.minimum * 1e6 / layers, their_timing.minimum * 1e6 / their_layers
    return {
        "layers": layers,
        "steps": steps,
        "load": ours.read + ours.compile,
        "µs a layer": each,
        "µs a step": timing.minimum * 1e6 / steps,
        "OpenVINO's": their_each,
        "ratio": each / their_each,
        "difference": compare(*results).difference,
    }


def _write(kind: str, folder: Path, length: int) -> tuple[Path, int]:
    """Write a chain; return the path and the number of layers with inputs."""
    import numpy as np
    import openvino as ov
    from openvino import opset13 as op

    y = x = op.parameter(SHAPE, np.float32, name="x")
    constant = op.constant(np.full(SHAPE, -0.001, np.float32))
    for number in range(length):
        y = KINDS[kind](op, y, number, constant)
    model = ov.Model([op.result(op.reshape(y, np.array([-1]), False))], [x])
    path = folder / f"chain{length}.xml"
    ov.save_model(model, path, compress_to_fp16=False)
    return path, sum(bool(node.get_input_size()) for node in model.get_ops())


PART = Part(
    f"Chains of {LAYERS} trivial layers; load in seconds",
    {
        "chain": str,
        "backend": str,
        "layers": str,
        "steps": str,
        "load": ratio,
        "µs a layer": milliseconds,
        "µs a step": milliseconds,
        "OpenVINO's": milliseconds,
        "ratio": ratio,
        "difference": "{:.0e}".format,
    },
    measure,
)

if __name__ == "__main__":
    program(PART)()
