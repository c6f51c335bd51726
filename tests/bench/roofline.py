"""The least time that this machine can run a model in: the larger of its arithmetic and of reading its weights once."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from shared import fresh


@cache
def least_ms(path: Path, inputs: Path, backend: str, threads: int) -> float | None:
    """Milliseconds by the roofline of f32 products; ``None`` where the arithmetic depends on the data.

    Args:
        path: the model.
        inputs: an .npz whose arrays give the lengths that the model leaves open.
        backend: its product of matrices gives the peak.
        threads: of that product, and of the copy that gives the bandwidth.
    """
    found = _counts(path, inputs)
    if found is None:
        return None
    gflops, gbytes = _peaks(backend, threads)
    flops, weights = found
    return max(flops / gflops, weights / gbytes) / 1e6


@cache
def _counts(path: Path, inputs: Path) -> tuple[int, int] | None:
    """The FLOPs of a run and the bytes of the weights."""
    import numpy as np

    import ir_runtime

    with np.load(inputs) as arrays:
        shapes = {name: list(arrays[name].shape) for name in arrays.files}
    cost = ir_runtime.cost(path, shapes)
    weights = sum(each.bytes for each in cost.weights)
    return (cost.flops, weights) if isinstance(cost.flops, int) else None


@cache
def _peaks(backend: str, threads: int) -> tuple[float, float]:
    """GFLOPs and GB per second, measured in a process of its own."""
    gflops, gbytes = fresh(_measured, backend, threads)
    return gflops, gbytes


def _measured(backend: str, threads: int) -> tuple[float, float]:
    from ir_runtime.bench.peaks import measure_peaks

    peaks = measure_peaks(backend, threads)
    return peaks.flops / 1e9, peaks.bandwidth / 1e9
