"""Interpolate over channels-last feature maps."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from ....ir.tensor import Array, Value
from ....ops.image.interpolate import Interpolate4, Interpolate11
from ....ops.kernels.resample import Taps
from ... import Kernel
from ...common.interpolation import Resize, ResizePlan, resize, resize_kernel
from ...common.layout import is_f32
from .._backend import backend

__all__: list[str] = []

# The longest axis along which a product with all weights, most of them 0, takes less time than to gather each tap.
MAX_LENGTH = 32
LARGEST = 1e37


@backend.accelerates(Interpolate4, Interpolate11)
def interpolate(op: Interpolate4 | Interpolate11, data: Value, *others: Value) -> Kernel | None:
    """Return a kernel for f32 over two spatial axes."""
    if not is_f32(data) or data.shape.rank != 4:
        return None
    return resize_kernel(op, _resize)


def _resize(plan: ResizePlan) -> Resize:
    """Return a function that resizes small maps by products; of others, it gathers only the taps that count."""
    gather: Resize = partial(resize, plan)
    if plan.nearest or not plan.steps:
        return gather
    quick: Resize = partial(resize, replace(plan, steps=tuple(step.compacted() for step in plan.steps)))
    if max(plan.before[step.number] for step in plan.steps) <= MAX_LENGTH:
        quick = _products(plan)
    return lambda rows: quick(rows) if _is_plain(rows) else gather(rows)


def _is_plain(rows: Array) -> bool:
    """Return whether no number is NaN, infinite or so large that sums may be: these times weights of 0 matter."""
    return bool(rows.size and rows.max() <= LARGEST and rows.min() >= -LARGEST)


def _products(plan: ResizePlan) -> Resize:
    """Return a function that resizes finite data by a product for each axis, shrinking axes first."""
    steps = sorted(plan.steps, key=lambda step: len(step.index) / plan.before[step.number])
    matrices = [(step.number, _matrix(step, plan.before[step.number])) for step in steps]

    def run(rows: Array) -> Array:
        for axis, matrix in matrices:
            if axis == 1:
                images, length, width, channels = rows.shape
                product = np.matmul(matrix, rows.reshape(images, length, width * channels))
                rows = product.reshape(images, len(matrix), width, channels)
            else:
                rows = np.matmul(matrix, rows)
        return rows

    return run


def _matrix(taps: Taps, length: int) -> Array:
    """Return what each position of the result takes of each of the data: ``[result, data]``."""
    matrix = np.zeros((len(taps.index), length), np.float32)
    places = np.clip(taps.index, 0, length - 1)
    np.add.at(matrix, (np.arange(len(matrix))[:, None], places), taps.weight)
    return matrix
