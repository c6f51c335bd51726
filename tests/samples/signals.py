"""Samples of Fourier transforms: any order of axes, truncated and padded; STFT with windows of every length."""

from __future__ import annotations

from typing import Any

import numpy as np
from harness.sample import Sample, case, ints, numbers, scalar

from ir_runtime.ir.element import ElementType
from ir_runtime.ir.tensor import Array


def along(x: Array, axis: int, size: int, sign: int) -> Array:
    """The transform by definition: x, padded or truncated, times exp(sign * 2 pi i j k / size)."""
    length = min(size, x.shape[axis])
    k, j = np.ogrid[:size, :length]
    part = x.take(range(length), axis)
    return np.moveaxis(np.tensordot(np.exp(sign * 2j * np.pi * k * j / size), part, (1, axis)), 0, axis)


def defined(name: str, data: Array, axes: tuple[int, ...], sizes: tuple[int, ...] | None) -> Array:
    """The transform as specified, in f64."""
    x = data.astype(np.float64)
    if name != "RDFT-9":
        x = x[..., 0] + 1j * x[..., 1]
    places = [a % x.ndim for a in axes]
    inverse, last = name.startswith("I"), places[-1] if places else None
    for i, axis in enumerate(places):
        size = sizes[i] if sizes else -1
        if size == -1:
            size = x.shape[axis]
            if name == "IRDFT-9" and axis == last:
                size = 2 * (size - 1)
        if name == "IRDFT-9" and axis == last:
            kept = x.take(range(min(size // 2 + 1, x.shape[axis])), axis)
            missing = [(0, size // 2 + 1 - kept.shape[axis] if a == axis else 0) for a in range(x.ndim)]
            kept = np.pad(kept, missing)
            mirror = kept.take(range((size - 1) // 2, 0, -1), axis).conj()
            first = [0 if a == axis else slice(None) for a in range(x.ndim)]
            kept[tuple(first)] = kept[tuple(first)].copy()
            x = np.concatenate([kept, mirror], axis)
        x = along(x, axis, size, 1 if inverse else -1) / (size if inverse else 1)
    if name == "RDFT-9" and last is not None:
        x = x.take(range(x.shape[last] // 2 + 1), last)
    found = x.real if name == "IRDFT-9" else np.stack([x.real, x.imag], -1)
    return np.asarray(found).astype(data.dtype)


def transform(
    name: str,
    shape: tuple[int, ...],
    axes: tuple[int, ...],
    sizes: tuple[int, ...] | None = None,
    *,
    dtype: str = "f32",
    index: str = "i64",
    wrong: bool = False,
    constant: bool = True,
    **how: Any,
) -> Sample:
    """A transform of random data, given its shape without the complex axis; ``wrong`` where the plugin differs.

    The plugin crashes if axes or sizes of RDFT and IRDFT are not constants.
    """
    pair = () if name == "RDFT-9" else (2,)
    data = numbers(*shape, *pair, dtype=dtype)
    inputs = [ints(*axes, dtype=index)] + ([] if sizes is None else [ints(*sizes, dtype=index)])
    if constant:
        how["_constant"] = (1, 2)[: len(inputs)]
    if wrong or (not constant and name.endswith("RDFT-9")):
        how |= {"_oracle": "none", "_differs": "the plugin gives garbage, or crashes"}
        how["_expect"] = (defined(name, data, axes, sizes),)
    return case(name, data, *inputs, **how)


# The CPU plugin, which is the only one to ask, computes in f32 whatever the type.
IN_F32: dict[str, Any] = {"_rtol": 1e-5, "_atol": 1e-5}


COMPLEX = [
    sample
    for name in ("DFT-7", "IDFT-7")
    for sample in (
        transform(name, (4,), (0,)),
        transform(name, (4, 6), (0,)),
        transform(name, (4, 6), (0, 1)),
        transform(name, (4, 6), (-1, 0), index="i32"),
        transform(name, (4, 6), (-2, 1), dtype="f16"),
        transform(name, (4, 6), (0, 1), dtype="bf16"),
        transform(name, (2, 5, 6), (0, 2), (3, 4)),
        transform(name, (2, 5, 6), (2, 0), (8, -1)),
        transform(name, (2, 5, 6), (1, 2), (7, 10), index="i32"),
        transform(name, (2, 5, 6), (-1, 1), (-1, 3)),
        transform(name, (2, 5, 6), (1,), (9,), constant=False),
        transform(name, (2, 5, 6), (1, 2), constant=False),
        transform(name, (2, 3, 4), (2, 0, 1), (3, 4, 7)),
        transform(name, (2, 3, 2, 2), (1, 3, 0)),
        transform(name, (3, 1), (1,)),
        transform(name, (3, 4), (1,), (1,)),
        transform(name, (1, 2, 1, 3, 2), (4, -2)),
        transform(name, (17, 2), (0,), (16,), dtype="f16"),
        transform(name, (0, 4), (1,)),
        transform(name, (3, 0), (1,)),
        transform(name, (3, 4), (), wrong=True),
        transform(name, (3, 4), (), (), wrong=True),
        case(
            name,
            numbers(3, 4, 2),
            ints(1),
            ints(0),
            _constant=(1, 2),
            _oracle="none",
            _expect=(np.zeros((3, 0, 2), np.float32),),
            _differs="the plugin fails",
        ),
        case(
            name,
            np.array([[np.nan, 0], [1, np.inf]], np.float32),
            ints(0),
            _constant=(1,),
            _oracle="none",
            _expect=(np.array([[np.nan, np.inf], [np.nan, -np.inf]], np.float32),),
            _differs="the plugin multiplies infinity by 0, where sum and difference are all there is",
        ),
    )
]

REAL = [
    transform("RDFT-9", (5,), (0,)),
    transform("RDFT-9", (1,), (0,)),
    transform("RDFT-9", (16,), (-1,)),
    transform("RDFT-9", (4, 6), (0,)),
    transform("RDFT-9", (4, 6), (0, 1)),
    transform("RDFT-9", (4, 6), (1, 0), index="i32"),
    transform("RDFT-9", (4, 7), (-1,), dtype="f16"),
    transform("RDFT-9", (4, 7), (-2, 1), dtype="bf16"),
    transform("RDFT-9", (5,), (0,), (3,)),
    transform("RDFT-9", (8,), (0,), (8,)),
    transform("RDFT-9", (3, 4), (1,), (1,)),
    transform("RDFT-9", (3, 5), (1, 0), (3, 2)),
    transform("RDFT-9", (3, 5), (1, 0), (5, 3), index="i32"),
    transform("RDFT-9", (4, 8), (0, 1), (2, 4), dtype="f16"),
    transform("RDFT-9", (2, 5, 6), (0, 2), (1, 4)),
    transform("RDFT-9", (2, 5, 6), (1, 2)),
    transform("RDFT-9", (2, 4, 8), (2, 0, 1)),
    transform("RDFT-9", (2, 3, 2, 2, 3), (1, 4, 0)),
    transform("RDFT-9", (2, 3, 2, 3), (-1, -3)),
    transform("RDFT-9", (0, 4), (1,)),
    transform("RDFT-9", (3, 0), (1,)),
    transform("RDFT-9", (5,), (0,), (9,), wrong=True),
    transform("RDFT-9", (2, 5, 6), (1,), (-1,), wrong=True),
    transform("RDFT-9", (2, 5, 6), (2, 0), (8, -1), wrong=True),
    transform("RDFT-9", (2, 3, 4), (-1, 0, 1), (5, 4, -1), constant=False),
    transform("RDFT-9", (2, 5, 6), (1, 2), constant=False),
    case("RDFT-9", np.array([[1, 2], [np.nan, 3]], np.float32), ints(1), _constant=(1,)),
]

BACK = [
    transform("IRDFT-9", (5,), (0,)),
    transform("IRDFT-9", (4,), (-1,)),
    transform("IRDFT-9", (5,), (0,), (9,)),
    transform("IRDFT-9", (5,), (0,), (8,)),
    transform("IRDFT-9", (5,), (0,), (3,)),
    transform("IRDFT-9", (5,), (0,), (2,)),
    transform("IRDFT-9", (5,), (0,), (1,)),
    transform("IRDFT-9", (3, 5), (0, 1), index="i32"),
    transform("IRDFT-9", (3, 5), (1, 0)),
    transform("IRDFT-9", (3, 5), (-1,), dtype="f16"),
    transform("IRDFT-9", (3, 5), (-2, 1), dtype="bf16"),
    transform("IRDFT-9", (3, 5), (1,), (8,), dtype="f16"),
    transform("IRDFT-9", (3, 5), (0, 1), (2, 8)),
    transform("IRDFT-9", (4, 5), (0, 1), (4, 4), index="i32"),
    transform("IRDFT-9", (4, 5), (0, 1), (3, 6)),
    transform("IRDFT-9", (2, 5, 6), (1, 2)),
    transform("IRDFT-9", (2, 4, 5), (1, 2), (4, 7)),
    transform("IRDFT-9", (2, 3, 2, 3), (1, 3, 0)),
    transform("IRDFT-9", (1, 2, 3, 2, 3), (4,)),
    transform("IRDFT-9", (0, 4), (1,)),
    transform("IRDFT-9", (3, 0), (1,)),
    case("IRDFT-9", np.array([[[1, 2], [0, 1]], [[np.nan, 3], [1, 1]]], np.float32), ints(1), _constant=(1,)),
    transform("IRDFT-9", (5,), (0,), (13,), wrong=True),
    transform("IRDFT-9", (5,), (0,), (-1,), wrong=True),
    transform("IRDFT-9", (3, 5), (1, 0), (8, 4), wrong=True),
    transform("IRDFT-9", (2, 3, 4), (-1, 0, 1), (-1, 3, 6), constant=False),
    transform("IRDFT-9", (2, 5, 6), (1, 2), constant=False),
    case(
        "IRDFT-9",
        numbers(3, 1, 2),
        ints(1),
        _constant=(1,),
        _oracle="none",
        _expect=(np.zeros((3, 0), np.float32),),
        _differs="the plugin crashes",
    ),
]


def window(length: int, dtype: str = "f32") -> Array:
    return numbers(length, dtype=dtype, low=0.1, high=1, seed=7)


def frames(
    shape: tuple[int, ...], width: int, size: int, step: int, *, dtype: str = "f32", **how: Any
) -> Sample:
    how = {"_constant": (2, 3), "transpose_frames": False} | how
    index = how.pop("index", "i64")
    inputs = numbers(*shape, dtype=dtype), window(width, dtype), scalar(size, index), scalar(step, index)
    return case("STFT-15", *inputs, **how)


def whole(
    shape: tuple[int, ...],
    width: int,
    size: int,
    step: int,
    *length: Any,
    dtype: str = "f32",
    center: bool = False,
    normalized: bool = False,
    **how: Any,
) -> Sample:
    how = {"_constant": (2, 3, 4)[: 2 + len(length)]} | how
    index = how.pop("index", "i64")
    given = [np.array(n, ElementType.parse(index).dtype) for n in (size, step, *length)]
    inputs = numbers(*shape, 2, dtype=dtype), window(width, dtype), *given
    return case("ISTFT-16", *inputs, center=center, normalized=normalized, **how)


FRAMES = [
    frames((56,), 7, 11, 3),
    frames((56,), 7, 11, 3, transpose_frames=True, index="i32"),
    frames((3, 56), 8, 11, 3),
    frames((3, 56), 7, 10, 3, transpose_frames=True),
    frames((2, 40), 8, 8, 5, dtype="f16"),
    frames((2, 40), 8, 8, 5, dtype="bf16", transpose_frames=True),
    frames((2, 40), 8, 8, 5, dtype="f64", **IN_F32),
    frames((3, 11), 11, 11, 3),
    frames((2, 12), 1, 5, 20),
    frames((12,), 4, 4, 5),
    frames((12,), 1, 1, 1),
    frames((0, 12), 4, 4, 4),
    frames((2, 12), 3, 4, 2, _constant=()),
    frames((12,), 3, 4, 2, _constant=(2,)),
    frames((1, 9), 2, 3, 1, transpose_frames=True, dtype="f16"),
    frames((20,), 6, 7, 7, index="i32"),
    frames((4, 33), 16, 16, 8),
    frames((2, 31), 5, 6, 4),
    frames((4, 33), 9, 16, 8, transpose_frames=True),
    frames((2, 6), 5, 6, 1, dtype="f64", **IN_F32),
    case(
        "STFT-15",
        np.array([1, np.nan, 2, 3], np.float32),
        np.ones(2, np.float32),
        *map(scalar, (2, 2)),
        transpose_frames=False,
        _constant=(2, 3),
        _oracle="none",
        _expect=(np.array([[[np.nan, 0], [np.nan, 0]], [[5, 0], [-1, 0]]], np.float32),),
        _differs="the plugin multiplies NaN by 0, where sum and difference are all there is",
    ),
]

WHOLE = [
    whole((6, 16), 7, 11, 3),
    whole((6, 16), 7, 11, 3, center=True),
    whole((6, 16), 8, 10, 3, center=True, normalized=True, index="i32"),
    whole((4, 6, 16), 7, 11, 3, 64, center=True),
    whole((4, 6, 16), 7, 11, 3, [20], normalized=True),
    whole((2, 3, 4), 2, 4, 3, 50, center=True, normalized=True),
    whole((3, 5), 4, 4, 1),
    whole((3, 2), 4, 4, 7, normalized=True),
    whole((3, 2), 4, 4, 7, center=True),
    whole((3, 1), 4, 4, 7, center=True),
    whole((3, 1), 5, 5, 7, center=True),
    whole((1, 3), 1, 1, 1),
    whole((2, 3, 4), 3, 5, 2, dtype="f16"),
    whole((2, 3, 4), 3, 5, 2, dtype="bf16", center=True),
    whole((2, 3, 4), 3, 5, 2, dtype="f64", **IN_F32),
    whole((1, 5, 3), 8, 8, 4, center=True, dtype="f16"),
    case(
        "ISTFT-16",
        np.array([[[np.nan, 0], [1, 0]], [[1, 0], [2, 0]]], np.float32),
        window(2),
        *map(scalar, (2, 2)),
        center=False,
        normalized=False,
        _constant=(2, 3),
    ),
    whole((0, 3, 4), 3, 5, 2),
    whole((2, 3, 4), 3, 5, 2, _constant=()),
    whole((2, 3, 4), 3, 5, 2, 12, _constant=(4,)),
    case(
        "ISTFT-16",
        numbers(3, 4, 2),
        window(4),
        *map(scalar, (4, 2, 0)),
        center=False,
        normalized=False,
        _constant=(2, 3, 4),
        _oracle="none",
        _expect=(np.zeros(0, np.float32),),
        _differs="the plugin writes beyond the tensor",
    ),
]

SAMPLES = [*COMPLEX, *REAL, *BACK, *FRAMES, *WHOLE]
