"""Throughput of concurrent requests: answers per second with one stream, and with one per thread.

Each stream has one thread. The scaling is the ratio of the two rates, measured alternately.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from shared import TESTS, Options, Part, Row, attempted, fresh, milliseconds, program, ratio, selected

MODELS = ("mobilenet_v2", "resnet50", "bert_base", "lstm")


def measure(options: Options) -> Iterator[Row]:
    """Yield a row for each model and backend."""
    for model in selected(MODELS, options):
        for backend in options.backends:
            row = {"model": model, "backend": backend}
            yield attempted(row, lambda: fresh(_figures, model, backend, options))  # noqa: B023


def _figures(model: str, backend: str, options: Options) -> Row:
    from ir_runtime.bench.timing import StopCondition, alternate

    ways = [(runtime, streams) for runtime in ("ir_runtime", "openvino") for streams in (1, options.threads)]
    runs = [_runner(runtime, model, backend, options, streams) for runtime, streams in ways]
    rates = [timing.rate for timing in alternate(runs, StopCondition(4, options.seconds))]
    one, several, their_one, their_several = rates
    return {
        "one": one,
        "all": several,
        "scaling": several / one,
        "OpenVINO's one": their_one,
        "OpenVINO's all": their_several,
        "its scaling": their_several / their_one,
    }


def _runner(runtime: Any, model: str, backend: str, options: Options, streams: int) -> Any:
    """Return a runner of concurrent requests, each with one thread."""
    from ir_runtime.bench.sides import Setting, Side
    from ir_runtime.bench.timing import runner

    path = str(options.dir / f"{model}.xml")
    side = Side(runtime, Setting(path, threads=streams, backend=backend, streams=streams))
    return runner(side, _inputs(model), requests=streams)


def _inputs(model: str) -> list[Any]:
    if str(TESTS) not in sys.path:
        sys.path.insert(0, str(TESTS))
    from models.zoo import example_inputs

    return list(example_inputs(model).values())


PART = Part(
    "Streams of one thread each: answers a second of one, and of one for each thread",
    {
        "model": str,
        "backend": str,
        "one": milliseconds,
        "all": milliseconds,
        "scaling": ratio,
        "OpenVINO's one": milliseconds,
        "OpenVINO's all": milliseconds,
        "its scaling": ratio,
    },
    measure,
)

if __name__ == "__main__":
    program(PART)()
