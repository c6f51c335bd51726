"""Samples of StringTensorPack and StringTensorUnpack: empty strings, multibyte characters, several axes."""

from __future__ import annotations

from typing import Any

import numpy as np
from harness.sample import Sample, case

from ir_runtime.ir.element import ElementType

SYMBOLS = np.frombuffer(b"IntelOpenVINOOMZGenAI 2024", np.uint8)


def pack(begins: Any, ends: Any, symbols: Any = SYMBOLS, *, index: str = "i64", **how: Any) -> Sample:
    dtype = ElementType.parse(index).dtype
    return case("StringTensorPack-15", np.array(begins, dtype), np.array(ends, dtype), symbols, **how)


def unpack(texts: Any, **how: Any) -> Sample:
    return case("StringTensorUnpack-15", np.array(texts, object), **how)


GREETING = "Grüße, 世界 🌍"
LETTERS = np.frombuffer(GREETING.encode(), np.uint8)

SAMPLES = [
    pack([0, 5], [5, 13]),
    pack([0, 5], [5, 13], index="i32"),
    pack([0, 13, 13, 16, 21], [13, 13, 16, 21, 21], _constant=(0, 1)),
    pack([[0, 5], [13, 16]], [[5, 13], [16, 21]]),
    pack([5, 0], [13, 5]),
    pack([0, 1, 22], [5, 3, 26]),
    pack(7, 9),
    pack([], []),
    pack(np.zeros((2, 0)), np.zeros((2, 0)), index="i32"),
    pack([0, 9, 16], [7, 15, len(LETTERS)], LETTERS),
    pack([[[0]], [[0]]], [[[0]], [[0]]], SYMBOLS[:0]),
    unpack(["Intel", "OpenVINO"]),
    unpack([["Intel", "OpenVINO"], ["OMZ", "GenAI"]]),
    unpack(["OMZ", "", "GenAI", " ", "2024"]),
    unpack("one"),
    unpack([GREETING, "", "é"]),
    unpack([""]),
    unpack([]),
    unpack(np.zeros((2, 0), object)),
    unpack([[[["a"], ["bc"]]], [[["def"], ["\n\t\0x"]]]]),
]
