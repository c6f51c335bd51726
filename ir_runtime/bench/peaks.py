"""Measure the peak performance of this machine: a product of matrices, and a copy of memory."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache

import numpy as np

from .._util.cores import parallelism
from .._util.records import Record

__all__ = ["Peaks", "measure_peaks"]

_SIDE = 1024
_COPIED = 1 << 26
_TRIES = 3


@dataclass(frozen=True)
class Peaks:
    """The roofline of the machine (Williams, Waterman & Patterson 2009).

    Args:
        flops: FLOPs per second of an f32 product of two matrices of 1024 rows and columns.
        bandwidth: bytes per second that a copy of 64 MiB reads and writes.
    """

    flops: float
    bandwidth: float

    def attainable(self, flops: float, bytes: float) -> float:
        """Return the least seconds that this many FLOPs on this many bytes of main memory take."""
        return max(flops / self.flops, bytes / self.bandwidth)

    def bound(self, flops: float, bytes: float) -> str:
        """Return what limits them: ``compute`` or ``memory``."""
        return "compute" if flops / self.flops > bytes / self.bandwidth else "memory"

    def record(self) -> Record:
        """Return the same as plain data, for JSON."""
        return {"gflops": self.flops / 1e9, "gbytes_per_second": self.bandwidth / 1e9}


@cache
def measure_peaks(backend: str, threads: int | None) -> Peaks:
    """Measure the peaks, once in a process.

    Args:
        backend: whose product of matrices is measured.
        threads: how many threads to use; ``None`` for one per core.
    """
    return Peaks(
        flops=2 * _SIDE**3 / _fastest(_product(backend, threads)),
        bandwidth=2 * _COPIED / _fastest(_copy(threads or parallelism())),
    )


def _fastest(run: Callable[[], object]) -> float:
    found = math.inf
    for _ in range(_TRIES):
        start = time.perf_counter()
        run()
        found = min(found, time.perf_counter() - start)
    return found


def _product(backend: str, threads: int | None) -> Callable[[], object]:
    from .. import opset1 as ops
    from ..openvino.core import compile_model
    from ..openvino.model import Model

    a, b = (ops.parameter([_SIDE, _SIDE], np.float32) for _ in range(2))
    config = {} if threads is None else {"INFERENCE_NUM_THREADS": threads}
    name = "numpy" if backend == "reference" else backend
    model = Model([ops.matmul(a, b, False, False)], [a, b])
    request = compile_model(model, config=config, backend=name).create_infer_request()
    numbers = np.random.default_rng(0).standard_normal((2, _SIDE, _SIDE), np.float32)
    request.infer(list(numbers))
    return request.infer


def _copy(threads: int) -> Callable[[], object]:
    source, target = np.ones((2, _COPIED // 4), np.float32)
    parts = list(zip(np.array_split(source, threads), np.array_split(target, threads), strict=True))

    def copy() -> None:
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(lambda part: np.copyto(part[1], part[0]), parts))

    return copy
