"""Chains of element-wise operations, each chain in one pass over its data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ....cached import cached_property
from ....ir.shape import PartialShape
from ....ir.tensor import Array, Value
from ....ops import Op
from ... import Kernel
from ...core.lengths import any_lengths
from .._backend import backend
from ..threading.parallel import parallel_for, threads
from ..threading.task import UNUSED
from ._links import LINKED, Link, link_of
from ._program import BLOCK, HEAD, STEP, WORKER, Code

__all__ = ["Chain"]

# Fewer numbers than this are left to NumPy, which is sooner ready.
LEAST = 1 << 11
# Numbers times operations that are worth a second thread.
WORTH = 1 << 16
# What a curve takes, in operations.
CURVE = 4
# Layouts of inputs for which a chain remembers how to go over them.
REMEMBERED = 16
# Operands that are no constants, as programs call them.
OPERANDS = (1, 2)


@dataclass(frozen=True)
class Chain:
    """A kernel of element-wise layers, the first of which takes ``arity`` inputs.

    Where lengths do not suit it, it leaves the work, and a refusal, to the operations themselves.
    """

    links: tuple[Link, ...]
    arity: int
    _plans: dict[Any, _Plan | None] = field(default_factory=dict, compare=False)
    accepts = staticmethod(any_lengths)

    def absorb(self, op: Op, inputs: Sequence[Value], place: int) -> Kernel | None:
        """A kernel that also does what ``op`` does."""
        link = link_of(op, inputs, place)
        if link is None or link.paired + sum(known.paired for known in self.links) > len(OPERANDS):
            return None
        return Chain((*self.links, link), self.arity)

    @cached_property
    def _others(self) -> list[int]:
        """Where among the inputs the operands are that are no constants."""
        places, start = [], 0
        for index, link in enumerate(self.links):
            if link.paired:
                places.append(1 - link.place if index == 0 else start)
            start += self.arity if index == 0 else link.inputs
        return places

    def __call__(self, *arrays: Array) -> Array:
        x = arrays[self.links[0].place]
        others = [arrays[place] for place in self._others]
        key = (x.shape, x.strides, *(other.shape for other in others))
        try:
            plan = self._plans[key]
        except KeyError:
            plan = self._remember(key, x, others)
        if plan is None:
            return self._one_by_one(arrays)
        out = np.empty(plan.shape, np.float32)
        source = np.ascontiguousarray(x.transpose(plan.order))
        operands = [
            np.ascontiguousarray(other.transpose(order))
            for other, order in zip(others, plan.orders, strict=True)
        ]
        first, second = (*operands, UNUSED, UNUSED)[:2]
        parallel_for(WORKER.address, plan.job, out, source, first, second, threads() if plan.large else 1)
        return out.transpose(plan.back)

    def _remember(self, key: Any, x: Array, others: Sequence[Array]) -> _Plan | None:
        if len(self._plans) >= REMEMBERED:
            self._plans.clear()
        plan = self._plans[key] = _planned(self.links, x, [other.shape for other in others])
        return plan

    def _one_by_one(self, arrays: Sequence[Array]) -> Array:
        """Where an operand makes the result larger, or lies across."""
        first = self.links[0]
        found: Any = first.op.evaluate(*arrays[: self.arity])
        start = self.arity
        for link in self.links[1:]:
            inputs = list(arrays[start : start + link.inputs])
            inputs.insert(link.place, found)
            found, start = link.op.evaluate(*inputs), start + link.inputs
        return np.asarray(found)


class _Plan(NamedTuple):
    """How to go over data of one shape and layout."""

    job: Array
    shape: tuple[int, ...]
    """That of the result, its axes in the order in which they are stored."""
    order: tuple[int, ...]
    orders: list[tuple[int, ...]]
    """The same axes of the operands."""
    back: tuple[int, ...]
    large: bool
    kept: list[Array]
    """The constants, in that order."""


def _planned(links: Sequence[Link], x: Array, shapes: Sequence[tuple[int, ...]]) -> _Plan | None:
    order = stored(x)
    shape = tuple(x.shape[axis] for axis in order)
    waiting = iter(shapes)
    operands = [
        next(waiting) if link.constant is None else link.constant.shape
        for link in links
        if link.paired or link.constant is not None
    ]
    seen = [_seen(operand, x.shape, order) for operand in operands]
    if any(lengths is None for lengths in seen):
        return None
    found = [lengths for lengths in seen if lengths is not None]
    grouped = _grouped(shape, found)
    if grouped is None:
        return None
    (images, height, width), strides = grouped
    tall = min(max(BLOCK // max(width, 1), 1), max(height, 1))
    wide = min(width, BLOCK) or 1
    blocks = images * -(-height // tall) * -(-width // wide) if x.size else 0
    words: list[int] = [blocks, height, width, tall, wide, len(links), 0, 0]
    kept: list[Array] = []
    places, slots = iter(strides), iter(OPERANDS)
    for link in links:
        slot = address = 0
        apart: tuple[int, ...] = (0, 0, 0)
        if link.constant is not None:
            kept.append(_in_order(link.constant, order))
            address, apart = kept[-1].ctypes.data, next(places)
        elif link.paired:
            slot, apart = next(slots), next(places)
        settings = np.array(link.settings, np.float32).view(np.int64)
        words += [link.code, slot, address, *apart, int(settings[0]), 0]
    assert len(words) == HEAD + STEP * len(links)
    orders = [_kept_axes(shape, order) for shape in shapes]
    cost = sum(CURVE if link.code >= Code.CURVE else 1 for link in links)
    back = tuple(np.argsort(order).tolist())
    return _Plan(np.array(words, np.int64), shape, order, orders, back, x.size * cost >= WORTH, kept)


def stored(x: Array) -> tuple[int, ...]:
    """The axes from the outermost to the innermost in memory; channels last if they lie apart."""
    axes = tuple(range(x.ndim))
    if x.flags.c_contiguous:
        return axes
    by_stride = tuple(sorted(axes, key=lambda axis: (-abs(x.strides[axis]), axis)))
    if x.transpose(by_stride).flags.c_contiguous or x.ndim < 4:
        return by_stride if x.transpose(by_stride).flags.c_contiguous else axes
    return (0, *axes[2:], 1)


def _seen(operand: tuple[int, ...], ours: tuple[int, ...], order: tuple[int, ...]) -> tuple[int, ...] | None:
    """The lengths of an operand that broadcasts to ``ours``, in another order of axes."""
    if len(operand) > len(ours):
        return None
    lengths = (1,) * (len(ours) - len(operand)) + operand
    if any(n not in (1, m) for n, m in zip(lengths, ours, strict=True)):
        return None
    return tuple(lengths[axis] for axis in order)


def _kept_axes(shape: tuple[int, ...], order: tuple[int, ...]) -> tuple[int, ...]:
    """The order of the axes of an operand that may have fewer."""
    missing = len(order) - len(shape)
    return tuple(axis - missing for axis in order if axis >= missing)


def _in_order(constant: Array, order: tuple[int, ...]) -> Array:
    return np.ascontiguousarray(constant.transpose(_kept_axes(constant.shape, order)))


def _grouped(
    shape: tuple[int, ...], operands: Sequence[tuple[int, ...]]
) -> tuple[tuple[int, ...], list[tuple[int, ...]]] | None:
    """Lengths of at most three axes, and how many bytes on each operand is for the next along each.

    Axes along which all operands do the same are one.
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


@backend.accelerates(*LINKED)
def elementwise(op: Op, *inputs: Value) -> Kernel | None:
    """f32, as long as the result is of the shape of one input."""
    for place in range(min(len(inputs), 2)):
        known = inputs[place].known() is not None
        link = None if known or _is_small(inputs[place].shape) else link_of(op, inputs, place)
        if link is not None:
            return Chain((link,), len(inputs))
    return None


def _is_small(shape: PartialShape) -> bool:
    return shape.rank == 0 or (shape.is_static and math.prod(shape.static) < LEAST)
