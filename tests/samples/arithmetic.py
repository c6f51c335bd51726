"""Arithmetic: signs, overflow, rounding, broadcasting; numbers that no one agrees about."""

from __future__ import annotations

import numpy as np
from harness.sample import Sample, case, ints, numbers, scalar

NAN, INF = float("nan"), float("inf")
SPECIAL = (-INF, -2.5, -1.0, -0.0, 0.0, 0.5, 1.0, 7.0, INF, NAN)

# Where OpenVINO's reference leaves f64 out, its plugin computes it as f32.
F64 = {"_oracle": "plugin", "_rtol": 1e-5, "_atol": 1e-6, "_differs": "the plugin computes f64 as f32"}


def floats(*numbers: float, dtype: str = "f32") -> np.ndarray:
    return np.array(numbers).astype({"f32": np.float32, "f16": np.float16, "f64": np.float64}[dtype])


def broadcasting(name: str, pdpd: bool, low: float = -3) -> list[Sample]:
    """Shapes and broadcasting rules, the same for every operation on pairs."""
    how = {"low": low}
    found = [
        case(name, numbers(), numbers(seed=1, **how)),
        case(name, numbers(4, **how), numbers(**how)),
        case(name, numbers(2, 3, **how), numbers(2, 3, seed=1, **how), auto_broadcast="none"),
        case(name, numbers(8, 1, 6, 1, **how), numbers(7, 1, 5, seed=1, **how), auto_broadcast="numpy"),
        case(name, numbers(3, **how), numbers(2, 1, 2, 3, 3, seed=1, **how)),
        case(name, numbers(2, 0, 3, **how), numbers(1, 3, seed=1, **how)),
        case(name, numbers(2, 3, dtype="f16", **how), numbers(3, dtype="f16", seed=1, **how)),
        case(name, numbers(2, 3, dtype="bf16", **how), numbers(3, dtype="bf16", seed=1, **how)),
        case(name, numbers(2, 3, dtype="f64", **how), numbers(2, 1, dtype="f64", seed=1, **how), **F64),
    ]
    if pdpd:
        found += [
            case(name, numbers(2, 3, 4, **how), numbers(2, 3, seed=1, **how), auto_broadcast="pdpd"),
            case(name, numbers(2, 3, 4, **how), numbers(1, 3, 1, seed=1, **how), auto_broadcast="pdpd"),
            case(name, numbers(2, 3, **how), numbers(seed=1, **how), auto_broadcast="pdpd"),
            case(name, numbers(2, 3, **how), numbers(2, seed=1, **how), auto_broadcast="pdpd"),
        ]
    return found


PAIRS = ("Add-1", "Subtract-1", "Multiply-1", "Divide-1")
NUMPY_ONLY = ("Power-1", "Maximum-1", "Minimum-1", "Mod-1", "FloorMod-1", "SquaredDifference-1")

ROUNDING_TO_WHOLE = ("Floor-1",)

SAMPLES = [
    *(s for name in PAIRS for s in broadcasting(name, pdpd=True)),
    *(s for name in NUMPY_ONLY for s in broadcasting(name, pdpd=False, low=0.5 if name == "Power-1" else -3)),
]
