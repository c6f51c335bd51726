"""Samples of random operations: values equal to OpenVINO's, and classes of which only one is possible."""

from __future__ import annotations

from typing import Any

import numpy as np
from harness.sample import Sample, case, ints

from ir_runtime.ir.element import ElementType


def uniform(
    shape: tuple[int, ...],
    low: Any,
    high: Any,
    dtype: str,
    global_seed: int,
    op_seed: int,
    *,
    index: str = "i64",
    **how: Any,
) -> Sample:
    """A RandomUniform, equal to OpenVINO's reference bit for bit."""
    limits = (np.array(n, ElementType.parse(dtype).dtype) for n in (low, high))
    how = {"_constant": (0,), "_rtol": 0, "_atol": 0} | how
    seeds = {"global_seed": global_seed, "op_seed": op_seed}
    return case("RandomUniform-8", ints(*shape, dtype=index), *limits, output_type=dtype, **seeds, **how)


OTHER_BITS = "a number of f16 is made of other bits of the generator than one of f32"

UNIFORM = [
    # The page's examples.
    uniform((3, 3), 0, 1, "f32", 150, 10),
    uniform((2, 2), 2, 10, "f64", 80, 100),
    uniform((2, 3), 50, 100, "i32", 80, 100),
    *(
        sample
        for alignment in ("tensorflow", "pytorch")
        for sample in (
            uniform((7, 5), -3.7, 1.3, "f32", 7, 0, alignment=alignment, index="i32"),
            uniform(
                (2, 1, 3), -1000, 60000, "f16", 2**33 + 1, 2**40, alignment=alignment, _in_f32=OTHER_BITS
            ),
            uniform((9,), 0, 1, "f16", 1, 2, alignment=alignment, _in_f32=OTHER_BITS),
            # OpenVINO rounds to bf16 in its own way, where there is something to round.
            uniform((9,), 0, 1, "bf16", 1, 2, alignment=alignment),
            uniform((3, 5), 2, 10, "bf16", 80, 100, alignment=alignment),
            uniform((11,), -1e300, 1e300, "f64", 3, -1, alignment=alignment),
            uniform((11,), -(2**31), 2**31 - 1, "i32", 3, 4, alignment=alignment),
            uniform((5,), [-7], [3], "i32", -1, -(2**63), alignment=alignment),
            uniform((11,), -5, 2**32 - 1, "i64", 3, 4, alignment=alignment),
            uniform((11,), -5, 2**32, "i64", 3, 4, alignment=alignment),
            uniform((11,), -(2**62), 2**62, "i64", 3, 4, alignment=alignment),
            uniform((), 0, 1, "f32", 5, 6, alignment=alignment),
            uniform((2, 0, 3), 0, 1, "f32", 5, 6, alignment=alignment),
            uniform((1300,), 0, 1, "f32", 5, 6, alignment=alignment),
        )
    ),
    uniform((2, 3), 0, 1, "f32", 0, 7, alignment="pytorch"),
    uniform((2, 3), 0, 1, "f32", 0, 7, _constant=(0, 1, 2)),
    uniform((2, 3), 0, 1, "f32", 0, 8, _constant=()),
    uniform((2, 3), 0, 1, "f32", -(2**63), 3),
]


def classes(probs: Any, count: Any, *, again: bool = True, dtype: str = "f32", **how: Any) -> Sample:
    """A Multinomial, mostly with one possible class per entry; `tests/openvino/test_random.py` covers others."""
    how = {"convert_type": "i64", "log_probs": False, "global_seed": 1, "op_seed": 2, "_constant": (1,)} | how
    data = np.array(probs, ElementType.parse(dtype).dtype)
    return case("Multinomial-13", data, np.asarray(count), with_replacement=again, **how)


CLASSES = [
    classes([[0, 1, 0], [1, 0, 0], [0, 0, 7]], 4),
    classes([[0, 1, 0], [1, 0, 0]], [4], convert_type="i32"),
    classes([[0, 1, 0], [0, 0, 1]], 1, again=False, dtype="f16"),
    classes([[-50, 50, -50], [50, 0, 1]], 3, log_probs=True),
    classes([[-50, 50, -50], [50, 0, 1]], np.int32(1), log_probs=True, again=False, convert_type="i32"),
    classes([[-20, 10, -20]], 5, log_probs=True, dtype="f16"),
    classes([[2.5]], 3, dtype="bf16"),
    classes([[0, 0, 3, 0]], 2, dtype="f64"),
    classes([[0, 1]], 3, global_seed=0, op_seed=0),
    classes([[0, 1]], 2, _constant=()),
    classes(np.zeros((0, 3)), 2),
    classes([[1, 0], [0, 1]], 0),
    classes(
        [[np.nan, 1], [0, 0]],
        2,
        _oracle="none",
        _expect=(np.zeros((2, 2), np.int64),),
        _differs="where nothing is reached the reference says 0, the plugin nothing at all",
    ),
    classes([[0, 1]], 3, global_seed=-(2**63), op_seed=-(2**63)),
]

SAMPLES = [*UNIFORM, *CLASSES]
