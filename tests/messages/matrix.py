"""Messages for invalid matrix products, inverses and einsums."""

from __future__ import annotations

import numpy as np
from harness.refusals import Refusal, refusal


def sums(name: str, equation: str, *operands: str) -> Refusal:
    return refusal(f"Einsum: {name}", "Einsum-7", *operands, equation=equation)


REFUSALS = [
    refusal("MatMul: transpose_b would fit", "MatMul-1", "f32 2,3", "f32 4,3"),
    refusal("MatMul: transpose_b does not fit", "MatMul-1", "f32 2,3", "f32 3,4", transpose_b=True),
    refusal("MatMul: transpose_a would fit", "MatMul-1", "f32 3,2", "f32 3,4"),
    refusal("MatMul: nothing would fit", "MatMul-1", "f32 2,3", "f32 4,5"),
    refusal("MatMul: vectors", "MatMul-1", "f32 3", "f32 4", transpose_b=True),
    refusal("MatMul: batches", "MatMul-1", "f32 2..4,2,3", "f32 5,3,2"),
    refusal("MatMul: scalar", "MatMul-1", "f32 ...", "f32"),
    sums("count of inputs", "ij,jk->ik", "f32 2,3"),
    sums("lengths", "ij,jk->ik", "f32 2,3", "f32 4,4"),
    sums("rank", "ij", "f32 2,3,4"),
    sums("rank below that of an ellipsis", "i...j", "f32 2"),
    sums("lengths of a diagonal", "ii->i", "f32 2,3"),
    sums("what ellipses cover", "...i,...i", "f32 2,3", "f32 4,3"),
    sums("a label from nowhere", "ij->ijk", "f32 2,3"),
    sums("a label twice", "ij->ii", "f32 2,3"),
    sums("a digit", "i1->i", "f32 2,3"),
    sums("two ellipses", "...i...->i", "f32 2,3"),
    refusal("Inverse: not square", "Inverse-14", "f32 ?,..2,3.."),
    refusal("Inverse: rank", "Inverse-14", "f32 3"),
    refusal("Inverse: none", "Inverse-14", np.zeros((2, 2), np.float32)),
    refusal("Inverse: none when run", "Inverse-14", np.ones((2, 2), np.float32), _run=True),
    refusal("GroupedMatMul: rank with offsets", "GroupedMatMul-17", "f32 2,3,4", "f32 2,5,4", "i64 2"),
    refusal("GroupedMatMul: rank without offsets", "GroupedMatMul-17", "f32 3,4", "f32 2,5,4"),
    refusal("GroupedMatMul: rank of the matrices", "GroupedMatMul-17", "f32 3,4", "f32 4,5", "i64 2"),
    refusal("GroupedMatMul: matrices not transposed", "GroupedMatMul-17", "f32 3,4", "f32 2,4,5", "i64 2"),
    refusal("GroupedMatMul: lengths", "GroupedMatMul-17", "f32 3,4", "f32 2,6,5", "i64 2"),
    refusal("GroupedMatMul: groups of offsets", "GroupedMatMul-17", "f32 3,4", "f32 2,5,4", "i64 3"),
    refusal("GroupedMatMul: offsets of two axes", "GroupedMatMul-17", "f32 3,4", "f32 2,5,4", "i64 1,2"),
    refusal("GroupedMatMul: groups", "GroupedMatMul-17", "f32 3,2,4", "f32 2,5,4"),
    refusal(
        "GroupedMatMul: offsets that fall when run",
        "GroupedMatMul-17",
        np.ones((3, 2), np.float32),
        np.ones((2, 1, 2), np.float32),
        [2, 1],
        _run=True,
    ),
]
