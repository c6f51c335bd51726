"""Matrix products with quantized weights, dequantized at compile time, or block by block in each run to save memory.

With dynamic quantization, activations are rounded to 8 bits, but multiplied in f32.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ....ir.array import Packed
from ....ir.element import ElementType
from ....ir.element import ElementType as E
from ....ir.operation import Operation
from ....ir.pages import let_go
from ....ir.quantized_weights import QuantizedWeights
from ....ir.tensor import Array, Value
from ....ops.matrix import MatMul
from ... import Kernel, KernelTemplate
from ...common.dynamic_quantization import ActivationGroups, current_integer_matrix, round_activations
from ...common.epilogue import RowEpilogue, RowKernel
from ...common.kept_weights import reserve
from ...common.rounding import ROUNDINGS, Rounding, dequantized_table, is_exact, quantized_operand
from ...core.kernel import Accepts, axis_length
from .._backend import backend
from ..parallel import parallel_for
from ._dequantize import (
    BLOCK_SIZE,
    DequantizeScratch,
    Int4Format,
    Int8Format,
    LookupFormat,
    RowBlocks,
    Step,
    StorageFormat,
    apply_rows,
    panel_columns,
    quantized_blocks,
)
from ._gemm import apply_epilogue

__all__: list[str] = []

# The cost of dequantizing a value, in multiplications of a GEMM.
DEQUANTIZE_COST = 24
# With at least this many rows, larger blocks are dequantized at a time, so that accumulators are read and written less often.
# With fewer, a single thread does the work: its calls of NumPy are short, and threads wait for the GIL after each (two
# threads took 1.4 times as long as one for a token of a Llama).
MANY_ROWS, LARGE_BLOCK = 16, 1 << 19


@dataclass(frozen=True)
class QuantizedPanel:
    """A panel of columns of a matrix.

    Args:
        place: the range of columns.
        packed: the packed quantized values.
        steps: the steps of dequantization before rounding.
        scale: the factors after rounding, ``[blocks, columns]``, or ``None`` for 1.
    """

    place: slice
    packed: Array
    steps: tuple[Step, ...]
    scale: Array | None


@dataclass(frozen=True)
class QuantizedMatrix:
    """A quantized matrix ``[depth, columns]``, stored as panels of columns.

    Args:
        columns: the number of columns of the product.
        blocks: the layout of rows.
        storage: the packed format of the values.
        panels: the panels.
        dropped_bits: how many mantissa bits of f32 the arithmetic of the file rounds off; 0 for none.
        gain: a factor for each column of the result, or a scalar.
    """

    columns: int
    blocks: RowBlocks
    storage: StorageFormat
    panels: tuple[QuantizedPanel, ...]
    dropped_bits: int
    gain: Array

    def dequantize(self) -> Array:
        """Return the matrix as f32, ``[depth, columns]``."""
        rows = np.concatenate([np.arange(first, last) for first, last in self.blocks.stored_rows()])
        numbers = np.empty((len(rows), self.columns), np.float32)
        for panel in self.panels:
            width = panel.place.stop - panel.place.start
            stored = np.empty((self.blocks.count, self.blocks.stored, width + width % 2), np.float32)
            self._dequantize(panel, slice(0, self.blocks.count), stored, DequantizeScratch(), scaled=True)
            gain = self.gain[panel.place] if self.gain.ndim else self.gain
            np.multiply(stored.reshape(-1, stored.shape[2])[rows, :width], gain, out=numbers[:, panel.place])
        return numbers

    def multiply(self, x: Array, _: Array, epilogue: RowEpilogue) -> Array:
        """Return ``x`` multiplied by the matrix, with the epilogue applied."""
        rows = self.blocks.pad_rows(x.reshape(math.prod(x.shape[:-1]), x.shape[-1]))
        y = np.empty((len(rows), self.columns), np.float32)
        if count := len(rows):
            cost = (count + DEQUANTIZE_COST) * rows.shape[1] * self.columns
            size = cost if count >= MANY_ROWS else 0
            parallel_for(lambda panel: self._multiply(rows, panel, y[:, panel.place]), self.panels, size)
        apply_epilogue(y, epilogue)
        return y.reshape(*x.shape[:-1], self.columns)

    def _multiply(self, rows: Array, panel: QuantizedPanel, out: Array) -> None:
        columns, scratch = out.shape[1] + out.shape[1] % 2, DequantizeScratch()
        max_blocks = self._blocks_at_once(columns, BLOCK_SIZE if len(rows) < MANY_ROWS else LARGE_BLOCK)
        memory = np.empty((min(max_blocks, self.blocks.count), self.blocks.stored, columns), np.float32)
        for first in range(0, self.blocks.count, max_blocks):
            part = slice(first, min(first + max_blocks, self.blocks.count))
            values = memory[: part.stop - first]
            product = self._product(rows, panel, part, values, scratch)[:, : out.shape[1]]
            if first:
                out += product
            else:
                out[...] = product
        out *= self.gain[panel.place] if self.gain.ndim else self.gain

    def _product(
        self, rows: Array, panel: QuantizedPanel, part: slice, values: Array, scratch: DequantizeScratch
    ) -> Array:
        """Return the partial product of a range of blocks; with few rows, scales are applied to the products.

        ``values`` is memory for the dequantized blocks.
        """
        stored = self.blocks.stored
        scale_after = panel.scale is not None and len(rows) < MANY_ROWS
        self._dequantize(panel, part, values, scratch, scaled=not scale_after)
        selected = rows[:, part.start * stored : part.stop * stored]
        if not scale_after or panel.scale is None:
            return np.asarray(np.matmul(selected, values.reshape(selected.shape[1], -1)))
        scale = panel.scale[part].astype(np.float32)
        if len(scale) == 1:
            return np.asarray(np.matmul(selected, values[0]) * scale)
        by_block = selected.reshape(len(rows), -1, stored).swapaxes(0, 1)
        return np.asarray(np.add.reduce(np.matmul(by_block, values) * scale[:, None], axis=0))

    def _dequantize(
        self, panel: QuantizedPanel, blocks: slice, out: Array, scratch: DequantizeScratch, scaled: bool
    ) -> None:
        """Dequantize a range of blocks into ``out[blocks, stored, columns]``, without `gain`, and without scales if not ``scaled``."""
        max_blocks = self._blocks_at_once(out.shape[2], BLOCK_SIZE)
        for first in range(blocks.start, blocks.stop, max_blocks):
            part = slice(first, min(first + max_blocks, blocks.stop))
            values = out[first - blocks.start : part.stop - blocks.start]
            steps = [(ufunc, _rows_of(rows, part)) for ufunc, rows in panel.steps]
            self.storage.dequantize(panel.packed[part], steps, values, scratch)
            if self.dropped_bits:
                _round(values, self.dropped_bits, scratch)
            if scaled and panel.scale is not None:
                apply_rows(np.multiply, values, panel.scale[part], scratch)

    def _blocks_at_once(self, columns: int, max_size: int) -> int:
        """Return how many blocks have at most ``max_size`` elements together; at least 1."""
        return max(max_size // (self.blocks.stored * columns), 1)


def _rows_of(rows: Array, blocks: slice) -> Array:
    return rows[blocks] if rows.ndim else rows


def _round(values: Array, dropped_bits: int, scratch: DequantizeScratch) -> None:
    """Round f32 values to ``dropped_bits`` fewer mantissa bits, ties to even, and divide by ``2**dropped_bits``.

    ``x + x / 2**dropped_bits`` rounds the second term to the wanted precision, and subtracting ``x`` again is exact. That
    requires values with two bits less than f32, which products with scales have.
    """
    f32 = scratch.f32[: values.size].reshape(values.shape)
    np.multiply(values, np.float32(1 + 2.0**-dropped_bits), out=f32)
    np.subtract(f32, values, out=values)


def activation_groups(weights: QuantizedWeights, rows: bool) -> ActivationGroups | None:
    """Return the groups of dynamic quantization, or ``None`` if the compilation or the weights do not allow it.

    ``rows`` tells whether each row of the weights, rather than each column, gives an output.
    """
    matrix = current_integer_matrix(weights, rows)
    return None if matrix is None else matrix.groups


def widen_arithmetic(weights: QuantizedWeights) -> QuantizedWeights:
    """Return the same weights with f32 arithmetic, so that products with scales are not rounded to a narrower type."""
    scale, zero = (
        None if array is None else array.astype(np.float32) for array in (weights.scale, weights.zero)
    )
    return replace(weights, scale=scale, zero=zero, arithmetic=ElementType.f32)


@dataclass(frozen=True)
class RoundedProduct(KernelTemplate):
    """A matrix product of rows that are first rounded to 8 bits.

    Args:
        product: the kernel of the product, including fused layers.
        groups: the groups of activations that share a scale.
    """

    product: KernelTemplate
    groups: ActivationGroups

    @property
    def accepts(self) -> Accepts:
        """The check that rows have the right length; the shapes of other inputs of fused layers are known to fit."""
        return axis_length(-1, self.groups.groups * self.groups.length)

    def fuse(self, op: Operation, inputs: Sequence[Value], place: int) -> RoundedProduct | None:
        """Return a kernel that also computes ``op``, or ``None`` if the kernel of the product cannot."""
        product = self.product.fuse(op, inputs, place)
        return None if product is None else replace(self, product=product)

    def prepare(self) -> Kernel:
        """Return a kernel that rounds its first input, and calls the prepared kernel of the product."""
        product = self.product.prepare().whole

        def kernel(x: Array, *others: Array) -> Array | tuple[Array, ...]:
            return product(round_activations(x, self.groups), *others)

        return Kernel(kernel, accepts=self.accepts)


# The smallest product that `_round` supports: smaller ones would need bits below the smallest f32.
MIN_PRODUCT = 2.0**-100
# The largest zero point for which differences fit into 16 bits.
MAX_ZERO_POINT = 1 << 14
# The factor that makes the mantissa of an f16 scale an integer, and the bound on the values that it multiplies, so that
# products fit into 16 bits.
MANTISSA, MAX_DIFFERENCE = 2048, 16


@backend.quantized(MatMul)
def quantized_matmul(op: MatMul, a: Value, b: Value) -> KernelTemplate | None:
    """Return a kernel for f32 rows, of any batch, multiplied by a quantized matrix on the right."""
    if (weights := quantized_operand(op, a, b)) is None:
        return None
    groups = activation_groups(weights, op.transpose_b)
    product = _product(op, a, weights if groups is None else widen_arithmetic(weights))
    return product if product is None or groups is None else RoundedProduct(product, groups)


def _product(op: MatMul, a: Value, weights: QuantizedWeights) -> KernelTemplate | None:
    matrix = _pack_matrix(weights, op.transpose_b)
    if matrix is None:
        return None
    if a.shape.rank != 1 and reserve(4 * math.prod(weights.shape)):
        from .matmul import constant_product  # imported late: few models have quantized weights

        return constant_product(a, matrix.dequantize())
    return RowKernel(matrix.multiply, 2, accepts=axis_length(-1, weights.shape[1 if op.transpose_b else 0]))


def _pack_matrix(weights: QuantizedWeights, transposed: bool) -> QuantizedMatrix | None:
    """Pack weights, transposed or not, into panels; return ``None`` if the result would not be exact."""
    groups, rounding = weights.groups(transposed), ROUNDINGS[weights.arithmetic]
    numbers = _dequantized_values(weights.element, weights.arithmetic)
    if groups is None or numbers is None:
        return None
    scale, zero = weights.scales(transposed)
    if not is_exact((float(numbers.min()), float(numbers.max())), scale, zero, rounding):
        return None
    if not _rounds_in_place(numbers, scale, rounding):
        return None
    depth, columns = weights.shape[::-1] if transposed else weights.shape
    blocks, storage = RowBlocks(groups, depth // groups), _storage_format(weights.element, numbers)
    arithmetic = _Dequantization.of(weights, storage, scale, zero)
    slices = panel_columns(columns)
    panels = [
        QuantizedPanel(
            place, packed, arithmetic.steps(place, blocks), _rows_of_blocks(arithmetic.scale, place, blocks)
        )
        for place, packed in zip(
            slices, _pack_panels(weights, transposed, blocks, storage, slices), strict=True
        )
    ]
    return QuantizedMatrix(columns, blocks, storage, tuple(panels), arithmetic.dropped_bits, arithmetic.gain)


@dataclass(frozen=True)
class _Dequantization:
    """The arithmetic of dequantization: ``round((value - zero) * factor) * scale * gain``.

    ``zero``, ``factor`` and ``scale`` are ``[columns, groups]`` or scalars; ``gain`` is ``[columns]`` or a scalar.
    """

    zero: Array | None
    factor: Array | None
    dropped_bits: int
    scale: Array | None
    gain: Array

    @classmethod
    def of(
        cls, weights: QuantizedWeights, storage: StorageFormat, scale: Array, zero: Array | None
    ) -> _Dequantization:
        """Choose the arithmetic for weights; scales that are powers of two, or f32, need no rounding and are applied last.

        Args:
            weights: the weights.
            storage: the packed format of their values.
            scale: their scales, ``[columns, groups]``.
            zero: their zero points in the file, ``[columns, groups]``, or ``None`` for 0.
        """
        zero = _zero_points(weights.element, zero)
        factor, after = None, None if weights.scale is None else scale
        dropped_bits = (
            0
            if weights.scale is None or _powers_of_two(scale)
            else ROUNDINGS[weights.arithmetic].dropped_bits
        )
        gain = np.asarray(np.float32(2.0**dropped_bits))
        if dropped_bits:
            factor, after = _scalar_if_uniform(scale.astype(weights.arithmetic.dtype)), None
            if isinstance(storage, Int4Format) and _fits_int16(zero):
                mantissa, power = np.frexp(scale)
                factor = _scalar_if_uniform((mantissa * MANTISSA).astype(np.int16))
                after = np.ldexp(np.float32(1), power - 1)
                gain = gain * np.float32(2 / MANTISSA)
        if after is None:
            return cls(zero, factor, dropped_bits, None, gain)
        after = _scalar_if_uniform(after)
        if not after.ndim or after.shape[1] == 1:
            return cls(zero, factor, dropped_bits, None, gain * (after[:, 0] if after.ndim else after))
        return cls(zero, factor, dropped_bits, after.astype(weights.arithmetic.dtype), gain)

    def steps(self, place: slice, blocks: RowBlocks) -> tuple[Step, ...]:
        """Return the steps before rounding for a range of columns."""
        steps = ((np.subtract, self.zero), (np.multiply, self.factor))
        rows_of_steps = ((ufunc, _rows_of_blocks(array, place, blocks)) for ufunc, array in steps)
        return tuple((ufunc, rows) for ufunc, rows in rows_of_steps if rows is not None)


def _dequantized_values(element: E, arithmetic: E) -> Array | None:
    """Return the value of each quantized code, in order, before zero point and scale; ``None`` for unsupported types."""
    if element in (E.u8, E.i8):
        return np.arange(256, dtype=np.float32) - (128 if element is E.i8 else 0)
    return dequantized_table(element, arithmetic) if element in (E.u2, E.u4, E.i4, E.nf4, E.f4e2m1) else None


def _storage_format(element: E, numbers: Array) -> StorageFormat:
    if element in (E.u8, E.i8):
        return Int8Format(np.uint8 if element is E.u8 else np.int8)
    return LookupFormat(numbers) if element.real else Int4Format()


def _powers_of_two(scale: Array) -> bool:
    """Return whether all scales are powers of two, or 0, so that products with them are exact."""
    return bool(np.isin(np.abs(np.frexp(scale)[0]), (0, 0.5)).all())


def _rounds_in_place(numbers: Array, scale: Array, rounding: Rounding) -> bool:
    """Return whether `_round` rounds every product ``number * scale`` to the type that ``rounding`` describes.

    No product but 0 may be below `MIN_PRODUCT`, or subnormal in that type; subnormal products of integers are allowed, as they
    are exact.
    """
    if not rounding.dropped_bits:
        return True
    integers = np.array_equal(numbers, np.rint(numbers))
    smallest = _smallest_nonzero(scale) * (1 if integers else _smallest_nonzero(numbers))
    return smallest >= (MIN_PRODUCT if integers else max(rounding.min_normal, MIN_PRODUCT))


def _smallest_nonzero(numbers: Array) -> float:
    """Return the smallest nonzero magnitude, or infinity if there is none."""
    sizes = np.abs(numbers[numbers != 0])
    return float(sizes.min()) if sizes.size else np.inf


def _zero_points(element: E, zero: Array | None) -> Array | None:
    """Return zero points ``[columns, groups]`` or a scalar, as int16 if they are integers, or ``None`` for 0."""
    if element is E.i4:  # its stored values are biased by 8
        zero = np.full((1, 1), 8, np.float32) if zero is None else zero + 8
    if zero is None:
        return None
    integers = np.array_equal(zero, np.rint(zero)) and np.abs(zero).max() <= MAX_ZERO_POINT
    return _scalar_if_uniform(zero.astype(np.int16) if integers else zero)


def _fits_int16(zero: Array | None) -> bool:
    """Return whether 4-bit values minus zero points can be multiplied by scales in 16 bits."""
    if zero is None:
        return True
    return zero.dtype == np.int16 and bool(15 - zero.min() < MAX_DIFFERENCE and zero.max() < MAX_DIFFERENCE)


def _scalar_if_uniform(array: Array) -> Array:
    """Return a scalar if all elements are equal, else the array itself."""
    first = array[:1, :1]
    return first.reshape(()) if (array == first).all() else array


def _rows_of_blocks(array: Array | None, place: slice, blocks: RowBlocks) -> Array | None:
    """Return the columns ``place`` of ``array[columns, groups]`` as a row for each block, ``[blocks, columns]``.

    The number of columns is padded to be even. Scalars and ``None`` are returned as they are.
    """
    if array is None or not array.ndim:
        return array
    rows = array[place].T
    rows = np.pad(rows, ((0, 0), (0, rows.shape[1] % 2)))
    if blocks.groups == 1:
        return np.broadcast_to(rows, (blocks.count, rows.shape[1]))
    return np.repeat(rows, blocks.blocks_per_group, axis=0)


def _pack_panels(
    weights: QuantizedWeights,
    transposed: bool,
    blocks: RowBlocks,
    storage: StorageFormat,
    slices: Sequence[slice],
) -> list[Array]:
    """Return the packed values of every panel, and release the pages of the file that held the weights."""
    wide = [place.stop - place.start + (place.stop - place.start) % 2 for place in slices]
    packed = [storage.allocate(blocks.count, blocks.stored, columns) for columns in wide]
    for index, block, values in quantized_blocks(weights, transposed, blocks, slices):
        packed[index][block : block + len(values)] = storage.pack(values)
    let_go(weights.codes.raw if isinstance(weights.codes, Packed) else weights.codes)
    return packed
