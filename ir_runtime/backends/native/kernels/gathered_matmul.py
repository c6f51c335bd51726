"""Matrix products with matrices that a Gather selects from a table, such as the experts of a mixture.

The kernel reads the matrices in place; without this pattern, Gather would copy them in every run.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache, partial
from typing import TypeAlias

import numpy as np

from ....ir.graph import Layer
from ....ir.tensor import Array
from ....ops.matrix import MatMul
from ....ops.movement.gather import GatherBase
from ... import Fusion, Kernel, MatchContext, Refusal
from ...common.kept_memory import empty
from ...patterns.gathered_matmul import GatheredMatMul, match_gathered_matmul
from .._backend import backend
from ..codegen.descriptor import Descriptor, i64
from ..codegen.language import device
from ..codegen.memory import fetch_add, load_i64
from ..threading.capture import replayed
from ..threading.parallel import parallel_for, threads_for, was_refused
from ..threading.task import Task, each_unit
from ._copy import contiguous
from ._epilogue import Epilogue, EpilogueField, FusedKernel, PackedEpilogue, apply_epilogue
from ._indices import load_index
from ._rows import add_weighted_rows, clear_row, dot_rows

__all__: list[str] = []

# Columns of a unit.
COLUMNS_PER_UNIT = 64
# Jobs that a kernel caches, one for each combination of shapes.
MAX_JOBS = 64


class GatheredJob(Descriptor):
    """Parameters of `_multiply_gathered`: ``products`` of ``rows`` rows by ``[depth, columns]``, transposed if ``by_rows``.

    ``table`` is the address of the matrices. ``places`` holds, for each product, the positions of its left
    matrix and of its index. ``refused`` counts indices out of the range of ``matrices``.
    """

    products: i64
    rows: i64
    depth: i64
    columns: i64
    by_rows: i64
    table: i64
    matrices: i64
    places: i64
    index_size: i64
    epilogue: EpilogueField
    refused: i64


@device
def _multiply_columns(job: GatheredJob, x: int, matrix: int, first: int, count: int, out: int) -> None:
    """Multiply all rows by ``count`` columns of a matrix, starting with column ``first``; ``x`` and ``out`` address the first row."""
    depth, columns = job.depth, job.columns
    for row in range(job.rows):
        line, target = x + 4 * depth * row, out + 4 * (columns * row + first)
        if job.by_rows != 0:
            dot_rows(line, matrix + 4 * depth * first, 4 * depth, count, depth, target)
        else:
            clear_row(target, count)
            add_weighted_rows(line, matrix + 4 * first, 4 * columns, depth, count, target)


@Task
def _multiply_gathered(
    call: int, job: GatheredJob, out: int, x: int, indices: int, extra: int, other: int
) -> None:
    """Multiply A by the matrices at the indices B; a unit of work is a block of columns of a product.

    C and D are extra tensors of the epilogue.
    """
    table = job.table
    columns, rows = job.columns, job.rows
    size, matrices = rows * job.depth, job.matrices
    places, depth = job.places, job.depth
    parts = (columns + COLUMNS_PER_UNIT - 1) // COLUMNS_PER_UNIT
    units = job.products * parts
    for unit in each_unit(call, units):
        product = unit // parts
        first = (unit - product * parts) * COLUMNS_PER_UNIT
        count = min(COLUMNS_PER_UNIT, columns - first)
        place = load_i64(places, 2 * product + 1)
        index = load_index(indices, place, job.index_size)
        if index < 0:
            index += matrices
        if 0 <= index < matrices:
            start = 4 * rows * columns * product
            _multiply_columns(
                job, x + 4 * size * load_i64(places, 2 * product), table + 4 * depth * columns * index, first, count,
                out + start,
            )  # fmt: skip
            if job.epilogue != 0:
                apply_epilogue(
                    job.epilogue, extra, other, out, start + 4 * first, 4 * first, rows, count, 4 * columns
                )
        else:
            fetch_add(job + 8 * GatheredJob.refused)


@backend.pattern(MatMul, after="Gather")
def gathered_matmul(context: MatchContext, layer: Layer) -> Fusion | Refusal | None:
    """Return the fusion of a product of few rows with the Gather that selects its matrices.

    Returns ``None`` if the layer is no such product, or the matrices are empty or not contiguous, and a `Refusal` with the
    reason if the kernel does not support the product.
    """
    match = match_gathered_matmul(context, layer)
    if not isinstance(match, GatheredMatMul):
        return match
    if not match.matrices.size or not match.matrices.flags.c_contiguous:
        return None
    if not context.value(match.reads[2]).shape.rank:
        return Refusal("the indices are a scalar, or their rank is unknown")
    depth = match.matrices.shape[2 if match.matmul.transpose_b else 1]
    kernel = FusedKernel(partial(_kernel, match.gather, match.matmul), accepts=partial(_accepts, depth))
    return Fusion(match.layers, match.reads, kernel)


def _accepts(depth: int, x: Array, _: Array, indices: Array, *others: object) -> bool:
    try:
        np.broadcast_shapes(x.shape[:-2], indices.shape)
    except ValueError:
        return False
    return bool(x.shape[-1] == depth)


def _kernel(gather: GatherBase, op: MatMul, epilogue: Epilogue) -> Kernel:
    _multiply_gathered.prepare()
    packed = PackedEpilogue.of(epilogue.unfold_weights())
    has_epilogue = epilogue.shift is not None or epilogue.scale is not None or bool(epilogue.post_ops)
    find = lru_cache(MAX_JOBS)(partial(_job, bool(op.transpose_b), packed if has_epilogue else None))
    axis = np.array(0)

    def run(x: Array, table: Array, indices: Array, extras: Sequence[Array]) -> Array | None:
        """Return the result, or ``None`` if an index is out of range."""
        shape, job = find(x.shape, table.shape, indices.shape, indices.itemsize)
        out = empty(shape, np.float32)
        if not out.size:
            return out
        job = job.copy()
        job["table"] = table.ctypes.data
        count = threads_for(computed=2 * out.size * x.shape[-1])
        places, others = np.ascontiguousarray(indices), packed.extra_arrays(extras, -1)
        parallel_for(_multiply_gathered.address, job, out, contiguous(x), places, others[0], count, others[1])
        return None if was_refused(job, GatheredJob.refused) else out

    def kernel(x: Array, table: Array, indices: Array, _: Array, *extras: Array) -> Array:
        result = run(x, table, indices, extras)
        if result is None:  # Gather gives zeros where an index is out of range
            copies = np.asarray(gather.evaluate(table, indices, axis)).reshape(-1, *table.shape[1:])
            result = run(x, copies, np.arange(len(copies)).reshape(indices.shape), extras)
            assert result is not None
        return result

    return Kernel(kernel, replay=replayed())


_Shape: TypeAlias = tuple[int, ...]


def _job(
    by_rows: bool, epilogue: PackedEpilogue | None, x: _Shape, table: _Shape, indices: _Shape, size: int
) -> tuple[_Shape, Array]:
    """Return the shape of the result, and the job for these shapes without the address of the table."""
    batch = np.broadcast_shapes(x[:-2], indices)
    positions = [np.arange(math.prod(axes)).reshape(axes) for axes in (x[:-2], indices)]
    places = np.stack([np.broadcast_to(p, batch).reshape(-1) for p in positions], 1).astype(np.int64)
    matrices, depth, columns = (table[0], table[2], table[1]) if by_rows else table
    job = GatheredJob.fill(
        products=math.prod(batch), rows=x[-2], depth=depth, columns=columns, by_rows=by_rows, table=0,
        matrices=matrices, places=places, index_size=size,
        epilogue=None if epilogue is None else epilogue.record, refused=0,
    )  # fmt: skip
    return (*batch, x[-2], columns), job
