"""Interpolate over images, and over feature maps that are stored with their channels last (NHWC)."""

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
    """Return a kernel for images and for channels-last feature maps; other layouts run the reference.

    Args:
        op: the operation.
        make: called once for each shape; returns the function that resizes.
    """
    if op.mode not in MODES or any(op.pads_begin + op.pads_end):
        return None
    axes_input = 2 if isinstance(op, Interpolate4) else 1
    target_input = 1 if axes_input == 2 and op.shape_calculation_mode == "scales" else 0
    resizes: dict[tuple[object, ...], tuple[Resize, bool] | None] = {}

    def kernel(x: Array, *others: Array) -> Array:
        target, axes = others[target_input], others[axes_input] if len(others) > axes_input else None
        stored = x.flags.c_contiguous, channels_last(x).flags.c_contiguous
        key = (x.shape, stored, target.tobytes(), None if axes is None else axes.tobytes())
        if key not in resizes:
            if len(resizes) >= MAX_PLANS:
                resizes.clear()
            plan = _plan(op, x.shape, stored, target, axes) if x.size else None
            resizes[key] = None if plan is None else (make(plan[0]), plan[1])
        found = resizes[key]
        if found is None:
            return op.evaluate(x, *others)
        run, is_image = found
        return run(x) if is_image else channels_first(run(channels_last(x)))

    return kernel


def _plan(
    op: Interpolate4 | Interpolate11,
    shape: tuple[int, ...],
    stored: tuple[bool, bool],
    target: Array,
    axes: Array | None,
) -> tuple[ResizePlan, bool] | None:
    """Return a plan, and whether the tensor is ``[N, height, width, C]`` itself, not only how it is stored.

    Return ``None`` where other axes change than height and width, or the result is empty.

    Args:
        op: the operation.
        shape: the shape of the data.
        stored: whether they are contiguous, and whether they are with their channels last.
        target: sizes or scales.
        axes: what they are for.
    """
    data = Value.unknown(ElementType.f32, PartialShape(shape))
    after = op.shape(data, Value.constant(target), None if axes is None else Value.constant(axes)).static
    steps = op.filter().steps(op.plan(shape, after, target, axes))
    numbers = {step.number for step in steps}
    is_image = stored[0] and not stored[1] and numbers <= {1, 2}
    if 0 in after or not (is_image or (stored[1] and numbers <= {2, 3})):
        return None
    moved = [
        replace(step.normalized() if op.mode == "linear" else step, number=step.number - (not is_image))
        for step in steps
    ]
    order = (0, 1, 2, 3) if is_image else (0, 2, 3, 1)
    before, result = (tuple(lengths[axis] for axis in order) for lengths in (shape, after))
    return ResizePlan(before, result, tuple(moved), op.mode == "nearest"), is_image


def resize(plan: ResizePlan, rows: Array) -> Array:
    """Resize one axis after the other, whole rows last."""
    if not plan.steps:
        return rows
    if not plan.nearest:
        return along_each(rows, plan.steps)
    for step in sorted(plan.steps, key=lambda step: -step.number):
        rows = step.take(rows, 0)
    return rows
