"""Simulate the rounding of a precision: random perturbations for f32, emulated rounding for bf16 and f16.

Each runtime approximates some functions in its own way: by polynomials, tables or reordered sums, whose rounding differs
from that of the definition, which the reference evaluates. `python tests/bench/functions.py` measures OpenVINO's plugin,
its reference and the backends of this package on the samples of the tests. This module records the worst error of a
function if it exceeds one or two roundings, in half units in the last place of f32, relative to the RMS of the result or
of the first input.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TypeAlias

import ml_dtypes
import numpy as np

from ..ir.blocks import blocks, by_blocks
from ..ir.evaluation import evaluate_layer
from ..ir.graph import Layer, Port
from ..ir.tensor import Array
from ..ops._define.describe import group
from .reference import Change
from .terms import PRODUCTS, RECURRENT, SAMPLERS

__all__ = [
    "COPIES",
    "LIMITS",
    "ROUNDING",
    "Prepare",
    "emulate_rounding",
    "floor_of",
    "is_move",
    "perturb",
    "rounding_to",
]

ROUNDING = {"f32": 2.0**-24, "f16": 2.0**-11, "bf16": 2.0**-9}
"""The largest relative error of rounding to a type once."""
COPIES = {"f32": 1, "f16": 3, "bf16": 3}
"""The number of simultaneous copies of a layer's outputs when a precision is emulated."""
LIMITS = {
    "f16": float(np.finfo(np.float16).max),
    "bf16": (2 - 2.0**-7) * 2.0**127,
    "f32": float(np.finfo(np.float32).max),
}
"""The largest number of each type."""

_TYPES = {
    "f32": (np.dtype(np.float32), 24),
    "f16": (np.dtype(np.float16), 11),
    "bf16": (np.dtype(ml_dtypes.bfloat16), 8),
}
"""The types, and the bits of their significands."""
_MOVES = ("movement", "shape")

Prepare: TypeAlias = "Callable[[Layer, Sequence[Array]], Sequence[Array]]"
"""A function from a layer and its inputs to the inputs for computation, possibly the same sequence."""


def is_move(layer: Layer) -> bool:
    """Return whether a layer only moves elements, without computing."""
    return group(type(layer.op)) in _MOVES


def perturb(precision: str, seed: int) -> Change:
    """Return a `Change` that perturbs each computed floating-point value randomly within the rounding of a precision.

    For functions with a larger recorded error, values are perturbed within that. Moved elements and exact conversions stay.

    Args:
        precision: a key of `ROUNDING`.
        seed: the seed of the random generator.
    """
    random, unit = np.random.default_rng(seed), ROUNDING[precision]

    def change(layer: Layer, inputs: Sequence[Array], outputs: tuple[Array, ...]) -> tuple[Array, ...]:
        if is_move(layer) or _is_exact(layer, inputs, outputs):
            return outputs
        most = max(unit, _error_of_result(layer) * ROUNDING["f32"])
        moved = [_move(array, most) if array.dtype.kind == "f" else array for array in outputs]
        least = _error_of_input(layer) * ROUNDING["f32"]
        if least and moved[0].dtype.kind == "f" and inputs[0].shape == moved[0].shape:
            moved[0] = _add(moved[0], inputs[0], least)
        return tuple(moved)

    def _move(array: Array, most: float) -> Array:
        def move(numbers: Array) -> Array:
            return np.asarray(numbers * (1 + random.uniform(-most, most, numbers.size)))

        return by_blocks(move, array.dtype, array)

    def _add(array: Array, source: Array, most: float) -> Array:
        def add(numbers: Array, sizes: Array) -> Array:
            return np.asarray(numbers + sizes * random.uniform(-most, most, numbers.size))

        return by_blocks(add, array.dtype, array, source)

    return change


def _is_exact(layer: Layer, inputs: Sequence[Array], outputs: tuple[Array, ...]) -> bool:
    """Return whether a layer is a conversion that was exact for its inputs."""
    if layer.type not in ("Convert", "ConvertLike") or inputs[0].dtype.kind in "OU":
        return False
    return inputs[0].shape == outputs[0].shape and all(
        np.array_equal(before.astype(np.float64), after.astype(np.float64))
        for before, after in blocks(inputs[0], outputs[0])
    )


def emulate_rounding(
    precision: str,
    boundaries: Collection[Port] | None = None,
    bounded: bool = True,
    prepare: Prepare | None = None,
) -> Change | None:
    """Return a `Change` that emulates the rounding of a runtime; ``None`` if it changes nothing.

    Inputs of products and sampling positions are rounded; sums are not. Results are rounded at the boundaries of
    execution nodes, which are layers with others fused into them.

    Args:
        precision: ``f32``, ``f16`` or ``bf16``.
        boundaries: the tensors between execution nodes; by default all tensors.
        bounded: whether values beyond the range of the type become infinite.
        prepare: a function that changes the inputs of a layer before it computes.
    """
    if precision == "f32" and bounded and prepare is None:
        return None
    rounded = rounding_to(precision, bounded) if precision != "f32" or not bounded else _same

    def change(layer: Layer, inputs: Sequence[Array], outputs: tuple[Array, ...]) -> tuple[Array, ...]:
        operands = inputs if prepare is None else prepare(layer, inputs)
        if layer.type in (*PRODUCTS, *RECURRENT, *SAMPLERS) and layer.op is not None and precision != "f32":
            operands = [rounded(array) for array in operands]
        if operands is not inputs:
            outputs = evaluate_layer(layer, operands)
        return tuple(
            rounded(array) if boundaries is None or Port(layer.id, index) in boundaries else array
            for index, array in enumerate(outputs)
        )

    return change


def _same(array: Array) -> Array:
    return array


def rounding_to(precision: str, bounded: bool = True) -> Callable[[Array], Array]:
    """Return a function that rounds the values of an array to a precision, keeping its dtype.

    Args:
        precision: ``f32``, ``f16`` or ``bf16``.
        bounded: whether values beyond the range become infinite; otherwise, only the mantissa is rounded.
    """
    dtype, bits = _TYPES[precision]

    def rounded(array: Array) -> Array:
        if array.dtype.kind != "f":
            return array
        with np.errstate(over="ignore"):
            return by_blocks(_rounded, array.dtype, array)

    def _rounded(block: Array) -> Array:
        narrow = block.astype(dtype)
        if bounded or np.isfinite(narrow).all():
            return narrow
        wide = narrow.astype(block.dtype)
        parts, exponents = np.frexp(block)
        scaled = np.ldexp(np.rint(np.ldexp(parts, bits)), exponents - bits)
        scaled = np.where(np.isfinite(scaled), scaled, block)
        return np.where(np.isinf(wide), scaled, wide)

    return rounded


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


def _error_of_result(layer: Layer) -> float:
    """Return the recorded worst error of a layer's function relative to its result."""
    return _OF_RESULT.get(layer.type, _ANY)


def _error_of_input(layer: Layer) -> float:
    """Return the recorded worst error of a layer's function relative to its input; 0 if not recorded."""
    return _OF_INPUT.get(layer.type, 0.0)


def floor_of(layer: Layer, inputs: Sequence[Array], output: Array) -> float:
    """Return half of the RMS error of the worst runtime for a layer in f32.

    Args:
        layer: the layer.
        inputs: its inputs, in f64.
        output: its first output, in f64.
    """
    size = _error_of_result(layer) * _rms(output)
    if of_first := _error_of_input(layer):
        size = max(size, of_first * _rms(inputs[0]))
    return 0.5 * _UNIT * size


def _rms(array: Array) -> float:
    total = count = 0.0
    for (block,) in blocks(array):
        numbers = block[np.isfinite(block)].astype(np.float64)
        total, count = total + float(np.square(numbers).sum()), count + numbers.size
    return (total / count) ** 0.5 if count else 0.0
