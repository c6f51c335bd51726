"""Sparse operations: embedding bags, and SparseFillEmptyRows."""

from __future__ import annotations

from itertools import pairwise
from typing import Literal

import numpy as np

from ..errors import InferenceError
from ..ir.dimension import Dimension
from ..ir.element import ElementType
from ..ir.formula import Count
from ..ir.operation import Operands, size
from ..ir.shape import PartialShape
from ..ir.tensor import Array, Value
from ._define.operation import NUMBERS, T_INDEX_64, Element, Input, Op, Output, T, attr, op
from ._lengths import check_at_most, check_below, check_scalar, check_vector, length_of, lengths_of, of_rank
from .kernels.matmul import accumulator_dtype, from_accumulator

# Embedding bags: sums or means of rows of an embedding table.


class EmbeddingBagBase(Op):
    """Base of embedding bags, which reduce groups of rows of a table.

    f16 and bf16 are summed in f32 and rounded once.
    """

    emb_table = Input(T, "the embedding table, [rows, ...]")

    reduction = "sum"

    def shape(
        self,
        emb_table: Value,
        groups: Dimension,
        indices: Value,
        per_sample_weights: Value | None,
        default_index: Value | None = None,
    ) -> PartialShape:
        """Check the inputs, and return the output shape ``[groups, ...]``."""
        if per_sample_weights is not None:
            if self.reduction != "sum":
                raise InferenceError(
                    f"per_sample_weights are given, but attribute 'reduction' is {self.reduction}; only sum takes "
                    f"weights",
                    clause="per_sample_weights are given with reduction sum only",
                )
            if not per_sample_weights.shape.compatible(indices.shape):
                raise InferenceError(
                    f"per_sample_weights {per_sample_weights.shape} must be of the shape of indices, {indices.shape}",
                    clause="per_sample_weights has the shape of indices",
                )
        if emb_table.shape.rank is None:
            return PartialShape.dynamic()
        if emb_table.shape.rank == 0:
            raise InferenceError(
                "emb_table must have rank 1 or more, [rows, ...], found a scalar",
                clause="emb_table has at least one axis",
            )
        check_below(indices, "indices", emb_table.shape[0], "rows in emb_table")
        if default_index is not None and min(default_index.ints() or (0,)) >= 0:
            check_below(default_index, "default_index", emb_table.shape[0], "rows in emb_table")
        return emb_table.shape.replace({0: groups})

    def check(self, *inputs: Array | None) -> None:
        """Check the contents of all inputs, by inference on known values."""
        self.infer(*(None if x is None else Value.constant(x) for x in inputs))

    def reduce(
        self,
        emb_table: Array,
        indices: Array,
        group: Array,
        count: int,
        default: Array | None = None,
        weights: Array | None = None,
    ) -> Array:
        """Reduce groups of rows of the table.

        Args:
            emb_table: the table.
            indices: the rows to reduce.
            group: the group of each index.
            count: the number of groups.
            default: the row that is the result of an empty group; zeros if negative or absent.
            weights: a factor for each index.
        """
        if default is not None and default < 0:
            default = None
        if not indices.size:  # needs no accumulator
            row = np.zeros((), emb_table.dtype) if default is None else emb_table[default]
            return np.full((count, *emb_table.shape[1:]), row, emb_table.dtype)
        work = accumulator_dtype(emb_table.dtype)
        rows = emb_table[indices].astype(work, copy=False)
        if weights is not None:
            rows = rows * weights.astype(work).reshape(-1, *[1] * (emb_table.ndim - 1))
        sums = np.zeros((count, *emb_table.shape[1:]), work)
        np.add.at(sums, group, rows)
        sizes = np.bincount(group, minlength=count)
        if self.reduction == "mean":
            divisors = np.maximum(sizes, 1).reshape(-1, *[1] * (emb_table.ndim - 1))
            sums = sums / divisors if emb_table.dtype.kind in "fV" else np.trunc(sums / divisors)
        result = from_accumulator(np.asarray(sums, work), emb_table.dtype)
        if default is not None:
            result[sizes == 0] = emb_table[default]
        return result

    def flops(self, operands: Operands) -> Count:
        """Return one FLOP for each element of each summed row, or two if it is weighted."""
        names = [port.name for port in self.inputs[: len(operands.inputs)]]
        factor = 2 if "per_sample_weights" in names else 1
        return factor * size(operands.inputs[1]) * size(operands.inputs[0][1:])


class OffsetBags(EmbeddingBagBase):
    """Base of embedding bags that are given by offsets in a list of indices."""

    indices = Input(T_INDEX_64, "rows of the table, bag after bag, 1-D")
    offsets = Input(T_INDEX_64, "the start of each bag in indices, 1-D and ascending")
    default_index = Input(T_INDEX_64, "row for empty bags, a scalar; zeros if absent or -1", optional=True)
    per_sample_weights = Input(T, "factor of each index, 1-D", optional=True)
    output = Output(T, "[bags, ...]")

    def infer(
        self,
        emb_table: Value,
        indices: Value,
        offsets: Value,
        default_index: Value | None = None,
        per_sample_weights: Value | None = None,
    ) -> PartialShape:
        check_vector(indices, "indices")
        check_vector(offsets, "offsets")
        if default_index is not None:
            check_scalar(default_index, "default_index")
        _check_ascending(offsets, indices.count)
        return self.shape(emb_table, offsets.count, indices, per_sample_weights, default_index)

    def evaluate(
        self,
        emb_table: Array,
        indices: Array,
        offsets: Array,
        default_index: Array | None = None,
        per_sample_weights: Array | None = None,
    ) -> Array:
        self.check(emb_table, indices, offsets, default_index, per_sample_weights)
        starts = offsets.astype(np.int64)
        steps = np.append(starts[1:], len(indices)) - starts if len(starts) else starts
        first = int(starts[0]) if len(starts) else len(indices)  # earlier indices belong to no bag
        bag = np.repeat(np.arange(len(starts)), steps)
        weights = None if per_sample_weights is None else per_sample_weights[first:]
        return self.reduce(emb_table, indices[first:], bag, len(offsets), default_index, weights)


@op("EmbeddingBagOffsetsSum-3")
class EmbeddingBagOffsetsSum(OffsetBags):
    """The sum of the rows of ``emb_table`` in each bag, whose ``indices`` start at ``offsets``."""


@op("EmbeddingBagOffsets-15")
class EmbeddingBagOffsets(OffsetBags):
    """The sum or mean of the rows of ``emb_table`` in each bag, whose ``indices`` start at ``offsets``."""

    reduction: Literal["sum", "mean"] = attr(
        "sum", doc="reduction of the rows of a bag; only sum allows weights"
    )


class PackedBags(EmbeddingBagBase):
    """Base of embedding bags of equal size, one for each row of ``indices``."""

    indices = Input(T_INDEX_64, "rows of the table, [bags, rows of a bag]")
    per_sample_weights = Input(T, "factor of each index, of the shape of indices", optional=True)
    output = Output(T, "[bags, ...]")

    def infer(
        self, emb_table: Value, indices: Value, per_sample_weights: Value | None = None
    ) -> PartialShape:
        of_rank(indices, "indices", "[bags, rows of a bag]")
        shape = indices.shape if per_sample_weights is None else indices.shape.merge(per_sample_weights.shape)
        bags = shape[0] if shape is not None and shape.rank else Dimension()
        return self.shape(emb_table, bags, indices, per_sample_weights)

    def evaluate(self, emb_table: Array, indices: Array, per_sample_weights: Array | None = None) -> Array:
        self.check(emb_table, indices, per_sample_weights)
        bag = np.repeat(np.arange(len(indices)), indices.shape[1])
        weights = None if per_sample_weights is None else per_sample_weights.ravel()
        return self.reduce(emb_table, indices.ravel(), bag, len(indices), weights=weights)


@op("EmbeddingBagPackedSum-3")
class EmbeddingBagPackedSum(PackedBags):
    """The sum of the rows of ``emb_table`` in each bag, which is a row of ``indices``."""


@op("EmbeddingBagPacked-15")
class EmbeddingBagPacked(PackedBags):
    """The sum or mean of the rows of ``emb_table`` in each bag, which is a row of ``indices``."""

    reduction: Literal["sum", "mean"] = attr(
        "sum", doc="reduction of the rows of a bag; only sum allows weights"
    )


@op("EmbeddingSegmentsSum-3")
class EmbeddingSegmentsSum(EmbeddingBagBase):
    """The sum of the rows of ``emb_table`` in each segment, given the segment of each of ``indices``."""

    indices = Input(T_INDEX_64, "rows of the table, 1-D")
    segment_ids = Input(T_INDEX_64, "the segment of each index, 1-D")
    num_segments = Input(T_INDEX_64, "number of segments, a scalar")
    default_index = Input(
        T_INDEX_64, "row for empty segments, a scalar; zeros if absent or -1", optional=True
    )
    per_sample_weights = Input(T, "factor of each index, 1-D", optional=True)
    output = Output(T, "[segments, ...]")

    def infer(
        self,
        emb_table: Value,
        indices: Value,
        segment_ids: Value,
        num_segments: Value,
        default_index: Value | None = None,
        per_sample_weights: Value | None = None,
    ) -> PartialShape:
        check_vector(indices, "indices")
        if not segment_ids.shape.compatible(indices.shape):
            raise InferenceError(
                f"segment_ids {segment_ids.shape} must be of the shape of indices, {indices.shape}",
                clause="segment_ids has the shape of indices",
            )
        check_scalar(num_segments, "num_segments")
        if default_index is not None:
            check_scalar(default_index, "default_index")
        segments = length_of(num_segments, "num_segments")
        check_below(segment_ids, "segment_ids", segments, "segments")
        return self.shape(emb_table, segments, indices, per_sample_weights, default_index)

    def evaluate(
        self,
        emb_table: Array,
        indices: Array,
        segment_ids: Array,
        num_segments: Array,
        default_index: Array | None = None,
        per_sample_weights: Array | None = None,
    ) -> Array:
        self.check(emb_table, indices, segment_ids, num_segments, default_index, per_sample_weights)
        count = int(num_segments)
        return self.reduce(emb_table, indices, segment_ids, count, default_index, per_sample_weights)


def _check_ascending(offsets: Value, count: Dimension) -> None:
    """Require that known offsets ascend, and are at most the number of indices."""
    check_at_most(offsets, "offsets", count, "the number of indices")
    values = offsets.ints() or ()
    for before, after in pairwise(values):
        if after < before:
            raise InferenceError(
                f"offsets must be in ascending order, but {after} comes after {before}",
                clause="offsets are in ascending order",
            )


# SparseFillEmptyRows, on sparse matrices in COO format.

T_VALUE = Element("T", (*NUMBERS, ElementType.string), "any numeric type or string")


@op("SparseFillEmptyRows-16", spec="sparse/fill-empty-rows-16")
class SparseFillEmptyRows(Op):
    """Insert ``default_value`` at the start of each empty row of a sparse matrix."""

    flops_per_element = 0

    values = Input(T_VALUE, "the elements, 1-D")
    dense_shape = Input(T_INDEX_64, "numbers of rows and columns of the matrix, [2]")
    indices = Input(T_INDEX_64, "row and column of each element, [elements, 2]")
    default_value = Input(T_VALUE, "element to insert into empty rows, a scalar", mixed=True)
    output_indices = Output(T_INDEX_64, "row and column of each element, in row-major order, [elements, 2]")
    output_values = Output(T_VALUE, "the elements in the same order, 1-D")
    empty_row_indicator = Output(ElementType.boolean, "whether each row was empty, 1-D")

    def infer(
        self, values: Value, dense_shape: Value, indices: Value, default_value: Value
    ) -> tuple[PartialShape, PartialShape, PartialShape]:
        check_vector(values, "values")
        check_scalar(default_value, "default_value")
        lengths = lengths_of(dense_shape, "dense_shape")
        lengths = (Dimension(), Dimension()) if lengths is None else lengths
        if len(lengths) != 2:
            raise InferenceError(
                f"dense_shape must hold 2 numbers, of rows and of columns, found {len(lengths)}",
                clause="dense_shape has 2 numbers",
            )
        places = indices.shape.merge(PartialShape([values.count, 2]))
        if places is None:
            raise InferenceError(
                f"indices must be {PartialShape([values.count, 2])}, a row and a column for each of values, found {indices.shape}",
                clause="indices is [values, 2], a row and a column for each of values",
            )
        total = self._total(places[0], *lengths, indices.known())
        return PartialShape([total, 2]), PartialShape([total]), PartialShape([lengths[0]])

    def _total(
        self, count: Dimension, rows: Dimension, columns: Dimension, positions: Array | None
    ) -> Dimension:
        """Return the number of elements after filling empty rows."""
        if positions is not None and positions.size:
            for axis, (length, name) in enumerate(((rows, "row"), (columns, "column"))):
                places = Value.constant(positions[:, axis])
                check_below(places, f"column {axis} of indices", length, f"{name}s in dense_shape")
        if positions is not None:
            return Dimension.of(rows - len(np.unique(positions[:, 0])) + len(positions))
        # Each row gets at most one element, and if there are elements, at least one row gets none.
        most = None if count.max is None or rows.max is None else count.max + rows.max - (count.min > 0)
        return Dimension.between(max(count.min, rows.min), most)

    def evaluate(
        self, values: Array, dense_shape: Array, indices: Array, default_value: Array
    ) -> tuple[Array, Array, Array]:
        # Inference raises if indices are out of range.
        self.infer(*map(Value.constant, (values, dense_shape, indices, default_value)))
        occupied = np.zeros(int(dense_shape[0]), bool)
        occupied[indices[:, 0]] = True
        added = np.zeros((np.count_nonzero(~occupied), 2), indices.dtype)
        added[:, 0] = np.flatnonzero(~occupied)
        positions = np.concatenate([indices, added])
        filled = np.concatenate([values, np.full(len(added), default_value, values.dtype)])
        order = np.lexsort((positions[:, 1], positions[:, 0]))
        return positions[order], filled[order], ~occupied
