"""OpenVINO in a subprocess, as some graphs crash it."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context

from harness.oracle import PLUGIN, answer, array_of, core, read, tensor

from ir_runtime.ir.tensor import Array


class RefusedError(Exception):
    """Raised if OpenVINO gives no results."""


class Oracle:
    """A subprocess, started on demand."""

    def __init__(self) -> None:
        self._pool: ProcessPoolExecutor | None = None
        self.asked = self.refused = 0

    def ask(self, xml: bytes, weights: bytes, fed: Sequence[Array], runs: int) -> list[Array]:
        """Return the outputs of a model after several runs."""
        self.asked += 1
        if self._pool is None:
            self._pool = ProcessPoolExecutor(1, get_context("spawn"))
        try:
            return self._pool.submit(_answer, xml, weights, fed, runs).result()
        except RuntimeError as reason:
            if isinstance(reason, BrokenProcessPool):
                self._pool = None
            self.refused += 1
            raise RefusedError from reason

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown()


def _answer(xml: bytes, weights: bytes, fed: Sequence[Array], runs: int) -> list[Array]:
    model = read(xml, weights)
    if not runs:
        return answer(model, fed)
    request = core().compile_model(model, "CPU", PLUGIN).create_infer_request()
    labels = [port.get_element_type().to_string() for port in model.inputs]
    for _ in range(runs):
        request.infer([tensor(x, label) for x, label in zip(fed, labels, strict=True)])
    return [array_of(request.get_output_tensor(i)) for i in range(len(model.outputs))]
