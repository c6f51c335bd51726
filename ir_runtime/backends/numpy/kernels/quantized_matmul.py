"""Products with weights that stay as they are stored: a few bits each, unpacked in the cache."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ....ir.array import Packed
from ....ir.compressed import Compressed
from ....ir.element import ElementType as E
from ....ir.pages import let_go
from ....ir.tensor import Array, Value
from ....ops.matrix.matmul import MatMul
from ... import Kernel
from ...common.epilogue import RowKernel
from ...common.rounding import ROUNDINGS, Rounding, exact, meanings, multiplied
from ...core.lengths import axis_length
from .._backend import backend
from ..math.dequantize import Form, LookedUp, Quarters, Runs, Step, Whole, packed, places
from ..math.quantized_matrix import CodedMatrix, Panel

__all__: list[str] = []

# Smaller numbers have digits behind the last one of f32 when they are rounded.
LEAST = 2.0**-100
# Zero points up to this leave differences to codes that fit into 16 bits.
SMALL = 1 << 14
# Scales of f16 are this times a power of two, or less: so is what they are multiplied by, in 16 bits.
MANTISSA, REACH = 2048, 16


@backend.quantized(MatMul)
def by_codes(op: MatMul, a: Value, b: Value) -> Kernel | None:
    """f32 rows, of any batch, by one compressed matrix on the right."""
    if (weights := multiplied(op, a, b)) is None:
        return None
    matrix = _coded(weights, op.transpose_b)
    if matrix is None:
        return None
    return RowKernel(matrix.multiply, 2, accepts=axis_length(-1, weights.shape[1 if op.transpose_b else 0]))


def _coded(weights: Compressed, by_rows: bool) -> CodedMatrix | None:
    """A matrix whose columns are the rows of the weights, or their columns; ``None`` if it would not be exact."""
    groups, rounding = weights.groups(by_rows), ROUNDINGS[weights.arithmetic]
    numbers = _numbers(weights.element, weights.arithmetic)
    if groups is None or numbers is None:
        return None
    scale, zero = weights.scales(by_rows)
    if not exact((float(numbers.min()), float(numbers.max())), scale, zero, rounding):
        return None
    if not _rounds_in_place(numbers, scale, rounding):
        return None
    depth, columns = weights.shape[::-1] if by_rows else weights.shape
    runs, form = Runs(groups, depth // groups), _form(weights.element, numbers)
    arithmetic = _Arithmetic.of(weights, form, scale, zero)
    cuts = places(columns)
    panels = [
        Panel(place, kept, arithmetic.steps(place, runs), _by_run(arithmetic.scale, place, runs))
        for place, kept in zip(cuts, _kept(weights, by_rows, runs, form, cuts), strict=True)
    ]
    return CodedMatrix(columns, runs, form, tuple(panels), arithmetic.dropped, arithmetic.gain)


@dataclass(frozen=True)
class _Arithmetic:
    """What makes numbers of codes: zero points and factors, rounding, scales, and one more factor for each column.

    All are ``[columns, groups]``, or one number; the gain has no groups.
    """

    zero: Array | None
    factor: Array | None
    dropped: int
    scale: Array | None
    gain: Array

    @classmethod
    def of(cls, weights: Compressed, form: Form, scale: Array, zero: Array | None) -> _Arithmetic:
        """Of scales that are a power of two, or in f32, nothing is rounded: they are multiplied at the end."""
        zero = _zeros(weights.element, zero)
        factor, after = None, None if weights.scale is None else scale
        dropped = (
            0 if weights.scale is None or _powers_of_two(scale) else ROUNDINGS[weights.arithmetic].dropped
        )
        gain = np.asarray(np.float32(2.0**dropped))
        if dropped:
            factor, after = _uniform(scale.astype(weights.arithmetic.dtype)), None
            if isinstance(form, Quarters) and _few(zero):
                mantissa, power = np.frexp(scale)
                factor = _uniform((mantissa * MANTISSA).astype(np.int16))
                after = np.ldexp(np.float32(1), power - 1)
                gain = gain * np.float32(2 / MANTISSA)
        if after is None:
            return cls(zero, factor, dropped, None, gain)
        after = _uniform(after)
        if not after.ndim or after.shape[1] == 1:
            return cls(zero, factor, dropped, None, gain * (after[:, 0] if after.ndim else after))
        return cls(zero, factor, dropped, after.astype(weights.arithmetic.dtype), gain)

    def steps(self, place: slice, runs: Runs) -> tuple[Step, ...]:
        """What to do before numbers are rounded, for some columns."""
        steps = ((np.subtract, self.zero), (np.multiply, self.factor))
        made = ((ufunc, _by_run(array, place, runs)) for ufunc, array in steps)
        return tuple((ufunc, rows) for ufunc, rows in made if rows is not None)


def _numbers(element: E, arithmetic: E) -> Array | None:
    """What codes stand for, those of 4 bits in order; ``None`` for other types."""
    if element in (E.u8, E.i8):
        return np.arange(256, dtype=np.float32) - (128 if element is E.i8 else 0)
    return meanings(element, arithmetic) if element in (E.u2, E.u4, E.i4, E.nf4, E.f4e2m1) else None


def _form(element: E, numbers: Array) -> Form:
    if element in (E.u8, E.i8):
        return Whole(np.uint8 if element is E.u8 else np.int8)
    return LookedUp(numbers) if element.real else Quarters()


def _powers_of_two(scale: Array) -> bool:
    """Whether products with these are as exact as the numbers."""
    return bool(np.isin(np.abs(np.frexp(scale)[0]), (0, 0.5)).all())


def _rounds_in_place(numbers: Array, scale: Array, rounding: Rounding) -> bool:
    """Whether all products are rounded to the same number of digits: those of whole numbers always are."""
    if not rounding.dropped:
        return True
    whole = np.array_equal(numbers, np.rint(numbers))
    smallest = _smallest(scale) * (1 if whole else _smallest(numbers))
    return smallest >= (LEAST if whole else max(rounding.least, LEAST))


def _smallest(numbers: Array) -> float:
    """Of what is not zero."""
    sizes = np.abs(numbers[numbers != 0])
    return float(sizes.min()) if sizes.size else np.inf


def _zeros(element: E, zero: Array | None) -> Array | None:
    """Zero points ``[columns, groups]``, or one number; int16, if they are whole numbers."""
    if element is E.i4:  # whose codes begin at -8
        zero = np.full((1, 1), 8, np.float32) if zero is None else zero + 8
    if zero is None:
        return None
    whole = np.array_equal(zero, np.rint(zero)) and np.abs(zero).max() <= SMALL
    return _uniform(zero.astype(np.int16) if whole else zero)


def _few(zero: Array | None) -> bool:
    """Whether codes of 4 bits, less zero points, are few enough to be multiplied in 16 bits."""
    if zero is None:
        return True
    return zero.dtype == np.int16 and bool(15 - zero.min() < REACH and zero.max() < REACH)


def _uniform(array: Array) -> Array:
    """One number for an array that is the same everywhere."""
    first = array[:1, :1]
    return first.reshape(()) if (array == first).all() else array


def _by_run(array: Array | None, place: slice, runs: Runs) -> Array | None:
    """A row for each run, ``[runs, columns]``; a copy that has an even number of columns."""
    if array is None or not array.ndim:
        return array
    rows = array[place].T
    rows = np.pad(rows, ((0, 0), (0, rows.shape[1] % 2)))
    if runs.groups == 1:
        return np.broadcast_to(rows, (runs.count, rows.shape[1]))
    return np.repeat(rows, runs.pieces, axis=0)


def _kept(weights: Compressed, by_rows: bool, runs: Runs, form: Form, cuts: Sequence[slice]) -> list[Array]:
    """The codes of every panel. The file's are not read any more."""
    wide = [place.stop - place.start + (place.stop - place.start) % 2 for place in cuts]
    kept = [form.empty(runs.count, runs.stored, columns) for columns in wide]
    for index, run, codes in packed(weights, by_rows, runs, cuts):
        kept[index][run : run + len(codes)] = form.store(codes)
    let_go(weights.codes.raw if isinstance(weights.codes, Packed) else weights.codes)
    return kept
