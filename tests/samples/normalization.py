"""Normalizations: axes, epsilons, types."""

from __future__ import annotations

import numpy as np
from harness.sample import Sample, case, ints, numbers, scalar

# OpenVINO's plugin, which is all there is for most of these, computes f64 as f32.
F64 = {"_oracle": "plugin", "_rtol": 1e-5, "_atol": 1e-6}


def normalize_l2() -> list[Sample]:
    name, fixed = "NormalizeL2-1", {"_constant": (1,)}
    x = numbers(2, 3, 4)
    return [
        case(name, x, axes, eps=eps, eps_mode=mode, **fixed)
        for axes in (
            ints(1), ints(-1), ints(1, 2), ints(-2, 0), ints(0, 1, 2), ints(2, 1, dtype="i32"),
            scalar(1), scalar(-3, "i8"), ints(0, 2, dtype="u8"), ints(),
        )
        for mode, eps in (("add", 1e-8), ("max", 0.5))
    ] + [
        case(name, numbers(3), ints(0), eps=0.1, eps_mode="add", **fixed),
        case(name, numbers(2, 3, 1, 2, 2), ints(1), eps=0.1, eps_mode="add", **fixed),
        case(name, numbers(2, 4, 3, 3), ints(1, 2, 3), eps=3.0, eps_mode="max", **fixed),
        case(name, np.zeros((2, 3), np.float32), ints(1), eps=1e-4, eps_mode="add", **fixed),
        case(name, np.zeros((2, 3), np.float32), ints(1), eps=1e-4, eps_mode="max", **fixed),
        case(name, np.array([[0, 2, -3]], np.float32), ints(), eps=1e-4, eps_mode="add", _oracle="none", _expect=(np.array([[0, 1, 1]], np.float32),), _differs="the page: 1 for every element that is not zero; the plugin keeps the sign", **fixed),
        case(name, numbers(2, 6, dtype="f16"), ints(1), eps=0.01, eps_mode="add", **fixed),
        case(name, numbers(2, 6, dtype="bf16"), ints(1), eps=0.01, eps_mode="max", **fixed),
        case(name, numbers(2, 6, dtype="f64"), ints(1), eps=0.01, eps_mode="max", **fixed, **F64),
    ]  # fmt: skip


def mvn_6() -> list[Sample]:
    name = "MVN-6"
    x = numbers(2, 3, 4)
    return [
        case(name, x, axes, eps=eps, eps_mode=mode, normalize_variance=variance, _constant=(1,))
        for axes in (ints(1), ints(-1, 0), ints(2, 0, 1, dtype="i32"), ints(), ints(1, 1))
        for mode, eps in (("inside_sqrt", 1e-9 if axes.size else 0.1), ("outside_sqrt", 0.5))
        for variance in (True, False)
    ] + [
        case(name, x, ints(-2), eps=0.1, eps_mode="inside_sqrt", normalize_variance=True),
        case(name, numbers(5), ints(0), eps=0.1, eps_mode="inside_sqrt", normalize_variance=True),
        case(name, numbers(2, 3, 2, 2, 2), ints(2, 3, 4), eps=0.1, eps_mode="inside_sqrt", normalize_variance=True),
        case(name, numbers(2, 0), ints(0), eps=0.1, eps_mode="inside_sqrt", normalize_variance=True),
        case(name, np.ones((2, 3), np.float32), ints(1), eps=1e-5, eps_mode="outside_sqrt", normalize_variance=True),
        case(name, numbers(2, 6, low=1000, high=1001), ints(1), eps=1e-5, eps_mode="inside_sqrt", normalize_variance=True, _rtol=2e-3, _atol=2e-3),
        case(name, numbers(2, 6, dtype="f16"), ints(1), eps=0.1, eps_mode="inside_sqrt", normalize_variance=True, _constant=(1,)),
        case(name, numbers(2, 6, dtype="bf16"), ints(1), eps=0.1, eps_mode="outside_sqrt", normalize_variance=True, _constant=(1,)),
        case(name, numbers(2, 6, dtype="f64"), ints(1), eps=0.1, eps_mode="outside_sqrt", normalize_variance=True, _constant=(1,), **F64),
    ]  # fmt: skip


SAMPLES = [*normalize_l2(), *mvn_6()]
