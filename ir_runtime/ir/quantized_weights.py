"""Quantized weights with scales and zero points, dequantized on the fly by kernels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from .array import Array, Packed
from .element import ElementType

__all__ = ["QuantizedWeights"]


@dataclass(frozen=True, slots=True, eq=False)
class QuantizedWeights:
    """A quantized f32 matrix: ``(codes - zero) * scale``, reshaped to ``shape``.

    Args:
        codes: the quantized values as stored in the file.
        element: the element type of ``codes``.
        scale: scales that broadcast to the storage shape; ``None`` for 1.
        zero: zero points that broadcast to the storage shape; ``None`` for 0.
        shape: the rows and columns of the matrix.
        arithmetic: the type to which differences and products are rounded: f16, bf16 or f32.
    """

    codes: Array | Packed
    element: ElementType
    scale: Array | None
    zero: Array | None
    shape: tuple[int, int]
    arithmetic: ElementType = ElementType.f32

    @property
    def storage_shape(self) -> tuple[int, ...]:
        """The shape of the quantized values, in which groups may have an axis of their own."""
        return tuple(self.codes.shape)

    def groups(self, rows: bool) -> int | None:
        """Return the number of quantization groups per output.

        ``None`` if scales or zero points vary within a group, or the storage shape has no group axis of a known form.

        Args:
            rows: whether the outputs are the rows of the matrix, and the groups divide its columns.
        """
        within, shape = (-1, self.storage_shape) if rows else (-2, self.storage_shape)
        if len(shape) == 2:
            within, count = (1 if rows else 0), 1
        elif len(shape) == 3 and shape[0 if rows else 2] == self.shape[0 if rows else 1]:
            within, count = (2, shape[1]) if rows else (1, shape[0])
        else:
            return None
        for array in (self.scale, self.zero):
            if array is not None and np.broadcast_shapes(array.shape, shape) != shape:
                return None
            if array is not None and np.broadcast_to(array, shape).strides[within] and shape[within] > 1:
                return None
        return count

    def scales(self, rows: bool) -> tuple[Array, Array | None]:
        """Return scales and zero points as f32 ``[outputs, groups]``; for ``rows`` see `groups`."""
        scale = np.ones(1, np.float32) if self.scale is None else self.scale
        zero = None if self.zero is None else self._per_group(self.zero, rows)
        return self._per_group(scale, rows), zero

    def _per_group(self, array: Array, rows: bool) -> Array:
        full = np.broadcast_to(array.astype(np.float32), self.storage_shape)
        if full.ndim == 2:
            return full[:, :1] if rows else full[:1].T
        return full[:, :, 0] if rows else full[:, 0].T

    def blocks(self, rows: bool, step: int) -> Iterator[tuple[int, Array]]:
        """Yield the first output and the unpacked quantized values ``[step, inputs]`` of each block of ``step`` outputs.

        The last block may be smaller; for ``rows`` see `groups`.
        """
        outputs = self.shape[0 if rows else 1]
        whole = None if rows else self.rows_of(0, self.shape[0]).T
        for first in range(0, outputs, step):
            last = min(first + step, outputs)
            yield first, self.rows_of(first, last) if whole is None else whole[first:last]

    def rows_of(self, first: int, last: int) -> Array:
        """Return the unpacked quantized values of rows ``first`` to ``last`` (exclusive)."""
        if not isinstance(self.codes, Packed):
            return self.codes.reshape(self.shape)[first:last]
        # Packed values fill whole bytes, or groups of three bytes.
        columns, unit = self.shape[1], 3 if 8 % self.element.bits else 1
        together = 8 * unit // self.element.bits
        begin, end = first * columns, last * columns
        raw = self.codes.raw[begin // together * unit : -(-end // together) * unit]
        before = begin % together
        codes = Packed(raw, self.element, (before + end - begin,)).unpack()
        return codes[before:].reshape(last - first, columns)
