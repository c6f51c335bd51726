"""The cost of dynamic shapes: a model with a dynamic batch or length against its static twin, and new lengths.

The ratio is dynamic time divided by static time at the same shape, measured alternately. Then several new lengths are run
twice; the last column is the extra time of the first run relative to the second.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from shared import (
    TESTS,
    Options,
    Part,
    Row,
    attempted,
    fresh,
    milliseconds,
    program,
    ratio,
    selected,
    setting,
)

LENGTHS = 12
"""How many lengths come for the first time."""


@dataclass(frozen=True)
class Twins:
    """A static model, the axis of its inputs to make dynamic, and the lengths to run."""

    model: str
    axis: int
    lengths: tuple[int, ...]


CASES = {
    "resnet50 batch": Twins("resnet50", 0, tuple(range(2, 6))),
    "mobilenet_v2 batch": Twins("mobilenet_v2", 0, tuple(range(2, 2 + LENGTHS))),
    "bert sequence": Twins("bert_base", 1, tuple(range(96, 96 + LENGTHS))),
    "gpt2 sequence": Twins("gpt2", 1, tuple(range(96, 96 + LENGTHS))),
}


def measure(options: Options) -> Iterator[Row]:
    """Yield a row for each case and backend."""
    for name in selected(list(CASES), options):
        for backend in options.backends:
            row = {"model": name, "backend": backend}
            yield attempted(row, lambda: fresh(_figures, CASES[name], backend, options))  # noqa: B023


def _figures(case: Twins, backend: str, options: Options) -> Row:
    from ir_runtime.bench.sides import Side
    from ir_runtime.bench.timing import StopCondition, alternate, runner

    path, inputs = options.dir / f"{case.model}.xml", _inputs(case.model)
    fixed = Side("ir_runtime", _shaped(options, path, backend, inputs, None))
    open_ = Side("ir_runtime", _shaped(options, path, backend, inputs, case.axis))
    theirs = Side("openvino", _shaped(options, path, backend, inputs, case.axis))
    arrays = list(inputs.values())
    clock = time.process_time if options.cpu_time else time.perf_counter
    runs = [runner(side, arrays, clock=clock) for side in (fixed, open_)]
    static, dynamic = alternate(runs, StopCondition(5, options.seconds))
    first, again = _new_lengths(open_, arrays, case)
    their_first, their_again = _new_lengths(theirs, arrays, case)
    return {
        "static": static.minimum * 1e3,
        "dynamic": dynamic.minimum * 1e3,
        "ratio": dynamic.minimum / static.minimum,
        "medians": dynamic.median / static.median,
        "new, ms": first * 1e3,
        "again, ms": again * 1e3,
        "new/again": first / again,
        "OpenVINO's": their_first / their_again,
    }


def _inputs(model: str) -> dict[str, Any]:
    sys.path.insert(0, str(TESTS))
    from models.zoo import example_inputs

    return example_inputs(model)


def _shaped(options: Options, path: Path, backend: str, inputs: dict[str, Any], axis: int | None) -> Any:
    """Return the model with the shapes of these inputs, one axis of them dynamic."""
    shapes = []
    for name, array in inputs.items():
        lengths = ["?" if place == axis else str(length) for place, length in enumerate(array.shape)]
        shapes.append((name, ",".join(lengths)))
    return setting(options, path, backend, shapes=shapes)


def _new_lengths(side: Any, arrays: list[Any], case: Twins) -> tuple[float, float]:
    """Return the median seconds of a new length, and of the same length again."""
    import numpy as np

    request = side.compiled.create_infer_request()  # one with tensors of its own, which may grow
    request.infer(dict(enumerate(arrays)))
    first, again = [], []
    for length in case.lengths:
        given = {
            place: np.ascontiguousarray(_resized(array, case.axis, length))
            for place, array in enumerate(arrays)
        }
        first.append(_seconds(request, given))
        again.append(min(_seconds(request, given) for _ in range(2)))
    return median(first), median(again)


def _resized(array: Any, axis: int, length: int) -> Any:
    import numpy as np

    return np.take(array, np.arange(length) % array.shape[axis], axis)


def _seconds(request: Any, given: dict[int, Any]) -> float:
    start = time.perf_counter()
    request.infer(given, share_outputs=True)
    return time.perf_counter() - start


PART = Part(
    "Dynamic shapes: ms at one shape, static and dynamic; ms for a new length and for the same again",
    {
        "model": str,
        "backend": str,
        "static": milliseconds,
        "dynamic": milliseconds,
        "ratio": ratio,
        "medians": ratio,
        "new, ms": milliseconds,
        "again, ms": milliseconds,
        "new/again": ratio,
        "OpenVINO's": ratio,
    },
    measure,
)

if __name__ == "__main__":
    program(PART)()
