"""Axes of element-wise layers: in memory order, and as few as possible."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ....ir.tensor import Array

__all__ = [
    "aligned_strides",
    "collapse_axes",
    "contiguous_strides",
    "in_memory_order",
    "operand_axes",
    "stored",
]

# Axes of a program.
AXES = 3


def stored(x: Array) -> tuple[int, ...]:
    """Return the axes in memory order; for maps that are not in rows, with channels last."""
    axes = tuple(range(x.ndim))
    if x.flags.c_contiguous:
        return axes
    by_stride = tuple(sorted(axes, key=lambda axis: (-abs(x.strides[axis]), axis)))
    if x.transpose(by_stride).flags.c_contiguous or x.strides[by_stride[-1]] == x.itemsize:
        return by_stride
    return axes if x.ndim < 4 else (0, *axes[2:], 1)


def aligned_strides(
    shape: tuple[int, ...], strides: Sequence[int], ours: tuple[int, ...], order: tuple[int, ...]
) -> tuple[int, ...] | None:
    """Return the strides of an operand that broadcasts to ``ours``, with reordered axes; ``None`` if it does not."""
    if len(shape) > len(ours):
        return None
    lengths = (1,) * (len(ours) - len(shape)) + shape
    if any(n not in (1, m) for n, m in zip(lengths, ours, strict=True)):
        return None
    steps = (0,) * (len(ours) - len(shape)) + tuple(strides)
    return tuple(steps[axis] if lengths[axis] != 1 else 0 for axis in order)


def operand_axes(shape: tuple[int, ...], order: tuple[int, ...]) -> tuple[int, ...]:
    """Return the order of the axes of an operand that may have fewer."""
    missing = len(order) - len(shape)
    return tuple(axis - missing for axis in order if axis >= missing)


def in_memory_order(constant: Array, order: tuple[int, ...]) -> Array:
    return np.ascontiguousarray(constant.transpose(operand_axes(constant.shape, order)))


def contiguous_strides(shape: tuple[int, ...], order: tuple[int, ...] | None = None) -> tuple[int, ...]:
    """Return the strides of f32 that are contiguous, with their axes in some order in memory."""
    axes, step = tuple(range(len(shape))) if order is None else order, 4
    found = [0] * len(shape)
    for axis in reversed(axes):
        found[axis] = step
        step *= shape[axis]
    return tuple(found)


def collapse_axes(
    shape: tuple[int, ...], operands: Sequence[tuple[int, ...]], most: int = AXES
) -> tuple[tuple[int, ...], list[tuple[int, ...]]] | None:
    """Return the lengths of at least three axes, and the strides of each operand along them, in bytes.

    Neighbouring axes that the result and all operands step through as through one are merged. Return ``None`` if there are
    more, and if elements of the innermost one are neither neighbours in an operand nor the same.

    Args:
        shape: of the result, which is contiguous.
        operands: the strides of each operand; 0 for axes along which it is broadcast.
        most: how many axes there may be.
    """
    groups: list[tuple[int, tuple[int, ...]]] = []
    for length, *steps in zip(shape, contiguous_strides(shape), *operands, strict=True):
        if length == 1:
            continue
        before = groups[-1] if groups else None
        if before is not None and all(
            far == length * near for far, near in zip(before[1], steps, strict=True)
        ):
            length *= groups.pop()[0]
        groups.append((length, tuple(steps)))
    if len(groups) > most or (groups and any(step not in (0, 4) for step in groups[-1][1])):
        return None
    groups = [(1, (0,) * (1 + len(operands)))] * (AXES - len(groups)) + groups
    strides = [tuple(steps[1 + index] for _, steps in groups) for index in range(len(operands))]
    return tuple(length for length, _ in groups), strides
