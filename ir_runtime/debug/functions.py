"""The errors of runtimes in functions that each approximates in its own way.

The reference evaluates the definition of a function, whose rounding differs from that of a polynomial, a
table, or reordered sums. `python tests/bench/functions.py` measures OpenVINO's plugin, its definitions, and
the backends of this package on the samples of the tests. This module records the worst error if it exceeds
one or two roundings: in half units in the last place of f32, of the rms of the result or of the first input.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..ir.blocks import blocks
from ..ir.graph import Layer
from ..ir.tensor import Array

__all__ = ["floor_of", "of_input", "of_result"]

_UNIT = 2.0**-24

_OF_RESULT = {
    "DFT": 10.0,
    "DeformableConvolution": 4.7,
    "Erf": 2.5,
    "ErfInv": 26.0,
    "IDFT": 10.0,
    "IRDFT": 10.0,
    "ISTFT": 10.0,
    "Interpolate": 6.1,
    "RDFT": 10.0,
    "STFT": 10.0,
}
_OF_INPUT = {
    # x times a function that vanishes for small x, such as 1 + erf(x): the cancelled terms are as large as x.
    "Gelu": 1.3,
    "HSwish": 0.5,
    "Mish": 0.7,
    "SoftPlus": 0.8,
    "Swish": 0.5,
    # The quotient is rounded, too, or is a product with the inverse.
    "FloorMod": 1.0,
    "Mod": 1.0,
}


_ANY = 0.5
"""The error of any other function: one rounding of the result, even if the results of a sample need none."""


def of_result(layer: Layer) -> float:
    """Return the error of runtimes in a layer's function, relative to its result."""
    return _OF_RESULT.get(layer.type, _ANY)


def of_input(layer: Layer) -> float:
    """Return the error of runtimes in a layer's function, relative to its input; 0 if unrecorded."""
    return _OF_INPUT.get(layer.type, 0.0)


def floor_of(layer: Layer, inputs: Sequence[Array], output: Array) -> float:
    """Return half of the rms error of the worst runtime for a layer in f32.

    Args:
        layer: the layer.
        inputs: its inputs, in f64.
        output: its first output, in f64.
    """
    size = of_result(layer) * _rms(output)
    if of_first := of_input(layer):
        size = max(size, of_first * _rms(inputs[0]))
    return 0.5 * _UNIT * size


def _rms(array: Array) -> float:
    total = count = 0.0
    for (block,) in blocks(array):
        numbers = block[np.isfinite(block)].astype(np.float64)
        total, count = total + float(np.square(numbers).sum()), count + numbers.size
    return (total / count) ** 0.5 if count else 0.0
