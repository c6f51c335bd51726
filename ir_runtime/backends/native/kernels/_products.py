"""In which type a kernel multiplies f32: in f32, rounded to bf16, or by weights of bf16, as the precision of the compilation says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ....ir.tensor import Array
from ...core.precision import current
from ..codegen.bf16 import IS_FASTER
from ..threading.task import Task
from ._epilogue import Bf16Tensors
from ._gemm_kernel import BF16_GEMM, GEMM, WIDENED_GEMM, Bf16Rows
from ._panels import PackedPanels, pack_bf16_panels, pack_panels

__all__ = [
    "BF16_PRODUCTS",
    "F32_PRODUCTS",
    "WIDENED_PRODUCTS",
    "Products",
    "asked_products",
    "few_row_products",
]

# From and up to this many channels, Winograd in f32 is faster than products of bf16, which read and store half as much.
MIN_WINOGRAD_CHANNELS, MAX_WINOGRAD_CHANNELS = 64, 256


MIN_BF16_WORK = 1 << 18
# Rows of a matrix, where their number is not known.
USUAL_ROWS = 16
# Up to this many rows, products wait for weights to be read, if there are as many as this: fewer stay in the caches of a core.
MAX_WIDENED_ROWS, MIN_WIDENED_NUMBERS = 8, 1 << 18


@dataclass(frozen=True)
class Products:
    """How a kernel multiplies rows with constant columns.

    Args:
        name: what profiles call the kernel; empty for that of the backend.
        per_word: how many numbers of a column a 32-bit word has.
        task: multiplies packed rows with packed columns.
        pack: packs the columns, as `pack_panels`.
        rows_of: for the length of rows, returns what makes rows of words of contiguous f32.
        is_faster: whether the processor multiplies them faster than f32.
        min_work: how many multiplications take as long in f32 as these with the rounding of their data.
    """

    name: str
    per_word: int
    task: Task
    pack: Callable[..., PackedPanels]
    rows_of: Callable[[int], Callable[[Array], Array]]
    is_faster: bool = False
    min_work: int = 0

    def bf16_tensors(self, numbers: int) -> Bf16Tensors:
        """Return the tensors that a product of rows of this length may read and store in bf16."""
        is_faster = self.is_faster
        return Bf16Tensors(is_faster and numbers % self.per_word == 0, is_faster, is_faster)

    def words(self, numbers: int) -> int:
        """Return how many words numbers take, with a zero after them if they do not fill the last one."""
        return -(-numbers // self.per_word)

    def prefers_winograd(self, filters: Sequence[int]) -> bool:
        """Return whether Winograd in f32, where it is faster than products of f32, is faster than these, too.

        Args:
            filters: ``[C_out, C_in, 3, 3]``.
        """
        return not self.is_faster or (
            min(filters[:2]) >= MIN_WINOGRAD_CHANNELS and max(filters[:2]) <= MAX_WINOGRAD_CHANNELS
        )


def _as_given(x: Array) -> Array:
    return x


F32_PRODUCTS = Products("", 1, GEMM, pack_panels, lambda _: _as_given)
BF16_PRODUCTS = Products("gemm_bf16", 2, BF16_GEMM, pack_bf16_panels, Bf16Rows, IS_FASTER, MIN_BF16_WORK)

WIDENED_PRODUCTS = Products("gemm_bf16_weights", 2, WIDENED_GEMM, pack_bf16_panels, lambda _: _as_given)
"""Rows of f32 by weights of bf16: rows of an odd number would be read beyond their end."""


def asked_products(rows: int | None = None, numbers: int | None = None) -> Products:
    """Return the requested products of f32 with constants in the current compilation.

    Args:
        rows: how many rows a matrix multiplies, if that is known.
        numbers: how many numbers the matrix has; by default as many as are worth rounding the rows.
    """
    asked = BF16_PRODUCTS if current().products == "bf16" else F32_PRODUCTS
    work = asked.min_work if numbers is None else numbers * (USUAL_ROWS if rows is None else rows)
    return asked if work >= asked.min_work else F32_PRODUCTS


def few_row_products(asked: Products, rows: int | None, depth: int, numbers: int) -> Products:
    """Return products with bf16 weights if the current compilation uses them for few rows.

    Args:
        asked: what it wants for any number of rows.
        rows: how many there are, if that is known.
        depth: how many numbers a row has.
        numbers: how many numbers the weights have that are read, one after the other, for these rows.
    """
    if asked is not F32_PRODUCTS or current().weights != "bf16" or depth % 2 != 0:
        return asked
    waits = rows is not None and rows <= MAX_WIDENED_ROWS and numbers >= MIN_WIDENED_NUMBERS
    return WIDENED_PRODUCTS if waits else asked
