"""MVN over one axis (layer normalization), block by block of rows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ....ir.tensor import Array, Value
from ....ops.normalization import MVN
from ... import KernelTemplate
from ...common.epilogue import RowEpilogue, RowKernel
from ...common.layout import is_f32, moveaxis
from ...core.kernel import any_lengths
from .._backend import backend
from ..math.gemm import for_row_blocks, ones_column

__all__: list[str] = []

# Numbers for which every call counts.
FEW = 1 << 10
_INFINITY = np.float32(np.inf)


@backend.accelerates(MVN)
def layer_norm(op: MVN, data: Value, axes: Value) -> KernelTemplate | None:
    """Return a kernel for f32 over the last axis, or over the channels of maps, which are then stored last."""
    rank, over = data.shape.rank, axes.ints()
    if not is_f32(data) or not rank or over is None or len(over) != 1 or not -rank <= over[0] < rank:
        return None
    axis = over[0] % rank
    if axis not in (rank - 1, 1):
        return None
    normalize = _row_normalizer(op)

    def compute(x: Array, _: Array, epilogue: RowEpilogue) -> Array:
        rows_last = x if axis == rank - 1 else moveaxis(x, axis, -1)
        y = np.empty(rows_last.shape, np.float32)
        if not y.size:
            return moveaxis(y, -1, axis)
        length = x.shape[axis]
        ones, count = ones_column(length), np.array(length, np.float32)
        source, target = rows_last.reshape(-1, length), y.reshape(-1, length)

        def normalize_rows(rows: Array, out: Array, first: int) -> None:
            means = np.dot(rows, ones)
            np.subtract(rows, np.divide(means, count, means), out)
            sums = means if normalize is None else normalize(out, count)
            if not np.vdot(sums, sums) < _INFINITY:  # sums of huge numbers, which f32 does not hold
                out[...] = op.normalize(rows, (1,))
            epilogue(out, first)

        if y.size <= FEW:
            normalize_rows(source, target, 0)
        else:
            for_row_blocks(
                lambda block: normalize_rows(source[block], target[block], block.start), *target.shape
            )
        return y if axis == rank - 1 else moveaxis(y, -1, axis)

    return RowKernel(compute, 2, axis if axis < rank - 1 else -1, accepts=any_lengths)


def _row_normalizer(op: MVN) -> Callable[[Array, Array], Array] | None:
    """Return the function that divides differences to the mean by their deviation, given their number in a row.

    It returns the deviations.
    """
    if not op.normalize_variance:
        return None
    eps, inside = np.array(op.eps, np.float32), op.eps_mode == "inside_sqrt"

    def normalize(rows: Array, count: Array) -> Array:
        deviations = np.vecdot(rows, rows)
        np.divide(deviations, count, deviations)
        if inside:
            np.sqrt(np.add(deviations, eps, deviations), deviations)
        else:
            np.add(np.sqrt(deviations, deviations), eps, deviations)
        np.divide(rows, deviations[:, None], rows)
        return np.asarray(deviations)

    return normalize
