"""Transforms: shapes from axes and sizes that are known in part; what is refused and how it is said."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from harness.sample import numbers, value

from ir_runtime.errors import InferenceError, ValidationError
from ir_runtime.ir.dimension import Dimension, Interval, Symbol
from ir_runtime.ir.element import ElementType as E
from ir_runtime.ir.tensor import Value, objects
from ir_runtime.ops.signals.fourier import DFT, IRDFT, RDFT, Transform
from ir_runtime.ops.signals.frames import ISTFT, STFT


def known(x: Any) -> Value:
    """A type as text, numbers, or a list in which some numbers are only bounded."""
    if isinstance(x, list) and any(isinstance(n, Interval) for n in x):
        return Value.bounded(E.i64, objects(x, (len(x),)))
    return value(x if isinstance(x, str) else np.array(x, np.int64))


def shape(cls: type[Transform], *inputs: Any) -> str:
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
def test_shapes(cls: type[Transform], inputs: tuple[Any, ...], expected: str) -> None:
    assert shape(cls, *inputs) == expected


def test_a_length_keeps_its_identity() -> None:
    length = Dimension.between(1, 8, Symbol("length"))
    (found,) = DFT().infer_types(known("f32 4,5,2"), known([1]), known([length]))
    assert found.shape[1].symbol is length.symbol


@pytest.mark.parametrize(
    ("cls", "inputs", "message"),
    [
        (DFT, ("f32 2", [0]), "data must have at least 2 axes, the last one of length 2, found shape [2]"),
        (
            DFT,
            ("f32 4,3", [0]),
            "data must have at least 2 axes, the last one of length 2, found shape [4,3]",
        ),
        (RDFT, ("f32", "i64 0"), "data must have at least 1 axis, found shape []"),
        (DFT, ("f32 4,2", [1]), "axis 1 is out of range for rank 1; allowed: [-1, 0]"),
        (DFT, ("f32 4,5,2", [1, -1]), "axis list [1, -1] names an axis of rank 2 twice"),
        (DFT, ("f32 4,5,2", "i64 3"), "3 axes to transform, but the data has 2"),
        (DFT, ("f32 4,2", 0), "axes must be 1-D, not of shape []"),
        (DFT, ("f32 4,2", [0], 4), "signal_size must be 1-D, not of shape []"),
        (
            DFT,
            ("f32 4,5,2", [0, 1], [4]),
            "inputs are to hold equally many numbers, found: axes 2, signal_size 1",
        ),
        (DFT, ("f32 4,2", [0], [-2]), "signal_size holds -2; -1 or a length is expected"),
        (RDFT, ("f32 4", "i64 0"), "axes are empty; at least one is expected"),
        (IRDFT, ("f32 4,2", "i64 0"), "axes are empty; at least one is expected"),
        (DFT, ("f64 4,2", [0]), "input 'data' is f64; allowed are f32, f16, bf16"),
    ],
)
def test_contradictions(cls: type[Transform], inputs: tuple[Any, ...], message: str) -> None:
    with pytest.raises((InferenceError, ValidationError)) as caught:
        shape(cls, *inputs)
    assert caught.value.message == message


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


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        (("f32 10", "f32 7", 11, 3), "frame_size 11 exceeds the length 10 of the signal"),
        (("f32 56", "f32 12", 11, 3), "window has 12 elements, more than frame_size 11"),
        (("f32 56", "f32 0", "i64", 3), "window is empty; at least 1 element is expected"),
        (("f32 56", "f32 1,7", 11, 3), "window must be 1-D, not of shape [1,7]"),
        (("f32 56", "f32 7", 0, 3), "frame_size is 0; at least 1 is expected"),
        (("f32 56", "f32 7", 11, -3), "frame_step is -3; at least 1 is expected"),
        (("f32 56", "f32 7", [11], 3), "frame_size must be a scalar, not of shape [1]"),
        (("f32 1,3,56", "f32 7", 11, 3), "signal must be 1-D or 2-D, not of shape [1,3,56]"),
    ],
)
def test_frames_that_cannot_be(inputs: tuple[Any, ...], message: str) -> None:
    with pytest.raises(InferenceError) as caught:
        frames(*inputs)
    assert caught.value.message == message


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


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        (("f32 16,2", "f32 7", 11, 3), "data must be 3-D or 4-D, not of shape [16,2]"),
        (("f32 6,16,3", "f32 7", 11, 3), "data must end in an axis of length 2, found shape [6,16,3]"),
        (("f32 6,0,2", "f32 7", 11, 3), "data of shape [6,0,2] holds no frames; at least one is expected"),
        (("f32 5,16,2", "f32 7", 11, 3), "data holds 5 frequencies; for frame_size 11, 6 are expected"),
        (("f32 6,16,2", "f32 7", 11, 3, -1), "signal_length is -1; at least 0 is expected"),
        (("f32 6,16,2", "f32 7", 11, 3, [1, 2]), "signal_length must be one number, not of shape [2]"),
    ],
)
def test_signals_that_cannot_be(inputs: tuple[Any, ...], message: str) -> None:
    with pytest.raises(InferenceError) as caught:
        whole(*inputs)
    assert caught.value.message == message
