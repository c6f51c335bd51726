"""What computing in a precision does to results: random rounding for f32, emulated rounding for bf16 and f16."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import ml_dtypes
import numpy as np

from ..ir.blocks import blocks, by_blocks
from ..ir.evaluation import evaluate_layer
from ..ir.graph import Layer, Port
from ..ir.tensor import Array
from .reference import Change
from .terms import PRODUCTS, RECURRENT

__all__ = ["COPIES", "LIMITS", "ROUNDING", "emulated", "is_move", "perturbed", "rounding_to", "saturated"]

ROUNDING = {"f32": 2.0**-24, "f16": 2.0**-11, "bf16": 2.0**-9}
"""The largest relative error of rounding to a type once."""
COPIES = {"f32": 1, "f16": 3, "bf16": 3}
"""How many copies of the outputs of a layer emulating a precision makes at once."""
LIMITS = {
    "f16": float(np.finfo(np.float16).max),
    "bf16": (2 - 2.0**-7) * 2.0**127,
    "f32": float(np.finfo(np.float32).max),
}
"""The largest number of each type."""

_MOVES = (".movement.", ".shape.")


def is_move(layer: Layer) -> bool:
    """Return whether a layer only moves numbers."""
    return any(package in type(layer.op).__module__ for package in _MOVES)


def perturbed(precision: str, seed: int) -> Change:
    """Return a change that moves each computed number by a random part of the rounding of a precision."""
    random, unit = np.random.default_rng(seed), ROUNDING[precision]

    def change(layer: Layer, inputs: Sequence[Array], outputs: tuple[Array, ...]) -> tuple[Array, ...]:
        if is_move(layer):
            return outputs
        return tuple(_move(array) if array.dtype.kind == "f" else array for array in outputs)

    def _move(array: Array) -> Array:
        def move(numbers: Array) -> Array:
            return np.asarray(numbers * (1 + random.uniform(-unit, unit, numbers.size)))

        return by_blocks(move, array.dtype, array)

    return change


def emulated(precision: str, boundaries: Collection[Port] | None = None) -> Change | None:
    """Return a change that rounds as a runtime does that computes in a precision; ``None`` for f32.

    Inputs of products are rounded, sums are not; results are rounded at the boundaries of its nodes.

    Args:
        precision: ``f32``, ``f16`` or ``bf16``.
        boundaries: the tensors between nodes; by default all tensors.
    """
    if precision == "f32":
        return None
    rounded = rounding_to(precision)

    def change(layer: Layer, inputs: Sequence[Array], outputs: tuple[Array, ...]) -> tuple[Array, ...]:
        if layer.type in (*PRODUCTS, *RECURRENT) and layer.op is not None:
            outputs = evaluate_layer(layer, [rounded(array) for array in inputs])
        return tuple(
            rounded(array) if boundaries is None or Port(layer.id, index) in boundaries else array
            for index, array in enumerate(outputs)
        )

    return change


def rounding_to(precision: str) -> Callable[[Array], Array]:
    """Return a function that rounds the numbers of an array to ``f16`` or ``bf16``, and leaves its type."""
    dtype = np.dtype(np.float16) if precision == "f16" else np.dtype(ml_dtypes.bfloat16)

    def rounded(array: Array) -> Array:
        if array.dtype.kind != "f":
            return array
        with np.errstate(over="ignore"):
            return by_blocks(lambda block: block.astype(dtype), array.dtype, array)

    return rounded


def saturated(array: Array, exact: Array, precision: str) -> Array:
    """Return an array in which infinities that are finite in f64 are the largest number of a type.

    Of numbers beyond the type, such as the mask of an attention, runtimes make the one or the other.

    Args:
        array: numbers that were rounded to the type.
        exact: the same in f64.
        precision: the type; nothing is changed for f32.
    """
    if precision == "f32" or array.dtype.kind != "f" or array.shape != exact.shape:
        return array
    most = array.dtype.type(LIMITS[precision])

    def is_beyond(numbers: Array, truth: Array) -> Array:
        return np.asarray(np.isinf(numbers) & np.isfinite(truth))

    def saturate(numbers: Array, truth: Array) -> Array:
        return np.where(is_beyond(numbers, truth), np.copysign(most, numbers), numbers)

    if not any(is_beyond(*parts).any() for parts in blocks(array, exact)):
        return array
    return by_blocks(saturate, array.dtype, array, exact)
