"""Integer weights with a scale per output channel, extracted from the layers that dequantize them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ....ir.array import Packed
from ....ir.graph import Layer, Port
from ....ir.tensor import Array, Value
from ....ops.arithmetic import Multiply, Subtract
from ....ops.convolution import Convolution, ForwardConvolution
from ....ops.infrastructure import Constant
from ....ops.quantization import FakeQuantize
from ....ops.type import Convert
from ... import MatchContext
from ...common.fake_quantize import quantize_parameters
from ...common.layout import is_f32

__all__ = ["IntegerWeights", "integer_weights"]

# How far a level of weights may be from an integer, once its zero point is subtracted.
TOLERANCE = 1e-3
# Weights that are made integers at a time, so that they stay in the cache.
BLOCK = 1 << 16


@dataclass(frozen=True)
class IntegerWeights:
    """Weights ``scale * numbers``.

    Args:
        numbers: i8, in the layout of the operation.
        scale: a number for each output channel.
    """

    numbers: Array
    scale: Array


def integer_weights(context: MatchContext, port: Port, op: ForwardConvolution) -> IntegerWeights | None:
    """Return the integers of constant weights; ``None`` if they are not i8 with a scale per output channel."""
    if not context.value(port).is_known or not is_f32(context.value(port)):
        return None
    layer = context.graph[port.layer]
    found = _quantized(context, layer) if isinstance(layer.op, FakeQuantize) else _dequantized(context, layer)
    if found is None:
        return None
    shape, scale = found.shape, found.scale
    axes = 1 if isinstance(op, Convolution) else 2
    per_channel = scale.ndim == len(shape) > axes and all(n == 1 for n in scale.shape[axes:])
    if not per_channel or (numbers := found.integers()) is None:
        return None
    row = np.broadcast_to(scale.reshape(scale.shape[:axes]), shape[:axes]).reshape(-1)
    return IntegerWeights(numbers, row.astype(np.float64))


@dataclass(frozen=True)
class _Levels:
    """Weights ``scale * (level + shift)``; all arrays broadcast to the weights' shape.

    Args:
        data: the levels, or the numbers that a FakeQuantize converts to levels.
        parameters: each `QuantizeParameter` of the FakeQuantize, ``[10, ...]``; ``None`` without one.
        shift: a summand for each level.
        scale: the step of the levels.
    """

    data: Array
    parameters: Array | None
    shift: Array
    scale: Array

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the weights."""
        return np.broadcast_shapes(self.data.shape, self.shift.shape, self.scale.shape)

    def integers(self) -> Array | None:
        """Return levels plus shifts as i8; ``None`` if any sum does not fit."""
        shape, nearest = self.shape, np.rint(self.shift)
        if not (np.abs(self.shift - nearest) <= TOLERANCE).all():
            return None
        data, shift = (np.broadcast_to(each, shape) for each in (self.data, nearest.astype(np.float32)))
        known = self.parameters
        limits = () if known is None else [np.broadcast_to(each, shape) for each in known]
        found = np.empty(shape, np.int8)
        step = max(BLOCK * len(found) // max(found.size, 1), 1)
        for first in range(0, len(found), step):
            part = slice(first, first + step)
            sums = _levels(data[part], [limit[part] for limit in limits]) + shift[part]
            if sums.size and not (sums.min() >= -128 and sums.max() <= 127):
                return None
            found[part] = sums
        return found


def _levels(x: Array, limits: Sequence[Array]) -> Array:
    """Return the levels of f32 numbers, given each `QuantizeParameter`; without parameters, ``x`` are already levels."""
    if not limits:
        return x
    bottom, top, low, width, steps, *_ = limits
    found: Array = x.clip(bottom, top)
    found -= low
    found /= width
    found *= steps
    np.rint(found, out=found)
    return found


def _quantized(context: MatchContext, layer: Layer) -> _Levels | None:
    """Match a constant followed by a FakeQuantize."""
    ports, op = context.sources(layer), layer.op
    data = _constant(context, ports[0])
    if data is None or not isinstance(op, FakeQuantize) or op.levels > 256:
        return None
    limits = [_constant(context, port) for port in ports[1:]]
    arrays = [data, *(limit for limit in limits if limit is not None)]
    if len(arrays) < 5 or any(array.dtype != np.float32 for array in arrays):
        return None
    parameters = quantize_parameters(op, [Value.constant(array) for array in arrays])
    if parameters is None:
        return None
    _, _, _, width, steps, span, first, *_ = parameters
    if not ((width > 0) & (span > 0)).all():
        return None
    scale = span.astype(np.float64) / steps
    return _Levels(data, parameters, first / scale, _of_rank(scale, data.ndim))


def _dequantized(context: MatchContext, layer: Layer) -> _Levels | None:
    """Match ``Constant -> Convert -> Subtract -> Multiply``, with an optional Subtract."""
    if not isinstance(layer.op, Multiply):
        return None
    sources = context.sources(layer)
    scale = _constant(context, sources[1])
    before = context.graph[sources[0].layer]
    zero: Array | None = np.zeros((), np.float32)
    if isinstance(before.op, Subtract):
        first, second = context.sources(before)
        zero, before = _constant(context, second), context.graph[first.layer]
    if scale is None or zero is None or not isinstance(before.op, Convert):
        return None
    numbers = _constant(context, context.sources(before)[0])
    if numbers is None or numbers.dtype not in (np.int8, np.uint8) or not (scale > 0).all():
        return None
    scale = _of_rank(scale.astype(np.float64), numbers.ndim)
    return _Levels(numbers, None, -zero.astype(np.float64), scale)


def _of_rank(scale: Array, rank: int) -> Array:
    return scale.reshape((1,) * (rank - scale.ndim) + scale.shape)


def _constant(context: MatchContext, port: Port) -> Array | None:
    """Return the contents of a constant, possibly folded, or converted to f32."""
    known = context.value(port).known()
    if known is not None:
        return known
    op = context.graph[port.layer].op
    if isinstance(op, Constant):
        return op.value.unpack() if isinstance(op.value, Packed) else np.asarray(op.value)
    if isinstance(op, Convert) and op.destination_type.label == "f32":
        source = _constant(context, context.sources(context.graph[port.layer])[0])
        return None if source is None or source.dtype.kind not in "iuf" else source.astype(np.float32)
    return None
