"""Texts and their bytes: places outside, shapes that differ, bytes that are no text."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from harness.sample import value

from ir_runtime.errors import InferenceError
from ir_runtime.ir.tensor import Value
from ir_runtime.ops.type import StringTensorPack, StringTensorUnpack

SYMBOLS = np.frombuffer(b"OpenVINO", np.uint8)


def packed(begins: Any, ends: Any, symbols: Any = SYMBOLS) -> str:
    (found,) = StringTensorPack().infer_types(*map(value, (begins, ends, symbols)))
    return str(found)


def test_shapes() -> None:
    assert packed("i64 ?,3", "i64 2,?", "u8 ?") == "string[2,3]"
    assert packed("i32 ...", "i32 2") == "string[2]"
    unknown = StringTensorUnpack().infer_types(value("string 2,?"))
    assert list(map(str, unknown)) == ["i32[2,?]", "i32[2,?]", "u8[?]"]
    empty = StringTensorUnpack().infer_types(value("string 2,0"))
    assert list(map(str, empty)) == ["i32[2,0]", "i32[2,0]", "u8[0]"]


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        (("i64 2", "i64 3"), "begins have shape [2], ends [3]; they must be equal"),
        (("i64 2", "i64 2", "u8 2,2"), "symbols must be 1-D, not of shape [2,2]"),
        ((np.array([0, 4]), np.array([4, 9])), "no text reaches from 4 to 9 in 8 symbols"),
        ((np.array([-1]), np.array([4]), "u8 ?"), "no text reaches from -1 to 4 in ? symbols"),
        ((np.array([[3]]), np.array([[2]]), "u8 ?"), "no text reaches from 3 to 2 in ? symbols"),
    ],
)
def test_places_without_text(inputs: tuple[Any, ...], message: str) -> None:
    with pytest.raises(InferenceError) as caught:
        packed(*inputs)
    assert caught.value.message == message


def test_bytes_that_are_no_text_survive() -> None:
    raw = np.array([0x41, 0xFF, 0x80, 0xC3], np.uint8)
    texts = StringTensorPack().evaluate(np.array([0, 2]), np.array([2, 4]), raw)
    begins, ends, symbols = StringTensorUnpack().evaluate(texts)
    assert begins.tolist() == [0, 2]
    assert ends.tolist() == [2, 4]
    assert symbols.tobytes() == raw.tobytes()


def test_constants_are_followed() -> None:
    texts = Value.constant(np.array(["ab", "", "ü"], object))
    begins, ends, symbols = StringTensorUnpack().infer_values(texts)
    assert begins.ints() == (0, 2, 2)
    (again,) = StringTensorPack().infer_values(begins, ends, symbols)
    assert again.known() is not None
    assert again.known().tolist() == ["ab", "", "ü"]
    assert again.numbers() is again.dims() is None
