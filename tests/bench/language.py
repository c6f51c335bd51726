"""A language model with its KV cache in variables: a prompt of 128 tokens, then one token at a time.

Weights are f32 and u4. OpenVINO runs in f32; the second ratio is to its defaults, which quantize activations and the cache.
Memory is the peak of a process that reads and compiles the model and runs the prompt and 32 tokens.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from shared import (
    TESTS,
    Options,
    Part,
    Row,
    failure,
    fresh,
    milliseconds,
    program,
    ratio,
    selected,
    setting,
    small,
)

PROMPT, TOKENS = 128, 32
WEIGHTS = ("f32", "u4")


def measure(options: Options) -> Iterator[Row]:
    """Yield rows for the prompt and the tokens after it, for each kind of weights and backend."""
    for weights in selected(WEIGHTS, options):
        path = options.dir / f"llm_{weights}.xml"
        if not path.exists():
            fresh(_build, weights, options.dir)
        for backend in options.backends:
            row = {"model": f"Llama, {weights}", "backend": backend}
            yield from _rows(row, path, backend, options)


def _rows(row: Row, path: Path, backend: str, options: Options) -> list[Row]:
    try:
        prompt, token = fresh(_times, path, backend, options)
        ours, theirs = (fresh(_peak, name, path, backend, options) for name in ("ir_runtime", "openvino"))
    except Exception as problem:  # the other rows are worth having
        return [row | failure(problem)]
    peaks = {"ours_peak": ours, "openvino_peak": theirs, "memory": ours / theirs}
    return [
        {**row, "phase": f"prompt of {PROMPT}", **prompt},
        {**row, "phase": f"token {PROMPT}-{PROMPT + TOKENS}", **token, **peaks},
    ]


def _build(weights: str, folder: Path) -> None:
    _tests()
    from models.llm import ir_path

    ir_path(weights, folder)


def _tests() -> None:
    if str(TESTS) not in sys.path:
        sys.path.insert(0, str(TESTS))


class Decoding:
    """Decodes tokens with a request, repeatedly from the end of the prompt."""

    def __init__(self, side: Any, clock: Callable[[], float]) -> None:
        from ir_runtime.bench.timing import Timing

        _tests()
        from models.llm import step

        self.timing, self.prompts = Timing(), Timing()
        self._request, self._clock = side.compiled.create_infer_request(), clock
        self._prompt = step(PROMPT)
        self._steps = [step(1, PROMPT + done, seed=done + 1) for done in range(TOKENS)]

    def warm_up(self) -> None:
        """Run the prompt and a token, unmeasured."""
        self.start()
        self._request.infer(self._steps[0], share_outputs=True)

    def start(self) -> float:
        """Run the prompt with an empty cache; return the seconds."""
        self._request.reset_state()
        return self._timed(self._prompt)

    def block(self, count: int) -> None:
        """Run the prompt and all tokens after it."""
        self.prompts.latencies.append(self.start())
        for inputs in self._steps:
            taken = self._timed(inputs)
            self.timing.latencies.append(taken)
            self.timing.busy += taken

    def logits(self) -> list[Any]:
        """Return the logits after the prompt and after the tokens that follow it."""
        self._request.reset_state()
        given = [self._prompt, *self._steps]
        found = [self._request.infer(inputs)["logits"][:, -1].copy() for inputs in given]
        return [found[0], found[-1]]

    def _timed(self, inputs: Row) -> float:
        start = self._clock()
        self._request.infer(inputs, share_outputs=True)
        return self._clock() - start


def _times(path: Path, backend: str, options: Options) -> list[Row]:
    from ir_runtime.bench.agreement import compare
    from ir_runtime.bench.sides import Side
    from ir_runtime.bench.timing import StopCondition, alternate

    sides = [
        Side("ir_runtime", setting(options, path, backend)),
        Side("openvino", setting(options, path)),
        Side("openvino", setting(options, path, exact=False)),
    ]
    clock = time.process_time if options.cpu_time else time.perf_counter
    runs = [Decoding(side, clock) for side in sides]
    wanted = list(zip(runs[0].logits(), runs[1].logits(), strict=True))
    alternate(runs, StopCondition(TOKENS, options.seconds))
    both = [[run.prompts for run in runs], [run.timing for run in runs]]
    return [
        {
            "ours": ours.minimum * 1e3,
            "openvino": exact.minimum * 1e3,
            "ratio": ours.minimum / exact.minimum,
            "medians": ours.median / exact.median,
            "as it comes": ours.minimum / quick.minimum,
            "difference": compare([found], [expected]).difference,
        }
        for (ours, exact, quick), (found, expected) in zip(both, wanted, strict=True)
    ]


def _peak(runtime: Any, path: Path, backend: str, options: Options) -> float:
    """Return the peak memory in MiB of a process that only decodes."""
    from ir_runtime.bench.sides import Side
    from ir_runtime.bench.start import peak_memory

    run = Decoding(Side(runtime, setting(options, path, backend)), time.perf_counter)
    run.block(1)
    return (peak_memory() or 0) / 2**20


PART = Part(
    "Llama of 8 layers, width 1024: ms for the prompt, ms for each token after it",
    {
        "model": str,
        "backend": str,
        "phase": str,
        "ours": milliseconds,
        "openvino": milliseconds,
        "ratio": ratio,
        "medians": ratio,
        "as it comes": ratio,
        "difference": small,
        "ours_peak": milliseconds,
        "openvino_peak": milliseconds,
        "memory": ratio,
    },
    measure,
)

if __name__ == "__main__":
    program(PART)()
