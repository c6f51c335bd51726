"""Weights of a few bits each, with scales: what they stand for without making them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from .element import ElementType
from .tensor import Array, Packed

__all__ = ["Compressed", "Grouped"]


@dataclass(frozen=True, slots=True, eq=False)
class Grouped:
    """A compressed matrix seen as ``[outputs, groups, inputs of a group]``."""

    codes: Array
    """Numbers as their type has them, a view if the file has one a byte or more."""
    scale: Array
    """f32 ``[outputs, groups]``."""
    zero: Array | None
    """What is subtracted before, ``[outputs, groups]``; ``None`` for nothing."""


@dataclass(frozen=True, slots=True, eq=False)
class Compressed:
    """A matrix of f32 that is stored as ``(codes - zero) * scale``, then reshaped.

    Args:
        codes: the numbers as the file has them.
        element: their type.
        scale: factors that broadcast to the shape of the codes; ``None`` for 1.
        zero: what is subtracted first, likewise; ``None`` for 0.
        shape: rows and columns of the matrix.
    """

    codes: Array | Packed
    element: ElementType
    scale: Array | None
    zero: Array | None
    shape: tuple[int, int]

    @property
    def apart(self) -> tuple[int, ...]:
        """The shape of the codes, in which groups may have an axis of their own."""
        return tuple(self.codes.shape)

    def groups(self, rows: bool) -> int | None:
        """How many groups with a scale of their own follow each other along the columns, or the rows.

        ``None`` if scales do not go along with the other axis that way.
        """
        within, shape = (-1, self.apart) if rows else (-2, self.apart)
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

    def grouped(self, rows: bool, first: int = 0, count: int | None = None) -> Grouped:
        """Some of the outputs, which are the rows of the matrix or its columns."""
        groups = self.groups(rows)
        assert groups is not None
        outputs = self.shape[0 if rows else 1]
        last = outputs if count is None else min(first + count, outputs)
        scale = np.ones(1, np.float32) if self.scale is None else self.scale.astype(np.float32)
        zero = None if self.zero is None else self._per_group(self.zero, rows, groups)[first:last]
        codes = self._codes(rows, groups, first, last)
        return Grouped(codes, self._per_group(scale, rows, groups)[first:last], zero)

    def _codes(self, rows: bool, groups: int, first: int, last: int) -> Array:
        if not rows:
            whole = self.codes.unpack() if isinstance(self.codes, Packed) else self.codes
            return whole.reshape(groups, -1, self.shape[1]).transpose(2, 0, 1)[first:last]
        return self.rows(first, last).reshape(last - first, groups, -1)

    def rows(self, first: int, last: int) -> Array:
        """The codes of some rows of the matrix."""
        if not isinstance(self.codes, Packed):
            return self.codes.reshape(self.shape)[first:last]
        bits = self.shape[1] * self.element.bits
        if bits % 8:
            return self.codes.unpack().reshape(self.shape)[first:last]
        raw = self.codes.raw[first * bits // 8 : last * bits // 8]
        return Packed(raw, self.element, (last - first, self.shape[1])).unpack()

    def _per_group(self, array: Array, rows: bool, groups: int) -> Array:
        """``[outputs, groups]`` of what broadcasts to the codes."""
        full = np.broadcast_to(array, self.apart)
        if full.ndim == 2:
            return full[:, :1] if rows else full[:1].T
        return full[:, :, 0] if rows else full[:, 0].T

    def blocks(self, rows: bool, step: int) -> Iterator[tuple[int, Grouped]]:
        """All outputs, so many at a time, with the first of them; what is unpacked stays small."""
        outputs = self.shape[0 if rows else 1]
        if not rows:
            whole = self.grouped(rows)
            for first in range(0, outputs, step):
                part = slice(first, first + step)
                zero = None if whole.zero is None else whole.zero[part]
                yield first, Grouped(whole.codes[part], whole.scale[part], zero)
            return
        for first in range(0, outputs, step):
            yield first, self.grouped(rows, first, step)
