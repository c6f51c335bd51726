"""Samples of FakeQuantize, with limits of every shape, and of FakeConvert."""

from __future__ import annotations

from typing import Any

import numpy as np
from harness.sample import Sample, case, numbers, scalar

from ir_runtime.ir.element import ElementType
from ir_runtime.ir.tensor import Array

NAN, INF = np.nan, np.inf
SPECIAL = np.array([-INF, -2, -1, -0.5, -0.0, 0.1, 0.25, 0.5, 0.75, 1, 2, INF, NAN], np.float32)
ALL_HALVES = np.arange(0, 2**16, 7, np.uint16).view(np.float16)

# Where OpenVINO has no reference, its plugin computes in f32; a few numbers may reach another level there.
WIDE = {"_oracle": "plugin", "_rtol": 1e-5}


def levels(data: Array, *limits: Any, count: int, **how: Any) -> Sample:
    """A FakeQuantize; limits are arrays, or numbers in the type of the data."""
    label = ElementType.from_dtype(data.dtype).label
    return case(
        "FakeQuantize-1",
        data,
        *(n if isinstance(n, np.ndarray) else scalar(n, label) for n in limits),
        levels=count,
        **how,
    )


def spread(shapes: tuple[tuple[int, ...], ...], *data: int, dtype: str = "f32", **how: Any) -> Sample:
    """Limits of given shapes: inputs around -2 to 2, outputs around -1 to 3."""
    around = zip(shapes, ((-2.5, -1.5), (1.5, 2.5), (-1.5, -0.5), (2.5, 3.5)), strict=True)
    limits = [numbers(*shape, dtype=dtype, low=a, high=b) for shape, (a, b) in around]
    return levels(numbers(*data, dtype=dtype), *limits, count=how.pop("count", 16), **how)


def pdpd(limit: tuple[int, ...], *data: int) -> Sample:
    """A sample of pdpd broadcasting as specified; OpenVINO broadcasts as NumPy does."""
    whole = spread((limit,) * 4, *data, count=9)
    x, low, high, first, last = whole.inputs
    low, high, first, last = (a.reshape(limit + (1,) * (x.ndim - len(limit))) for a in whole.inputs[1:])
    inside = np.rint((x - low) / (high - low) * 8) / 8 * (last - first) + first
    right = np.select([x <= low, x > high], np.broadcast_arrays(first, last), inside).astype(np.float32)
    return case(
        "FakeQuantize-1",
        *whole.inputs,
        levels=9,
        auto_broadcast="pdpd",
        _oracle="none",
        _expect=(right,),
        _differs="OpenVINO takes pdpd for numpy",
    )


PER_CHANNEL, ONE = ((1, 3, 1, 1),) * 2, ((),) * 2

LEVELS = [
    levels(SPECIAL, -1, 1, -1, 1, count=5),
    levels(SPECIAL, 1, -1, -1, 1, count=5),
    levels(SPECIAL, -1, 1, 2, -2, count=5),
    levels(SPECIAL, 0.5, 0.5, -1, 1, count=2),
    levels(SPECIAL, -1, 1, 1, 1, count=255),
    levels(SPECIAL, NAN, 1, 0, 1, count=4),
    levels(SPECIAL, -1, NAN, 0, 1, count=4),
    levels(SPECIAL, -1, 1, NAN, INF, count=4),
    levels(SPECIAL, -INF, INF, 0, 1, count=4),
    levels(SPECIAL.astype(np.float16), -1, 1, -1, 1, count=5),
    levels(SPECIAL.astype(ElementType.bf16.dtype), 1, -1, 0, 1, count=5),
    levels(numbers(), -2, 2, 0, 5, count=4),
    levels(numbers(0, 3), -2, 2, 0, 5, count=4),
    levels(numbers(3, 0, dtype="f16"), numbers(3, 1, dtype="f16"), 2, 0, 5, count=4),
    levels(numbers(200), -2.3, 1.7, -0.9, 3.3, count=2),
    levels(numbers(200), -2.3, 1.7, -0.9, 3.3, count=255),
    levels(numbers(200, seed=1), -2.3, 1.7, -0.9, 3.3, count=65536),
    levels(numbers(200, dtype="f16"), -2.3, 1.7, -0.9, 3.3, count=256),
    levels(numbers(200, dtype="f16"), -2.3, 1.7, -0.9, 3.3, count=65536),
    levels(numbers(200, dtype="bf16"), -2.3, 1.7, -0.9, 3.3, count=16),
    levels(numbers(200, dtype="f64"), -2.3, 1.7, -0.9, 3.3, count=16, **WIDE),
    spread(PER_CHANNEL * 2, 2, 3, 4, 2),
    spread(PER_CHANNEL + ONE, 2, 3, 4, 2, _constant=(1, 2, 3, 4)),
    spread(ONE + PER_CHANNEL, 2, 3, 4, 2, dtype="f16"),
    spread(((3, 1), (4,), (1, 3, 1), (2, 1, 1)), 2, 3, 4),
    spread(((), (3, 1), (), (3, 1)), 2, 3, 4),
    spread(((1,), (1,), (4,), (2, 1, 1)), 2, 3, 4, dtype="bf16", count=5),
    spread(((2, 3),) * 4, 2, 3, auto_broadcast="none"),
    spread(((2, 3),) * 4, 2, 3, auto_broadcast="none", _constant=(1, 2)),
    spread(((1, 1, 1, 1),) * 4, 2, 3, _constant=(1, 2, 3, 4)),
    spread(((1, 1, 3),) * 4, 2, 3),
    spread(((2, 1, 3, 1, 2),) * 4, 2, 2, 3, 1, 2),
    pdpd((2,), 2, 3, 4),
    pdpd((2, 3), 2, 3, 4),
    pdpd((2, 3, 4), 2, 3, 4),
]


def eight_bits(target: str, *inputs: Any, dtype: str = "f32", **how: Any) -> Sample:
    arrays = (np.asarray(x).astype(ElementType.parse(dtype).dtype) for x in inputs)
    return case("FakeConvert-13", *arrays, destination_type=target, **how)


CONVERTED = [
    sample
    for target in ("f8e4m3", "f8e5m2")
    for sample in (
        eight_bits(target, ALL_HALVES, 1, dtype="f16", _rtol=0, _atol=0),
        eight_bits(target, ALL_HALVES[np.isfinite(ALL_HALVES)], 1, dtype="bf16"),
        eight_bits(target, [1e30, -1e30, 65520, 449, -57345, 1e-9, -0.0, NAN, INF, -INF], 1),
        eight_bits(target, numbers(200, low=-30, high=30), 3.3, 0.77),
        eight_bits(target, numbers(200, low=-30, high=30), 3.3, 0.77, dtype="f16"),
        # Powers of 2, as OpenVINO rounds to bf16 in its own way.
        eight_bits(target, numbers(200, low=-30, high=30, dtype="bf16"), 0.5, dtype="bf16"),
        eight_bits(target, numbers(2, 3, 4), numbers(3, 1, low=1, seed=1), numbers(3, 1, seed=2)),
        eight_bits(target, numbers(2, 3, 2, 2), numbers(1, 3, 1, 1, low=1), numbers(1, 3, 1, 1)),
        eight_bits(target, numbers(2, 3), numbers(3, low=1), _constant=(1,)),
        eight_bits(target, numbers(2, 3), numbers(2, 3, low=1), numbers(2, 3), _constant=(1, 2)),
        eight_bits(target, numbers(1, 2, 1, 2, 1), numbers(1, low=1), dtype="f16"),
        eight_bits(target, numbers(), 2),
        eight_bits(target, numbers(0, 3), [2, 2, 2]),
        eight_bits(target, [1, -2, 0], [0, INF, NAN]),
    )
]

SAMPLES = [*LEVELS, *CONVERTED]
