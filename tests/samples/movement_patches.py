"""Samples of ExtractImagePatches and Col2Im: sizes, strides, dilations, paddings, all types."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from harness.sample import Sample, case, ints, numbers

from ir_runtime.ir.tensor import Array

TYPES = ("f32", "f16", "bf16", "i64", "i32", "i8", "u8")
WHOLE = np.arange(50.0).reshape(1, 2, 5, 5)  # in f64: OpenVINO's plugin computes it as f32


def patches(*shape: int, sizes: str, strides: str, rates: str, auto_pad: str) -> Sample:
    return case(
        "ExtractImagePatches-3", numbers(*shape), sizes=sizes, strides=strides, rates=rates, auto_pad=auto_pad
    )


PATCHES = [
    *(
        patches(1, 1, 10, 10, sizes=f"{size},{size}", strides=f"{stride},{stride}", rates="1,1", auto_pad=pad)
        for (size, stride), pad in product(
            ((3, 5), (4, 8), (4, 9), (2, 1)), ("valid", "same_upper", "same_lower")
        )
    ),
    patches(1, 1, 10, 10, sizes="3,3", strides="5,5", rates="2,2", auto_pad="valid"),
    patches(2, 2, 5, 5, sizes="2,2", strides="3,3", rates="1,1", auto_pad="valid"),
    patches(2, 3, 6, 4, sizes="2,3", strides="1,2", rates="2,1", auto_pad="same_upper"),
    patches(2, 3, 6, 4, sizes="2,3", strides="2,1", rates="3,2", auto_pad="same_lower"),
    patches(1, 1, 3, 3, sizes="5,1", strides="1,1", rates="1,1", auto_pad="same_lower"),
    patches(1, 1, 3, 3, sizes="1,1", strides="7,2", rates="1,1", auto_pad="same_upper"),
    patches(1, 1, 3, 3, sizes="3,3", strides="1,1", rates="1,1", auto_pad="valid"),
    case("ExtractImagePatches-3", WHOLE, sizes="2,2", strides="3,3", rates="1,1", auto_pad="valid"),
    *(
        case(
            "ExtractImagePatches-3",
            numbers(1, 2, 4, 4, dtype=t),
            sizes="2,2",
            strides="2,2",
            rates="1,1",
            auto_pad="same_upper",
        )
        for t in TYPES
    ),
]


def image(data: Array, size: Array, kernel: Array, **attributes: Any) -> Sample:
    """A sample with all attributes: OpenVINO crashes without them, though the specification makes them optional."""
    usual = {"strides": "1,1", "dilations": "1,1", "pads_begin": "0,0", "pads_end": "0,0"}
    return case("Col2Im-15", data, size, kernel, _constant=(1, 2), **(usual | attributes))


IMAGE = [
    image(numbers(3, 12, 9), ints(4, 4), ints(2, 2)),
    image(numbers(12, 9), ints(4, 4, dtype="i32"), ints(2, 2, dtype="i32")),
    image(
        numbers(1, 27, 9),
        ints(8, 8),
        ints(3, 3),
        strides="2,2",
        dilations="2,2",
        pads_begin="1,1",
        pads_end="1,1",
    ),
    image(numbers(2, 4, 100), ints(8, 8), ints(2, 2), dilations="2,2", pads_begin="3,1", pads_end="1,3"),
    image(numbers(1, 12, 4), ints(4, 3), ints(3, 2)),
    image(numbers(1, 6, 6), ints(5, 7), ints(2, 3), strides="3,2"),
    image(numbers(1, 3, 20), ints(4, 5), ints(1, 1)),
    image(numbers(1, 4, 4), ints(4, 4), ints(2, 2), strides="2,2"),
    image(numbers(0, 4, 4), ints(4, 4), ints(2, 2), strides="2,2"),
    image(np.arange(36.0).reshape(1, 4, 9), ints(4, 4), ints(2, 2)),
    *(image(numbers(1, 8, 9, dtype=t), ints(4, 4), ints(2, 2)) for t in TYPES),
]

SAMPLES = [*PATCHES, *IMAGE]
