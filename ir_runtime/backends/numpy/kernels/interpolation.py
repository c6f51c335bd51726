"""Maps of channels resized along their spatial axes: what lies side by side in memory are channels, which stay so."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

from ....ir.element import ElementType
from ....ir.shape import PartialShape
from ....ir.tensor import Array, Value
from ....kernels.resample import Taps, along_each
from ....ops.image.interpolate import Interpolate4, Interpolate11
from ... import Kernel
from ...common.layout import channels_first, channels_last, is_f32
from .._backend import backend

__all__ = ["Plan", "resized", "resizing"]

MODES = ("nearest", "linear", "linear_onnx", "cubic")
# Plans for as many shapes.
KEPT = 32


@dataclass(frozen=True)
class Plan:
    """How maps of one shape are resized.

    Args:
        before: ``[N, height, width, C]`` of the data.
        after: that of the result.
        steps: the neighbours along the axes 1 and 2, as far as they change.
        nearest: whether there is one neighbour, whose weight is 1.
    """

    before: tuple[int, ...]
    after: tuple[int, ...]
    steps: tuple[Taps, ...]
    nearest: bool


Run: TypeAlias = Callable[[Array], Array]
"""Takes ``[N, height, width, C]``, contiguous, and resizes it."""


def resizing(op: Interpolate4 | Interpolate11, make: Callable[[Plan], Run]) -> Kernel | None:
    """A kernel for maps that are stored with their channels last; others are left to the reference.

    Args:
        op: the operation.
        make: called once for each shape; gives what does it.
    """
    if op.mode not in MODES or any(op.pads_begin + op.pads_end):
        return None
    last = 2 if isinstance(op, Interpolate4) else 1
    first = 1 if last == 2 and op.shape_calculation_mode == "scales" else 0
    runs: dict[tuple[object, ...], Run | None] = {}

    def kernel(x: Array, *given: Array) -> Array:
        rows = channels_last(x)
        if not rows.flags.c_contiguous or not x.size:
            return op.evaluate(x, *given)
        target, axes = given[first], given[last] if len(given) > last else None
        key = (x.shape, target.tobytes(), None if axes is None else axes.tobytes())
        if key not in runs:
            if len(runs) >= KEPT:
                runs.clear()
            plan = _plan(op, x.shape, target, axes)
            runs[key] = None if plan is None else make(plan)
        run = runs[key]
        if run is None:
            return op.evaluate(x, *given)
        return channels_first(run(rows))

    return kernel


def _plan(
    op: Interpolate4 | Interpolate11, shape: tuple[int, ...], target: Array, axes: Array | None
) -> Plan | None:
    """``None`` where an axis that is not spatial changes, or nothing is left."""
    data = Value.unknown(ElementType.f32, PartialShape(shape))
    after = op.shape(data, Value.constant(target), None if axes is None else Value.constant(axes)).static
    steps = op.filter().steps(op.plan(shape, after, target, axes))
    if 0 in after or any(step.number < 2 for step in steps):
        return None
    images, channels, height, width = after
    moved = [
        replace(step.shared() if op.mode == "linear" else step, number=step.number - 1) for step in steps
    ]
    before = images, shape[2], shape[3], channels
    return Plan(before, (images, height, width, channels), tuple(moved), op.mode == "nearest")


@backend.accelerates(Interpolate4, Interpolate11)
def interpolation(op: Interpolate4 | Interpolate11, data: Value, *others: Value) -> Kernel | None:
    """f32 over two spatial axes."""
    return (
        resizing(op, lambda plan: partial(resized, plan)) if is_f32(data) and data.shape.rank == 4 else None
    )


def resized(plan: Plan, rows: Array) -> Array:
    """One axis after the other; whole rows last."""
    if not plan.steps:
        return rows
    if not plan.nearest:
        return along_each(rows, plan.steps)
    for step in sorted(plan.steps, key=lambda step: -step.number):
        rows = step.take(rows, 0)
    return rows
