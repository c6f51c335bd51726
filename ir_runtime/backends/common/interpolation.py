"""Interpolate over feature maps that are stored with their channels last (NHWC)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

from ...ir.element import ElementType
from ...ir.shape import PartialShape
from ...ir.tensor import Array, Value
from ...kernels.resample import Taps, along_each
from ...ops.image.interpolate import Interpolate4, Interpolate11
from .. import Kernel
from .layout import channels_first, channels_last

__all__ = ["ResizePlan", "resize", "resize_kernel"]

MODES = ("nearest", "linear", "linear_onnx", "cubic")
# Plans are cached for this many shapes.
MAX_PLANS = 32


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
"""Takes ``[N, height, width, C]``, contiguous, and resizes it."""


def resize_kernel(op: Interpolate4 | Interpolate11, make: Callable[[ResizePlan], Resize]) -> Kernel | None:
    """Return a kernel for channels-last feature maps; other layouts run the reference.

    Args:
        op: the operation.
        make: called once for each shape; returns the function that resizes.
    """
    if op.mode not in MODES or any(op.pads_begin + op.pads_end):
        return None
    axes_input = 2 if isinstance(op, Interpolate4) else 1
    target_input = 1 if axes_input == 2 and op.shape_calculation_mode == "scales" else 0
    resizes: dict[tuple[object, ...], Resize | None] = {}

    def kernel(x: Array, *others: Array) -> Array:
        rows = channels_last(x)
        if not rows.flags.c_contiguous or not x.size:
            return op.evaluate(x, *others)
        target, axes = others[target_input], others[axes_input] if len(others) > axes_input else None
        key = (x.shape, target.tobytes(), None if axes is None else axes.tobytes())
        if key not in resizes:
            if len(resizes) >= MAX_PLANS:
                resizes.clear()
            plan = _plan(op, x.shape, target, axes)
            resizes[key] = None if plan is None else make(plan)
        run = resizes[key]
        if run is None:
            return op.evaluate(x, *others)
        return channels_first(run(rows))

    return kernel


def _plan(
    op: Interpolate4 | Interpolate11, shape: tuple[int, ...], target: Array, axes: Array | None
) -> ResizePlan | None:
    """Return a plan; ``None`` where an axis that is not spatial changes, or the result is empty."""
    data = Value.unknown(ElementType.f32, PartialShape(shape))
    after = op.shape(data, Value.constant(target), None if axes is None else Value.constant(axes)).static
    steps = op.filter().steps(op.plan(shape, after, target, axes))
    if 0 in after or any(step.number < 2 for step in steps):
        return None
    images, channels, height, width = after
    moved = [
        replace(step.normalized() if op.mode == "linear" else step, number=step.number - 1) for step in steps
    ]
    before = images, shape[2], shape[3], channels
    return ResizePlan(before, (images, height, width, channels), tuple(moved), op.mode == "nearest")


def resize(plan: ResizePlan, rows: Array) -> Array:
    """Resize one axis after the other, whole rows last."""
    if not plan.steps:
        return rows
    if not plan.nearest:
        return along_each(rows, plan.steps)
    for step in sorted(plan.steps, key=lambda step: -step.number):
        rows = step.take(rows, 0)
    return rows
