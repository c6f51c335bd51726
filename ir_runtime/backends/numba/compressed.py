"""Products with weights that stay as they are stored: a few bits each, unpacked in registers or in the cache."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...ir.tensor import Array, Value
from ...ops.matrix.matmul import MatMul
from .. import Kernel
from ..numpy._finish import Finish, Rows
from ..numpy._memory import is_f32
from ._backend import backend
from ._codes import COLUMNS, VECTORS, bytes_of_row, dot, sums, unpack
from ._compile import kernel
from ._packed import PackedPanels, pack
from ._threads import threads
from ._tile import multiply
from ._vectors import LANES
from ._work import CALL_A, CALL_B, CALL_C, CALL_JOB, CALL_OUT, COUNTER, NOTHING, Worker, put, share, take, word

__all__: list[str] = []

# Rows of a panel that are unpacked at a time: they stay in the second cache.
DEPTH = 256
# Fewer multiplications than this are not worth a second thread.
WORTH = 1 << 17
# A thread takes so many panels at a time, for one row.
AT_ONCE = 2

JOB = 10


def _one(call: int) -> None:
    """One row by all panels."""
    job, out, x, totals = word(call, CALL_JOB), word(call, CALL_OUT), word(call, CALL_A), word(call, CALL_B)
    kind, codes, table, scale, zero = word(job, 0), word(job, 1), word(job, 2), word(job, 3), word(job, 4)
    panels, depth, groups, row = word(job, 5), word(job, 6), word(job, 7), word(job, 8)
    several = word(job, 9)
    apart = 4 * COLUMNS * groups
    first = take(call + 8 * COUNTER) * several
    while first < panels:
        for panel in range(first, min(first + several, panels)):
            at = zero + panel * apart if zero != 0 else 0
            place = codes + panel * depth * row
            dot(
                kind, place, table, x, groups, depth // groups, totals, scale + panel * apart, at,
                out + 4 * COLUMNS * panel,
            )  # fmt: skip
        first = take(call + 8 * COUNTER) * several


def _many(call: int) -> None:
    """Several rows by all panels, each of which is unpacked a part at a time."""
    job, out, places = word(call, CALL_JOB), word(call, CALL_OUT), word(call, CALL_A)
    kind, codes, table, scale, zero = word(job, 0), word(job, 1), word(job, 2), word(job, 3), word(job, 4)
    panels, depth, groups, row = word(job, 5), word(job, 6), word(job, 7), word(job, 8)
    rows = word(job, 9)
    none, scratch = word(call, CALL_B), word(call, CALL_C)
    scratch += take(call + 8 * COUNTER + 8) * 4 * (DEPTH * COLUMNS + 16)
    offset = scratch + 4 * DEPTH * COLUMNS
    size, apart, stride = depth // groups, 4 * COLUMNS * groups, 4 * COLUMNS * panels
    panel = take(call + 8 * COUNTER)
    while panel < panels:
        target = out + 4 * COLUMNS * panel
        start = 0
        while start < depth:
            stop = min(start + DEPTH, depth)
            k = start
            while k < stop:
                group = k // size
                end = min((group + 1) * size, stop)
                factors = scale + panel * apart + 4 * COLUMNS * group
                points = zero + panel * apart + 4 * COLUMNS * group if zero != 0 else 0
                unpack(
                    kind, codes + (panel * depth + k) * row, table, end - k, factors, points,
                    scratch + 4 * COLUMNS * (k - start),
                )  # fmt: skip
                k = end
            put(offset, 0, 4 * start)
            multiply(
                VECTORS, rows, places, 0, offset, 1, stop - start, scratch, target, stride, none,
                target if start > 0 else 0, LANES, -np.inf, np.inf,
            )  # fmt: skip
            start = stop
        panel = take(call + 8 * COUNTER)


ONE, MANY = Worker(_one), Worker(_many)


@kernel
def _sums(x: Array, groups: int, out: Array) -> None:
    sums(x.ctypes.data, groups, len(x) // groups, out.ctypes.data)


@backend.multiplies(MatMul)
def by_codes(op: MatMul, a: Value, b: Value) -> Kernel | None:
    """f32 rows, of any batch, by one compressed matrix on the right."""
    weights = b.compressed
    if weights is None or a.compressed is not None or not is_f32(a) or op.transpose_a or not a.shape.rank:
        return None
    panels = pack(weights, op.transpose_b)
    return None if panels is None else Rows(_Product(panels), 2)


class _Product:
    """Rows times a compressed matrix."""

    def __init__(self, panels: PackedPanels) -> None:
        self._panels = panels
        zero = panels.zero.ctypes.data if panels.zero.size else 0
        job = np.zeros(JOB, np.int64)
        job[:5] = panels.kind, panels.codes.ctypes.data, panels.table.ctypes.data, panels.scale.ctypes.data, zero
        job[5:] = panels.panels, panels.depth, panels.groups, bytes_of_row(panels.kind), AT_ONCE
        self._job = job
        self._none = np.zeros(COLUMNS, np.float32)
        self._totals = np.zeros(panels.groups, np.float32)

    def __call__(self, x: Array, _: Array, finish: Finish) -> Array:
        panels = self._panels
        rows = math.prod(x.shape[:-1])
        x = np.ascontiguousarray(x)
        y = np.empty((rows, panels.panels * COLUMNS), np.float32)
        if rows == 1:
            self._one(x.reshape(-1), y.reshape(-1))
        elif rows:
            self._many(x.reshape(rows, -1), y)
        if y.shape[1] != panels.columns:
            y = np.ascontiguousarray(y[:, : panels.columns])
        finish(y, 0)
        return y.reshape(*x.shape[:-1], panels.columns)

    def _one(self, x: Array, y: Array) -> None:
        totals = self._totals
        if self._panels.zero.size:
            totals = np.empty(self._panels.groups, np.float32)
            _sums(x, len(totals), totals)
        share(ONE.address, self._job, y, x, totals, NOTHING, self._threads(y.size * x.size, -(-self._panels.panels // AT_ONCE)))

    def _many(self, x: Array, y: Array) -> None:
        job = self._job.copy()
        job[-1] = len(x)
        places = x.ctypes.data + np.arange(len(x), dtype=np.int64) * (4 * x.shape[1])
        count = self._threads(y.size * x.shape[1], self._panels.panels)
        scratch = np.empty(count * (DEPTH * COLUMNS + 16), np.float32)
        share(MANY.address, job, y.reshape(-1), places.view(np.float32), self._none, scratch, count)

    def _threads(self, size: int, units: int) -> int:
        return min(threads(), max(units, 1)) if size >= WORTH else 1
