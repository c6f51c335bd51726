"""The cost of a call of a small model, by the way of calling: µs of CPU time of the calling thread, best of many turns."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from shared import TESTS, Options, Part, Row, attempted, fresh, milliseconds, program, selected

DIGITS = TESTS.parent / "examples" / "digits" / "digits.xml"
TURNS = 100
CALLS = 100
"""In each turn."""


def _relu(op: Any, x: Any) -> tuple[Any, list[Any]]:
    return op.relu(x), []


def _mlp(op: Any, x: Any) -> tuple[Any, list[Any]]:
    import numpy as np

    random = np.random.default_rng(0)
    for width in ((8, 16), (16, 16), (16, 4)):
        weights = random.standard_normal(width).astype(np.float32)
        x = op.relu(op.add(op.matmul(x, op.constant(weights), False, False), op.constant(weights[:1])))
    return x, []


def _stateful(op: Any, x: Any) -> tuple[Any, list[Any]]:
    import numpy as np

    total = op.add(x, op.read_value(op.constant(np.zeros((1, 8), np.float32)), "total"))
    return total, [op.assign(total, "total")]


MODELS: dict[str, Callable[[Any, Any], tuple[Any, list[Any]]] | None] = {
    "one layer": _relu,
    "three layers": _mlp,
    "stateful": _stateful,
    "digits": None,
}


def measure(options: Options) -> Iterator[Row]:
    """Yield a row for each model and backend, and one for OpenVINO."""
    for name in selected(list(MODELS), options):
        for backend in (*options.backends, "openvino"):
            row = {"model": name, "backend": backend}
            yield attempted(row, partial(fresh, _figures, name, backend, options.threads))


def _figures(name: str, backend: str, threads: int) -> Row:
    import numpy as np
    import openvino

    import ir_runtime

    config = {"INFERENCE_NUM_THREADS": threads}
    with TemporaryDirectory() as folder:
        path = _write(name, Path(folder))
        if backend == "openvino":
            module: Any = openvino
            compiled: Any = openvino.compile_model(path, "CPU", {**config, "INFERENCE_PRECISION_HINT": "f32"})
        else:
            module, compiled = ir_runtime, ir_runtime.compile_model(path, "CPU", config, backend=backend)
        x = np.zeros([dim.min_length or 1 for dim in compiled.input(0).partial_shape], np.float32)
        request = compiled.create_infer_request()
        request.set_input_tensor(module.Tensor(x))
        return {
            "compiled(x)": _fastest(lambda: compiled(x)),
            "infer_new_request": _fastest(lambda: compiled.infer_new_request({0: x})),
            "infer()": _fastest(request.infer),
            "infer({0: x})": _fastest(lambda: request.infer({0: x})),
        }


def _write(name: str, folder: Path) -> Path:
    import numpy as np
    import openvino as ov
    from openvino import opset6 as op

    if (build := MODELS[name]) is None:
        return DIGITS
    x = op.parameter([1, 8], np.float32, name="x")
    y, sinks = build(op, x)
    path = folder / "model.xml"
    ov.save_model(ov.Model([op.result(y)], sinks, [x]), path, compress_to_fp16=False)
    return path


def _fastest(call: Callable[[], object]) -> float:
    """Return the µs of a call in the fastest turn, the one least disturbed by other processes."""
    fastest = float("inf")
    for _ in range(TURNS):
        start = time.thread_time()
        for _ in range(CALLS):
            call()
        fastest = min(fastest, time.thread_time() - start)
    return 1e6 * fastest / CALLS


PART = Part(
    "Calls of small models, in µs",
    {
        "model": str,
        "backend": str,
        "compiled(x)": milliseconds,
        "infer_new_request": milliseconds,
        "infer()": milliseconds,
        "infer({0: x})": milliseconds,
    },
    measure,
)

if __name__ == "__main__":
    program(PART)()
