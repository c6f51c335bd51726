"""MatMul and Einsum, with constant weights or two computed inputs, of any batch.

A work unit of a product of computed matrices is a block of its rows and columns. Each thread packs columns of the
right matrix in its own memory, so threads never wait; for few rows, columns are read in place. Long sums are
split into partial sums, as in BLAS, which reduces rounding errors.
"""

from __future__ import annotations

import math
from functools import lru_cache, partial
from typing import TypeAlias

import numpy as np

from ....ir.tensor import Array, Value
from ....ops.matrix import Einsum, MatMul
from ... import Kernel, KernelTemplate
from ...common.einsum import EinsumProduct, constant_einsum, einsum_product
from ...common.kept_memory import empty
from ...common.layout import is_f32
from ...core.kernel import axis_length
from .._backend import backend
from ..codegen.descriptor import Descriptor, i64
from ..codegen.language import device
from ..codegen.memory import load_i64, scratch_memory, store_i64
from ..codegen.vectors import LANES
from ..threading.capture import replayed
from ..threading.parallel import parallel_for, threads_for
from ..threading.task import UNUSED, Task, each_unit
from ._copy import contiguous, contiguous_rows, reshape
from ._epilogue import Epilogue, EpilogueField, FusedKernel, PackedEpilogue, add_rows, apply_epilogue
from ._gemm import Gemm
from ._gemm_kernel import Products, few_row_products, requested_products
from ._gemm_tile import ROW_MULTIPLE, WIDE, gemm_panel
from ._panels import next_panel, pack_rows, pack_transposed
from ._rows import add_weighted_rows, clear_row, dot_rows

__all__ = ["constant_product"]


@backend.accelerates(MatMul)
def constant_matmul(op: MatMul, a: Value, b: Value) -> KernelTemplate | None:
    """Return a MatMul kernel for f32 rows, of any batch, and one constant matrix."""
    constant = b.known()
    if constant is None or not constant.size or not is_f32(a, b) or math.prod(constant.shape[:-2]) != 1:
        return None
    if a.shape.rank is None or a.shape.rank < max(constant.ndim, 2) or constant.ndim < 2:
        return None
    matrix = constant.reshape(constant.shape[-2:])
    weights = matrix.T if op.transpose_b else matrix
    rows = math.prod(a.shape.static) // len(weights) if a.shape.is_static else None
    products = few_row_products(requested_products(rows, weights.size), rows, len(weights), weights.size)

    def make(epilogue: Epilogue) -> Kernel:
        return constant_product(weights, op.transpose_a, epilogue, products)

    accepts = axis_length(-2 if op.transpose_a else -1, len(weights))
    return FusedKernel(make, accepts=accepts, bf16=products.bf16_tensors(len(weights)))


def constant_product(weights: Array, transposed: bool, epilogue: Epilogue, products: Products) -> Kernel:
    """Return a kernel that multiplies rows by a constant matrix.

    Args:
        weights: the matrix, ``[depth, columns]``.
        transposed: whether to swap the last two axes of the rows first.
        epilogue: the fused layers.
        products: the precision of the products.
    """
    depth, columns = weights.shape
    panels = products.pack(weights.T[None, :, None], epilogue.scale, epilogue.shift)
    dense = Gemm(panels, epilogue, columns, 1, products.words(depth), UNUSED, products.task)
    rows = products.rows_of(depth)

    def kernel(x: Array, _: Array, *extras: Array) -> Array:
        x = x.swapaxes(-1, -2) if transposed else x
        y = empty((*x.shape[:-1], columns), epilogue.dtype)
        dense.multiply(rows(contiguous(x)), y, extras)
        return y

    return Kernel(kernel, name=products.name, replay=replayed())


# Units per thread: several, so that others can take over from a thread that is interrupted.
UNITS_PER_THREAD = 4
# Maximum rows for which columns are read in place.
MAX_FEW_ROWS = 4
# Columns of a unit of few rows, for contiguous columns and for contiguous rows. Minimum rows of a unit that packs columns, as
# packing takes as long as multiplying several rows: for several units per thread, and for one.
FEW_COLUMNS, FEW_ROW_COLUMNS = 64, 256
MIN_ROWS, MIN_OWN_ROWS = 6 * ROW_MULTIPLE, 16
# Elements of packed columns, and of the rows that they are multiplied by: together they stay in the L2 cache.
PACKED_ELEMENTS, ROW_ELEMENTS = 1 << 16, 1 << 15
PANEL = WIDE * LANES
# Terms of a partial sum.
PART = 256
# Jobs that a kernel caches, one for each combination of shapes.
MAX_JOBS = 64
F32_SIZE = 4
_INFINITY = np.float32(np.inf)
_ZEROS = np.zeros(PANEL, np.float32)


class ProductJob(Descriptor):
    """Parameters of `_multiply_matrices`: ``products`` of ``rows`` rows by ``[depth, columns]``, transposed if ``by_rows``.

    ``places`` holds the byte offsets of both matrices of each product; ``row_stride`` and ``other_stride`` are
    the byte strides of the rows of left and right matrices. A work unit has ``unit_rows`` rows and ``unit_columns``
    columns, and multiplies ``some_rows`` rows at a time. ``packed`` is the size of the packed columns, 0 for few
    rows, and ``scratch`` that of all scratch memory of a thread, in bytes. ``zeros`` is the address of a row of
    zeros.
    """

    products: i64
    rows: i64
    depth: i64
    columns: i64
    by_rows: i64
    places: i64
    row_stride: i64
    other_stride: i64
    unit_rows: i64
    unit_columns: i64
    some_rows: i64
    packed: i64
    scratch: i64
    zeros: i64
    epilogue: EpilogueField


@device
def _few_rows(job: ProductJob, x: int, rows: int, y: int, count: int, out: int, part: int) -> None:
    """Multiply ``rows`` rows by ``count`` columns that are read in place.

    ``x``, ``y`` and ``out`` are the addresses of the first row, column and result; ``part`` is memory for the
    partial sums of a row.
    """
    depth, apart = job.depth, job.other_stride
    columns, stride = job.columns, job.row_stride
    for row in range(rows):
        line, target = x + stride * row, out + 4 * columns * row
        if job.by_rows != 0:
            dot_rows(line, y, apart, count, depth, target)
            continue
        clear_row(target, count)
        for first in range(0, depth, PART):
            clear_row(part, count)
            add_weighted_rows(
                line + 4 * first, y + apart * first, apart, min(PART, depth - first), count, part
            )
            add_rows(target, part, count)


@device
def _panel_products(job: ProductJob, places: int, rows: int, packed: int, count: int, out: int) -> None:
    """Multiply ``rows`` rows by ``count`` columns, which are packed in panels at ``packed``.

    ``places`` holds the addresses of the rows, and after them a word for the byte offset of a partial sum.
    """
    depth, stride = job.depth, 4 * job.columns
    offset, zeros = places + 8 * job.some_rows, job.zeros
    done = 0
    while done < count:
        vectors, panel_columns = next_panel(count - done)
        target, size = out + 4 * done, 4 * LANES * vectors
        for first in range(0, max(depth, 1), PART):
            store_i64(offset, 0, 4 * first)
            gemm_panel(
                vectors, rows, places, 0, 0, offset, 1, min(PART, depth - first), packed + size * first, target, stride,
                zeros, 0, target if first > 0 else 0, panel_columns - (vectors - 1) * LANES, -_INFINITY, _INFINITY,
            )  # fmt: skip
        packed += size * depth
        done += panel_columns


@device
def _many_rows(job: ProductJob, x: int, rows: int, y: int, count: int, out: int, packed: int) -> None:
    """Pack ``count`` columns, and multiply ``rows`` rows by them.

    Addresses are as in `_few_rows`; ``packed`` is memory for the columns and for the addresses of rows.
    """
    depth, apart = job.depth, job.other_stride
    stride, width = job.row_stride, 4 * job.columns
    step, places = job.some_rows, packed + job.packed
    if job.by_rows != 0:
        pack_transposed(y, apart, count, depth, packed)
    else:
        pack_rows(y, apart, depth, count, packed)
    for first in range(0, rows, step):
        here = min(step, rows - first)
        for row in range(here):
            store_i64(places, row, x + stride * (first + row))
        _panel_products(job, places, here, packed, count, out + width * first)


@Task
def _multiply_matrices(call: int, job: ProductJob, out: int, x: int, y: int, extra: int, other: int) -> None:
    """Multiply matrices A by matrices B; a work unit is a block of rows and columns of a product.

    C and D are extra tensors of the epilogue.
    """
    places = job.places
    columns, rows = job.columns, job.rows
    wide, tall = job.unit_columns, job.unit_rows
    across, down = (columns + wide - 1) // wide, (rows + tall - 1) // tall
    by_column = job.other_stride if job.by_rows != 0 else 4
    packed, units = job.packed, job.products * across * down
    memory = scratch_memory(job.scratch)
    for unit in each_unit(call, units):
        block = unit // across
        left = (unit - block * across) * wide
        product = block // down
        top = (block - product * down) * tall
        count, here = min(wide, columns - left), min(tall, rows - top)
        start = 4 * ((product * rows + top) * columns + left)
        line = x + load_i64(places, 2 * product) + top * job.row_stride
        column = y + load_i64(places, 2 * product + 1) + left * by_column
        if packed == 0:
            _few_rows(job, line, here, column, count, out + start, memory)
        else:
            _many_rows(job, line, here, column, count, out + start, memory)
        if job.epilogue != 0:
            apply_epilogue(job.epilogue, extra, other, out, start, 4 * left, here, count, 4 * columns)


@backend.accelerates(MatMul)
def computed_matmul(op: MatMul, a: Value, b: Value) -> KernelTemplate | None:
    """Return a MatMul kernel for f32 matrices of any batch; ``None`` for one constant right matrix.

    A constant matrix would be packed again in every run.
    """
    if not is_f32(a, b) or None in (a.shape.rank, b.shape.rank) or 1 in (a.shape.rank, b.shape.rank):
        return None
    constant = b.known()
    if constant is not None and math.prod(constant.shape[:-2]) == 1:
        return None
    return FusedKernel(partial(matrix_product, op), accepts=partial(_accepts, op))


def _accepts(op: MatMul, a: Array, b: Array, *others: object) -> bool:
    try:
        np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    except ValueError:
        return False
    depth: int = a.shape[-2 if op.transpose_a else -1]
    return bool(depth == b.shape[-1 if op.transpose_b else -2])


def matrix_product(op: MatMul, epilogue: Epilogue) -> Kernel:
    """Return a kernel for f32 matrices of compatible shapes, with batches that broadcast."""
    _multiply_matrices.prepare()
    after = epilogue.unfold_weights()
    packed = PackedEpilogue.of(after)
    find = lru_cache(MAX_JOBS)(partial(_job, packed if after.post_ops else None))

    def kernel(a: Array, b: Array, *extras: Array) -> Array:
        a = a.swapaxes(-1, -2) if op.transpose_a else a
        b = b.swapaxes(-1, -2) if op.transpose_b else b
        out = empty((*_batch(a.shape, b.shape), a.shape[-2], b.shape[-1]), np.float32)
        if not out.size:
            return out
        if b.shape[-1] == 1 and not packed.has_rows:  # a result column has the memory of a row
            a, b = b.swapaxes(-1, -2), a.swapaxes(-1, -2)
        a = contiguous_rows(a)
        b = b if b.strides[-2] == F32_SIZE else contiguous_rows(b)
        count = threads_for(computed=2 * out.size * a.shape[-1])
        job = find(a.shape, a.strides, b.shape, b.strides, count)
        first, second = packed.extra_arrays(extras, -1)
        parallel_for(_multiply_matrices.address, job, out, a, b, first, count, second)
        return out

    return Kernel(kernel, replay=replayed())


_Axes: TypeAlias = tuple[int, ...]


def _batch(a: _Axes, b: _Axes) -> _Axes:
    return np.broadcast_shapes(a[:-2], b[:-2])


def _job(
    epilogue: PackedEpilogue | None, a: _Axes, a_strides: _Axes, b: _Axes, b_strides: _Axes, count: int
) -> Array:
    """Return the job for matrices of these shapes and strides, and for ``count`` threads."""
    batch = _batch(a, b)
    sides = [_offsets(shape[:-2], strides, batch) for shape, strides in ((a, a_strides), (b, b_strides))]
    places = np.stack(sides, 1)
    rows, depth, columns = *a[-2:], b[-1]
    by_rows = b_strides[-2] == F32_SIZE and (columns == 1 or b_strides[-1] != F32_SIZE)
    if rows <= MAX_FEW_ROWS:
        wide, tall = FEW_COLUMNS if by_rows else FEW_ROW_COLUMNS, rows
    else:
        wide, tall = _unit(rows, depth, columns, len(places), count)
    some = min(tall, max(ROW_ELEMENTS // max(depth, 1) // ROW_MULTIPLE, 1) * ROW_MULTIPLE)
    packed = 0 if rows <= MAX_FEW_ROWS else 4 * max(depth, 1) * -(-min(wide, columns) // LANES) * LANES
    return ProductJob.fill(
        products=len(places), rows=rows, depth=depth, columns=columns, by_rows=by_rows, places=places,
        row_stride=a_strides[-2], other_stride=b_strides[-1 if by_rows else -2], unit_rows=tall,
        unit_columns=wide, some_rows=some, packed=packed,
        scratch=packed + 8 * (some + 1) if packed else 4 * FEW_ROW_COLUMNS, zeros=_ZEROS,
        epilogue=None if epilogue is None else epilogue.record,
    )  # fmt: skip


def _offsets(shape: _Axes, strides: _Axes, batch: _Axes) -> Array:
    """Return the byte offset of the matrix that each product reads, given the lengths and byte strides of its batch axes.

    ``batch`` are the lengths to which these axes broadcast.
    """
    axes = [np.arange(n) * stride for n, stride in zip(shape, strides, strict=False)]
    offsets = sum(np.ix_(*axes), np.zeros((1,) * len(axes), np.int64)) if axes else np.zeros((), np.int64)
    return np.broadcast_to(offsets, batch).reshape(-1).astype(np.int64)


def _unit(rows: int, depth: int, columns: int, products: int, count: int) -> tuple[int, int]:
    """Return the columns and rows of a unit.

    Each of ``count`` threads gets at least one unit, unless units would become too small.
    """
    parts = -(-UNITS_PER_THREAD * count // products) if count > 1 else 1
    panels = min(PACKED_ELEMENTS // (max(depth, 1) * PANEL), -(-columns // (parts * PANEL)))
    wide = max(panels, 1) * PANEL
    blocks = -(-columns // wide)
    tall = max(-(-rows // -(-parts // blocks)), min(MIN_ROWS, rows))
    own = -(-count // (products * blocks))
    return wide, min(tall, max(-(-rows // own), MIN_OWN_ROWS))


@backend.accelerates(Einsum)
def constant_weights(op: Einsum, *operands: Value) -> KernelTemplate | None:
    """Return an Einsum kernel for f32 and one constant matrix, which is packed."""
    return constant_einsum(backend, op, operands, reshape)


@backend.accelerates(Einsum)
def products(op: Einsum, *operands: Value) -> Kernel | None:
    """Return an Einsum kernel for batched f32 matrices; views reorder the axes of inputs and result."""
    if len(operands) != 2 or not is_f32(*operands) or None in (value.shape.rank for value in operands):
        return None
    product = einsum_product(op.equation, tuple(len(value.shape) for value in operands))
    return None if product is None else _kernel(op, product)


def _kernel(op: Einsum, product: EinsumProduct) -> Kernel:
    multiply = matrix_product(MatMul(transpose_a=False, transpose_b=False), Epilogue())

    def kernel(a: Array, b: Array) -> Array:
        left, right = product.permute(a, b)
        if not product.fits(left, right):  # an axis of length 1 broadcasts
            return op.evaluate(a, b)
        return product.result(np.asarray(multiply(*product.matrices(left, right, reshape))), left, right)

    return Kernel(kernel, replay=replayed())
