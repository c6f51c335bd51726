"""GEMM micro-kernels of activations in 8 bits by integer weights: sums in i32 within a group, in f32 across groups.

Weights are the unsigned operand of `dot`, activations the signed one. The sum of a group starts with the product of the
zero point and the sum of the activations, subtracted; so it is exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..codegen import ir
from ..codegen.language import Instruction, instruction, routine, types
from ..codegen.levels import GROUP, LEVEL_SIZE, dot
from ..codegen.vectors import F32, I32, INTS, LANES, VECTOR, Emit, Value, splat_bits
from ._activation_groups import UNIT
from ._dynamic_matrix import DynamicJob
from ._gemm_tile import emit_tiles
from ._quantized import PANEL_COLUMNS, PANEL_VECTORS
from ._quantized_column import load_word

__all__ = ["dynamic_panel"]

# Rows of a tile.
_ROWS = 4
# Sums of one row that do not wait for each other, which hides the latency of an instruction.
_CHAINS = 2


@dataclass(frozen=True)
class _Tile:
    """Emits a tile: some rows of activations by a panel.

    Args:
        emit: the emitter.
        bits: of a quantized weight.
        several: whether a group of weights is several groups of activations.
        job: the `DynamicJob`.
        lines: the addresses of the rows of activations.
        sides: the addresses of their scales.
        apart: bytes from a scale to the sum of the same group.
    """

    emit: Emit
    bits: int
    several: bool
    job: Value
    lines: Sequence[Value]
    sides: Sequence[Value]
    apart: Value

    def totals(self, panel: Value) -> list[Value]:
        """Return the products: for each row, a vector for each vector of the panel."""
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
            after = (self._several if self.several else self._one)(state, zeros, factors)
            following += [emit.at(scales, 4 * PANEL_COLUMNS), emit.at(zeros, PANEL_COLUMNS), *after]
        return following[5:]

    def _one(self, state: Sequence[Value], zeros: Value, factors: Sequence[Value]) -> list[Value]:
        """Add the products of a group of weights that is one of activations; ``state`` is addresses and totals."""
        emit, (weights, along, aside, *totals) = self.emit, state
        weights, along, sums = self._sums(weights, along, self._first_sums(zeros, aside))
        found = []
        for n, scale in enumerate(self._scales(aside)):
            factor = emit.multiply(scale, factors[n % PANEL_VECTORS])
            found.append(emit.fma(emit.builder.sitofp(sums[n], VECTOR), factor, totals[n]))
        return [weights, along, emit.at(aside, 4), *found]

    def _several(self, state: Sequence[Value], zeros: Value, factors: Sequence[Value]) -> list[Value]:
        """Add the products of a group of weights that is several of activations: its scale is applied once."""
        emit, (*places, totals) = self.emit, (*state[:3], state[3:])
        parts = load_word(emit, self.job, DynamicJob.parts)
        start = [emit.constant(0)] * len(totals)
        with emit.loop(parts, [*places, *start]) as (_, (weights, along, aside, *within), following):
            weights, along, sums = self._sums(weights, along, self._first_sums(zeros, aside))
            following += [weights, along, emit.at(aside, 4)]
            for number, scale, total in zip(sums, self._scales(aside), within, strict=True):
                following.append(emit.fma(emit.builder.sitofp(number, VECTOR), scale, total))
        *places, within = (*following[:3], following[3:])
        found = [emit.fma(x, factors[n % PANEL_VECTORS], totals[n]) for n, x in enumerate(within)]
        return [*places, *found]

    def _scales(self, aside: Value) -> list[Value]:
        """Return the scale of a group of activations for each sum."""
        emit = self.emit
        scales = [emit.splat(emit.load(emit.at(side, aside), F32)) for side in self.sides]
        return [scale for scale in scales for _ in range(PANEL_VECTORS)]

    def _address(self, field: int, count: Value, size: int) -> Value:
        emit = self.emit
        return emit.at(load_word(emit, self.job, field), emit.builder.mul(count, emit.i64(size)))

    def _first_sums(self, zeros: Value, aside: Value) -> list[Value]:
        """Return what the sums of a group start with: the sum of its activations, multiplied by zero points."""
        emit, builder = self.emit, self.emit.builder
        places = [emit.at(emit.at(side, aside), self.apart) for side in self.sides]
        found = [emit.splat(emit.load(place, I32)) for place in places]

        def by_column() -> list[Value]:
            kind = ir.VectorType(ir.I8, LANES)
            points = [
                builder.zext(emit.load(emit.at(zeros, LANES * j), kind), INTS) for j in range(PANEL_VECTORS)
            ]
            return [builder.mul(one, point) for one in found for point in points]

        is_uniform = builder.icmp_signed("==", load_word(emit, self.job, DynamicJob.zeros), emit.i64(0))
        return emit.if_else(
            is_uniform, lambda: [one for one in found for _ in range(PANEL_VECTORS)], by_column
        )

    def _sums(self, weights: Value, along: Value, sums: list[Value]) -> tuple[Value, Value, list[Value]]:
        """Add the products of a group; return the addresses behind it, too."""
        emit = self.emit
        units = load_word(emit, self.job, DynamicJob.units)
        chains = _CHAINS if len(self.lines) == 1 else 1
        more = [ir.Constant(INTS, None)] * (len(sums) * (chains - 1))
        with emit.loop(units, [weights, along, *sums, *more]) as (_, (weights, along, *found), following):
            following += [
                emit.at(weights, UNIT * self.bits // 8 * PANEL_COLUMNS),
                emit.at(along, UNIT * LEVEL_SIZE),
                *self._multiplied(weights, [emit.at(line, along) for line in self.lines], found),
            ]
        weights, along, *found = following
        for first in range(len(sums), len(found), len(sums)):
            found[: len(sums)] = map(emit.builder.add, found, found[first : first + len(sums)])
        return weights, along, found[: len(sums)]

    def _multiplied(self, weights: Value, lines: Sequence[Value], sums: list[Value]) -> list[Value]:
        """Add the products of a unit of activations and weights to the sums, in several chains."""
        emit, builder, size = self.emit, self.emit.builder, len(lines) * PANEL_VECTORS
        shifts, mask = _pieces(self.bits)
        for word in range(UNIT * self.bits // 32):
            place = emit.at(weights, 4 * PANEL_COLUMNS * word)
            stored = [emit.load(emit.at(place, 4 * LANES * j), INTS) for j in range(PANEL_VECTORS)]
            for piece, shift in enumerate(shifts):
                step = word * len(shifts) + piece
                columns = [builder.lshr(each, splat_bits(shift)) if shift else each for each in stored]
                columns = [builder.and_(each, splat_bits(mask)) for each in columns]
                numbers = [emit.splat(emit.load(emit.at(line, 4 * step), I32)) for line in lines]
                pairs = [(number, column) for number in numbers for column in columns]
                for n, (number, column) in enumerate(pairs, step * size % len(sums)):
                    sums[n] = dot(emit, sums[n], column, number)
        return sums


def _pieces(bits: int) -> tuple[list[int], int]:
    """Return how far a word of weights is shifted for each word of activations, and a mask of what is multiplied then."""
    mask = sum((2**bits - 1) << (32 // GROUP * place) for place in range(GROUP))
    return [nibble + byte for nibble in range(0, 8, bits) for byte in range(0, 32 // GROUP, 8)], mask


def _panel_instruction(bits: int, several: bool) -> Instruction:
    """Return the instruction for all rows by one panel; parameters as those of `dynamic_panel`."""

    def write(  # noqa: PLR0913 (values in registers)
        emit: Emit, job: Value, rows: Value, x: Value, side: Value, apart: Value, panel: Value, out: Value, stride: Value
    ) -> None:  # fmt: skip
        builder = emit.builder
        groups = builder.mul(*(load_word(emit, job, i) for i in (DynamicJob.groups, DynamicJob.parts)))
        numbers = builder.mul(groups, load_word(emit, job, DynamicJob.units))
        strides = [
            builder.mul(numbers, emit.i64(UNIT * LEVEL_SIZE)),
            builder.mul(groups, emit.i64(4)),
            stride,
        ]
        column = builder.mul(panel, emit.i64(4 * PANEL_COLUMNS))
        rows_of_columns = [
            emit.at(load_word(emit, job, i), column) for i in (DynamicJob.column_scale, DynamicJob.bias)
        ]

        def tile(size: int, addresses: list[Value]) -> list[Value]:
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
        rows: how many there are.
        x: the activations, in 8 bits.
        side: the scales of their groups.
        apart: bytes from a scale to the sum of the same group.
        panel: its index.
        out: address of the result in the first row.
        stride: bytes between rows of the result.
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
