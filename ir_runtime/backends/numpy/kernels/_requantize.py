"""Levels of quantized numbers, relative to the one that stands for zero, as integers in f32: from numbers, from sums, and back."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ....ir.tensor import Array, Value
from ...common.activations import Activation, broadcast_binary
from ...common.epilogue import RowPostOp, in_place
from ...patterns.quantized_nodes import Product, Quantizer
from ._chain import apply_activation

__all__ = ["dequantize", "level_scale", "quantize", "requantization"]

# A shift of levels below this is less than f32 rounds in levels.
NEGLIGIBLE = 2.0**-16


def quantize(quantizer: Quantizer, x: Array) -> Array:
    """Return the levels of f32 numbers: those of the reference, computed in its order."""
    bottom, top, low, width, steps, *_ = quantizer.parameters

    def passes(source: Array, out: Array) -> None:
        source.clip(bottom, top, out=out)
        if low:
            np.subtract(out, low, out=out)
        np.divide(out, width, out=out)
        np.multiply(out, steps, out=out)
        np.rint(out, out=out)
        if quantizer.zero:
            np.subtract(out, np.float32(quantizer.zero), out=out)

    return apply_activation(passes, x)


def dequantize(quantizer: Quantizer, levels: Array) -> Array:
    """Return the numbers of levels, with the bits of the reference."""
    _, _, _, _, steps, span, first, *_ = quantizer.parameters

    def passes(source: Array, out: Array) -> None:
        np.add(source, np.float32(quantizer.zero), out=out)
        np.divide(out, steps, out=out)
        np.multiply(out, span, out=out)
        np.add(out, first, out=out)

    return apply_activation(passes, levels)


def level_scale(node: Product[Value]) -> Array:
    """Return the factor of the filters of each channel with which products of levels are levels; f64."""
    return np.asarray(node.data.quantizer.scale * node.factor / node.first.step)


@dataclass(frozen=True)
class _Rounding:
    """Rounds shifted sums to levels between bounds.

    Args:
        shift: for each channel, or one number; ``None`` for 0.
        low: the lower bound.
        high: the upper bound.
        odd: 1 if the level of zero is odd, else 0. A tie is rounded to an even level, so it is subtracted after rounding.
    """

    shift: Array | None
    low: np.float32
    high: np.float32
    odd: np.float32

    @classmethod
    def of(cls, quantizer: Quantizer, bounds: tuple[float, float], shift: Array) -> _Rounding:
        """Return the rounding of a quantizer whose numbers have bounds; shifts are relative to its zero."""
        odd = quantizer.zero % 2
        row = shift - quantizer.low / quantizer.step - (quantizer.zero - odd)
        low, high = (np.float32(quantizer.level_of(bound) - quantizer.zero) for bound in bounds)
        return cls(
            None if (abs(row) < NEGLIGIBLE).all() else row.astype(np.float32), low, high, np.float32(odd)
        )

    def activation(self) -> Activation:
        """Return the function of contiguous rows, which also changes its input."""
        add = None if self.shift is None else broadcast_binary(np.add, self.shift)
        low, high, odd = self.low, self.high, self.odd

        def run(x: Array, out: Array) -> None:
            if add is not None:
                add(x, x)
            np.rint(x, out=x)
            if odd:
                np.subtract(x, odd, out=x)
            x.clip(low, high, out=out)

        return run


@dataclass(frozen=True)
class _Residual:
    """Adds levels with another scale, and rounds the sum.

    Args:
        factor: multiplies the levels.
        other_factor: multiplies the others.
        rounding: of the sum.
    """

    factor: np.float32
    other_factor: np.float32
    rounding: _Rounding


def requantization(node: Product[Value]) -> RowPostOp:
    """Return the post-op from the products of levels and scaled filters to the levels of a node."""
    first = _Rounding.of(node.first, node.bounds, node.shift / node.first.step)
    if node.other is None or node.last is None:
        return _post_op(first)
    factor, other = (np.float32(q.scale / node.last.step) for q in (node.first, node.other.quantizer))
    return _post_op(first, _Residual(factor, other, _Rounding.of(node.last, node.sum_bounds, np.zeros(1))))


def _post_op(first: _Rounding, residual: _Residual | None = None) -> RowPostOp:
    round_first = in_place(first.activation())
    if residual is None:
        return RowPostOp(0, round_first)
    round_sum, factor, other = (
        in_place(residual.rounding.activation()),
        residual.factor,
        residual.other_factor,
    )

    def run(block: Array, rows: Array) -> None:
        round_first(block, block)
        np.multiply(block, factor, out=block)
        np.add(block, np.multiply(rows, other), out=block)
        round_sum(block, block)

    return RowPostOp(1, run, full_tensor=True)
