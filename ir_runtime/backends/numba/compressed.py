"""Products with weights that stay as they are stored: a few bits each, unpacked in registers or in the cache."""

from __future__ import annotations

import math

import numpy as np

from ...ir.tensor import Array, Value
from ...ops.matrix.matmul import MatMul
from .. import Kernel
from ..numpy import _finish as _numpy
from ..numpy._finish import Rows
from ..numpy._memory import is_f32
from ._backend import backend
from ._codes import COLUMNS, VECTORS, bytes_of_row, dot, sums, unpack
from ._compile import kernel
from ._curves import apply
from ._epilogue import Epilogue, Finish, Fused, add_rows, finish
from ._language import device
from ._packed import PackedPanels, pack
from ._threads import share, threads
from ._tile import multiply
from ._vectors import LANES
from ._work import CALL_A, CALL_B, CALL_C, CALL_JOB, CALL_OUT, COUNTER, Worker, line, number, put, take, word

__all__: list[str] = []

# Rows of a panel that are unpacked at a time: they stay in the second cache.
DEPTH = 256
# Fewer multiplications than this are not worth a second thread.
WORTH = 1 << 17
# A thread takes so many panels at a time, for one row.
AT_ONCE = 2

# Words of a job: what the panels are, how the work is split, bias, and what an epilogue has.
ROWS, BIAS, FINISH, NUMBERS, JOB = 9, 10, 11, 12, 13


@device
def _finish(
    words: int,
    numbers: int,
    first: int,
    second: int,
    out: int,
    start: int,
    column: int,
    rows: int,
    stride: int,
) -> None:
    """All of an epilogue behind the bias, on the columns of a panel."""
    low, high = number(numbers, 0), number(numbers, 1)
    for row in range(rows):
        target = start + row * stride
        if word(words, 0) != 0:
            add_rows(out + target, first + target, COLUMNS)
        if low > -np.inf or high < np.inf:
            apply(out + target, COLUMNS, 1, low, high)
    finish(words, numbers, first, second, out, start, column, rows, COLUMNS, stride)


def _one(call: int) -> None:
    """One row by all panels."""
    job, out, x, totals = word(call, CALL_JOB), word(call, CALL_OUT), word(call, CALL_A), word(call, CALL_B)
    kind, codes, table, scale, zero = word(job, 0), word(job, 1), word(job, 2), word(job, 3), word(job, 4)
    panels, depth, groups, row = word(job, 5), word(job, 6), word(job, 7), word(job, 8)
    several, bias, words, numbers = word(job, ROWS), word(job, BIAS), word(job, FINISH), word(job, NUMBERS)
    others = word(call, CALL_C)
    apart, width = 4 * COLUMNS * groups, 4 * COLUMNS
    first = take(call + 8 * COUNTER) * several
    while first < panels:
        for panel in range(first, min(first + several, panels)):
            at = zero + panel * apart if zero != 0 else 0
            place = codes + panel * depth * row
            dot(
                kind, place, table, x, groups, depth // groups, totals, scale + panel * apart, at,
                out + width * panel,
            )  # fmt: skip
            if words != 0:
                add_rows(out + width * panel, bias + width * panel, COLUMNS)
                _finish(
                    words, numbers, word(others, 0), word(others, 1), out, width * panel, width * panel, 1, 0
                )
        first = take(call + 8 * COUNTER) * several


def _many(call: int) -> None:
    """Several rows by all panels, each of which is unpacked a part at a time."""
    job, out, places = word(call, CALL_JOB), word(call, CALL_OUT), word(call, CALL_A)
    kind, codes, table, scale, zero = word(job, 0), word(job, 1), word(job, 2), word(job, 3), word(job, 4)
    panels, depth, groups, row = word(job, 5), word(job, 6), word(job, 7), word(job, 8)
    rows, bias, words, numbers = word(job, ROWS), word(job, BIAS), word(job, FINISH), word(job, NUMBERS)
    others, scratch = word(call, CALL_B), word(call, CALL_C)
    none = word(others, 2)
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
                VECTORS, rows, places, 0, offset, 1, stop - start, scratch, target, stride,
                none if start > 0 else bias + 4 * COLUMNS * panel, target if start > 0 else 0, LANES, -np.inf, np.inf,
            )  # fmt: skip
            start = stop
        if words != 0:
            _finish(
                words, numbers, word(others, 0), word(others, 1), out, 4 * COLUMNS * panel, 4 * COLUMNS * panel,
                rows, stride,
            )  # fmt: skip
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
    if panels is None:
        return None
    if panels.columns % COLUMNS:
        return Rows(_Product(panels, Epilogue()).then_finished, 2)
    return Fused(lambda epilogue: _Product(panels, epilogue))


class _Product:
    """Rows times a compressed matrix, and what follows."""

    def __init__(self, panels: PackedPanels, epilogue: Epilogue) -> None:
        self._panels = panels
        self._scale = (
            panels.scale if epilogue.scale is None else panels.scale * _padded(panels, epilogue.scale)
        )
        self._bias = _padded(panels, np.zeros(1, np.float32) if epilogue.shift is None else epilogue.shift)
        self._finish = Finish.of(epilogue)
        self._none, self._totals = np.zeros(COLUMNS, np.float32), np.zeros(panels.groups, np.float32)
        idle = epilogue.shift is None and not epilogue.stages
        job = np.zeros(JOB, np.int64)
        job[:5] = panels.kind, *map(_address, (panels.codes, panels.table, self._scale, panels.zero))
        job[5:ROWS] = panels.panels, panels.depth, panels.groups, bytes_of_row(panels.kind)
        job[ROWS], job[BIAS] = AT_ONCE, _address(self._bias)
        job[FINISH:] = 0 if idle else _address(self._finish.words), _address(self._finish.numbers)
        self._job = job

    def then_finished(self, x: Array, w: Array, finish: _numpy.Finish) -> Array:
        """The same, finished by NumPy: where the last panel has columns that the result lacks."""
        y = self(x, w)
        finish(y.reshape(-1, y.shape[-1]), 0)
        return y

    def __call__(self, x: Array, _: Array, *extras: Array) -> Array:
        panels = self._panels
        rows = math.prod(x.shape[:-1])
        x = np.ascontiguousarray(x)
        y = np.empty((rows, panels.panels * COLUMNS), np.float32)
        others = self._finish.partners(extras, -1)
        addresses = np.array([*map(_address, others), self._none.ctypes.data], np.int64).view(np.float32)
        if rows == 1:
            self._one(line(x), y.reshape(-1), addresses)
        elif rows:
            self._many(x.reshape(rows, -1), y, addresses)
        if y.shape[1] != panels.columns:
            y = np.ascontiguousarray(y[:, : panels.columns])
        return y.reshape(*x.shape[:-1], panels.columns)

    def _one(self, x: Array, y: Array, others: Array) -> None:
        totals, units = self._totals, -(-self._panels.panels // AT_ONCE)
        if self._panels.zero.size:
            totals = np.empty(self._panels.groups, np.float32)
            _sums(x, len(totals), totals)
        share(ONE.address, self._job, y, x, totals, others, _threads(y.size * x.size, units))

    def _many(self, x: Array, y: Array, others: Array) -> None:
        job = self._job.copy()
        job[ROWS] = len(x)
        places = x.ctypes.data + np.arange(len(x), dtype=np.int64) * (4 * x.shape[1])
        count = _threads(y.size * x.shape[1], self._panels.panels)
        scratch = np.empty(count * (DEPTH * COLUMNS + 16), np.float32)
        share(MANY.address, job, y.reshape(-1), places.view(np.float32), others, scratch, count)


def _padded(panels: PackedPanels, row: Array) -> Array:
    """A number for each column, as ``[panels, 1, columns]``."""
    full = np.zeros(panels.panels * COLUMNS, np.float32)
    full[: panels.columns] = row
    return full.reshape(-1, 1, COLUMNS)


def _address(array: Array) -> int:
    return int(array.ctypes.data) if array.size else 0


def _threads(size: int, units: int) -> int:
    return min(threads(), max(units, 1)) if size >= WORTH else 1
