"""Inputs for unknown files: lengths for dynamic dims, and random values of the declared types."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ir_runtime.ir.element import ElementType
from ir_runtime.ir.tensor import Array

__all__ = ["LARGEST", "candidates"]

LENGTHS = (1, 2, 8, 32, 64, 224, 3)
"""Lengths of dynamic dimensions, tried in this order until OpenVINO runs the file."""
LARGEST = 1 << 26
"""Elements of an input above which a file is not run."""
WORDS = ("", "a", "Hello, world", "ß 東京")
# Images have 8 bits; numbers of i64 are tokens, lengths or positions, which are small.
IMAGE, SMALL = 256, 4


def candidates(path: Path, model: Any) -> Iterator[list[Array]]:
    """Draw inputs for an OpenVINO model: those next to the file (NAME.npz, by tensor name), else random ones."""
    if (saved := path.with_suffix(".npz")).exists():
        with np.load(saved) as arrays:
            named = [_named(port, arrays) for port in model.inputs]
        if all(array is not None for array in named):
            yield named
            return
    shapes = [[(d.get_min_length(), d.get_max_length()) for d in _dims(port)] for port in model.inputs]
    dynamic = any(low != high for shape in shapes for low, high in shape)
    for length in LENGTHS if dynamic else LENGTHS[:1]:
        rng = np.random.default_rng(0)
        yield [
            _draw(rng, port.get_element_type().to_string(), [_between(length, *ends) for ends in shape])
            for port, shape in zip(model.inputs, shapes, strict=True)
        ]


def _named(port: Any, arrays: Any) -> Array | None:
    element = ElementType.parse(port.get_element_type().to_string())
    return next((arrays[n].astype(element.dtype) for n in arrays.files if n in port.get_names()), None)


def _dims(port: Any) -> Any:
    shape = port.get_partial_shape()
    return [] if shape.rank.is_dynamic else shape


def _between(length: int, low: int, high: int) -> int:
    return max(low, length if high < 0 else min(length, high))


def _draw(rng: np.random.Generator, label: str, shape: list[int]) -> Array:
    element = ElementType.f32 if label == "dynamic" else ElementType.parse(label)
    if np.prod(shape, dtype=object) > LARGEST:
        raise ValueError(f"an input of shape {shape} is too large to try")
    if element is ElementType.string:
        return rng.choice(np.array(WORDS, object), shape)
    if element.real:
        return rng.standard_normal(shape, np.float32).astype(element.dtype)
    if element is ElementType.boolean:
        return rng.integers(0, 2, shape).astype(element.dtype)
    limit = IMAGE if element is ElementType.u8 else min(SMALL, 1 << max(1, element.bits - 1))
    return rng.integers(0, limit, shape).astype(element.dtype)
