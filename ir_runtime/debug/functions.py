"""By how many units in the last place runtimes are off in functions that each approximates in a way of its own.

The reference evaluates the definition of a function, whose rounding says nothing about that of a polynomial or a table.
`python tests/bench/functions.py` measures the figures on OpenVINO, ONNX Runtime, and the backends of this package.
"""

from __future__ import annotations

from ..ir.graph import Layer

__all__ = ["ulps_of"]

_ULPS: dict[str, float] = {}
"""The rms of the errors of the worst runtime, in units in the last place of the rms of the result."""


def ulps_of(layer: Layer) -> float:
    """Return by how many units in the last place runtimes are off in the function of a layer; 0 if it has no such."""
    return _ULPS.get(layer.type, 0.0)
