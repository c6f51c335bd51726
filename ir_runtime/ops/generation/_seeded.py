"""Random numbers of every element type from random integers of 32 bits."""

from __future__ import annotations

import math
from collections.abc import Callable
from secrets import randbits
from typing import TypeAlias

import numpy as np

from ...ir.element import ElementType as E
from ...ir.tensor import Array
from .._define.operation import Op, attr
from ..kernels.random import mersenne_twister, mersenne_twister_of_sequence, philox

__all__ = ["Advance", "RandomOp", "Spread"]

# Seeds have 64 bits. OpenVINO writes and reads those from 2 ** 63 on as negative numbers.
LOWEST, HIGHEST = -(2**63), 2**64 - 1
FRACTION_BITS = {E.f64: 52, E.f32: 23, E.f16: 10, E.bf16: 7}

# The number of blocks of Philox that OpenVINO's plugin skips for each number that a run draws, as TensorFlow does.
SKIPPED = 256

Advance: TypeAlias = Callable[[int], int]
"""Advances the sequence of an operation by a number of blocks, and returns its former position."""

Spread: TypeAlias = tuple[Array, Array]
"""The lowest number, and the one above the highest, as scalars."""


class RandomOp(Op):
    """Base of random operations: reproducible by two seeds, and different in each run if both are 0."""

    flops_per_element = 2

    global_seed: int = attr(
        0, ge=LOWEST, le=HIGHEST, doc="first seed; if both are 0, the numbers are others each time"
    )
    op_seed: int = attr(0, ge=LOWEST, le=HIGHEST, doc="second seed")

    pure = False

    def seed(self) -> int:
        """Return the first seed, or any number if there is none."""
        return self.global_seed % 2**64 if self.global_seed or self.op_seed else randbits(64)

    def origin(self, shape: tuple[int, ...], advance: Advance | None = None) -> tuple[int, int, int]:
        """Return the key, stream and first block of Philox for a shape; ``advance`` continues the sequence."""
        start = 0 if advance is None else advance(math.prod(shape) * SKIPPED)
        return self.seed(), self.op_seed % 2**64, start

    def as_tensorflow(
        self, element: E, shape: tuple[int, ...], spread: Spread, advance: Advance | None = None
    ) -> Array:
        """Draw uniform numbers like TensorFlow, by Philox; ``advance`` continues the sequence."""
        key, stream, start = self.origin(shape, advance)
        words = philox(key, stream, _words(element, shape), start)
        if element.integral:
            whole = words if element is E.i32 else _pairs(words, low_first=True)
            return _integers(whole, spread).reshape(shape)
        # In the type itself, rounding each step. OpenVINO's reference rounds bf16 differently.
        fractions = _fractions(words, element, FRACTION_BITS[element]).astype(element.dtype, copy=False)
        return _stretch(fractions, spread).reshape(shape)

    def as_plugin(self, shape: tuple[int, ...]) -> Array:
        """Draw numbers from 0 to 1 like OpenVINO's CPU plugin in Multinomial: by MT19937 in f32."""
        words = mersenne_twister_of_sequence((self.seed(), self.op_seed % 2**64), math.prod(shape))
        return (words.astype(np.float32) / np.float32(2**32 - 1)).reshape(shape)

    def as_pytorch(self, element: E, shape: tuple[int, ...], spread: Spread) -> Array:
        """Draw uniform numbers like PyTorch: by MT19937, from the first seed alone."""
        short = element is E.i64 and max(map(int, spread)) < 2**32
        words = mersenne_twister(self.seed(), math.prod(shape) if short else _words(element, shape))
        if element.integral:
            whole = words if short or element is E.i32 else _pairs(words)
            return _integers(whole, spread).reshape(shape)
        fractions = _fractions(words, element, FRACTION_BITS[element] + 1)
        # f16 and bf16 are computed in f32 and rounded once, here, but not above.
        return _stretch(fractions, spread).astype(element.dtype).reshape(shape)


def _words(element: E, shape: tuple[int, ...]) -> int:
    """Return the number of random 32-bit integers needed for a tensor."""
    return math.prod(shape) * (2 if element.bits == 64 else 1)


def _pairs(words: Array, low_first: bool = False) -> Array:
    """Combine pairs of 32-bit integers to 64-bit ones."""
    first, second = words.reshape(-1, 2).T.astype(np.uint64)
    low, high = (first, second) if low_first else (second, first)
    return high << np.uint64(32) | low


def _fractions(words: Array, element: E, bits: int) -> Array:
    """Return numbers in [0, 1) from the lowest ``bits`` random bits, in f64 for f64 and otherwise in f32."""
    whole, real = (_pairs(words), np.float64) if element is E.f64 else (words, np.float32)
    low = whole & whole.dtype.type(2**bits - 1)
    fractions: Array = low.view(f"i{low.itemsize}").astype(real)  # signed ones are converted faster
    fractions *= real(2.0**-bits)
    return fractions


def _stretch(fractions: Array, spread: Spread) -> Array:
    low, high = spread
    return np.asarray(fractions * (high - low) + low, fractions.dtype)


def _integers(whole: Array, spread: Spread) -> Array:
    """Return remainders of integers, which slightly favours small ones."""
    low, high = map(int, spread)
    modulus, unsigned = 2 ** (8 * spread[0].itemsize), np.dtype(f"u{spread[0].itemsize}")
    rest = whole.astype(unsigned) % unsigned.type(high - low)
    return np.asarray(rest + unsigned.type(low % modulus)).astype(spread[0].dtype)
