"""Matrix products with quantized weights, dequantized in registers or in the cache."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from ....ir.pages import let_go
from ....ir.quantized_weights import QuantizedWeights
from ....ir.tensor import Array, Value
from ....ops.matrix import MatMul
from ... import Kernel, KernelTemplate
from ...common.kept_weights import reserve
from ...common.rounding import quantized_operand
from ...core.kernel import axis_length
from .._backend import backend
from ..codegen.descriptor import i64
from ..codegen.language import device
from ..codegen.memory import fetch_add, scratch_memory, store_i64
from ..codegen.vectors import LANES
from ..threading.parallel import parallel_for, replayed, workspace
from ..threading.task import Task, each_unit, shared_counters
from ._dynamic_matmul import dynamic_product
from ._epilogue import Epilogue, FusedKernel, KernelFactory
from ._gemm_tile import gemm_panel
from ._packed_epilogue import EpilogueField, add_rows, apply_epilogue
from ._products import F32_PRODUCTS
from ._quantized import PANEL_COLUMNS, PANEL_VECTORS, MatrixRecord, PackedMatrix, pack
from ._quantized_product import (
    QuantizedProduct,
    copy_columns,
    dequantize_columns,
    dot_column,
    permute_row,
    permuted_size,
)
from .matmul import constant_product

__all__: list[str] = []

# Rows of a panel that are dequantized at a time: they stay in the L2 cache.
DEPTH_BLOCK = 256
# From this many rows on, widening weights of 16 bits in every run takes less than a tenth of a product. With fewer, products
# take up to 2.5 times as long as those with weights of f32; but a single row, which waits for weights to be read from
# memory, half as long.
MIN_STORED_ROWS = 256
# Numbers for the offset of a tap, in a separate cache line.
OFFSET = 16


class QuantizedJob(MatrixRecord):
    """The job of `SINGLE_ROW` and `MANY_ROWS`; the epilogue is 0 for none.

    ``zeros`` is the address of a panel of zeros; each thread has ``scratch`` bytes of scratch memory.
    """

    panels: i64
    columns: i64
    rows: i64
    bias: i64
    epilogue: EpilogueField
    zeros: i64
    scratch: i64


def _single_row(call: int, job: QuantizedJob, out: int, row: int, first: int, second: int) -> None:
    """Multiply one row (GEMV); a unit is a panel."""
    kind, panels = job.storage, job.panels
    bias, columns = job.bias, job.columns
    x, size = 0, permuted_size(kind, job)
    for panel in each_unit(call, panels):
        if x == 0:  # threads that find no panel left need no row
            x = row
            if size != 0:
                x = scratch_memory(size)
                permute_row(size, row, x)
        at, count = 4 * PANEL_COLUMNS * panel, min(PANEL_COLUMNS, columns - PANEL_COLUMNS * panel)
        for column in range(count):
            dot_column(kind, job, x, PANEL_COLUMNS * panel + column, out + at + 4 * column)
        if job.epilogue != 0:
            add_rows(out + at, bias + at, count)
            apply_epilogue(job.epilogue, first, second, out, at, at, 1, count, 0)


def _many_rows(call: int, job: QuantizedJob, out: int, x: int, first: int, second: int, memory: int) -> None:
    """Multiply several rows; a unit is a panel, dequantized block by block."""
    counter = shared_counters(call)
    panels, columns = job.panels, job.columns
    rows, bias = job.rows, job.bias
    depth = job.groups * job.group_size
    scratch = memory + fetch_add(counter) * job.scratch
    places = scratch + 4 * (DEPTH_BLOCK * PANEL_COLUMNS + OFFSET)
    block = places + 8 * rows
    for row in range(rows):
        store_i64(places, row, x + 4 * depth * row)
    for panel in each_unit(call, panels):
        at, count = 4 * PANEL_COLUMNS * panel, min(PANEL_COLUMNS, columns - PANEL_COLUMNS * panel)
        if count == PANEL_COLUMNS:
            _multiply_panel(job, panel, places, scratch, bias + at, out + at, 4 * columns)
        else:
            _multiply_panel(job, panel, places, scratch, bias + at, block, 4 * PANEL_COLUMNS)
            copy_columns(block, rows, count, out + at, 4 * columns)
        if job.epilogue != 0:
            apply_epilogue(job.epilogue, first, second, out, at, at, rows, count, 4 * columns)


@device
def _multiply_panel(
    job: QuantizedJob, panel: int, places: int, scratch: int, bias: int, out: int, stride: int
) -> None:  # fmt: skip
    """Multiply rows, given by address, by a panel, and store the result in rows that are ``stride`` bytes apart."""
    kind, rows = job.storage, job.rows
    size = job.group_size
    depth, none = job.groups * size, job.zeros
    offset = scratch + 4 * DEPTH_BLOCK * PANEL_COLUMNS
    start = 0
    while start < depth:
        stop = min(start + DEPTH_BLOCK, depth)
        k = start
        while k < stop:
            end = min((k // size + 1) * size, stop)
            for column in range(0, PANEL_COLUMNS, LANES):
                place = scratch + 4 * (PANEL_COLUMNS * (k - start) + column)
                dequantize_columns(kind, job, PANEL_COLUMNS * panel + column, k, end - k, place)
            k = end
        store_i64(offset, 0, 4 * start)
        gemm_panel(
            PANEL_VECTORS, rows, places, 0, 0, offset, 1, stop - start, scratch, out, stride,
            none if start > 0 else bias, 0, out if start > 0 else 0, LANES, -np.inf, np.inf,
        )  # fmt: skip
        start = stop


SINGLE_ROW, MANY_ROWS = Task(_single_row), Task(_many_rows)


@backend.quantized(MatMul)
def quantized_matmul(op: MatMul, a: Value, b: Value) -> KernelTemplate | None:
    """Support f32 rows, of any batch, multiplied by one quantized matrix on the right."""
    if (weights := quantized_operand(op, a, b)) is None:
        return None
    rows = math.prod(a.shape.static[:-1]) if a.shape.is_static else None
    product = dynamic_product(weights, op.transpose_b) or _exact_product(weights, op.transpose_b, rows)
    if product is None:
        return None
    accepts = axis_length(-1, weights.shape[-1 if op.transpose_b else 0])
    return FusedKernel(product, accepts=accepts)


def _exact_product(weights: QuantizedWeights, by_rows: bool, rows: int | None) -> KernelFactory | None:
    """Return the factory of a kernel for the exact weights; ``None`` if there is none.

    Args:
        weights: the matrix.
        by_rows: whether the product's columns are the matrix's rows.
        rows: the number of rows to multiply, if known.
    """
    is_widened = _is_worth_widening(weights, rows) and reserve(4 * math.prod(weights.shape))
    if is_widened and rows is not None:
        return partial(_widened_product, weights, by_rows)
    matrix = pack(weights, by_rows)
    if matrix is None:
        return None

    def stored(epilogue: Epilogue) -> Kernel:
        return _QuantizedMatmul(matrix, epilogue).kernel

    return (
        partial(_either_product, stored, partial(_widened_product, weights, by_rows))
        if is_widened
        else stored
    )


def _is_worth_widening(weights: QuantizedWeights, rows: int | None) -> bool:
    """Return whether an f32 copy of the weights is faster, at twice the memory: for 16-bit weights and few rows."""
    is_half = weights.element.bits == 16 and weights.scale is None and weights.zero is None
    return is_half and (rows is None or 1 < rows < MIN_STORED_ROWS)


def _widened_product(weights: QuantizedWeights, by_rows: bool, epilogue: Epilogue) -> Kernel:
    """Return the kernel with an f32 copy of the weights."""
    numbers = weights.rows_of(0, weights.shape[0]).astype(np.float32)
    if isinstance(weights.codes, np.ndarray):
        let_go(weights.codes)
    return constant_product(numbers.T if by_rows else numbers, False, epilogue, F32_PRODUCTS)


def _either_product(stored: KernelFactory, widened: KernelFactory, epilogue: Epilogue) -> Kernel:
    """Return the kernel for an unknown number of rows; a single row is multiplied by the stored weights."""
    of_row, of_rows = stored(epilogue).run, widened(epilogue).run

    def kernel(x: Array, *others: Array) -> Array:
        chosen = of_rows if math.prod(x.shape[:-1]) > 1 else of_row
        return np.asarray(chosen(x, *others))

    return Kernel(kernel, replay=replayed())


class _QuantizedMatmul(QuantizedProduct):
    """A product with a quantized matrix, and its epilogue."""

    min_parallel_work = 1 << 15

    def __init__(self, matrix: PackedMatrix, epilogue: Epilogue) -> None:
        super().__init__(matrix.columns, epilogue)
        self._matrix, self._none = matrix, np.zeros(PANEL_COLUMNS, np.float32)
        self._job = QuantizedJob.fill(
            **matrix.record, **self.fields, panels=matrix.panels, rows=1, zeros=self._none, scratch=0
        ).view(np.int64)  # fmt: skip

    def multiply(self, x: Array, y: Array, first: Array, second: Array) -> None:
        """Multiply rows."""
        x = self._matrix.pad_rows(x)
        count = self.threads(y.size * x.shape[1], self._matrix.panels)
        if len(x) == 1:
            parallel_for(SINGLE_ROW.address, self._job, y, x, first, second, count)
            return
        job, size = self._job.copy(), DEPTH_BLOCK * PANEL_COLUMNS + OFFSET + len(x) * (2 + self.block)
        job[QuantizedJob.rows], job[QuantizedJob.scratch] = len(x), 4 * size
        parallel_for(MANY_ROWS.address, job, y, x, first, second, count, workspace(count * size))
