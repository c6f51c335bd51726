"""Interpolate over channels-last feature maps."""

from __future__ import annotations

from functools import partial

from ....ir.tensor import Value
from ....ops.image.interpolate import Interpolate4, Interpolate11
from ... import Kernel
from ...common.interpolation import resize, resize_kernel
from ...common.layout import is_f32
from .._backend import backend

__all__: list[str] = []


@backend.accelerates(Interpolate4, Interpolate11)
def interpolate(op: Interpolate4 | Interpolate11, data: Value, *others: Value) -> Kernel | None:
    """Return a kernel for f32 over two spatial axes."""
    if not is_f32(data) or data.shape.rank != 4:
        return None
    return resize_kernel(op, lambda plan: partial(resize, plan))
