"""Samples of the Scatter family: all reductions, duplicates, negative indices, slices, empty updates, all types."""

from __future__ import annotations

import numpy as np
from harness.sample import Sample, case, ints, numbers, scalar

from ir_runtime.ir.element import ElementType
from ir_runtime.ir.tensor import Array

TYPES = ("f64", "f32", "f16", "bf16", "i64", "i32", "i8", "u8", "boolean")
ND = ("ScatterNDUpdate-4", "ScatterNDUpdate-15")
ELEMENTS = ("ScatterElementsUpdate-3", "ScatterElementsUpdate-12")


def table(*rows: object, dtype: str = "i64") -> Array:
    return np.array(rows, ElementType.parse(dtype).dtype)


def some(*shape: int, dtype: str, seed: int = 0) -> Array:
    """Random values; integral ones in f64, which OpenVINO's plugin computes in f32."""
    whole = numbers(*shape, dtype="i32", seed=seed).astype(np.float64)
    return whole if dtype == "f64" else numbers(*shape, dtype=dtype, seed=seed)


def nd(name: str) -> list[Sample]:
    """Samples shared by both versions."""
    return [
        case(name, numbers(8), table([4], [3], [1], [7]), numbers(4, seed=1)),
        case(name, numbers(4, 4, 4), table([0], [2]), numbers(2, 4, 4, seed=1)),
        case(name, numbers(4, 3), table([0, 1], [3, 2]), numbers(2, seed=1)),
        case(name, numbers(4, 3), table([[0, 1]], [[3, 2]], dtype="i32"), numbers(2, 1, seed=1)),
        case(name, numbers(4, 3, 2), table([-1, -3], [0, -1]), numbers(2, 2, seed=1)),
        case(name, numbers(2, 3, 2, 2, 2), table([1, 2, 0], [0, 0, 1]), numbers(2, 2, 2, seed=1)),
        case(name, numbers(3, 2), table([0], [0]), numbers(2, 2, seed=1)),
        case(name, numbers(3, 2), np.array([1, 1]), numbers(seed=1)),
        case(name, numbers(3, 2), np.array([1, 1]), numbers(1, seed=1)),
        case(name, numbers(3, 2), np.array([-1]), numbers(2, seed=1)),
        case(name, numbers(3, 2), np.zeros((0, 2), np.int64), numbers(0)),
        case(name, numbers(3, 0), table([1], [2]), numbers(2, 0)),
        *(case(name, some(4, 2, dtype=t), table([2], [0]), some(2, 2, dtype=t, seed=1)) for t in TYPES),
    ]


REDUCED_ND = [
    *(
        case(
            "ScatterNDUpdate-15",
            some(4, 2, dtype=t),
            table([2], [0], [2], [-2]),
            some(4, 2, dtype=t, seed=1),
            reduction=reduction,
        )
        for reduction in ("none", "sum", "sub", "prod", "min", "max")
        for t in TYPES
    ),
    *(
        case(
            "ScatterNDUpdate-15",
            np.array([np.nan, 1, np.inf, -np.inf], np.float32),
            table([0], [1], [2], [3], [1]),
            np.array([1, np.nan, 2, -2, 0.5], np.float32),
            reduction=reduction,
        )
        for reduction in ("sum", "min", "max")
    ),
    case("ScatterNDUpdate-15", numbers(3, 2), table([1, 1], [1, 1]), numbers(2, seed=1), reduction="sum"),
    case("ScatterNDUpdate-15", numbers(3), np.zeros((0, 1), np.int64), numbers(0), reduction="prod"),
]

UPDATE = [
    case("ScatterUpdate-3", numbers(3, 5), ints(0, 2), numbers(3, 2, seed=1), ints(1)),
    case("ScatterUpdate-3", numbers(3, 5), ints(0, 2), numbers(2, 5, seed=1), scalar(0)),
    case("ScatterUpdate-3", numbers(3, 5), ints(0, 2), numbers(3, 2, seed=1), scalar(-1, "i32")),
    case("ScatterUpdate-3", numbers(5), ints(4, dtype="i32"), numbers(1, seed=1), ints(0)),
    case(
        "ScatterUpdate-3",
        ints(5, 6, 7),
        scalar(2),
        scalar(9),
        scalar(0),
        _oracle="none",
        _differs="reference and plugin fail on an update of rank 0, which the page shows",
        _expect=(ints(5, 6, 9),),
    ),
    case("ScatterUpdate-3", numbers(4, 3, 2), table([0, 2], [3, 1]), numbers(2, 2, 3, 2, seed=1), scalar(0)),
    case("ScatterUpdate-3", numbers(2, 4, 3), table([0, 2], [3, 1]), numbers(2, 2, 2, 3, seed=1), scalar(1)),
    case("ScatterUpdate-3", numbers(2, 4, 3), scalar(3), numbers(2, 3, seed=1), scalar(1)),
    case("ScatterUpdate-3", numbers(2, 2, 3, 2, 2), ints(1), numbers(2, 2, 1, 2, 2, seed=1), scalar(2)),
    case("ScatterUpdate-3", numbers(2, 3), ints(1, 1), numbers(2, 2, seed=1), ints(1, dtype="u8")),
    case("ScatterUpdate-3", numbers(2, 3), ints(), numbers(2, 0), scalar(1)),
    case("ScatterUpdate-3", numbers(2, 3), ints(2, dtype="u8"), numbers(2, 1, seed=1), scalar(1, "i8")),
    *(
        case("ScatterUpdate-3", some(4, 2, dtype=t), ints(2, 0), some(2, 2, dtype=t, seed=1), ints(0))
        for t in TYPES
    ),
]


def elements(name: str) -> list[Sample]:
    """Samples shared by both versions."""
    return [
        case(name, numbers(4), ints(1, 0, -2), numbers(3, seed=1), ints(0)),
        case(name, numbers(3, 4), table([1, 2], [0, 3]), numbers(2, 2, seed=1), ints(1)),
        case(name, numbers(3, 4), table([1, 2], [0, 1]), numbers(2, 2, seed=1), scalar(0)),
        case(name, numbers(3, 4), table([1, 2], [0, 3]), numbers(2, 2, seed=1), scalar(-1, "i32")),
        case(
            name, numbers(2, 3, 2), table([[0, 1], [2, 0]], dtype="i32"), numbers(1, 2, 2, seed=1), scalar(1)
        ),
        case(
            name,
            numbers(2, 2, 1, 3),
            table([[[[2, 0, 1, -1]]]]).reshape(1, 1, 1, 4),
            numbers(1, 1, 1, 4),
            ints(3),
        ),
        case(
            name, numbers(1, 2, 1, 2, 2), ints(1, 0).reshape(1, 2, 1, 1, 1), numbers(1, 2, 1, 1, 1), ints(4)
        ),
        case(name, numbers(3), ints(1, 1, 1, 2, 1), numbers(5, seed=1), ints(0, dtype="u8")),
        case(name, numbers(3, 2), np.zeros((0, 2), np.int64), numbers(0, 2), ints(0)),
        case(name, numbers(4), ints(1, 3, dtype="u8"), numbers(2, seed=1), scalar(0, "i8")),
        case(name, numbers(2, 3), table([-1, -3, 1], [0, 2, -2]), numbers(2, 3, seed=1), ints(1)),
        case(name, numbers(3, 0), np.zeros((1, 0), np.int64), numbers(1, 0), ints(0)),
        *(
            case(name, some(4, 2, dtype=t), table([2, 0]), some(1, 2, dtype=t, seed=1), ints(0))
            for t in TYPES
        ),
    ]


REDUCED_ELEMENTS = [
    *(
        case(
            "ScatterElementsUpdate-12",
            some(4, 2, dtype=t),
            table([2, 0], [2, 1], [-2, 0], [3, 0]),
            some(4, 2, dtype=t, seed=1),
            ints(0),
            reduction=reduction,
            use_init_val=init,
            _rtol=1e-6 if (reduction, t) == ("mean", "f64") else None,  # computed in f32
        )
        for reduction in ("none", "sum", "prod", "min", "max", "mean")
        for init in (True, False)
        for t in TYPES
        if reduction != "mean" or t not in ("boolean", "i8")
    ),
    *(
        case(
            "ScatterElementsUpdate-12",
            np.array([np.nan, 1, np.inf, -np.inf], np.float32),
            ints(0, 1, 2, 3),
            np.array([1, np.nan, -np.inf, np.inf], np.float32),
            ints(0),
            reduction=reduction,
            use_init_val=init,
        )
        for reduction in ("sum", "min", "max", "mean")
        for init in (True, False)
    ),
    case(
        "ScatterElementsUpdate-12",
        ints(-7, 7, 100, dtype="i8"),
        ints(0, 1, 2),
        ints(2, 0, 100, dtype="i8"),
        ints(0),
        reduction="mean",
        _oracle="none",
        _differs="the reference does not take i8, the plugin rounds towards zero; the page says down",
        _expect=(ints(-3, 3, -28, dtype="i8"),),
    ),
    case(
        "ScatterElementsUpdate-12",
        numbers(3),
        ints(),
        numbers(0),
        ints(0),
        reduction="max",
        use_init_val=False,
    ),
]

SAMPLES = [
    *(sample for name in ND for sample in nd(name)),
    *REDUCED_ND,
    *UPDATE,
    *(sample for name in ELEMENTS for sample in elements(name)),
    *REDUCED_ELEMENTS,
]
