"""Fourier transforms: shapes from partially known axes and sizes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from harness.sample import numbers, value

from ir_runtime.ir.dimension import Dimension, Interval, Symbol
from ir_runtime.ir.element import ElementType as E
from ir_runtime.ir.tensor import Value, objects
from ir_runtime.ops.signals import DFT, IRDFT, ISTFT, RDFT, STFT, FourierTransform


def known(x: Any) -> Value:
    """Return a value from a type as text, an array, or a list with intervals."""
    if isinstance(x, list) and any(isinstance(n, Interval) for n in x):
        return Value.bounded(E.i64, objects(x, (len(x),)))
    return value(x if isinstance(x, str) else np.array(x, np.int64))


def shape(cls: type[FourierTransform], *inputs: Any) -> str:
    (found,) = cls().infer_types(*map(known, inputs))
    return str(found.shape)


@pytest.mark.parametrize(
    ("cls", "inputs", "expected"),
    [
        (DFT, ("f32 4,5,?,2", "i64 ?"), "[4,5,?,2]"),
        (DFT, ("f32 4,5,?,2", [0, 2], [7, -1]), "[7,5,?,2]"),
        (DFT, ("f32 4,5,?,2", [-1, 0], [Dimension(2, 8), Interval(-1, 3)]), "[..4,5,2..8,2]"),
        (DFT, ("f32 4,5,6,2", [0, 1], "i64 2"), "[?,?,6,2]"),
        (DFT, ("f32 4,5,6,2", "i64 1", [9]), "[4..9,5..9,6..9,2]"),
        (DFT, ("f32 4,5,6,2", [1, Interval(0, 2)], [9, 3]), "[3..4,9,3..6,2]"),
        (DFT, ("f32 4,5,6,2", "i64 ?", "i64 ?"), "[?,?,?,2]"),
        (DFT, ("f32 4,5,6,2", "i64 ...", "i64 1"), "[?,?,?,2]"),
        (DFT, ("f32 4,5,?", [0]), "[4,5,2]"),
        (DFT, ("f32 ...", [0]), "[...]"),
        (RDFT, ("f32 4,?,6", [0, 2]), "[4,?,4,2]"),
        (RDFT, ("f32 4,5,6..9", "i64 2"), "[3..4,3..5,4..9,2]"),
        (RDFT, ("f32 4,5,6", "i64 ..."), "[3..4,3..5,4..6,2]"),
        (RDFT, ("f32 4,5,6", [Interval(0, 1), 2]), "[4,5,4,2]"),
        (RDFT, ("f32 4,5,6", [2, Interval(0, 1)], [-1, 8]), "[4..5,5,6,2]"),
        (RDFT, ("f32 4,5", [1], [Dimension(1, 9)]), "[4,1..5,2]"),
        (RDFT, ("f32 ...", "i64 2"), "[...]"),
        (IRDFT, ("f32 4,3..5,2", [0, 1]), "[4,4..8]"),
        (IRDFT, ("f32 4,5,2", [1], [Interval(-1, 3)]), "[4,..8]"),
        (IRDFT, ("f32 4,5,2", "i64 1"), "[4..6,5..8]"),
        (IRDFT, ("f32 4,5,2", [1, 0], [7, 9]), "[9,7]"),
    ],
)
def test_shapes(cls: type[FourierTransform], inputs: tuple[Any, ...], expected: str) -> None:
    assert shape(cls, *inputs) == expected


def test_a_length_keeps_its_identity() -> None:
    length = Dimension.between(1, 8, Symbol("length"))
    (found,) = DFT().infer_types(known("f32 4,5,2"), known([1]), known([length]))
    assert found.shape[1].symbol is length.symbol


def test_back_and_forth_in_f64() -> None:
    data, axes, size = numbers(3, 5, dtype="f64"), np.array([0, -1]), np.array([3, 5])
    there = RDFT().evaluate(data, axes)
    np.testing.assert_allclose(IRDFT().evaluate(there, axes, size), data, rtol=1e-14)


def frames(*inputs: Any, transposed: bool = False) -> str:
    (found,) = STFT(transpose_frames=transposed).infer_types(*map(known, inputs))
    return str(found.shape)


def test_frames() -> None:
    assert frames("f32 56", "f32 7", 11, 3) == "[16,6,2]"
    assert frames("f32 ?,56", "f32 7", 11, 3, transposed=True) == "[?,6,16,2]"
    assert frames("f32 3,40..56", "f32 ?", 11, 3) == "[3,10..16,6,2]"
    assert frames("f32 56", "f32 7", "i64", 3) == "[1..19,1..,2]"
    assert frames("f32 56", "f32 7", 11, "i64") == "[1..46,6,2]"
    assert frames("f32 ?", "f32 7", 11, 3) == "[1..,6,2]"
    assert frames("f32 ...", "f32 7", 11, 3) == "[...]"


def whole(*inputs: Any, center: bool = False) -> str:
    (found,) = ISTFT(center=center, normalized=False).infer_types(*map(known, inputs))
    return str(found.shape)


def test_whole_signals() -> None:
    assert whole("f32 6,16,2", "f32 7", 11, 3) == "[56]"
    assert whole("f32 4,6,?,2", "f32 7", 11, 3) == "[4,11..]"
    assert whole("f32 4,6,2..3,2", "f32 7", 11, 3, center=True) == "[4,4..7]"
    assert whole("f32 6,16,2", "f32 7", "i64", 3) == "[55..56]"
    assert whole("f32 6,16,2", "f32 7", "i64", 3, center=True) == "[45..46]"
    assert whole("f32 ?,16,2", "f32 7", 11, "i64") == "[26..]"
    assert whole("f32 6,16,2", "f32 7", 11, 3, [20]) == "[20]"
    assert whole("f32 6,16,2", "f32 7", 11, 3, "i64 1") == "[?]"
    assert whole("f32 ...", "f32 7", 11, 3, 20) == "[...]"
