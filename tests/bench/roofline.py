"""A lower bound on the time of a model on this machine: the larger of its arithmetic and of reading its weights once.

Only multiply-accumulates count, at the peak of the narrowest type that a run may use; weights are read from the smallest cache
that holds them all. Convolutions count as direct ones; Winograd's method, with up to four times fewer products, may beat the
bound.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from shared import fresh

_INTEGERS = ("i8", "u8", "i4", "u4", "nf4")
_LOOKUPS = ("Gather", "EmbeddingBag", "EmbeddingSegments")


@dataclass(frozen=True)
class Work:
    """The minimum work of a model.

    Args:
        macs: multiply-accumulates.
        floats: bytes of floating-point weights, 4 per element, without lookup tables.
        integers: bytes of integer weights.
        quantized: whether its layers multiply integers by integers.
    """

    macs: int
    floats: int
    integers: int
    quantized: bool

    def precision(self, mode: str) -> str:
        """Return the narrowest type that products may have."""
        if self.quantized or (mode == "performance" and self.integers):
            return "int8"
        return "bf16" if mode == "performance" else "f32"

    def weights(self, mode: str) -> int:
        """Return the bytes of the weights that are read."""
        return self.integers + self.floats // (2 if mode == "performance" else 1)


@dataclass
class Roofline:
    """The peaks of this machine for a number of threads: the maximum of all measurements.

    Other processes only lower a measurement, so each peak is measured again for each row.
    """

    threads: int
    operations: dict[str, float] = field(default_factory=dict)
    bandwidths: dict[int, float] = field(default_factory=dict)

    def least_ms(self, work: Work, mode: str) -> float:
        """Return the minimum milliseconds of a run."""
        precision, size = work.precision(mode), work.weights(mode)
        step = (
            1 << max(size - 1, 1 << 19).bit_length()
        )  # so that networks of similar size share what is measured
        rate, bandwidth = fresh(_measured, precision, step, self.threads)
        self.operations[precision] = max(rate, self.operations.get(precision, 0.0))
        self.bandwidths[step] = max(bandwidth, self.bandwidths.get(step, 0.0))
        fastest = max(found for bytes, found in self.bandwidths.items() if bytes >= step)
        return 1e3 * max(2 * work.macs / self.operations[precision], size / fastest)


def _measured(precision: str, size: int, threads: int) -> tuple[float, float]:
    import bursts

    return bursts.products(precision, threads), bursts.reading(size, threads)


@cache
def work(path: Path, inputs: Path) -> Work | None:
    """Count the work of a model; ``None`` if it depends on the data.

    Args:
        path: the model.
        inputs: an .npz whose arrays give the dynamic dims.
    """
    import numpy as np

    import ir_runtime

    with np.load(inputs) as arrays:
        shapes = {name: list(arrays[name].shape) for name in arrays.files}
    cost = ir_runtime.cost(path, shapes)
    if not isinstance(cost.macs, int):
        return None
    tables = sum(layer.weight_bytes for layer in cost.layers if layer.operation.startswith(_LOOKUPS))
    integers = sum(each.bytes for each in cost.weights if each.type in _INTEGERS)
    floats = sum(4 * each.numbers for each in cost.weights if each.type in ("f32", "f16", "bf16"))
    quantized = any(layer.operation.startswith("FakeQuantize") for layer in cost.layers)
    return Work(cost.macs, max(floats - tables, 0), integers, quantized)
