"""The precision of f32 products: f32, operands rounded to bf16, or bf16 weights, as the compilation requests."""

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
    """The multiplication of rows by constant columns.

    Args:
        name: the kernel's name in profiles; empty for the backend's name.
        per_word: the numbers of a column in a 32-bit word.
        task: multiplies packed rows by packed columns.
        pack: packs the columns, like `pack_panels`.
        rows_of: returns the converter of contiguous f32 to rows of words, given the length of rows.
        is_faster: whether the processor multiplies in this type faster than in f32.
        min_work: the number of multiplications from which rounding the data pays off.
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
        """Return the number of words that hold this many numbers; the last word may be padded."""
        return -(-numbers // self.per_word)

    def prefers_winograd(self, filters: Sequence[int]) -> bool:
        """Return whether Winograd in f32, where it beats f32 products, also beats these.

        Args:
            filters: the filters, ``[C_out, C_in, 3, 3]``.
        """
        return not self.is_faster or (
            min(filters[:2]) >= MIN_WINOGRAD_CHANNELS and max(filters[:2]) <= MAX_WINOGRAD_CHANNELS
        )


def _as_given(x: Array) -> Array:
    return x


F32_PRODUCTS = Products("", 1, GEMM, pack_panels, lambda _: _as_given)
BF16_PRODUCTS = Products("gemm_bf16", 2, BF16_GEMM, pack_bf16_panels, Bf16Rows, IS_FASTER, MIN_BF16_WORK)

WIDENED_PRODUCTS = Products("gemm_bf16_weights", 2, WIDENED_GEMM, pack_bf16_panels, lambda _: _as_given)
"""Products of f32 rows with bf16 weights; odd rows would be read beyond their end."""


def asked_products(rows: int | None = None, numbers: int | None = None) -> Products:
    """Return the products that the current compilation requests for f32 with constants.

    Args:
        rows: the number of rows multiplied by a matrix, if known.
        numbers: the number of elements of the matrix; by default enough to make rounding the rows worthwhile.
    """
    asked = BF16_PRODUCTS if current().products == "bf16" else F32_PRODUCTS
    work = asked.min_work if numbers is None else numbers * (USUAL_ROWS if rows is None else rows)
    return asked if work >= asked.min_work else F32_PRODUCTS


def few_row_products(asked: Products, rows: int | None, depth: int, numbers: int) -> Products:
    """Return products with bf16 weights if the current compilation uses them for few rows.

    Args:
        asked: the requested products for any number of rows.
        rows: the number of rows, if known.
        depth: the length of a row.
        numbers: the number of weights read in sequence for these rows.
    """
    if asked is not F32_PRODUCTS or current().weights != "bf16" or depth % 2 != 0:
        return asked
    waits = rows is not None and rows <= MAX_WIDENED_ROWS and numbers >= MIN_WIDENED_NUMBERS
    return WIDENED_PRODUCTS if waits else asked
