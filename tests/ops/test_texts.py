"""Packed strings: offsets out of range, mismatched shapes, invalid UTF-8."""

from __future__ import annotations

from typing import Any

import numpy as np
from harness.sample import value

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
