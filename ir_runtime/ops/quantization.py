"""FakeQuantize and FakeConvert: quantization simulated in floating-point arithmetic."""

from __future__ import annotations

from typing import Literal

import ml_dtypes
import numpy as np

from ..errors import InferenceError
from ..ir.shape import PartialShape
from ..ir.tensor import Array, Value
from ._define.operation import T_FLOAT, T_SHORT_FLOAT, Input, Op, Output, attr, op
from ._lengths import Rule, align, broadcast_onto
from .elementwise import BROADCAST
from .kernels.statistics import compute_dtype

ONTO = "which broadcasts to data"

HIGHEST_4_3 = 448
HIGHEST_5_2 = 57344
SMALLEST_NORMAL_4_3 = 2.0**-6
SMALLEST_4_3 = 2.0**-9


@op("FakeQuantize-1")
class FakeQuantize(Op):
    """Round ``data`` to evenly spaced levels between the input limits, then map the levels to the output limits.

    Limits broadcast, for example one per channel. Elements up to the smaller input limit become ``output_low``, and
    elements above the larger one ``output_high``, whichever input limit is the smaller. NaN stays NaN.
    """

    decisions = (
        "NaN stays NaN, as in OpenVINO's reference; the page does not mention it",
        "auto_broadcast pdpd aligns first axes, as the page says; OpenVINO's reference and plugin take it for numpy",
    )

    bounded = True
    flops_per_element = 7

    data = Input(T_FLOAT, "tensor to quantize")
    input_low = Input(T_FLOAT, f"the first level, {ONTO}", mixed=True)
    input_high = Input(
        T_FLOAT, f"the last level, {ONTO}; if it equals input_low there are two levels", mixed=True
    )
    output_low = Input(T_FLOAT, f"the output for the first level, {ONTO}", mixed=True)
    output_high = Input(T_FLOAT, f"the output for the last level, {ONTO}", mixed=True)
    quantized = Output(T_FLOAT, "the result, of the shape of data")

    levels: int = attr(ge=2, doc="number of levels, including both limits")
    # OpenVINO's reference and plugin treat pdpd as numpy; this implementation follows the specification.
    auto_broadcast: Rule = attr("numpy", doc=BROADCAST)

    def infer(
        self, data: Value, input_low: Value, input_high: Value, output_low: Value, output_high: Value
    ) -> PartialShape:
        shape = data.shape
        limits = (input_low, input_high, output_low, output_high)
        for port, limit in zip(self.inputs[1:], limits, strict=True):
            shape = broadcast_onto(shape, limit.shape, self.auto_broadcast, ("data", port.name))
        return shape

    def evaluate(
        self, data: Array, input_low: Array, input_high: Array, output_low: Array, output_high: Array
    ) -> Array:
        limits = (self._fit(limit, data.ndim) for limit in (input_low, input_high, output_low, output_high))
        # Computed in at least f32 and rounded once, as OpenVINO's reference does for f16 and bf16.
        x, *wide = (array.astype(compute_dtype(data.dtype), copy=False) for array in (data, *limits))
        return np.asarray(self.quantize(x, *wide)).astype(data.dtype, copy=False)

    def quantize(self, x: Array, low: Array, high: Array, first: Array, last: Array) -> Array:
        """Quantize elements of f32 or f64, with input limits and output limits that broadcast as in NumPy."""
        steps = x.dtype.type(self.levels - 1)
        level = np.rint((x - low) / (high - low) * steps)
        inside = level / steps * (last - first) + first
        # A NaN limit is ignored, as by std::min and std::max of C++.
        beyond = np.where(x > np.where(low < high, high, low), last, inside)
        return np.where(x <= np.where(high < low, high, low), first, beyond)

    def _fit(self, limit: Array, rank: int) -> Array:
        if self.auto_broadcast == "pdpd":
            return align(limit, rank)
        return limit.reshape(limit.shape[max(limit.ndim - rank, 0) :])


@op("FakeConvert-13")
class FakeConvert(Op):
    """Scale and shift ``data``, round it to an 8-bit float type, then shift and scale back.

    Values out of range are clamped to the largest finite number of that type.
    """

    decisions = (
        "NaN becomes the highest number of f8e4m3, as in OpenVINO's reference; the conversion of the page would keep it",
    )

    bounded = True
    flops_per_element = 4

    data = Input(T_SHORT_FLOAT, "tensor to round")
    scale = Input(T_SHORT_FLOAT, f"factor before rounding and divisor after it, {ONTO}")
    shift = Input(
        T_SHORT_FLOAT,
        "subtracted before rounding and added after it, of the shape of scale; 0 if absent",
        optional=True,
    )
    rounded = Output(T_SHORT_FLOAT, "the result, of the shape of data")

    destination_type: Literal["f8e4m3", "f8e5m2"] = attr(
        default_with_warning="f8e4m3", doc="type to round to"
    )

    def infer(self, data: Value, scale: Value, shift: Value | None = None) -> PartialShape:
        shape = broadcast_onto(data.shape, scale.shape, names=("data", "scale"))
        if None not in (data.shape.rank, scale.shape.rank) and len(scale.shape) > len(data.shape):
            raise InferenceError(
                f"scale {scale.shape} has more axes than data {data.shape}",
                clause="scale has no more axes than data",
            )
        if shift is None:
            return shape
        if not scale.shape.compatible(shift.shape):
            raise InferenceError(
                f"shift has shape {shift.shape}, but scale {scale.shape}; both must be equal",
                clause="shift has the shape of scale",
            )
        return broadcast_onto(shape, shift.shape, names=("data", "shift"))

    def evaluate(self, data: Array, scale: Array, shift: Array | None = None) -> Array:
        offset = data.dtype.type(0) if shift is None else shift
        half = np.asarray(data * scale - offset).astype(np.float16)
        small = _e4m3(half) if self.destination_type == "f8e4m3" else _e5m2(half)
        return np.asarray((small.astype(data.dtype) + offset) / scale)


def _e5m2(half: Array) -> Array:
    clipped = np.clip(half, -HIGHEST_5_2, HIGHEST_5_2)
    return clipped.astype(ml_dtypes.float8_e5m2).astype(np.float16)


def _e4m3(half: Array) -> Array:
    """Round to f8e4m3 as OpenVINO's reference does; its plugin and the specification differ where noted."""
    # NaN becomes the largest number. The specification describes a conversion, which would keep NaN.
    number = np.where(np.isnan(half), np.copysign(np.float16(HIGHEST_4_3), half), half)
    clipped = np.clip(number, -HIGHEST_4_3, HIGHEST_4_3)
    normal = clipped.astype(ml_dtypes.float8_e4m3fn).astype(np.float16)
    # Subnormals are first rounded with a full mantissa, then truncated. The plugin rounds once.
    raised = np.clip(clipped, -SMALLEST_NORMAL_4_3, SMALLEST_NORMAL_4_3) / np.float16(SMALLEST_4_3)
    full = raised.astype(ml_dtypes.float8_e4m3fn).astype(np.float16)
    subnormal = np.where(np.abs(raised) < 1, np.float16(0), np.trunc(full) * np.float16(SMALLEST_4_3))
    return np.where(np.abs(clipped) < SMALLEST_NORMAL_4_3, subnormal, normal)
