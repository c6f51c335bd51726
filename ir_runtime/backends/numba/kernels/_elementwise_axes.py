"""Axes of the operands of element-wise layers: in memory order, and as few as possible."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ....ir.tensor import Array

__all__ = ["aligned_shape", "collapse_axes", "in_memory_order", "operand_axes", "stored"]


def stored(x: Array) -> tuple[int, ...]:
    """Return the axes in memory order; for maps that are not in rows, with channels last."""
    axes = tuple(range(x.ndim))
    if x.flags.c_contiguous:
        return axes
    by_stride = tuple(sorted(axes, key=lambda axis: (-abs(x.strides[axis]), axis)))
    if x.transpose(by_stride).flags.c_contiguous or (x.ndim < 4 and x.strides[by_stride[-1]] == x.itemsize):
        return by_stride
    return axes if x.ndim < 4 else (0, *axes[2:], 1)


def aligned_shape(
    operand: tuple[int, ...], ours: tuple[int, ...], order: tuple[int, ...]
) -> tuple[int, ...] | None:
    """Return the lengths of an operand that broadcasts to ``ours``, with reordered axes; ``None`` if it does not."""
    if len(operand) > len(ours):
        return None
    lengths = (1,) * (len(ours) - len(operand)) + operand
    if any(n not in (1, m) for n, m in zip(lengths, ours, strict=True)):
        return None
    return tuple(lengths[axis] for axis in order)


def operand_axes(shape: tuple[int, ...], order: tuple[int, ...]) -> tuple[int, ...]:
    """Return the order of the axes of an operand that may have fewer."""
    missing = len(order) - len(shape)
    return tuple(axis - missing for axis in order if axis >= missing)


def in_memory_order(constant: Array, order: tuple[int, ...]) -> Array:
    return np.ascontiguousarray(constant.transpose(operand_axes(constant.shape, order)))


def collapse_axes(
    shape: tuple[int, ...], operands: Sequence[tuple[int, ...]]
) -> tuple[tuple[int, ...], list[tuple[int, ...]]] | None:
    """Return the lengths of at most three axes, and the strides of each operand in bytes; ``None`` if there are more.

    Neighbouring axes that all operands either have or broadcast are merged.
    """
    groups: list[tuple[int, tuple[bool, ...]]] = []
    for axis, length in enumerate(shape):
        if length == 1:
            continue
        same = tuple(lengths[axis] == length for lengths in operands)
        if groups and groups[-1][1] == same:
            length *= groups.pop()[0]
        groups.append((length, same))
    if len(groups) > 3:
        return None
    groups = [(1, (False,) * len(operands))] * (3 - len(groups)) + groups
    strides = []
    for index in range(len(operands)):
        lengths = [length if same[index] else 1 for length, same in groups]
        inner = [4 * math.prod(lengths[axis + 1 :]) for axis in range(3)]
        strides.append(tuple(n if same[index] else 0 for n, (_, same) in zip(inner, groups, strict=True)))
    return tuple(length for length, _ in groups), strides
