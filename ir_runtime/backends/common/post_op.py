"""Post-ops: elementwise layers that a kernel can apply to its result.

`match_post_op` recognises such a layer; each backend lowers the `PostOp` to its own form.

FakeQuantize with constant limits is one, too. The level of a clipped ``x`` is ``rint((x - low) / width * steps)``, and its
dequantized value ``level / steps * span + first``: inputs from ``low`` to ``low + width`` have levels 0 to ``steps``, which
stand for outputs from ``first`` to ``first + span``. These operations, in this order, give the bits of the reference.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from ...ir.operation import Operation
from ...ir.tensor import Array, Value
from ...ops.elementwise import Binary
from ...ops.quantization import FakeQuantize
from .activations import Activation, broadcast_binary, clip
from .layout import is_f32, same_shape

__all__ = [
    "constant_row",
    "fake_quantize_passes",
    "limit_rows",
    "match_post_op",
    "PostOp",
    "quantize_parameters",
    "QuantizeParameter",
]

# Longer constants are not one value per channel, and not worth a copy.
MAX_COLUMNS = 1 << 22


@dataclass(frozen=True)
class PostOp:
    """An elementwise f32 layer that reads the result of a kernel.

    Args:
        op: the operation of the layer.
        inputs: the `Value` of each of its inputs.
        place: the index of the input that is the result.
    """

    op: Operation
    inputs: tuple[Value, ...]
    place: int

    @property
    def extra_inputs(self) -> int:
        """The number of inputs other than the result."""
        return len(self.inputs) - 1

    @property
    def data(self) -> Value:
        """The `Value` of the result that the layer reads."""
        return self.inputs[self.place]

    @property
    def operand(self) -> Value | None:
        """The other operand of a binary operation; ``None`` for an activation."""
        return self.inputs[1 - self.place] if isinstance(self.op, Binary) else None

    def row(self, axis: int) -> Array | None:
        """Return `operand` as a row if it is a constant that varies only along ``axis`` of the result, else ``None``."""
        return None if self.operand is None else constant_row(self.operand, self.data, axis)

    @property
    def has_full_operand(self) -> bool:
        """Whether the operand is known to have the shape of the result."""
        return self.operand is not None and same_shape(self.operand, self.data)


def match_post_op(op: Operation, inputs: Sequence[Value], place: int) -> PostOp | None:
    """Return a layer as a post-op of the result that it reads at ``place``, or ``None`` if it is not elementwise in f32."""
    if not is_f32(*inputs) or inputs[place].shape.rank is None:
        return None
    if isinstance(op, Binary):
        return PostOp(op, tuple(inputs), place) if op.auto_broadcast == "numpy" else None
    return PostOp(op, tuple(inputs), place) if place == 0 else None


def constant_row(other: Value, data: Value, axis: int) -> Array | None:
    """Return ``other`` as a row along ``axis`` of the data, if it is a constant that varies only along that axis, else ``None``.

    It is also ``None`` if the length of the row is unknown, 0, or above `MAX_COLUMNS`.
    """
    known, rank = other.known(), data.shape.rank
    if known is None or rank is None or known.ndim > rank or not rank:
        return None
    columns = data.shape[axis]
    if not columns.is_static or not 0 < columns.min <= MAX_COLUMNS:
        return None
    lengths = [1] * (rank - known.ndim) + list(known.shape)
    length = lengths.pop(axis)
    if any(n != 1 for n in lengths) or length not in (1, columns.min):
        return None
    return np.broadcast_to(known.reshape(-1), (columns.min,)).copy()


# Elements per block: all passes are applied to a block while it is in the cache.
BLOCK = 1 << 16
# Input ranges (``width``) from this to its inverse, and at most this many levels, are supported.
SMALLEST_WIDTH = 2.0**-80
MAX_LEVELS = 1 << 16


class QuantizeParameter(IntEnum):
    """The parameters of FakeQuantize, in the order in which kernels read them."""

    BOTTOM = 0
    """Values up to this become `FIRST`."""
    TOP = 1
    """Values above this become `LAST`."""
    LOW = 2
    WIDTH = 3
    STEPS = 4
    SPAN = 5
    FIRST = 6
    LAST = 7
    PER_WIDTH = 8
    PER_STEP = 9


def quantize_parameters(op: Operation, inputs: Sequence[Value]) -> Array | None:
    """Return the parameters ``[10, ...]`` of a FakeQuantize of f32 with constant limits, in the order of `QuantizeParameter`.

    Returns ``None`` for any other operation, for limits that are infinite, for extreme ranges, and for more than `MAX_LEVELS`.
    """
    if not isinstance(op, FakeQuantize) or not is_f32(*inputs):
        return None
    known, rank = [limit.known() for limit in inputs[1:]], inputs[0].shape.rank
    limits = [limit for limit in known if limit is not None and rank is not None and limit.ndim <= rank]
    is_scalar = all(limit.size == 1 for limit in limits)
    if len(limits) < len(known) or (op.auto_broadcast != "numpy" and not is_scalar):
        return None
    try:
        low, high, first, last = np.broadcast_arrays(*limits)
    except ValueError:  # refused by inference
        return None
    width, steps = high - low, np.full_like(low, op.levels - 1)
    ordinary = (width == 0) | ((abs(width) > SMALLEST_WIDTH) & (abs(width) < 1 / SMALLEST_WIDTH))
    if not (ordinary.all() and np.isfinite((low, high, first, last)).all() and op.levels <= MAX_LEVELS):
        return None
    with np.errstate(divide="ignore"):
        rows = (
            np.where(high < low, high, low), np.where(low < high, high, low), low, width, steps, last - first,
            first, last, 1 / width, 1 / steps,
        )  # fmt: skip
    return np.ascontiguousarray(rows, np.float32)


def limit_rows(op: Operation, inputs: Sequence[Value], axis: int) -> Array | None:
    """Return `quantize_parameters` as ``[10, 1]``, or as ``[10, columns]`` if limits vary only along ``axis``, else ``None``."""
    parameters = quantize_parameters(op, inputs)
    if parameters is None:
        return None
    if parameters[0].size == 1:
        return parameters.reshape(-1, 1)
    rows = [constant_row(Value.constant(parameter), inputs[0], axis) for parameter in parameters]
    return np.stack([row for row in rows if row is not None]) if rows[0] is not None else None


def fake_quantize_passes(rows: Array) -> Activation | None:
    """Return FakeQuantize as NumPy passes over contiguous rows, bit-identical to the reference.

    Returns ``None`` if a lower limit is not below its upper limit, or if a first output is -0, which an addition would lose.

    Args:
        rows: the parameters, from `limit_rows`.
    """
    bottom, top, low, width, steps, span, first, last, *_ = rows
    if not (low < top).all() or np.signbit(first[first == 0]).any():
        return None
    exact = bool((span + first == last).all())  # else values above the upper limit are replaced at the end
    passes = [_clip(bottom, top)] if exact else [broadcast_binary(np.maximum, bottom)]
    if low.any():
        passes.append(broadcast_binary(np.subtract, low))
    passes += [broadcast_binary(np.divide, width), broadcast_binary(np.multiply, steps[:1]), _round]
    placing = ((np.divide, steps[:1]), (np.multiply, span), (np.add, first))
    passes += [broadcast_binary(ufunc, row) for ufunc, row in placing]
    is_above, replace = broadcast_binary(np.greater, top), broadcast_binary(_replace, last)
    block = max(BLOCK // rows.shape[1], 1) * rows.shape[1]

    def activation(x: Array, out: Array) -> None:
        for start in range(0, x.size, block):
            source, target = x[start : start + block], out[start : start + block]
            if not exact:
                above = np.empty(source.shape, np.bool_)
                is_above(source, above)
            for apply in passes:
                apply(source, target)
                source = target
            if not exact:
                replace(above, target)

    return activation


def _clip(low: Array, high: Array) -> Activation:
    if low.size == 1:
        return clip(low[0], high[0])
    above, below = broadcast_binary(np.maximum, low), broadcast_binary(np.minimum, high)

    def activation(x: Array, out: Array) -> None:
        above(x, out)
        below(out, out)

    return activation


def _replace(mask: Array, row: Array, out: Array) -> None:
    np.copyto(out, row, where=mask)


def _round(x: Array, out: Array) -> None:
    np.rint(x, out=out)
