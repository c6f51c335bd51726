"""An operation of our own, declared outside ir_runtime.

Importing this module registers it. Installed as a package (see pyproject.toml beside it), it announces
itself as an entry point, and ir_runtime imports it by itself when a model needs it, also from the
command line.
"""

from __future__ import annotations

import numpy as np

from ir_runtime.ops import T_FLOAT, Array, Input, Op, Output, PartialShape, Value, attr, op


@op("HardShrink-1")
class HardShrink(Op):
    """Set elements of ``data`` within ``lambd`` of zero to zero."""

    data = Input(T_FLOAT, "tensor of any shape")
    output = Output(T_FLOAT, "tensor of the same shape")

    lambd: float = attr(0.5, ge=0, doc="half the width of the band around zero")

    def infer(self, data: Value) -> PartialShape:
        return data.shape

    def evaluate(self, data: Array) -> Array:
        return np.where(np.abs(data) <= self.lambd, data.dtype.type(0), data)
