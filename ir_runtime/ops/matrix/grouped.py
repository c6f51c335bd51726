"""Grouped matrix products: groups of rows, each with its own matrix (mixture of experts)."""

from __future__ import annotations

import numpy as np

from ...ir.dimension import Dimension
from ...ir.formula import Count
from ...ir.operands import Operands
from ...ir.shape import PartialShape
from ...ir.tensor import Array, Value
from .._define.operation import T_INDEX_64, InferenceError, Input, Op, Output, T, op
from .._lengths import check_vector, listed
from ..kernels.matmul import matmul


@op("GroupedMatMul-17", spec="matrix/grouped-matmul-17")
class GroupedMatMul(Op):
    """Multiply groups of rows of ``mat_a`` with the transposed matrices ``mat_b``.

    Older pages have the matrices as [G, K, N], and two matrices instead of a stack; OpenVINO has
    neither. Rows beyond the last offset give 0, as in its reference. OpenVINO 2026.4 infers shapes
    of this operation, but does not run it yet.
    """

    flops_per_element = 0

    mat_a = Input(T, "[rows, K] where offsets part them into groups, or [G, M, K]")
    mat_b = Input(T, "[G, N, K]")
    offsets = Input(T_INDEX_64, "[G], where each group of rows ends; only for 2-D mat_a", optional=True)
    output = Output(T, "[rows, N] or [G, M, N]")

    def infer(self, mat_a: Value, mat_b: Value, offsets: Value | None = None) -> PartialShape:
        a, b = mat_a.shape, mat_b.shape
        rank = 3 if offsets is None else 2
        if a.rank not in (None, rank):
            form = "[G, M, K]" if offsets is None else "[rows, K]"
            raise InferenceError(
                f"mat_a has shape {a}; {form} is expected {_with(offsets)} offsets",
                clause="mat_a has rank 2 with offsets, and 3 without",
            )
        if b.rank not in (None, 3):
            raise InferenceError(f"mat_b has shape {b}; [G, N, K] is expected", clause="mat_b is [G, N, K]")
        a = PartialShape.dynamic(rank) if a.rank is None else a
        b = PartialShape.dynamic(3) if b.rank is None else b
        if not a[-1].compatible(b[-1]):
            raise InferenceError(
                f"mat_a {a} and mat_b {b} differ in length along their last axis, K",
                hint="mat_b is [G, N, K], with its matrices transposed" if a[-1].compatible(b[-2]) else "",
                clause="mat_a and mat_b have equal lengths along their last axis, K",
            )
        if offsets is None:
            return PartialShape([_groups(a[0], b[0], "mat_a"), a[1], b[1]])
        check_vector(offsets, "offsets")
        if offsets.shape.rank is not None:
            _groups(offsets.shape[0], b[0], "offsets")
        return PartialShape([a[0], b[1]])

    def evaluate(self, mat_a: Array, mat_b: Array, offsets: Array | None = None) -> Array:
        columns = np.swapaxes(mat_b, -1, -2)
        if offsets is None:
            return matmul(mat_a, columns)
        ends = offsets.tolist()
        starts = [0, *ends][: len(ends)]
        if sorted([0, *ends, len(mat_a)]) != [0, *ends, len(mat_a)]:
            raise InferenceError(
                f"offsets is {listed(ends)}; it must rise from 0 to {len(mat_a)}, the rows of mat_a, at most",
                clause="offsets rises from 0 to the rows of mat_a at most",
            )
        output = np.zeros((len(mat_a), columns.shape[-1]), mat_a.dtype)
        for matrix, start, end in zip(columns, starts, ends, strict=True):
            output[start:end] = matmul(mat_a[start:end], matrix)
        return output

    def macs(self, operands: Operands) -> Count:
        """Return one MAC for each element of the output and each column of mat_a."""
        return operands.result * operands.inputs[0][-1]


def _with(offsets: Value | None) -> str:
    return "without" if offsets is None else "with"


def _groups(groups: Dimension, expected: Dimension, name: str) -> Dimension:
    merged = groups.merge(expected)
    if merged is None:
        raise InferenceError(
            f"{name} has {groups} groups, mat_b has {expected}", clause=f"{name} has as many groups as mat_b"
        )
    return merged
