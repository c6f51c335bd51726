"""Samples of pooling: one to three spatial axes, all roundings and padding modes, all types."""

from __future__ import annotations

from typing import Any

import numpy as np
from harness.sample import Sample, case, numbers

# What the reference leaves out is asked of the plugin, which computes f64 as f32.
F64 = {"_oracle": "plugin", "_rtol": 1e-6, "_atol": 1e-6, "_differs": "the plugin computes f64 as f32"}

MAXES = ("MaxPool-1", "MaxPool-8", "MaxPool-14")
MEANS = ("AvgPool-1", "AvgPool-14", "AvgPool-16")
SEQUENCE = np.arange(2 * 3 * 4 * 4, dtype="f4").reshape(2, 3, 4, 4)
SPECIAL = np.array([[[1, *[np.nan] * 3, *[-np.inf] * 3, 3, 3, 2, np.nan, np.inf]]], "f4")


def pool(op: str, data: Any, *kernel: int, **attributes: Any) -> Sample:
    """A pooling, by default with stride 1 and without padding.

    OpenVINO crashes on versions with dilations if these are omitted.
    """
    zeros = (0,) * len(kernel)
    plain: dict[str, Any] = {
        "strides": (1,) * len(kernel),
        "pads_begin": zeros,
        "pads_end": zeros,
        "kernel": kernel,
    }
    if op not in ("MaxPool-1", "AvgPool-1", "AvgPool-14"):
        plain["dilations"] = (1,) * len(kernel)
    if op.startswith("Avg"):
        plain["exclude__pad"] = False
    return case(op, data, **plain | attributes)


def around(*pads: int) -> dict[str, Any]:
    return {"pads_begin": pads, "pads_end": pads}


def windows(op: str, **more: Any) -> list[Sample]:
    """Window positions shared by all poolings."""
    roundings = ("floor", "ceil") if op.endswith(("-1", "-8")) else ("floor", "ceil", "ceil_torch")
    return [
        pool(op, numbers(1, 2, 7), 3, auto_pad="valid", **more),
        pool(op, numbers(2, 1, 3, 3), 2, 2, **around(1, 1), **more),
        pool(op, numbers(2, 1, 5, 4), 2, 3, auto_pad="same_upper", strides=(2, 3), **more),
        pool(op, numbers(2, 1, 5, 4), 2, 3, auto_pad="same_lower", strides=(2, 1), **more),
        pool(op, numbers(1, 2, 3, 3), 2, 2, strides=(2, 2), auto_pad="valid", rounding_type="ceil", **more),
        pool(op, numbers(1, 2, 3, 4, 5), 2, 3, 2, **around(1, 0, 1), strides=(2, 1, 2), **more),
        pool(op, numbers(2, 2, 6, 6), 6, 6, **more),
        pool(op, numbers(1, 1, 2), 1, strides=(3,), **more),
        *(
            pool(op, numbers(1, 2, length), 4, strides=(3,), **pads, rounding_type=rounding, **more)
            for rounding in roundings
            for length in (5, 6, 7)
            for pads in ({}, around(1), {"pads_begin": (2,), "pads_end": (0,)})
        ),
    ]


MAX = [
    *(sample for op in MAXES for sample in windows(op)),
    *(
        pool(
            op,
            numbers(1, 2, 6, dtype=dtype),
            3,
            **around(1),
        )
        for op in MAXES
        for dtype in ("f16", "i64", "i32", "u64", "u32", "i16", "i8", "u8")
    ),
    *(pool(op, numbers(1, 2, 6, dtype="bf16"), 3, **around(1)) for op in MAXES),
    *(pool(op, numbers(1, 2, 6, dtype="f64"), 3, **F64) for op in MAXES),
    *(pool(op, SPECIAL, 2, **around(1)) for op in MAXES),
    *(pool(op, numbers(1, 2, 3), 1, **around(3)) for op in MAXES),
    *(
        pool(op, SEQUENCE, 2, 2, strides=(2, 2), axis=axis, index_element_type=element)
        for op in MAXES[1:]
        for axis, element in (
            (0, "i64"),
            (1, "i32"),
            (2, "i32"),
            (3, "i64"),
            (-1, "i32"),
            (-2, "i64"),
            (-4, "i64"),
        )
    ),
    *(pool(op, numbers(2, 3, 5, 6), 2, 2, dilations=(2, 3), **around(1, 1)) for op in MAXES[1:]),
    *(pool(op, numbers(1, 2, 9), 3, dilations=(3,), strides=(2,), auto_pad="same_lower") for op in MAXES[1:]),
    *(pool(op, numbers(1, 2, 2, 3, 4), 2, 2, 2, axis=2, **around(1, 1, 1)) for op in MAXES[1:]),
    *(pool(op, np.full((1, 2, 2, 2), -np.inf, "f4"), 2, 2, axis=1) for op in MAXES[1:]),
    *(pool(op, np.ones((2, 2, 4), "f4"), 3, **around(1)) for op in MAXES[1:]),
    *(
        pool(op, numbers(1, 2, 8), 3, strides=(4,), auto_pad="same_upper", rounding_type="ceil")
        for op in MAXES
    ),
]
MEAN = [
    *(
        pool(
            op,
            np.arange(1, 9, dtype="f4").reshape(1, 1, 8),
            3,
            strides=(4,),
            rounding_type="ceil",
            auto_pad="same_upper",
            exclude__pad=exclude,
            _oracle="none",
            _differs="the plugin gives NaN where a window holds nothing; the reference gives 0",
            _expect=(np.array([[[2, 6, 0]]], "f4"),),
        )
        for op in MEANS
        for exclude in (False, True)
    ),
    *(sample for op in MEANS for exclude in (False, True) for sample in windows(op, exclude__pad=exclude)),
    *(pool(op, numbers(1, 2, 6), 4, strides=(3,), **around(4)) for op in MEANS),
    *(
        pool(op, numbers(1, 2, 6, dtype=dtype, low=-100, high=100), 3, **around(1), exclude__pad=exclude)
        for op in MEANS
        for dtype in ("f16", "bf16", "i64", "i32", "u64", "u32", "i16", "i8", "u8")
        for exclude in (False, True)
    ),
    *(pool(op, np.full((1, 1, 4), 100, "i1"), 4) for op in MEANS),
    *(pool(op, numbers(1, 2, 6, dtype="f64"), 3, **F64) for op in MEANS),
    *(pool(op, SPECIAL, 2, **around(1)) for op in MEANS),
    pool("AvgPool-16", numbers(2, 3, 8, 8), 5, 5, dilations=(2, 2), **around(1, 1), strides=(2, 2)),
    pool("AvgPool-16", numbers(2, 3, 8, 8), 2, 3, dilations=(2, 3), **around(1, 1), exclude__pad=True),
    pool("AvgPool-16", numbers(1, 2, 9), 3, dilations=(3,), strides=(2,), auto_pad="same_lower"),
    pool("AvgPool-16", numbers(1, 2, 9), 3, dilations=(2,), strides=(3,), rounding_type="ceil_torch"),
]


def adaptive(op: str, data: Any, *windows: int, **attributes: Any) -> Sample:
    """Adaptive pooling; OpenVINO crashes on i64 indices."""
    indices = {"index_element_type": "i32"} if op == "Max" else {}
    return case(f"Adaptive{op}Pool-8", data, np.array(windows), **{"_constant": (1,)} | indices | attributes)


ADAPTIVE = [
    *(
        adaptive(op, data, *windows)
        for op in ("Avg", "Max")
        for data, windows in (
            (numbers(2, 3, 7), (3,)),
            (numbers(2, 3, 7), (7,)),
            (numbers(1, 2, 3), (8,)),
            (numbers(1, 2, 5), (1,)),
            (numbers(2, 3, 7, 5), (3, 2)),
            (numbers(1, 2, 4, 6), (2, 9)),
            (numbers(2, 2, 5, 6), (1, 1)),
            (numbers(1, 2, 5, 4, 7), (2, 3, 4)),
            (numbers(2, 1, 2, 3, 4), (3, 3, 1)),
            (np.ones((1, 2, 4, 4), "f4"), (3, 3)),
            (numbers(0, 2, 5), (2,)),
        )
    ),
    *(
        adaptive(op, numbers(1, 2, 7, 5, dtype=dtype, low=-100, high=100), 3, 2)
        for op in ("Avg", "Max")
        for dtype in ("f16", "bf16", "i64", "i32", "i8", "u8")
    ),
    adaptive("Avg", numbers(1, 2, 7, dtype="f64"), 3, **F64),
    adaptive("Max", numbers(1, 2, 7, dtype="f64"), 3, **F64),
    adaptive(
        "Max",
        np.array([[[3, 1, 4, 1, 5], [9, 2, 6, 5, 3]]], "f4"),
        2,
        index_element_type="i64",
        _oracle="none",
        _differs="the plugin does not support i64 indices",
        _expect=(np.array([[[4, 5], [9, 6]]], "f4"), np.array([[[2, 4], [0, 2]]])),
    ),
    adaptive("Max", np.array([[[-np.inf] * 3 + [1, 1, np.inf]]], "f4"), 3),
    adaptive("Avg", np.array([[[-np.inf] * 3 + [1, np.nan, np.inf]]], "f4"), 3),
]

SAMPLES = [*MAX, *MEAN, *ADAPTIVE]
