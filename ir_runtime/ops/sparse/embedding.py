"""Embedding bags: sums over rows of an embedding table."""

from __future__ import annotations

from itertools import pairwise
from typing import Literal

import numpy as np

from ...errors import InferenceError
from ...ir.dimension import Dimension
from ...ir.formula import Count
from ...ir.operands import Operands, size
from ...ir.shape import PartialShape
from ...ir.tensor import Array, Value
from .._define.operation import T_INDEX_64, Input, Op, Output, T, attr, op
from .._lengths import check_scalar, check_vector, length_of, of_rank
from .._within import check_at_most, check_below
from ..kernels.matmul import accumulator_dtype, from_accumulator


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
