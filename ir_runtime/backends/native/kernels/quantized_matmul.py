"""Matrix products with quantized weights, dequantized in registers or in the cache.

With dynamic quantization, activations are quantized to 8 bits and multiplied by integer weights. Sums are i32
within a group and f32 across groups. In `dot`, weights are the unsigned operand and activations the signed
one. The sum of a group starts with minus the product of its zero point and the sum of its activations, so zero
points are applied exactly.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from ....ir.array import Packed
from ....ir.pages import let_go
from ....ir.quantized_weights import QuantizedWeights
from ....ir.tensor import Array, Value
from ....ops.matrix import MatMul
from ... import Kernel, KernelTemplate
from ...common.dynamic_quantization import MIN_PEAK, IntegerMatrix, current_integer_matrix
from ...common.kept_weights import reserve
from ...common.rounding import quantized_operand
from ...core.kernel import axis_length
from .._backend import backend
from ..codegen import ir
from ..codegen.descriptor import Descriptor, i64
from ..codegen.language import Instruction, device, instruction, routine, types
from ..codegen.levels import GROUP, LEVEL_SIZE, dot
from ..codegen.memory import barrier, fetch_add, scratch_memory, store_i64
from ..codegen.vectors import F32, I32, INTS, LANES, VECTOR, Emit, splat_bits
from ..codegen.vectors import Value as Register
from ..packed_memory import aligned_empty
from ..threading.capture import replayed
from ..threading.parallel import parallel_for, workspace
from ..threading.task import Task, each_counted, each_unit, failure_word, shared_counters
from ._copy import contiguous
from ._epilogue import Epilogue, EpilogueField, FusedKernel, KernelFactory, add_rows, apply_epilogue
from ._gemm_kernel import F32_PRODUCTS
from ._gemm_tile import emit_tiles, gemm_panel
from ._quantized import (
    PANEL_COLUMNS,
    PANEL_VECTORS,
    MatrixRecord,
    PackedMatrix,
    QuantizedProduct,
    copy_columns,
    dequantize_columns,
    dot_column,
    load_word,
    pack,
    panel_count,
    permute_row,
    permuted_size,
)
from .matmul import constant_product

__all__: list[str] = []

UNIT = 32
"""The multiple that activation groups are padded to."""

# 16-bit activations are stored in the pairs that one instruction multiplies: those of even bytes, then those of odd bytes.
_ORDER = [lane - lane % 4 + (0, 2, 1, 3)[lane % 4] if GROUP == 2 else lane for lane in range(LANES)]
_ELEMENTS = ir.VectorType(ir.IntType(8 * LEVEL_SIZE), LANES)
_NONE = ir.Constant(INTS, None)


@instruction(*[types.int64] * 7)
def quantize_group(
    emit: Emit, x: Register, count: Register, units: Register, out: Register, scale: Register, total: Register, factor: Register
) -> None:  # fmt: skip
    """Quantize a group of activations, like `common.dynamic_quantization.quantize_activations`.

    Args:
        emit: the code emitter.
        x: the address of the activations.
        count: the number of activations.
        units: the number of elements to store, in multiples of `UNIT`; those after the activations are 0.
        out: the address of the quantized activations.
        scale: the address of the scale.
        total: the address of the sum of the quantized activations.
        factor: multiplies that sum.
    """
    builder = emit.builder
    whole = builder.sdiv(count, emit.i64(LANES))
    with emit.loop(whole, [x, _NONE]) as (_, (at, top), following):
        following += [emit.at(at, 4 * LANES), _larger(emit, top, _magnitude(emit, emit.load(at, INTS)))]
    at, top = following
    rest = emit.lane_mask(builder.sub(count, builder.mul(whole, emit.i64(LANES))))
    last = builder.bitcast(emit.masked_load(at, rest), INTS)
    top = _larger(emit, top, _magnitude(emit, last))
    peak = builder.bitcast(emit.reduce(top, lambda a, b: _larger(emit, a, b)), F32)
    factors = _store_scale(emit, peak, scale)
    with emit.loop(whole, [x, out, _NONE]) as (_, (at, place, sums), following):
        integers = _quantize(emit, emit.load(at, INTS), factors)
        _store_elements(emit, integers, place)
        following += [emit.at(at, 4 * LANES), emit.at(place, LEVEL_SIZE * LANES), builder.add(sums, integers)]
    left = builder.sub(builder.mul(units, emit.i64(UNIT // LANES)), whole)
    state = [_quantize(emit, last, factors), *following[1:]]
    with emit.loop(left, state) as (_, (integers, place, sums), following):
        _store_elements(emit, integers, place)
        following += [_NONE, emit.at(place, LEVEL_SIZE * LANES), builder.add(sums, integers)]
    sum = emit.reduce(following[2], builder.add)
    emit.store(builder.mul(sum, builder.trunc(factor, I32)), total)


def _magnitude(emit: Emit, bits: Register) -> Register:
    """Clear the sign bits; compared as integers, magnitudes are ordered, with infinity and NaN last."""
    return emit.builder.and_(bits, splat_bits(0x7FFFFFFF))


def _larger(emit: Emit, a: Register, b: Register) -> Register:
    return emit.builder.select(emit.builder.icmp_signed(">", a, b), a, b)


def _store_scale(emit: Emit, peak: Register, scale: Register) -> tuple[Register, Register]:
    """Store the scale of a group with largest magnitude ``peak``: NaN if that is not finite, 0 if it is below `MIN_PEAK`.

    Returns the reciprocal of the scale and a mask, both 0 in these cases, so that all activations become 0.
    """
    builder, zero, full = emit.builder, ir.Constant(F32, 0.0), ir.Constant(F32, 127.0)
    is_finite = builder.fcmp_ordered("<", peak, ir.Constant(F32, float("inf")))
    usable = builder.and_(is_finite, builder.fcmp_ordered(">=", peak, ir.Constant(F32, MIN_PEAK)))
    otherwise = builder.select(is_finite, zero, ir.Constant(F32, float("nan")))
    emit.store(builder.select(usable, builder.fdiv(peak, full), otherwise), scale)
    inverse = builder.select(usable, builder.fdiv(full, peak), zero)
    return emit.splat(inverse), emit.splat(builder.sext(usable, I32))


def _quantize(emit: Emit, bits: Register, factors: tuple[Register, Register]) -> Register:
    """Quantize a vector of f32, passed as bits, to i32."""
    builder, (inverse, mask) = emit.builder, factors
    values = builder.bitcast(builder.and_(bits, mask), VECTOR)
    return builder.fptosi(emit.round(emit.multiply(values, inverse)), INTS)


def _store_elements(emit: Emit, integers: Register, place: Register) -> None:
    builder = emit.builder
    if GROUP == 2:
        undefined = ir.Constant(INTS, ir.UNDEFINED)
        integers = builder.shuffle_vector(integers, undefined, ir.Constant(INTS, _ORDER))
    emit.store(builder.trunc(integers, _ELEMENTS), place)


# Columns that are packed at a time.
_BLOCK_COLUMNS = 8 * PANEL_COLUMNS


class DynamicJob(Descriptor):
    """Parameters of `dynamic_matmul`.

    A weight group has ``length`` rows in ``parts`` activation groups of ``part_length`` rows, each stored as
    ``units`` times `UNIT` elements. Scales and zero points are ``[panels, groups, columns]``; ``zeros`` is 0 if
    all zero points are equal. The sum of an activation group is multiplied by ``sum_factor``. ``epilogue`` is 0
    if there is none.
    """

    bits: i64
    rows: i64
    panels: i64
    columns: i64
    groups: i64
    length: i64
    parts: i64
    part_length: i64
    units: i64
    weights: i64
    scales: i64
    zeros: i64
    sum_factor: i64
    column_scale: i64
    bias: i64
    epilogue: EpilogueField


@dataclass(frozen=True)
class DynamicMatrix:
    """An integer matrix in the layout of the kernels.

    Args:
        record: the fields of `DynamicJob` that describe the matrix.
        columns: the number of columns of the product.
        depth: the number of rows of the matrix.
        stored: the number of stored rows, including padding.
        groups: the number of activation groups in a row.
        kept: the arrays that ``record`` points to.
    """

    record: dict[str, int]
    columns: int
    depth: int
    stored: int
    groups: int
    kept: tuple[Array, ...]

    @property
    def panels(self) -> int:
        """The number of panels of the product."""
        return panel_count(self.columns)


def pack_integers(matrix: IntegerMatrix, rows: bool) -> DynamicMatrix:
    """Pack a matrix, and release its data in the file.

    ``rows`` says whether a result column is the product with a row of the matrix, else with a column.
    """
    weights, groups = matrix.weights, matrix.groups
    outputs, depth = weights.shape if rows else weights.shape[::-1]
    units = -(-groups.size // UNIT)
    stored = groups.groups * groups.parts * units * UNIT
    panels = panel_count(outputs)
    bits = weights.element.bits
    packed = aligned_empty(panels * PANEL_COLUMNS * stored * bits // 32).view(np.uint32).reshape(panels, -1)
    for first, codes in weights.blocks(rows, _BLOCK_COLUMNS):
        unsigned = (codes.view(np.uint8) + np.uint8(matrix.offset)) & np.uint8(2**bits - 1)
        words = _words(unsigned, matrix, units, bits)
        full = np.zeros((panel_count(len(words)) * PANEL_COLUMNS, words.shape[1]), np.uint32)
        full[: len(words)] = words
        place = first // PANEL_COLUMNS
        block = full.reshape(-1, PANEL_COLUMNS, words.shape[1]).transpose(0, 2, 1)
        packed[place : place + len(block)].reshape(block.shape)[...] = block
    let_go(weights.codes.raw if isinstance(weights.codes, Packed) else weights.codes)
    scales, zeros = _panels(matrix.scale), _panels(matrix.zero)
    zero = int(matrix.zero[0, 0])
    is_uniform = bool((matrix.zero == zero).all())
    record = {
        "bits": bits, "panels": panels, "groups": groups.groups, "length": groups.length, "parts": groups.parts,
        "part_length": groups.size, "units": units, "weights": packed.ctypes.data, "scales": scales.ctypes.data,
        "zeros": 0 if is_uniform else zeros.ctypes.data, "sum_factor": -zero if is_uniform else -1,
    }  # fmt: skip
    return DynamicMatrix(
        record, outputs, depth, stored, groups.groups * groups.parts, (packed, scales, zeros)
    )


def _words(codes: Array, matrix: IntegerMatrix, units: int, bits: int) -> Array:
    """Pack columns into ``[columns, words]``, with four rows per word, or eight of 4-bit weights."""
    groups = matrix.groups
    wide = np.zeros((len(codes), groups.groups, groups.parts, units * UNIT), np.uint8)
    for part in range(groups.parts):
        start = part * groups.size
        stop = min(start + groups.size, groups.length)
        wide[:, :, part, : stop - start] = codes.reshape(len(codes), groups.groups, -1)[:, :, start:stop]
    words = wide.reshape(len(codes), -1).view("<u4")
    return words if bits == 8 else words[:, ::2] | (words[:, 1::2] << np.uint32(4))


def _panels(rows: Array) -> Array:
    """Rearrange ``[columns, groups]`` to ``[panels, groups, panel columns]``."""
    columns, groups = rows.shape
    panels = panel_count(columns)
    full = np.zeros((panels * PANEL_COLUMNS, groups), rows.dtype)
    full[:columns] = rows
    return np.ascontiguousarray(full.reshape(panels, PANEL_COLUMNS, groups).transpose(0, 2, 1))


# Rows of a tile.
_ROWS = 4
# Independent sums of a single row, which hide the latency of an instruction.
_CHAINS = 2


@dataclass(frozen=True)
class _Tile:
    """Emitter of a tile: the product of several activation rows and one panel.

    Args:
        emit: the code emitter.
        bits: the size of a quantized weight in bits.
        several: whether a weight group spans several activation groups.
        job: the `DynamicJob`.
        lines: the addresses of the activation rows.
        sides: the addresses of the scales of each row.
        apart: the bytes from a scale to the sum of the same group.
    """

    emit: Emit
    bits: int
    several: bool
    job: Register
    lines: Sequence[Register]
    sides: Sequence[Register]
    apart: Register

    def totals(self, panel: Register) -> list[Register]:
        """Emit the product, and return its vectors row by row."""
        emit, builder = self.emit, self.emit.builder
        groups, parts, units = (
            load_word(emit, self.job, i) for i in (DynamicJob.groups, DynamicJob.parts, DynamicJob.units)
        )
        columns = builder.mul(builder.mul(panel, groups), emit.i64(PANEL_COLUMNS))
        rows = builder.mul(builder.mul(columns, parts), units)
        weights = self._address(DynamicJob.weights, rows, UNIT * self.bits // 8)
        scales = self._address(DynamicJob.scales, columns, 4)
        zeros = self._address(DynamicJob.zeros, columns, 1)
        start = [emit.constant(0)] * (len(self.lines) * PANEL_VECTORS)
        state = [scales, zeros, weights, emit.i64(0), emit.i64(0), *start]
        with emit.loop(groups, state) as (_, (scales, zeros, *state), following):
            factors = [emit.load(emit.at(scales, 4 * LANES * j)) for j in range(PANEL_VECTORS)]
            after = (self._add_split_group if self.several else self._add_group)(state, zeros, factors)
            following += [emit.at(scales, 4 * PANEL_COLUMNS), emit.at(zeros, PANEL_COLUMNS), *after]
        return following[5:]

    def _add_group(
        self, state: Sequence[Register], zeros: Register, factors: Sequence[Register]
    ) -> list[Register]:
        """Add the products of a weight group that is one activation group; ``state`` holds addresses and totals."""
        emit, (weights, along, aside, *totals) = self.emit, state
        weights, along, sums = self._add_products(weights, along, self._first_sums(zeros, aside))
        after = []
        for n, scale in enumerate(self._scales(aside)):
            factor = emit.multiply(scale, factors[n % PANEL_VECTORS])
            after.append(emit.fma(emit.builder.sitofp(sums[n], VECTOR), factor, totals[n]))
        return [weights, along, emit.at(aside, 4), *after]

    def _add_split_group(
        self, state: Sequence[Register], zeros: Register, factors: Sequence[Register]
    ) -> list[Register]:
        """Add the products of a weight group that spans several activation groups; its scale is applied once."""
        emit, (*places, totals) = self.emit, (*state[:3], state[3:])
        parts = load_word(emit, self.job, DynamicJob.parts)
        start = [emit.constant(0)] * len(totals)
        with emit.loop(parts, [*places, *start]) as (_, (weights, along, aside, *within), following):
            weights, along, sums = self._add_products(weights, along, self._first_sums(zeros, aside))
            following += [weights, along, emit.at(aside, 4)]
            for sum, scale, total in zip(sums, self._scales(aside), within, strict=True):
                following.append(emit.fma(emit.builder.sitofp(sum, VECTOR), scale, total))
        *places, within = (*following[:3], following[3:])
        after = [emit.fma(x, factors[n % PANEL_VECTORS], totals[n]) for n, x in enumerate(within)]
        return [*places, *after]

    def _scales(self, aside: Register) -> list[Register]:
        """Load the scales of an activation group, one for each sum."""
        emit = self.emit
        scales = [emit.splat(emit.load(emit.at(side, aside), F32)) for side in self.sides]
        return [scale for scale in scales for _ in range(PANEL_VECTORS)]

    def _address(self, field: int, count: Register, size: int) -> Register:
        emit = self.emit
        return emit.at(load_word(emit, self.job, field), emit.builder.mul(count, emit.i64(size)))

    def _first_sums(self, zeros: Register, aside: Register) -> list[Register]:
        """Return the initial sums of a group: its zero points times the stored sum of its activations, which is negated.

        If all zero points are equal, the stored sum includes this factor.
        """
        emit, builder = self.emit, self.emit.builder
        places = [emit.at(emit.at(side, aside), self.apart) for side in self.sides]
        negated = [emit.splat(emit.load(place, I32)) for place in places]

        def multiply_zeros() -> list[Register]:
            kind = ir.VectorType(ir.I8, LANES)
            points = [
                builder.zext(emit.load(emit.at(zeros, LANES * j), kind), INTS) for j in range(PANEL_VECTORS)
            ]
            return [builder.mul(sum, point) for sum in negated for point in points]

        is_uniform = builder.icmp_signed("==", load_word(emit, self.job, DynamicJob.zeros), emit.i64(0))
        return emit.if_else(
            is_uniform, lambda: [sum for sum in negated for _ in range(PANEL_VECTORS)], multiply_zeros
        )

    def _add_products(
        self, weights: Register, along: Register, sums: list[Register]
    ) -> tuple[Register, Register, list[Register]]:
        """Add the products of an activation group.

        Returns the address of the next weights, the byte offset ``along`` of the next activations, and the sums.
        """
        emit = self.emit
        units = load_word(emit, self.job, DynamicJob.units)
        chains = _CHAINS if len(self.lines) == 1 else 1
        extra_sums = [ir.Constant(INTS, None)] * (len(sums) * (chains - 1))
        with emit.loop(units, [weights, along, *sums, *extra_sums]) as (
            _,
            (weights, along, *partial),
            following,
        ):
            following += [
                emit.at(weights, UNIT * self.bits // 8 * PANEL_COLUMNS),
                emit.at(along, UNIT * LEVEL_SIZE),
                *self._add_unit(weights, [emit.at(line, along) for line in self.lines], partial),
            ]
        weights, along, *partial = following
        for first in range(len(sums), len(partial), len(sums)):
            partial[: len(sums)] = map(emit.builder.add, partial, partial[first : first + len(sums)])
        return weights, along, partial[: len(sums)]

    def _add_unit(self, weights: Register, lines: Sequence[Register], sums: list[Register]) -> list[Register]:
        """Add the products of a unit of activations and weights to the sums, alternating between independent ones."""
        emit, builder, size = self.emit, self.emit.builder, len(lines) * PANEL_VECTORS
        shifts, mask = _pieces(self.bits)
        for word in range(UNIT * self.bits // 32):
            place = emit.at(weights, 4 * PANEL_COLUMNS * word)
            words = [emit.load(emit.at(place, 4 * LANES * j), INTS) for j in range(PANEL_VECTORS)]
            for piece, shift in enumerate(shifts):
                step = word * len(shifts) + piece
                columns = [builder.lshr(bits, splat_bits(shift)) if shift else bits for bits in words]
                columns = [builder.and_(bits, splat_bits(mask)) for bits in columns]
                activations = [emit.splat(emit.load(emit.at(line, 4 * step), I32)) for line in lines]
                pairs = [(activation, column) for activation in activations for column in columns]
                for n, (activation, column) in enumerate(pairs, step * size % len(sums)):
                    sums[n] = dot(emit, sums[n], column, activation)
        return sums


def _pieces(bits: int) -> tuple[list[int], int]:
    """Return the shifts that align a word of weights with successive words of activations, and the mask to apply."""
    mask = sum((2**bits - 1) << (32 // GROUP * place) for place in range(GROUP))
    return [nibble + byte for nibble in range(0, 8, bits) for byte in range(0, 32 // GROUP, 8)], mask


def _panel_instruction(bits: int, several: bool) -> Instruction:
    """Return the instruction of `dynamic_panel` for weights of this size; ``several`` is as in `_Tile`."""

    def write(  # noqa: PLR0913 (values in registers)
        emit: Emit, job: Register, rows: Register, x: Register, side: Register, apart: Register, panel: Register, out: Register, stride: Register
    ) -> None:  # fmt: skip
        builder = emit.builder
        groups = builder.mul(*(load_word(emit, job, i) for i in (DynamicJob.groups, DynamicJob.parts)))
        all_units = builder.mul(groups, load_word(emit, job, DynamicJob.units))
        strides = [
            builder.mul(all_units, emit.i64(UNIT * LEVEL_SIZE)),
            builder.mul(groups, emit.i64(4)),
            stride,
        ]
        column = builder.mul(panel, emit.i64(4 * PANEL_COLUMNS))
        rows_of_columns = [
            emit.at(load_word(emit, job, i), column) for i in (DynamicJob.column_scale, DynamicJob.bias)
        ]

        def tile(size: int, addresses: list[Register]) -> list[Register]:
            lines, sides, targets = (
                [emit.at(address, builder.mul(stride, emit.i64(i))) for i in range(size + 1)]
                for address, stride in zip(addresses, strides, strict=True)
            )
            totals = _Tile(emit, bits, several, job, lines[:-1], sides[:-1], apart).totals(panel)
            for n, total in enumerate(totals):
                i, j = divmod(n, PANEL_VECTORS)
                gain, shift = (emit.load(emit.at(row, 4 * LANES * j)) for row in rows_of_columns)
                emit.store(emit.fma(total, gain, shift), emit.at(targets[i], 4 * LANES * j))
            return [lines[-1], sides[-1], targets[-1]]

        emit_tiles(emit, _ROWS, rows, [x, side, out], tile)

    write.__name__ = f"dynamic_panel_{bits}{'_several' if several else ''}"
    return instruction(*[types.int64] * 8)(write)


_panel_4, _panel_8 = _panel_instruction(4, False), _panel_instruction(8, False)
_panel_4_several, _panel_8_several = _panel_instruction(4, True), _panel_instruction(8, True)


@routine(*[types.int64] * 8)
def dynamic_panel(
    job: DynamicJob, rows: int, x: int, side: int, apart: int, panel: int, out: int, stride: int
) -> None:  # fmt: skip
    """Multiply rows of activations by a panel.

    Args:
        job: the `DynamicJob`.
        rows: the number of rows.
        x: the quantized activations.
        side: the scales of the activation groups.
        apart: the bytes from a scale to the sum of the same group.
        panel: the index of the panel.
        out: the address of the result in the first row.
        stride: the bytes between result rows.
    """
    several = job.parts > 1
    if job.bits == 4:
        if several:
            _panel_4_several(job, rows, x, side, apart, panel, out, stride)
        else:
            _panel_4(job, rows, x, side, apart, panel, out, stride)
    elif several:
        _panel_8_several(job, rows, x, side, apart, panel, out, stride)
    else:
        _panel_8(job, rows, x, side, apart, panel, out, stride)


# Activation groups that a unit quantizes.
GROUPS_PER_UNIT = 32


@Task
def dynamic_matmul(
    call: int, job: DynamicJob, out: int, x: int, first_extra: int, second_extra: int, quantized: int
) -> None:
    """Quantize all rows, then multiply them; work units are first blocks of activation groups, then panels."""
    counter = shared_counters(call)
    rows, panels = job.rows, job.panels
    parts, units = job.parts, job.units
    length, size = job.length, job.part_length
    factor = job.sum_factor
    groups = rows * job.groups * parts
    stored = units * UNIT * LEVEL_SIZE
    side, apart = quantized + groups * stored, 4 * groups
    blocks = (groups + GROUPS_PER_UNIT - 1) // GROUPS_PER_UNIT
    for block in each_counted(counter, blocks):
        first = block * GROUPS_PER_UNIT
        whole = first // parts
        part = first - whole * parts
        for group in range(first, min(first + GROUPS_PER_UNIT, groups)):
            start = part * size
            at = side + 4 * group
            quantize_group(
                x + 4 * (whole * length + start), min(size, length - start), units, quantized + group * stored, at,
                at + apart, factor,
            )  # fmt: skip
            part += 1
            if part == parts:
                whole, part = whole + 1, 0
        fetch_add(counter + 8)
    barrier(counter + 8, blocks, failure_word(call))
    block, columns = side + 2 * apart, job.columns
    for panel in each_unit(call, panels):
        at, count = 4 * PANEL_COLUMNS * panel, min(PANEL_COLUMNS, columns - PANEL_COLUMNS * panel)
        if count == PANEL_COLUMNS:
            dynamic_panel(job, rows, quantized, side, apart, panel, out + at, 4 * columns)
        else:
            dynamic_panel(job, rows, quantized, side, apart, panel, block, 4 * PANEL_COLUMNS)
            copy_columns(block, rows, count, out + at, 4 * columns)
        if job.epilogue != 0:
            apply_epilogue(job.epilogue, first_extra, second_extra, out, at, at, rows, count, 4 * columns)


def dynamic_product(weights: QuantizedWeights, rows: bool) -> KernelFactory | None:
    """Return a factory of kernels that quantize activations; ``None`` if this is not enabled or weights are not integers.

    Args:
        weights: the matrix.
        rows: whether a result column is the product with a row of the matrix, else with a column.
    """
    if (integers := current_integer_matrix(weights, rows)) is None:
        return None
    matrix = pack_integers(integers, rows)
    return lambda epilogue: _DynamicMatmul(matrix, epilogue).kernel


class _DynamicMatmul(QuantizedProduct):
    """A product of dynamically quantized activations with an integer matrix, and its epilogue."""

    name = "gemm_i8"

    def __init__(self, matrix: DynamicMatrix, epilogue: Epilogue) -> None:
        super().__init__(matrix.columns, epilogue)
        self._matrix = matrix
        self._job = DynamicJob.fill(**matrix.record, **self.fields, rows=1).view(np.int64)

    def multiply(self, x: Array, y: Array, first: Array, second: Array) -> None:
        """Multiply rows by the matrix."""
        matrix, rows, job = self._matrix, len(x), self._job
        if rows > 1:
            job = job.copy()
            job[DynamicJob.rows] = rows
        size = matrix.stored * LEVEL_SIZE + 8 * matrix.groups + 4 * self.block
        count = self.threads(y.size * matrix.depth, matrix.panels)
        numbers = workspace(-(-rows * size // 4))
        parallel_for(dynamic_matmul.address, job, y, contiguous(x), first, second, count, numbers)


# Rows of a panel that are dequantized at a time: they stay in the L2 cache.
DEPTH_BLOCK = 256
# Rows from which on widening 16-bit weights in every run takes less than a tenth of a product. With fewer rows, a product
# takes up to 2.5 times as long as with f32 weights; but with a single row, which is limited by reading weights from memory,
# half as long.
MIN_STORED_ROWS = 256
# Elements reserved for the offset of a tap, on a cache line of its own.
OFFSET = 16


class QuantizedJob(MatrixRecord):
    """Parameters of `SINGLE_ROW` and `MANY_ROWS`.

    ``epilogue`` is 0 if there is none, ``zeros`` the address of a panel of zeros, and ``scratch`` the scratch
    memory of a thread in bytes.
    """

    panels: i64
    columns: i64
    rows: i64
    bias: i64
    epilogue: EpilogueField
    zeros: i64
    scratch: i64


def _single_row(call: int, job: QuantizedJob, out: int, row: int, first: int, second: int) -> None:
    """Multiply one row (GEMV); a work unit is a panel."""
    kind, panels = job.storage, job.panels
    bias, columns = job.bias, job.columns
    x, size = 0, permuted_size(kind, job)
    for panel in each_unit(call, panels):
        if x == 0:  # only threads with a panel permute the row
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
    """Multiply several rows; a work unit is a panel, dequantized block by block."""
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
    """Multiply the rows at addresses ``places`` by a panel, and store the result in rows ``stride`` bytes apart."""
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
    """Return a MatMul kernel for f32 rows, of any batch, and one quantized matrix on the right."""
    if (weights := quantized_operand(op, a, b)) is None:
        return None
    rows = math.prod(a.shape.static[:-1]) if a.shape.is_static else None
    product = dynamic_product(weights, op.transpose_b) or _exact_product(weights, op.transpose_b, rows)
    if product is None:
        return None
    accepts = axis_length(-1, weights.shape[-1 if op.transpose_b else 0])
    return FusedKernel(product, accepts=accepts)


def _exact_product(weights: QuantizedWeights, by_rows: bool, rows: int | None) -> KernelFactory | None:
    """Return a factory of kernels that compute with exact weights; ``None`` if no kernel supports them.

    Args:
        weights: the matrix.
        by_rows: whether a result column is the product with a row of the matrix, else with a column.
        rows: the number of rows to multiply, if known.
    """
    is_widened = _is_worth_widening(weights, rows) and reserve(4 * math.prod(weights.shape))
    if is_widened and rows is not None:
        return partial(_f32_product, weights, by_rows)
    matrix = pack(weights, by_rows)
    if matrix is None:
        return None

    def stored_product(epilogue: Epilogue) -> Kernel:
        return _QuantizedMatmul(matrix, epilogue).kernel

    return (
        partial(_either_product, stored_product, partial(_f32_product, weights, by_rows))
        if is_widened
        else stored_product
    )


def _is_worth_widening(weights: QuantizedWeights, rows: int | None) -> bool:
    """Return whether an f32 copy, at twice the memory, pays off.

    It does for 16-bit weights if the rows are several, but not many, or if their number is unknown.
    """
    is_half = weights.element.bits == 16 and weights.scale is None and weights.zero is None
    return is_half and (rows is None or 1 < rows < MIN_STORED_ROWS)


def _f32_product(weights: QuantizedWeights, by_rows: bool, epilogue: Epilogue) -> Kernel:
    """Return a kernel with an f32 copy of the weights."""
    matrix = weights.rows_of(0, weights.shape[0]).astype(np.float32)
    if isinstance(weights.codes, np.ndarray):
        let_go(weights.codes)
    return constant_product(matrix.T if by_rows else matrix, False, epilogue, F32_PRODUCTS)


def _either_product(stored: KernelFactory, widened: KernelFactory, epilogue: Epilogue) -> Kernel:
    """Return a kernel for an unknown number of rows: ``stored`` for a single row, ``widened`` for several."""
    run_single, run_several = stored(epilogue).run, widened(epilogue).run

    def kernel(x: Array, *others: Array) -> Array:
        run = run_several if math.prod(x.shape[:-1]) > 1 else run_single
        return np.asarray(run(x, *others))

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
        """Multiply rows by the matrix."""
        x = self._matrix.pad_rows(x)
        count = self.threads(y.size * x.shape[1], self._matrix.panels)
        if len(x) == 1:
            parallel_for(SINGLE_ROW.address, self._job, y, x, first, second, count)
            return
        job, size = self._job.copy(), DEPTH_BLOCK * PANEL_COLUMNS + OFFSET + len(x) * (2 + self.block)
        job[QuantizedJob.rows], job[QuantizedJob.scratch] = len(x), 4 * size
        parallel_for(MANY_ROWS.address, job, y, x, first, second, count, workspace(count * size))
