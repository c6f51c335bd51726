"""Products of f32 rows with one packed matrix of quantized weights: what is common to their kernels."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from ....ir.tensor import Array
from ... import Kernel
from ...common.kept_memory import empty
from ..codegen.language import device
from ..threading.capture import replayed
from ..threading.parallel import threads
from ._epilogue import Epilogue
from ._packed_epilogue import PackedEpilogue
from ._quantized import PANEL_COLUMNS, panel_count
from ._rows import copy_row

__all__ = ["QuantizedProduct", "copy_columns"]


@device
def copy_columns(block: int, rows: int, columns: int, out: int, stride: int) -> None:
    """Copy some columns of a block of whole panels to rows that are ``stride`` bytes apart."""
    for row in range(rows):
        copy_row(block + 4 * PANEL_COLUMNS * row, columns, out + stride * row)


class QuantizedProduct(ABC):
    """A product with a packed matrix, and its epilogue; its calls can be recorded.

    Args:
        columns: of the matrix.
        epilogue: the layers that are fused.
    """

    name: ClassVar[str] = ""
    """Shown in profiles, as the `name` of a `Kernel`."""
    min_parallel_work: ClassVar[int] = 1 << 17
    """Multiplications from which on several threads are faster."""

    def __init__(self, columns: int, epilogue: Epilogue) -> None:
        self._columns, self._panels = columns, panel_count(columns)
        self._scale, self._bias = (
            self._per_column(np.full(1, usual, np.float32) if row is None else row)
            for row, usual in ((epilogue.scale, 1), (epilogue.shift, 0))
        )
        self._epilogue = PackedEpilogue.of(epilogue)
        self._has_epilogue = epilogue.shift is not None or bool(epilogue.post_ops)

    @property
    def fields(self) -> dict[str, int]:
        """The fields of a job that describe the epilogue."""
        return {
            "column_scale": _address(self._scale), "bias": _address(self._bias),
            "epilogue_words": _address(self._epilogue.words) if self._has_epilogue else 0,
            "epilogue_numbers": _address(self._epilogue.numbers), "columns": self._columns,
        }  # fmt: skip

    def _per_column(self, row: Array) -> Array:
        """Return a number for each column, padded to whole panels."""
        full = np.zeros(self._panels * PANEL_COLUMNS, np.float32)
        full[: self._columns] = row
        return full

    @property
    def block(self) -> int:
        """How many numbers of a row a panel is multiplied to before they are copied: if the last panel is no whole one."""
        return PANEL_COLUMNS if self._columns % PANEL_COLUMNS else 0

    @abstractmethod
    def multiply(self, x: Array, y: Array, first: Array, second: Array) -> None:
        """Multiply rows, at least one, and store the products; other inputs of the epilogue have the shape of the result."""

    @property
    def kernel(self) -> Kernel:
        """The kernel of the product."""
        return Kernel(self._compute, name=self.name, replay=replayed())

    def _compute(self, x: Array, _: Array, *extras: Array) -> Array:
        y = empty((*x.shape[:-1], self._columns), np.float32)
        if rows := math.prod(x.shape[:-1]):
            first, second = self._epilogue.extra_arrays(extras, -1)
            self.multiply(x.reshape(rows, -1), y, first, second)
        return y

    def threads(self, size: int, units: int) -> int:
        """Return how many threads share ``size`` multiplications, in ``units`` units."""
        return min(threads(), max(units, 1)) if size >= self.min_parallel_work else 1


def _address(array: Array) -> int:
    return int(array.ctypes.data) if array.size else 0
