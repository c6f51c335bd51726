"""Measure the peak performance of this machine by a matrix product and a memory copy."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from .._util.cores import parallelism
from .._util.records import Record

__all__ = ["Peaks", "measure_peaks"]

_SIDES = (512, 1024)
_COPIED = 1 << 26
# Even a busy machine has short idle moments, so the best of many short tries is near the peak.
_TRIES = 3
_SECONDS = 0.3


@dataclass(frozen=True)
class Peaks:
    """The roofline of the machine (Williams, Waterman & Patterson 2009).

    Args:
        flops: the FLOPs per second of an f32 product of square matrices with 512 or 1024 rows, or of a layer if faster.
        bandwidth: the bytes per second that a copy of 64 MiB reads and writes.
    """

    flops: float
    bandwidth: float

    def attainable(self, flops: float, bytes: float) -> float:
        """Return the minimum time in seconds for the given FLOPs and bytes of main memory."""
        return max(flops / self.flops, bytes / self.bandwidth)

    def bound(self, flops: float, bytes: float) -> str:
        """Return which of ``compute`` and ``memory`` limits the speed."""
        return "compute" if flops / self.flops > bytes / self.bandwidth else "memory"

    def at_least(self, flops: float) -> Peaks:
        """Return the peaks with FLOPs per second raised to at least ``flops``, those of a layer.

        >>> Peaks(50e9, 10e9).at_least(80e9).flops, Peaks(50e9, 10e9).at_least(1e9).flops
        (80000000000.0, 50000000000.0)
        """
        return replace(self, flops=max(self.flops, flops))

    def record(self) -> Record:
        """Return a dict for JSON."""
        return {"gflops": self.flops / 1e9, "gbytes_per_second": self.bandwidth / 1e9}


@cache
def measure_peaks(backend: str, threads: int | None) -> Peaks:
    """Measure the peaks; the result is cached for the process.

    Args:
        backend: the backend whose matrix product is measured.
        threads: the number of threads; ``None`` for one per core.
    """
    return Peaks(
        flops=max(2 * side**3 / _fastest(_product(backend, threads, side)) for side in _SIDES),
        bandwidth=2 * _COPIED / _fastest(_copy(threads or parallelism())),
    )


def _fastest(run: Callable[[], object]) -> float:
    fastest, tries, began = math.inf, 0, time.perf_counter()
    while tries < _TRIES or time.perf_counter() < began + _SECONDS:
        start = time.perf_counter()
        run()
        fastest, tries = min(fastest, time.perf_counter() - start), tries + 1
    return fastest


def _product(backend: str, threads: int | None, side: int) -> Callable[[], object]:
    from .. import opset1 as ops
    from ..openvino.core import compile_model
    from ..openvino.model import Model

    a, b = (ops.parameter([side, side], np.float32) for _ in range(2))
    config = {} if threads is None else {"INFERENCE_NUM_THREADS": threads}
    name = "numpy" if backend == "reference" else backend
    model = Model([ops.matmul(a, b, False, False)], [a, b])
    request = compile_model(model, config=config, backend=name).create_infer_request()
    matrices = np.random.default_rng(0).standard_normal((2, side, side), np.float32)
    request.infer(list(matrices))
    return request.infer


def _copy(threads: int) -> Callable[[], object]:
    source, target = np.ones((2, _COPIED // 4), np.float32)
    parts = list(zip(np.array_split(source, threads), np.array_split(target, threads), strict=True))

    def copy() -> None:
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(lambda part: np.copyto(part[1], part[0]), parts))

    return copy
