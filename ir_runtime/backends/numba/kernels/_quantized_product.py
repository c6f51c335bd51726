"""Products of f32 rows with one packed matrix of quantized weights: what is common to their kernels."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np

from ....ir.tensor import Array
from ..codegen.descriptor import Descriptor, i64
from ..threading.parallel import threads
from ..threading.task import UNUSED
from ._epilogue import Epilogue
from ._packed_epilogue import PackedEpilogue
from ._quantized import PANEL_COLUMNS, panel_count

__all__ = ["Operands", "QuantizedProduct"]

# Multiplications from which on several threads are faster.
MIN_PARALLEL_WORK = 1 << 17


class Operands(Descriptor):
    """Addresses of two extra tensors of post-ops, and of a row of zeros."""

    first: i64
    second: i64
    zeros: i64


class QuantizedProduct(ABC):
    """A product with a packed matrix, and its epilogue.

    Args:
        columns: of the matrix.
        epilogue: the layers that are fused.
    """

    def __init__(self, columns: int, epilogue: Epilogue) -> None:
        self._columns, self._panels = columns, panel_count(columns)
        self._scale, self._bias = (
            self._per_column(np.full(1, usual, np.float32) if row is None else row)
            for row, usual in ((epilogue.scale, 1), (epilogue.shift, 0))
        )
        self._epilogue = PackedEpilogue.of(epilogue)
        self._none = np.zeros(PANEL_COLUMNS, np.float32)
        self._no_extras = self._operands(())
        self._has_epilogue = epilogue.shift is not None or bool(epilogue.post_ops)

    @property
    def fields(self) -> dict[str, int]:
        """The fields of a job that describe the epilogue."""
        return {
            "column_scale": _address(self._scale), "bias": _address(self._bias),
            "epilogue_words": _address(self._epilogue.words) if self._has_epilogue else 0,
            "epilogue_numbers": _address(self._epilogue.numbers),
        }  # fmt: skip

    def _per_column(self, row: Array) -> Array:
        """Return a number for each column, padded to whole panels."""
        full = np.zeros(self._panels * PANEL_COLUMNS, np.float32)
        full[: self._columns] = row
        return full

    @abstractmethod
    def multiply(self, x: Array, y: Array, operands: Array) -> None:
        """Multiply rows, at least one, and store the products: whole panels of columns."""

    def __call__(self, x: Array, _: Array, *extras: Array) -> Array:
        rows = math.prod(x.shape[:-1])
        others = self._epilogue.extra_arrays(extras, -1) if self._epilogue.extras else ()
        y = np.empty((rows, self._panels * PANEL_COLUMNS), np.float32)
        if rows:
            self.multiply(x.reshape(rows, -1), y, self._operands(others) if others else self._no_extras)
        if y.shape[1] != self._columns:
            y = np.ascontiguousarray(y[:, : self._columns])
        return y.reshape(*x.shape[:-1], self._columns)

    def _operands(self, extras: Sequence[Array]) -> Array:
        first, second = map(_address, extras or (UNUSED, UNUSED))
        return Operands.fill(first=first, second=second, zeros=_address(self._none))

    @staticmethod
    def threads(size: int, units: int) -> int:
        """Return how many threads share ``size`` multiplications, in ``units`` units."""
        return min(threads(), max(units, 1)) if size >= MIN_PARALLEL_WORK else 1


def _address(array: Array) -> int:
    return int(array.ctypes.data) if array.size else 0
