"""Overflows: numbers beyond the type of computation, though finite in f64."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from .._util.records import Record
from ..ir.blocks import blocks
from ..ir.graph import Layer
from ..ir.tensor import Array
from .numerics import Numerics
from .precision import LIMITS, is_move

__all__ = ["Overflow", "limit_of", "overflows_of"]


@dataclass(frozen=True)
class Overflow:
    """A layer whose results overflow their type.

    Args:
        layer: the name of the layer.
        operation: its operation.
        type: the type.
        largest: the largest magnitude in f64.
        inputs: the largest magnitude of each input.
    """

    layer: str
    operation: str
    type: str
    largest: float
    inputs: Sequence[float] = ()

    def record(self) -> Record:
        """Return a dict for JSON."""
        return {
            "layer": self.layer, "operation": self.operation, "type": self.type, "largest": self.largest,
            "inputs": list(self.inputs),
        }  # fmt: skip

    @property
    def summary(self) -> str:
        """Describe the size of the overflow and the inputs."""
        read = ", ".join(f"{size:.2g}" for size in self.inputs)
        return f"{self.largest:.2g} in f64, the limit of {self.type} is {LIMITS[self.type]:.4g}; inputs up to {read or 'nothing'}"


def limit_of(numerics: Numerics, found: Array) -> float:
    """Return the largest number of a tensor's type."""
    is_half = found.dtype == np.float16
    return min(numerics.limit, LIMITS["f16"]) if is_half else numerics.limit


def overflows_of(
    layer: Layer, inputs: Sequence[Array], outputs: Sequence[Array], limits: Sequence[float]
) -> Iterator[Overflow]:
    """Yield an overflow of a layer, if any.

    Args:
        layer: the layer.
        inputs: its inputs, in f64.
        outputs: its outputs, in f64.
        limits: the largest number of the type of each output.
    """
    if is_move(layer):
        return
    for output, limit in zip(outputs, limits, strict=False):
        if output.dtype.kind != "f" or (largest := _largest(output)) <= limit:
            continue
        read = [_largest(array) for array in inputs if array.dtype.kind == "f"]
        type = next(name for name in ("f16", "bf16", "f32") if LIMITS[name] >= limit)
        yield Overflow(layer.name, layer.operation, type, largest, tuple(read))
        return


def _largest(array: Array) -> float:
    """Return the largest finite magnitude of an array."""
    sizes = (np.abs(block[np.isfinite(block)]).max(initial=0) for (block,) in blocks(array))
    return float(max(sizes, default=0.0))
