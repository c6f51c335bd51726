"""Matrix products of activations that are rounded to 8 bits in each run, with integer weights."""

from __future__ import annotations

import numpy as np

from ....ir.quantized_weights import QuantizedWeights
from ....ir.tensor import Array
from ...common.dynamic_quantization import asked_integers
from ..codegen.levels import LEVEL_SIZE
from ..codegen.memory import barrier, fetch_add
from ..threading.parallel import parallel_for
from ..threading.recording import workspace
from ..threading.task import Task, each_counted, each_unit, failure_word, load_args, load_fourth
from ._activation_groups import UNIT, quantize_group
from ._dynamic_matrix import DynamicJob, DynamicMatrix, pack_integers
from ._dynamic_tile import dynamic_panel
from ._epilogue import Epilogue, KernelFactory
from ._packed_epilogue import apply_epilogue
from ._quantized import PANEL_COLUMNS
from ._quantized_product import QuantizedProduct, copy_columns
from .contiguous import contiguous

__all__ = ["dynamic_product"]

# Groups of activations of a unit.
GROUPS_PER_UNIT = 32


def _dynamic_matmul(call: int) -> None:
    """Quantize all rows, then multiply them; a unit is some groups of activations, then a panel."""
    address, out, x, first_extra, second_extra, counter = load_args(call)
    job = DynamicJob.at(address)
    numbers = load_fourth(call)
    rows, panels = job.rows, job.panels
    parts, units = job.parts, job.units
    length, size = job.length, job.part_length
    factor = job.sum_factor
    groups = rows * job.groups * parts
    stored = units * UNIT * LEVEL_SIZE
    side, apart = numbers + groups * stored, 4 * groups
    blocks = (groups + GROUPS_PER_UNIT - 1) // GROUPS_PER_UNIT
    for block in each_counted(counter, blocks):
        first = block * GROUPS_PER_UNIT
        whole = first // parts
        part = first - whole * parts
        for group in range(first, min(first + GROUPS_PER_UNIT, groups)):
            start = part * size
            at = side + 4 * group
            quantize_group(
                x + 4 * (whole * length + start), min(size, length - start), units, numbers + group * stored, at,
                at + apart, factor,
            )  # fmt: skip
            part += 1
            if part == parts:
                whole, part = whole + 1, 0
        fetch_add(counter + 8)
    barrier(counter + 8, blocks, failure_word(call))
    words, parameters = job.epilogue_words, job.epilogue_numbers
    block, columns = side + 2 * apart, job.columns
    for panel in each_unit(call, panels):
        at, count = 4 * PANEL_COLUMNS * panel, min(PANEL_COLUMNS, columns - PANEL_COLUMNS * panel)
        if count == PANEL_COLUMNS:
            dynamic_panel(job, rows, numbers, side, apart, panel, out + at, 4 * columns)
        else:
            dynamic_panel(job, rows, numbers, side, apart, panel, block, 4 * PANEL_COLUMNS)
            copy_columns(block, rows, count, out + at, 4 * columns)
        if words != 0:
            apply_epilogue(
                words, parameters, first_extra, second_extra, out, at, at, rows, count, 4 * columns
            )


DYNAMIC_MATMUL = Task(_dynamic_matmul)


def dynamic_product(weights: QuantizedWeights, rows: bool) -> KernelFactory | None:
    """Return what makes the kernel that quantizes activations; ``None`` if they are not to be, or weights are no integers.

    Args:
        weights: the matrix.
        rows: whether its outputs are its rows.
    """
    if (integers := asked_integers(weights, rows)) is None:
        return None
    matrix = pack_integers(integers, rows)
    return lambda epilogue: _DynamicMatmul(matrix, epilogue).kernel


class _DynamicMatmul(QuantizedProduct):
    """A product of quantized activations with an integer matrix, and its epilogue."""

    name = "gemm_i8"

    def __init__(self, matrix: DynamicMatrix, epilogue: Epilogue) -> None:
        super().__init__(matrix.columns, epilogue)
        self._matrix = matrix
        self._job = DynamicJob.fill(**matrix.record, **self.fields, rows=1).view(np.int64)

    def multiply(self, x: Array, y: Array, first: Array, second: Array) -> None:
        """Multiply rows."""
        matrix, rows, job = self._matrix, len(x), self._job
        if rows > 1:
            job = job.copy()
            job[DynamicJob.rows] = rows
        size = matrix.stored * LEVEL_SIZE + 8 * matrix.groups + 4 * self.block
        count = self.threads(y.size * matrix.depth, matrix.panels)
        numbers = workspace(-(-rows * size // 4))
        parallel_for(DYNAMIC_MATMUL.address, job, y, contiguous(x), first, second, count, numbers)
