"""Embeddings from quantized tables: only the gathered rows are dequantized."""

from __future__ import annotations

import numpy as np

from ....ir.array import Packed
from ....ir.element import ElementType as E
from ....ir.quantized_weights import QuantizedWeights
from ....ir.tensor import Array, Value
from ....ops.conversion import convert
from ....ops.movement.gather import Gather, Gather1, Gather7
from ... import Kernel
from ...core.kernel import any_lengths
from .._backend import backend

__all__: list[str] = []


@backend.quantized(Gather, Gather1, Gather7)
def quantized_gather(
    op: Gather | Gather1 | Gather7, data: Value, indices: Value, axis: Value
) -> Kernel | None:
    """Return a kernel that gathers rows of a quantized matrix, or ``None`` for another axis or with batch axes.

    A row whose index is out of range is 0.
    """
    weights = data.quantized
    if (
        weights is None
        or axis.ints() not in ((0,), (-2,))
        or (isinstance(op, Gather) and op.batch_dims)
        or weights.groups(True) is None
    ):
        return None
    table = _Table(weights)

    def kernel(_: Array, indices: Array, axis: Array) -> Array:
        flat = indices.reshape(-1).astype(np.int64)
        flat = np.where(flat < 0, flat + len(table), flat)
        out_of_range = (flat < 0) | (flat >= len(table))
        any_out_of_range = bool(out_of_range.any())
        if not flat.size:
            return np.empty((*indices.shape, table.width), np.float32)
        rows = table.rows(np.where(out_of_range, 0, flat) if any_out_of_range else flat)
        if any_out_of_range:
            rows[out_of_range] = 0
        return rows.reshape(*indices.shape, table.width)

    return Kernel(kernel, accepts=any_lengths)


class _Table:
    """A quantized matrix whose rows are dequantized on demand."""

    def __init__(self, weights: QuantizedWeights) -> None:
        self._weights = weights
        outputs, inputs = weights.shape
        self._groups = weights.groups(True) or 1
        values, bits = weights.codes, inputs * weights.element.bits
        if isinstance(values, Packed) and bits % 8:
            values = values.unpack()
        self._packed = isinstance(values, Packed)
        raw = values.raw[: outputs * bits // 8] if isinstance(values, Packed) else values
        self._values = raw.reshape(outputs, -1)
        self._scale, self._zero = (self._per_group(array) for array in (weights.scale, weights.zero))

    def _per_group(self, array: Array | None) -> Array | None:
        """Return scales or zero points as a view ``[rows, groups]``."""
        if array is None:
            return None
        full = np.broadcast_to(array, self._weights.storage_shape)
        return full[:, :, 0] if full.ndim == 3 else full[:, :1]

    def __len__(self) -> int:
        return self._weights.shape[0]

    @property
    def width(self) -> int:
        """The length of a row."""
        return self._weights.shape[1]

    def rows(self, indices: Array) -> Array:
        """Dequantize the rows at ``indices`` to f32, with the arithmetic of the file's type."""
        element, arithmetic = self._weights.element, self._weights.arithmetic
        values = self._values[indices]
        if self._packed:
            values = Packed(values.reshape(-1), element, (len(indices), self._weights.shape[1])).unpack()
        rows = convert(values, arithmetic, element).reshape(len(indices), self._groups, -1)
        if self._zero is not None:
            rows = rows - self._zero[indices][..., None]
        if self._scale is not None:
            rows = rows * self._scale[indices][..., None]
        return convert(rows, E.f32, arithmetic).reshape(len(indices), -1)
