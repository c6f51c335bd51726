"""Sparse operations: sums over rows of embedding tables, and sparse tensors without empty rows."""

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

# Embedding bags: sums over rows of an embedding table.


class EmbeddingBagBase(Op):
    """Base of embedding bags: rows of a table, weighted and summed in groups.

    Small floating-point types are summed in f32 and rounded once.
    """

    emb_table = Input(T, "[rows, ...]: the rows to add up")

    reduction = "sum"

    def shape(
        self,
        emb_table: Value,
        groups: Dimension,
        indices: Value,
        per_sample_weights: Value | None,
        default_index: Value | None = None,
    ) -> PartialShape:
        """Return the shape of the output, one entry for each group."""
        if per_sample_weights is not None:
            if self.reduction != "sum":
                raise InferenceError(
                    f"per_sample_weights are given, but attribute 'reduction' is {self.reduction}; only sum takes "
                    f"weights",
                    clause="per_sample_weights come with reduction sum only",
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
        """Validate the inputs by inference, now that all numbers are known."""
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
        """Sum the rows of ``count`` groups, given the group of each index."""
        if default is not None and default < 0:
            default = None
        if not indices.size:  # no memory for sums of nothing
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
        """Return one FLOP for each element of each summed row, two if weighted."""
        names = [port.name for port in self.inputs[: len(operands.inputs)]]
        factor = 2 if "per_sample_weights" in names else 1
        return factor * size(operands.inputs[1]) * size(operands.inputs[0][1:])


class OffsetBags(EmbeddingBagBase):
    """Bags given by their start offsets in a list of indices."""

    indices = Input(T_INDEX_64, "1-D: rows of the table, bag after bag")
    offsets = Input(T_INDEX_64, "1-D: where in indices each bag starts, ascending")
    default_index = Input(
        T_INDEX_64, "scalar: row for empty bags; absent or -1, they are zeros", optional=True
    )
    per_sample_weights = Input(T, "1-D: a factor for each index", optional=True)
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
        first = int(starts[0]) if len(starts) else len(indices)  # indices before it are in no bag
        bag = np.repeat(np.arange(len(starts)), steps)
        weights = None if per_sample_weights is None else per_sample_weights[first:]
        return self.reduce(emb_table, indices[first:], bag, len(offsets), default_index, weights)


@op("EmbeddingBagOffsetsSum-3")
class EmbeddingBagOffsetsSum(OffsetBags):
    """For each bag, the sum of the rows of ``emb_table`` at its ``indices``."""


@op("EmbeddingBagOffsets-15")
class EmbeddingBagOffsets(OffsetBags):
    """For each bag, the sum or mean of the rows of ``emb_table`` at its ``indices``."""

    reduction: Literal["sum", "mean"] = attr(
        "sum", doc="how rows of a bag are reduced; only sum takes weights"
    )


class PackedBags(EmbeddingBagBase):
    """Bags of equal size, one per row of indices."""

    indices = Input(T_INDEX_64, "[bags, rows of a bag]: rows of the table")
    per_sample_weights = Input(T, "a factor for each index", optional=True)
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
    """For each row of ``indices``, the sum of those rows of ``emb_table``."""


@op("EmbeddingBagPacked-15")
class EmbeddingBagPacked(PackedBags):
    """For each row of ``indices``, the sum or mean of those rows of ``emb_table``."""

    reduction: Literal["sum", "mean"] = attr(
        "sum", doc="how rows of a bag are reduced; only sum takes weights"
    )


@op("EmbeddingSegmentsSum-3")
class EmbeddingSegmentsSum(EmbeddingBagBase):
    """For each segment, the sum of the rows of ``emb_table`` whose ``indices`` belong to it."""

    indices = Input(T_INDEX_64, "1-D: rows of the table")
    segment_ids = Input(T_INDEX_64, "1-D: the segment of each index")
    num_segments = Input(T_INDEX_64, "scalar: how many segments there are")
    default_index = Input(
        T_INDEX_64, "scalar: row for empty segments; absent or -1, they are zeros", optional=True
    )
    per_sample_weights = Input(T, "1-D: a factor for each index", optional=True)
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
    """Require known offsets that ascend and stay within the indices."""
    check_at_most(offsets, "offsets", count, "the number of indices")
    values = offsets.ints() or ()
    for before, after in pairwise(values):
        if after < before:
            raise InferenceError(
                f"offsets must be in ascending order, but {after} comes after {before}",
                clause="offsets are in ascending order",
            )


# Sparse matrices in COO format: fill empty rows.

T_VALUE = Element("T", (*NUMBERS, ElementType.string), "any numeric type or string")


@op("SparseFillEmptyRows-16", spec="sparse/fill-empty-rows-16")
class SparseFillEmptyRows(Op):
    """Put ``default_value`` at the start of each row of a sparse matrix that has no elements."""

    flops_per_element = 0

    values = Input(T_VALUE, "1-D: the elements")
    dense_shape = Input(T_INDEX_64, "rows and columns of the matrix")
    indices = Input(T_INDEX_64, "[elements, 2]: row and column of each element")
    default_value = Input(T_VALUE, "scalar for empty rows", mixed=True)
    output_indices = Output(T_INDEX_64, "[elements, 2]: row and column of each element, in row-major order")
    output_values = Output(T_VALUE, "1-D: the elements in that order")
    empty_row_indicator = Output(ElementType.boolean, "1-D: for each row whether it was empty")

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
        # Each row gets at most one element, and if there are elements, one row at least needs none.
        most = None if count.max is None or rows.max is None else count.max + rows.max - (count.min > 0)
        return Dimension.between(max(count.min, rows.min), most)

    def evaluate(
        self, values: Array, dense_shape: Array, indices: Array, default_value: Array
    ) -> tuple[Array, Array, Array]:
        self.infer(
            *map(Value.constant, (values, dense_shape, indices, default_value))
        )  # raises if out of range
        occupied = np.zeros(int(dense_shape[0]), bool)
        occupied[indices[:, 0]] = True
        added = np.zeros((np.count_nonzero(~occupied), 2), indices.dtype)
        added[:, 0] = np.flatnonzero(~occupied)
        places = np.concatenate([indices, added])
        filled = np.concatenate([values, np.full(len(added), default_value, values.dtype)])
        order = np.lexsort((places[:, 1], places[:, 0]))
        return places[order], filled[order], ~occupied
