"""Samples of normalizations: axes, epsilons, types. For most of them the plugin is the only oracle."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
from harness.sample import Sample, case, ints, numbers, scalar

# The plugin computes f64 as f32.
F64: dict[str, Any] = {"_oracle": "plugin", "_rtol": 1e-5, "_atol": 1e-6}
REAL = ("f16", "bf16", "f64")


def precise(dtype: str) -> dict[str, Any]:
    return F64 if dtype == "f64" else {}


def normalize_l2() -> Iterator[Sample]:
    name, fixed = "NormalizeL2-1", {"_constant": (1,)}
    x, zeros = numbers(2, 3, 4), np.zeros((2, 3), np.float32)
    lists = [ints(1), ints(-1), ints(1, 2), ints(-2, 0), ints(0, 1, 2), ints()]
    lists += [ints(2, 1, dtype="i32"), ints(0, 2, dtype="u8"), scalar(1), scalar(-3, "i8")]
    for axes in lists:
        yield case(name, x, axes, eps=1e-8, eps_mode="add", **fixed)
        yield case(name, x, axes, eps=0.5, eps_mode="max", **fixed)
    for mode in ("add", "max"):
        yield case(name, zeros, ints(1), eps=1e-4, eps_mode=mode, **fixed)
        yield case(name, np.array([[0, 2, -3]], np.float32), ints(), eps=1e-4, eps_mode=mode, **fixed)
        for dtype in REAL:
            options = fixed | precise(dtype)
            yield case(name, numbers(2, 6, dtype=dtype), ints(1), eps=0.01, eps_mode=mode, **options)
    yield case(name, numbers(3), ints(0), eps=0.1, eps_mode="add", **fixed)
    yield case(name, numbers(2, 3, 1, 2, 2), ints(1), eps=0.1, eps_mode="add", **fixed)
    yield case(name, numbers(2, 4, 3, 3), ints(1, 2, 3), eps=3.0, eps_mode="max", **fixed)


def mvn_6() -> Iterator[Sample]:
    name, fixed = "MVN-6", {"_constant": (1,)}
    inside = {"eps": 0.1, "eps_mode": "inside_sqrt", "normalize_variance": True}
    outside = inside | {"eps_mode": "outside_sqrt"}
    for axes in (ints(1), ints(-1, 0), ints(2, 0, 1, dtype="i32"), ints(), ints(1, 1)):
        for variance in (True, False):
            for options in (inside, outside, inside | {"eps": 1e-6}):
                options = options | {"normalize_variance": variance}
                yield case(name, numbers(2, 3, 4), axes, **options, **fixed)
    for dtype in REAL:
        yield case(name, numbers(2, 6, dtype=dtype), ints(1), **inside, **fixed, **precise(dtype))
        yield case(name, numbers(2, 6, dtype=dtype), ints(1), **outside, **fixed, **precise(dtype))
    yield case(name, numbers(2, 3, 4), ints(-2), **inside)
    yield case(name, numbers(5), ints(0), **inside)
    yield case(name, numbers(2, 3, 2, 2, 2), ints(2, 3, 4), **inside)
    yield case(name, numbers(2, 0), ints(0), **inside)
    yield case(name, np.ones((2, 3), np.float32), ints(1), **outside)
    # Far from zero, OpenVINO rounds the mean to f32 first: it is off by 1.4e-4, we by 3e-8.
    yield case(name, numbers(2, 6, low=1000, high=1001), ints(1), **inside, _rtol=0, _atol=2e-4)


def mvn_1() -> Iterator[Sample]:
    name = "MVN-1"
    x, options = numbers(2, 4, 3, 2), {"eps": 0.1, "normalize_variance": True}
    for variance, across in product((True, False), (True, False)):
        for eps in (0.5, 1e-6):
            yield case(name, x, across_channels=across, normalize_variance=variance, eps=eps)
    for dtype, across in product(REAL, (True, False)):
        y = numbers(2, 4, 3, dtype=dtype)
        yield case(name, y, across_channels=across, **options, **precise(dtype))
    for shape in ((5,), (2, 3), (2, 3, 2, 2, 2), (0, 3, 2)):
        yield case(name, numbers(*shape), across_channels=False, **options)
    yield case(name, numbers(2, 3), across_channels=True, **options)
    yield case(name, numbers(2, 3, 2, 2, 2), across_channels=True, **options)
    yield case(name, x, **options)
    # The plugin knows two sets of axes: all but the first, and all but the first two.
    yield case(name, x, reduction_axes=(1, 2, 3), **options)
    yield case(name, x, reduction_axes=(2, 3), **options)
    yield case(name, x, reduction_axes=(-1, -2), across_channels=True, **options)
    yield case(name, x, reduction_axes=(3, 2, 1), across_channels=False, **options)
    first = x.astype(float) - x.astype(float).mean(0)
    yield case(
        name,
        x,
        reduction_axes=(0,),
        **options,
        _oracle="none",
        _expect=((first / np.sqrt((first**2).mean(0) + 0.1)).astype(np.float32),),
        _differs="the plugin takes other axes than those it is given",
    )


def windows(x: np.ndarray, axes: tuple[int, ...], alpha: float, beta: float, bias: float, size: int) -> Any:
    """LRN computed element by element."""
    found, reach = np.empty(x.shape, np.float64), (size - 1) // 2
    for index in np.ndindex(x.shape):
        near = tuple(slice(max(i - reach, 0), i + reach + 1) if a in axes else i for a, i in enumerate(index))
        squares = (x[near].astype(float) ** 2).sum()
        found[index] = x[index] / (bias + alpha / size ** len(axes) * squares) ** beta
    return found.astype(x.dtype)


def lrn() -> Iterator[Sample]:
    name, fixed = "LRN-1", {"_constant": (1,)}
    options = {"alpha": 0.5, "beta": 0.75, "bias": 1}
    for size in (1, 2, 3, 4, 5, 9):
        yield case(name, numbers(2, 5, 3), ints(1), **options, size=size, **fixed)
        yield case(name, numbers(2, 2, 5, 4), ints(2, 3), **options, size=size, **fixed)
    for dtype in REAL:
        yield case(name, numbers(1, 6, 3, dtype=dtype), ints(1), **options, size=3, **fixed, **precise(dtype))
    yield case(name, numbers(2, 5, 3), ints(1, dtype="u8"), **options, size=3, **fixed)
    yield case(name, numbers(2, 5, 3), ints(1), alpha=-0.01, beta=1.5, bias=2, size=3, **fixed)
    yield case(name, numbers(2, 5, 3), ints(1), alpha=1e-4, beta=0.1, bias=3, size=5, **fixed)
    refused = "the plugin refuses these axes, and rounds bias to an integer"
    x = numbers(2, 4, 3, 3)
    for axes, bias in (((1,), 1.5), ((3,), 1), ((1, 2, 3), 1.5), ((0, 2), 2.5)):
        sizes = {"alpha": 0.5, "beta": 0.75, "bias": bias, "size": 3}
        expected = (windows(x, axes, **sizes),)
        yield case(name, x, ints(*axes), **sizes, **fixed, _oracle="none", _expect=expected, _differs=refused)


def group_normalization() -> Iterator[Sample]:
    name = "GroupNormalization-12"
    for shape, groups in (
        ((2, 4), 2), ((2, 4, 3), 4), ((2, 4, 3), 1), ((2, 6, 3), 3), ((2, 4, 3, 2), 2), ((1, 4, 2, 2, 2), 2),
        ((0, 4, 3), 2), ((3, 1, 5), 1),
    ):  # fmt: skip
        settings = numbers(shape[1]), numbers(shape[1], seed=1)
        for epsilon in (1e-5, 0.5):
            yield case(name, numbers(*shape), *settings, num_groups=groups, epsilon=epsilon)
    for dtype in ("f64", "f16"):
        inputs = numbers(2, 4, 3, dtype=dtype), numbers(4, dtype=dtype), numbers(4, dtype=dtype, seed=1)
        yield case(name, *inputs, num_groups=2, epsilon=0.1, **precise(dtype))
    data, scale, bias = (
        numbers(2, 4, dtype="bf16"),
        numbers(4, dtype="bf16"),
        numbers(4, dtype="bf16", seed=1),
    )
    pairs = data.astype(float).reshape(2, 2, 2)
    centred = pairs - pairs.mean(2, keepdims=True)
    normal = (centred / np.sqrt((centred**2).mean(2, keepdims=True) + 0.1)).reshape(2, 4)
    expected = (normal * scale.astype(float) + bias.astype(float)).astype(data.dtype)
    missing = "the plugin has no bf16 here"
    inputs = data, scale, bias
    told = {"_oracle": "none", "_expect": (expected,), "_differs": missing}
    yield case(name, *inputs, num_groups=2, epsilon=0.1, **told)


def batch_norm() -> Iterator[Sample]:
    for shape in ((2, 4), (2, 4, 3), (2, 3, 2, 2), (1, 2, 2, 2, 2), (0, 3, 2), (2, 1, 3)):
        for dtype in ("f32", *REAL) if len(shape) == 3 else ("f32",):
            data = numbers(*shape, dtype=dtype)
            gamma, beta, mean = (numbers(shape[1], dtype=dtype, seed=i) for i in range(3))
            variance = numbers(shape[1], dtype=dtype, low=0.2, high=2)
            for epsilon in (0, 1e-3, 0.5):
                options = {"epsilon": epsilon, **precise(dtype)}
                yield case("BatchNormInference-5", data, gamma, beta, mean, variance, **options)
                yield case("BatchNormInference-1", gamma, beta, data, mean, variance, **options)
            if dtype == "f32":
                known = {"_constant": (0, 1, 3, 4), "epsilon": 1e-3}
                yield case("BatchNormInference-1", gamma, beta, data, mean, variance, **known)


def grn() -> Iterator[Sample]:
    for shape in ((2, 3), (2, 3, 4), (2, 3, 2, 2), (0, 3), (1, 1, 5), (4, 2, 1)):
        yield case("GRN-1", numbers(*shape), bias=0.1)
        yield case("GRN-1", numbers(*shape), bias=1e-6)
    yield case("GRN-1", np.zeros((2, 3), np.float32), bias=1e-4)
    for dtype in REAL:
        yield case("GRN-1", numbers(2, 6, 3, dtype=dtype), bias=0.1, **precise(dtype))


SAMPLES = [
    *normalize_l2(), *mvn_6(), *mvn_1(), *lrn(), *group_normalization(), *batch_norm(), *grn(),
]  # fmt: skip
