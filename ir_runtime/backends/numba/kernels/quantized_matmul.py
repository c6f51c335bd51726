"""Matrix products with quantized weights, which are dequantized in registers or in the cache."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from ....ir.quantized_weights import QuantizedWeights
from ....ir.tensor import Array, Value
from ....ops.matrix.matmul import MatMul
from ... import Kernel
from ...common.epilogue import RowEpilogue, RowKernel
from ...common.rounding import quantized_operand
from ...core.kernel import name_of, named
from ...core.lengths import axis_length
from .._backend import backend
from ..codegen.descriptor import i64
from ..codegen.memory import fetch_add, free, load_i64, store_i64
from ..codegen.vectors import LANES
from ..threading.parallel import parallel_for
from ..threading.task import UNUSED, Task, load_args
from ._dequantize import dequantize_columns, dot_column, permute_row
from ._dynamic_matmul import dynamic_product
from ._epilogue import Epilogue, FusedKernel
from ._gemm_tile import gemm_panel
from ._packed_epilogue import add_rows, apply_epilogue
from ._packed_matrix import PackedMatrix, pack
from ._quantized import PANEL_COLUMNS, PANEL_VECTORS, MatrixRecord
from ._quantized_product import Operands, QuantizedProduct
from .contiguous import contiguous

__all__: list[str] = []

# Rows of a panel that are dequantized at a time: they stay in the L2 cache.
DEPTH_BLOCK = 256
# Panels of a unit, for one row.
PANELS_PER_UNIT = 2


class QuantizedJob(MatrixRecord):
    """The job of `SINGLE_ROW` and `MANY_ROWS`; the epilogue is 0 for none."""

    panels: i64
    rows: i64
    bias: i64
    epilogue_words: i64
    epilogue_numbers: i64


def _single_row(call: int) -> None:
    """Multiply one row (GEMV); a unit is some panels."""
    job, out, row, others, _, counter = load_args(call)
    kind, panels = load_i64(job, QuantizedJob.storage), load_i64(job, QuantizedJob.panels)
    bias = load_i64(job, QuantizedJob.bias)
    words, numbers = load_i64(job, QuantizedJob.epilogue_words), load_i64(job, QuantizedJob.epilogue_numbers)
    x = permute_row(kind, job, row)
    first = fetch_add(counter) * PANELS_PER_UNIT
    while first < panels:
        for panel in range(first, min(first + PANELS_PER_UNIT, panels)):
            at = 4 * PANEL_COLUMNS * panel
            for column in range(PANEL_COLUMNS):
                dot_column(kind, job, x, PANEL_COLUMNS * panel + column, out + at + 4 * column)
            if words != 0:
                add_rows(out + at, bias + at, PANEL_COLUMNS)
                apply_epilogue(
                    words, numbers, load_i64(others, Operands.first), load_i64(others, Operands.second), out, at, at,
                    1, PANEL_COLUMNS, 0,
                )  # fmt: skip
        first = fetch_add(counter) * PANELS_PER_UNIT
    if x != row:
        free(x)


def _many_rows(call: int) -> None:
    """Multiply several rows; a unit is a panel, which is dequantized block by block."""
    job, out, places, others, scratch, counter = load_args(call)
    kind, panels = load_i64(job, QuantizedJob.storage), load_i64(job, QuantizedJob.panels)
    rows, bias = load_i64(job, QuantizedJob.rows), load_i64(job, QuantizedJob.bias)
    size = load_i64(job, QuantizedJob.group_size)
    words, numbers = load_i64(job, QuantizedJob.epilogue_words), load_i64(job, QuantizedJob.epilogue_numbers)
    depth, stride = load_i64(job, QuantizedJob.groups) * size, 4 * PANEL_COLUMNS * panels
    none = load_i64(others, Operands.zeros)
    scratch += fetch_add(counter + 8) * 4 * (DEPTH_BLOCK * PANEL_COLUMNS + 16)
    offset = scratch + 4 * DEPTH_BLOCK * PANEL_COLUMNS
    panel = fetch_add(counter)
    while panel < panels:
        at = 4 * PANEL_COLUMNS * panel
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
                PANEL_VECTORS, rows, places, 0, 0, offset, 1, stop - start, scratch, out + at, stride,
                none if start > 0 else bias + at, out + at if start > 0 else 0, LANES, -np.inf, np.inf,
            )  # fmt: skip
            start = stop
        if words != 0:
            apply_epilogue(
                words, numbers, load_i64(others, Operands.first), load_i64(others, Operands.second), out, at, at, rows,
                PANEL_COLUMNS, stride,
            )  # fmt: skip
        panel = fetch_add(counter)


SINGLE_ROW, MANY_ROWS = Task(_single_row), Task(_many_rows)


@backend.quantized(MatMul)
def quantized_matmul(op: MatMul, a: Value, b: Value) -> Kernel | None:
    """f32 rows, of any batch, by one quantized matrix on the right."""
    if (weights := quantized_operand(op, a, b)) is None:
        return None
    product = dynamic_product(weights, op.transpose_b) or _exact_product(weights, op.transpose_b)
    if product is None:
        return None
    depth, columns = weights.shape[::-1] if op.transpose_b else weights.shape
    accepts = axis_length(-1, depth)
    if columns % PANEL_COLUMNS:
        made = product(Epilogue())
        return RowKernel(named(partial(_with_row_epilogue, made), name_of(made)), 2, accepts=accepts)
    return FusedKernel(product, accepts=accepts)


def _with_row_epilogue(product: QuantizedProduct, x: Array, w: Array, epilogue: RowEpilogue) -> Array:
    """Multiply and apply an epilogue of NumPy: if the last panel has more columns than the result."""
    y = product(x, w)
    epilogue(y.reshape(-1, y.shape[-1]), 0)
    return y


def _exact_product(weights: QuantizedWeights, rows: bool) -> Callable[[Epilogue], QuantizedProduct] | None:
    """Return what makes the kernel that dequantizes weights; ``None`` if it cannot do so exactly."""
    matrix = pack(weights, rows)
    return None if matrix is None else partial(_QuantizedMatmul, matrix)


class _QuantizedMatmul(QuantizedProduct):
    """A product with a quantized matrix, and its epilogue."""

    def __init__(self, matrix: PackedMatrix, epilogue: Epilogue) -> None:
        super().__init__(matrix.columns, epilogue)
        self._matrix = matrix
        self._job = QuantizedJob.fill(
            **matrix.record, **self.fields, panels=matrix.panels, rows=1
        ).view(np.int64)  # fmt: skip

    def multiply(self, x: Array, y: Array, operands: Array) -> None:
        """Multiply rows."""
        (self._single_row if len(x) == 1 else self._many_rows)(self._matrix.pad_rows(x), y, operands)

    def _single_row(self, x: Array, y: Array, others: Array) -> None:
        count = self.threads(y.size * x.size, -(-self._matrix.panels // PANELS_PER_UNIT))
        parallel_for(SINGLE_ROW.address, self._job, contiguous(y), contiguous(x), others, UNUSED, count)

    def _many_rows(self, x: Array, y: Array, others: Array) -> None:
        job = self._job.copy()
        job[QuantizedJob.rows] = len(x)
        places = x.ctypes.data + np.arange(len(x), dtype=np.int64) * (4 * x.shape[1])
        count = self.threads(y.size * x.shape[1], self._matrix.panels)
        scratch = np.empty(count * (DEPTH_BLOCK * PANEL_COLUMNS + 16), np.float32)
        parallel_for(MANY_ROWS.address, job, contiguous(y), places.view(np.float32), others, scratch, count)
