"""Interpolate over images, and over feature maps that are stored with their channels last (NHWC)."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, replace
from enum import Enum
from typing import TypeAlias

from ...ir.element import ElementType
from ...ir.shape import PartialShape
from ...ir.tensor import Array, Value
from ...ops.image.interpolate import Interpolate4, Interpolate11
from ...ops.kernels.resample import Taps, along_each
from .. import Kernel
from .layout import channels_first, channels_last

__all__ = ["ResizePlan", "resize", "resize_kernel"]

MODES = ("nearest", "linear", "linear_onnx", "cubic")
# Plans are cached for this many shapes.
MAX_PLANS = 32


class _Stored(Enum):
    """How a tensor of rank 4 is stored that is resized: as ``[N, height, width, C]``, its own axes or not, or plane by plane."""

    IMAGE = 0
    CHANNELS_LAST = 1
    PLANES = 2

    @property
    def before_height(self) -> int:
        """The number of axes between the images and the height."""
        return 0 if self is _Stored.IMAGE else 1

    def image(self, shape: Sequence[int]) -> tuple[int, ...]:
        """Return the lengths of ``[N, height, width, C]`` for a tensor of some shape."""
        if self is _Stored.PLANES:
            return (shape[0] * shape[1], *shape[2:], 1)
        return tuple(shape) if self is _Stored.IMAGE else (shape[0], *shape[2:], shape[1])


@dataclass(frozen=True)
class ResizePlan:
    """How feature maps of one shape are resized.

    Args:
        before: the shape ``[N, height, width, C]`` of the data.
        after: the shape of the result.
        steps: the taps along the axes 1 and 2, if these change.
        nearest: whether each element has a single tap of weight 1.
    """

    before: tuple[int, ...]
    after: tuple[int, ...]
    steps: tuple[Taps, ...]
    nearest: bool


Resize: TypeAlias = Callable[[Array], Array]
"""A function that resizes contiguous ``[N, height, width, C]``."""


def resize_kernel(
    op: Interpolate4 | Interpolate11, make: Callable[[ResizePlan], Resize], planes: bool = False
) -> Kernel | None:
    """Return a kernel for images and for channels-last feature maps; other layouts run the reference.

    Args:
        op: the operation.
        make: called once for each shape; returns the function that resizes.
        planes: whether it also resizes channels-first maps, each channel as an image of one channel.
    """
    if op.mode not in MODES or any(op.pads_begin + op.pads_end):
        return None
    axes_input = 2 if isinstance(op, Interpolate4) else 1
    target_input = 1 if axes_input == 2 and op.shape_calculation_mode == "scales" else 0
    resizes: dict[tuple[object, ...], tuple[Resize, _Stored] | None] = {}

    def kernel(x: Array, *others: Array) -> Array:
        target, axes = others[target_input], others[axes_input] if len(others) > axes_input else None
        stored = x.flags.c_contiguous, channels_last(x).flags.c_contiguous
        key = (x.shape, stored, target.tobytes(), None if axes is None else axes.tobytes())
        if key not in resizes:
            if len(resizes) >= MAX_PLANS:
                resizes.clear()
            plan = _plan(op, x.shape, stored, target, axes, planes) if x.size else None
            resizes[key] = None if plan is None else (make(plan[0]), plan[1])
        found = resizes[key]
        if found is None:
            return op.evaluate(x, *others)
        run, how = found
        if how is _Stored.CHANNELS_LAST:
            return channels_first(run(channels_last(x)))
        if how is _Stored.IMAGE:
            return run(x)
        y = run(x.reshape(-1, *x.shape[2:], 1))
        return y.reshape(*x.shape[:2], *y.shape[1:3])

    return Kernel(kernel)


def _plan(
    op: Interpolate4 | Interpolate11,
    shape: tuple[int, ...],
    stored: tuple[bool, bool],
    target: Array,
    axes: Array | None,
    planes: bool,
) -> tuple[ResizePlan, _Stored] | None:
    """Return a plan, and how the tensor is stored.

    Return ``None`` where other axes change than height and width, or the result is empty.

    Args:
        op: the operation.
        shape: the shape of the data.
        stored: whether they are contiguous, and whether they are with their channels last.
        target: sizes or scales.
        axes: what they are for.
        planes: whether channels-first maps have a plan.
    """
    data = Value.unknown(ElementType.f32, PartialShape(shape))
    after = op.shape(data, Value.constant(target), None if axes is None else Value.constant(axes)).static
    steps = op.filter().steps(op.plan(shape, after, target, axes))
    numbers = {step.number for step in steps}
    if 0 in after:
        return None
    how = _how(stored, numbers, planes)
    if how is None:
        return None
    moved = [
        replace(step.normalized() if op.mode == "linear" else step, number=step.number - how.before_height)
        for step in steps
    ]
    before, result = (how.image(lengths) for lengths in (shape, after))
    return ResizePlan(before, result, tuple(moved), op.mode == "nearest"), how


def _how(stored: tuple[bool, bool], numbers: Set[int], planes: bool) -> _Stored | None:
    """Return how a tensor is stored of which some axes change; ``None`` if no image has them as height and width."""
    if stored[0] and not stored[1] and numbers <= {1, 2}:
        return _Stored.IMAGE
    if not numbers <= {2, 3}:
        return None
    if stored[1]:
        return _Stored.CHANNELS_LAST
    return _Stored.PLANES if planes and stored[0] else None


def resize(plan: ResizePlan, rows: Array) -> Array:
    """Resize one axis after the other, whole rows last."""
    if not plan.steps:
        return rows
    if not plan.nearest:
        return along_each(rows, plan.steps)
    for step in sorted(plan.steps, key=lambda step: -step.number):
        rows = step.take(rows, 0)
    return rows
